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

from simulator.manager.releases import DEFAULT, RELEASES
from simulator.reading import nearest

TAGS: Final = {
    "quirk": "a reproduced upstream bug",
    "verified": "a recording of the real program shows the same",
    "slow": "takes more than 250 ms",
    "container": "needs a real image",
}
"""The closed list of plain tags; beside them stand issue-N, since-RELEASE, until-RELEASE."""

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
    config.addinivalue_line("markers", "since(release): holds from this release on")
    config.addinivalue_line("markers", "until(release): holds up to this release")
    release = config.getoption("--release")
    if release is not None and release not in RELEASES:
        raise pytest.UsageError(f'there is no release "{release}"; {nearest(release, RELEASES)}')


def pytest_bdd_apply_tag(tag: str, function: pytest.Function) -> bool:
    """A tag with a value becomes a marker with an argument; an unregistered tag is an error."""
    match = re.fullmatch(r"(issue|since|until)-(.+)", tag)
    if match:
        if match[1] != "issue" and match[2] not in RELEASES:
            raise pytest.UsageError(f"the tag @{tag} names no release; {nearest(match[2], RELEASES)}")
        getattr(pytest.mark, match[1])(match[2])(function)
    elif tag in TAGS:
        getattr(pytest.mark, tag)(function)
    else:
        raise pytest.UsageError(f"the tag @{tag} is not registered; {nearest(tag, TAGS)}")
    return True


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
    since = max((_ORDER[mark.args[0]] for mark in item.iter_markers("since")), default=0)
    until = min((_ORDER[mark.args[0]] for mark in item.iter_markers("until")), default=len(_ORDER) - 1)
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
