"""The feature suite: collecting `.feature` files, choosing release and runner, tags.

`pytest features/`, `pytest features/<folder>` and `pytest features/x/y.feature` all work: pytest-bdd binds scenarios only
where a Python module asks for them, so each feature file is collected as a module that does.
"""

from __future__ import annotations

import re
import types
from pathlib import Path
from typing import Final

import pytest
from pytest_bdd import scenarios
from pytest_bdd.parser import Scenario

from features.steps.stage import NOTES_TREE
from simulator.manager.releases import DEFAULT, RELEASES
from simulator.reading import nearest

TAGS: Final = {
    "quirk": "a reproduced upstream bug",
    "verified": "a recording of the real program shows the same",
    "slow": "takes more than 250 ms",
    "container": "needs a real image",
}
"""The closed list of plain tags; beside them stand issue-N, since-RELEASE, until-RELEASE."""

_NEEDS_TREE: Final = ("nothing else on the node or host changed", "both runs leave the same trace")

_ORDER: Final = {tag: index for index, tag in enumerate(RELEASES)}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("features", "driver-manager features")
    group.addoption(
        "--release", metavar="R", default=None, help=f"run only what holds for this release (default: {DEFAULT} where it holds)"
    )
    group.addoption("--runner", choices=("simulated",), default="simulated", help="what executes driver-manager")


def pytest_configure(config: pytest.Config) -> None:
    for tag, text in TAGS.items():
        if tag not in {"slow", "container"}:
            config.addinivalue_line("markers", f"{tag}: {text}")
    config.addinivalue_line("markers", "issue(number): an upstream issue")
    for tag in RELEASES:
        config.addinivalue_line("markers", f"since-{tag}: holds from this release on")
        config.addinivalue_line("markers", f"until-{tag}: holds up to this release")
    release = config.getoption("--release")
    if release is not None and release not in RELEASES:
        raise pytest.UsageError(f'there is no release "{release}"; {nearest(release, RELEASES)}')


def pytest_bdd_apply_tag(tag: str, function: pytest.Function) -> bool:
    """A tag becomes a marker, an issue's one with its number; an unregistered tag is an error.

    Tags of an Examples block become markers of their rows without passing here.
    """
    match = re.fullmatch(r"(issue|since|until)-(.+)", tag)
    if match and match[1] == "issue":
        pytest.mark.issue(match[2])(function)
    elif match and match[2] not in RELEASES:
        raise pytest.UsageError(f"the tag @{tag} names no release; {nearest(match[2], RELEASES)}")
    elif match or tag in TAGS:
        getattr(pytest.mark, tag)(function)
    else:
        raise pytest.UsageError(f"the tag @{tag} is not registered; {nearest(tag, TAGS)}")
    return True


def pytest_bdd_before_scenario(request: pytest.FixtureRequest, scenario: Scenario) -> None:
    """Every file of the host is noted only for a scenario that looks at them all."""
    request.node.stash[NOTES_TREE] = any(step.name in _NEEDS_TREE for step in scenario.steps)


class FeatureFile(pytest.Module):
    """A `.feature` file as the module that binds its scenarios."""

    def _getobj(self) -> types.ModuleType:
        name = "feature_" + re.sub(r"\W", "_", str(self.path.relative_to(self.config.rootpath)))
        module = types.ModuleType(name)
        module.__file__ = str(self.path)
        namespace = vars(module)
        namespace["scenarios"] = scenarios
        exec(f"scenarios({str(self.path)!r})", namespace)  # binds into the namespace it is called from
        return module


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".feature":
        return FeatureFile.from_parent(parent, path=file_path)
    return None


def _range(item: pytest.Item) -> tuple[int, int]:
    """The first and the last release a scenario holds for, as indices."""
    names = {mark.name for mark in item.iter_markers()}
    since = max((index for tag, index in _ORDER.items() if f"since-{tag}" in names), default=0)
    until = min((index for tag, index in _ORDER.items() if f"until-{tag}" in names), default=len(_ORDER) - 1)
    return since, until


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--release` only the scenarios that hold for it are run."""
    release = config.getoption("--release")
    if release is None:
        return
    kept, dropped = [], []
    for item in items:
        since, until = _range(item)
        (kept if since <= _ORDER[release] <= until else dropped).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=dropped)


@pytest.fixture
def release(request: pytest.FixtureRequest) -> str:
    """The release a scenario runs on: the one asked for, else the default, else the nearest one it holds for."""
    asked = request.config.getoption("--release")
    if asked is not None:
        return str(asked)
    since, until = _range(request.node)
    return list(RELEASES)[min(max(_ORDER[DEFAULT], since), until)]
