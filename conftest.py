"""The step library is a plugin of the whole checkout, so that features and their tests share it."""

pytest_plugins = [
    "features.steps.stage",
    "features.steps.given",
    "features.steps.when",
    "features.steps.then",
    "features.steps.node",
    "features.steps.passthrough",
]
