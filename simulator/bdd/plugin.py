"""The pytest plugin `dmsim`: its options, and nothing else until a project sets the ini option `dmsim_features`.

Loaded by its entry point at every start of pytest, also in projects that do not know of it: so it imports nothing of the
simulator before it is asked to, and its names all begin with dmsim.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

INI: Final = "dmsim_features"
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "release": {
        "metavar": "R",
        "default": None,
        "help": "run only what holds for this release (default: v0.10.0 where it holds)",
    },
    "runner": {"choices": ("simulated", "container"), "default": "simulated", "help": "what executes driver-manager"},
    "image": {"metavar": "REF", "default": None, "help": "the driver-manager image that the runner container runs"},
    "longest": {
        "metavar": "SECONDS",
        "type": float,
        "default": 60.0,
        "help": "of a container: leave out runs that take longer (default: 60)",
    },
    "no-tracer": {
        "action": "store_true",
        "default": False,
        "help": "of a container: use Docker alone, though this machine can trace",
    },
}
"""Name without its prefix -> how argparse declares it."""
RESULTS: Final = "results"


def option_name(name: str) -> str:
    """Where pytest keeps an option's value, whichever way it was spelled."""
    return f"dmsim_{name.replace('-', '_')}"


def add_options(parser: pytest.Parser, prefix: str = "--dmsim-") -> None:
    """Declare the options; a project may declare them again under a prefix of its own."""
    group = parser.getgroup("dmsim", "driver-manager scenarios (where the ini option dmsim_features is set)")
    for name, declared in OPTIONS.items():
        group.addoption(prefix + name, dest=option_name(name), **declared)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, and the ini option that wakes the plugin."""
    parser.addini(INI, "folders whose .feature files dmsim collects, relative to this file", type="paths", default=[])
    add_options(parser)
    parser.getgroup("dmsim").addoption(
        f"--dmsim-{RESULTS}",
        metavar="FILE",
        dest=option_name(RESULTS),
        default=None,
        help="write what each scenario did; `dmsim report FILE -o html` makes a page of it",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Wake where a project asks for it. Raises UsageError for options that have nothing to act on."""
    if config.getini(INI):
        if not hasattr(config.hook, "pytest_bdd_apply_tag"):
            raise pytest.UsageError(
                f"{INI} is set, and pytest-bdd is not there; pip install 'driver-manager-simulator[pytest]', and let pytest load it"
            )
        _leave_asserts_as_they_are(config)
        from simulator.bdd.suite import wake  # noqa: PLC0415  # nothing of the simulator is loaded where it has no part

        wake(config)
        return
    for name, default in {RESULTS: None, **{name: declared["default"] for name, declared in OPTIONS.items()}}.items():
        if config.getoption(option_name(name), default) != default:
            raise pytest.UsageError(
                f"--dmsim-{name} has nothing to act on: no folder of features is named; write "
                f'`{INI} = ["features"]` under [tool.pytest.ini_options] in pyproject.toml, or `{INI} = features` under [pytest] '
                "in pytest.ini"
            )


def _leave_asserts_as_they_are(config: pytest.Config) -> None:
    """Keep pytest from rewriting the simulator's asserts.

    Of a distribution that has a plugin pytest rewrites every module. The model's own asserts have nothing to explain, no step
    has one, and compiling it anew takes longer than some suites, each time where no bytecode is written. pytest has no public
    way to say so; where its set of names is not what it was, everything is rewritten.
    """
    marked = getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", None)
    if isinstance(marked, set):
        marked.discard("simulator")
