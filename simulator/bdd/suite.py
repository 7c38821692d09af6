"""The feature suite: collecting `.feature` files, choosing release and runner, tags.

`pytest features/`, `pytest features/<folder>` and `pytest features/x/y.feature` all work: pytest-bdd binds scenarios only
where a Python module asks for them, so each feature file is collected as a module that does.
"""

from __future__ import annotations

import gc
import importlib
import re
import types
from collections import Counter
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from pytest_bdd import scenarios
from pytest_bdd.compat import get_fixture_names, getfixturedefs
from pytest_bdd.parser import Scenario, Step
from pytest_bdd.steps import StepFunctionContext, step_function_context_registry

from features.steps.runners import Container, Runner, Simulated
from features.steps.stage import NOTES_TREE
from features.steps.tags import ORDER, SIMULATED_ONLY, TAGS, problem, releases
from simulator.manager.releases import DEFAULT, RELEASES
from simulator.reading import nearest

_NEEDS_TREE: Final = ("nothing else on the node or host changed", "both runs leave the same trace", "is created")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("features", "driver-manager features")
    group.addoption(
        "--release", metavar="R", default=None, help=f"run only what holds for this release (default: {DEFAULT} where it holds)"
    )
    group.addoption("--runner", choices=("simulated", "container"), default="simulated", help="what executes driver-manager")
    group.addoption("--image", metavar="REF", default=None, help="the driver-manager image that --runner=container runs")
    group.addoption(
        "--longest",
        metavar="SECONDS",
        type=float,
        default=60.0,
        help="of a container: leave out runs that take longer (default: 60)",
    )
    group.addoption("--no-tracer", action="store_true", help="of a container: use Docker alone, though this machine can trace")


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
    image, container = config.getoption("--image"), config.getoption("--runner") == "container"
    if container and (image is None or release is None):
        raise pytest.UsageError("--runner=container needs --image REF, and --release R: whose scenarios the image is to show")
    if image is not None and not container:
        raise pytest.UsageError("--image is for --runner=container")


def pytest_bdd_apply_tag(tag: str, function: pytest.Function) -> bool:
    """A tag becomes a marker, an issue's one with its number; an unregistered tag is an error.

    Tags of an Examples block become markers of their rows without passing here.
    """
    if wrong := problem(tag):
        raise pytest.UsageError(wrong)
    mark = pytest.mark.issue(tag.removeprefix("issue-")) if tag.startswith("issue-") else getattr(pytest.mark, tag)
    mark(function)
    return True


def pytest_bdd_before_scenario(request: pytest.FixtureRequest, scenario: Scenario) -> None:
    """Every file of the host is noted only for a scenario that looks at them all."""
    request.node.stash[NOTES_TREE] = any(step.name.endswith(_NEEDS_TREE) for step in scenario.steps)


_machinery: Final = importlib.import_module("pytest_bdd.scenario")
_search: Final = _machinery.find_fixturedefs_for_step
_Found: TypeAlias = "list[pytest.FixtureDef[object]]"


@lru_cache(maxsize=1)
def _definitions(fixturemanager: pytest.FixtureManager, root: pytest.Session) -> list[tuple[Any, StepFunctionContext]]:
    """Every step definition. All are plugins of the whole checkout, so every scenario has the same."""
    return [
        (fixturedef, step_function_context_registry[fixturedef.func])
        for name in get_fixture_names(fixturemanager)
        for fixturedef in getfixturedefs(fixturemanager, name, root) or ()
        if fixturedef.func in step_function_context_registry
    ]


@cache
def _matching(fixturemanager: pytest.FixtureManager, root: pytest.Session, keyword: str, text: str) -> _Found:
    definitions = _definitions(fixturemanager, root)
    return [found for found, context in definitions if context.type == keyword and context.parser.is_matching(text)]


def _search_once(step: Step, fixturemanager: pytest.FixtureManager, node: pytest.Item) -> _Found:
    """pytest-bdd goes through every fixture, and twice, for each step of each scenario; once for each sentence will do."""
    if isinstance(node.parent, FeatureFile):
        return _matching(fixturemanager, node.session, step.type, step.name)
    return list(_search(step=step, fixturemanager=fixturemanager, node=node))


_machinery.find_fixturedefs_for_step = _search_once
for _asked in ("signature", "get_required_args"):
    setattr(_machinery, _asked, cache(getattr(_machinery, _asked)))


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
    return releases({mark.name for mark in item.iter_markers()})


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--release` only the scenarios that hold for it are run; on a container, none that are only for the model."""
    release = config.getoption("--release")
    if config.getoption("--runner") == "container":
        for item in items:
            for why, text in SIMULATED_ONLY.items():
                if item.get_closest_marker(f"simulated-only-{why}"):
                    item.add_marker(pytest.mark.skip(reason=f"excluded: {text}"))
    if release is None:
        return
    kept, dropped = [], []
    for item in items:
        since, until = _range(item)
        (kept if since <= ORDER[release] <= until else dropped).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=dropped)


def pytest_collection_finish() -> None:
    """What was collected lives to the end: looking through it again and again for garbage takes a seventh of the time."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def release(request: pytest.FixtureRequest) -> str:
    """The release a scenario runs on: the one asked for, else the default, else the nearest one it holds for."""
    asked = request.config.getoption("--release")
    if asked is not None:
        return str(asked)
    since, until = _range(request.node)
    return list(RELEASES)[min(max(ORDER[DEFAULT], since), until)]


@pytest.fixture(scope="session")
def runner(request: pytest.FixtureRequest) -> Runner:
    """Who runs the scenarios' worlds: the one asked for."""
    option = request.config.getoption
    if option("--runner") == "simulated":
        return Simulated()
    return Container(option("--image"), option("--longest"), False if option("--no-tracer") else None)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """On a container: what was excluded and why, and what could not be observed."""
    if config.getoption("--runner") != "container":
        return
    excluded = Counter(
        report.longrepr[2].removeprefix("Skipped: excluded: ")
        for report in terminalreporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple) and report.longrepr[2].startswith("Skipped: excluded: ")
    )
    unobserved: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", ()):
        for name, value in report.user_properties:
            if name == "unobserved":
                unobserved.update(value)
    terminalreporter.section("container")
    terminalreporter.line(f"image: {config.getoption('--image')} as {config.getoption('--release')}")
    terminalreporter.line(f"scenarios passed: {sum(report.when == 'call' for report in terminalreporter.stats.get('passed', ()))}")
    terminalreporter.line(f"scenarios excluded: {excluded.total()}")
    for reason, count in excluded.most_common():
        terminalreporter.line(f"  {count} {reason}")
    terminalreporter.line(f"comparisons not made, because unobserved: {unobserved.total()}")
    for part, count in unobserved.most_common():
        terminalreporter.line(f"  {count} {part}")
