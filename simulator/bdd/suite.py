"""The suite of a project: its tags, its releases, its runner, and what is said of wrong input.

Everything here concerns the `.feature` files of the folders that the project names: its tests of its own, also such as use
pytest-bdd, are left as they are.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest
from pytest_bdd.exceptions import StepDefinitionNotFoundError
from pytest_bdd.parser import Scenario, Step

from simulator.bdd.collecting import FeatureFile, Search
from simulator.bdd.finding import folders_of
from simulator.bdd.plugin import INI, option_name
from simulator.bdd.recording import watch
from simulator.bdd.stage import FOLDERS, NOTES_TREE
from simulator.bdd.tags import ORDER, SIMULATED_ONLY, TAGS, problem, releases
from simulator.bdd.unmet import NotMet, Unmet
from simulator.bdd.vocabulary import nearest_sentence
from simulator.manager.releases import DEFAULT, RELEASES
from simulator.reading import InputError, nearest

STEPS: Final = (
    "simulator.bdd.stage",
    "simulator.bdd.steps.given",
    "simulator.bdd.steps.when",
    "simulator.bdd.steps.then",
    "simulator.bdd.steps.node",
    "simulator.bdd.steps.passthrough",
)
"""The modules of the step library: plugins of the whole session, so that every scenario has all sentences."""
_FAILED: Final = pytest.StashKey[Step]()
"""The step in which a scenario failed."""
_NEEDS_TREE: Final = ("nothing else on the node or host changed", "both runs leave the same trace", "is created")


def wake(config: pytest.Config) -> None:
    """Register everything. Raises UsageError for settings and options that are wrong."""
    for folder in config.getini(INI):
        if not folder.is_dir():
            raise pytest.UsageError(f'{config.inipath}: {INI} names "{folder}", which is no folder; name one that is there')
    _check_options(config)
    _register_tags(config)
    for name in STEPS:
        config.pluginmanager.register(importlib.import_module(name), name)
    config.pluginmanager.register(Suite(config), "dmsim-suite")
    watch(config)


def _check_options(config: pytest.Config) -> None:
    release, image = config.getoption(option_name("release")), config.getoption(option_name("image"))
    if release is not None and release not in RELEASES:
        raise pytest.UsageError(f'there is no release "{release}"; {nearest(release, RELEASES)}')
    container = config.getoption(option_name("runner")) == "container"
    if container and (image is None or release is None):
        raise pytest.UsageError(
            "--dmsim-runner=container needs --dmsim-image REF, and --dmsim-release R: whose scenarios the image is to show"
        )
    if image is not None and not container:
        raise pytest.UsageError("--dmsim-image is for --dmsim-runner=container")


def _register_tags(config: pytest.Config) -> None:
    """Every tag is a marker; those that the project has registered itself stay as they are."""
    own = _markers(config)
    lines = {tag: f"{tag}: {text}" for tag, text in TAGS.items()} | {"issue": "issue(number): an upstream issue"}
    for tag in RELEASES:
        lines[f"since-{tag}"] = f"since-{tag}: holds from this release on"
        lines[f"until-{tag}"] = f"until-{tag}: holds up to this release"
    for name, line in lines.items():
        if name not in own:
            config.addinivalue_line("markers", line)


def _markers(config: pytest.Config) -> frozenset[str]:
    """The names of the registered markers."""
    return frozenset(re.split(r"[:(]", line, maxsplit=1)[0].strip() for line in config.getini("markers"))


class Suite:
    """The hooks."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.folders: tuple[Path, ...] = tuple(folder.resolve() for folder in config.getini(INI))
        self.release: str | None = config.getoption(option_name("release"))
        self.in_container: bool = config.getoption(option_name("runner")) == "container"
        self._markers = _markers(config)
        self._search = Search()
        self._search.start()

    def pytest_unconfigure(self) -> None:
        """pytest-bdd is as it was, for whoever runs pytest again in this process."""
        self._search.stop()

    def pytest_report_header(self) -> str:
        """On which release the scenarios are run, and by whom."""
        runner = "in a container" if self.in_container else "simulated"
        if self.release is not None:
            return f"dmsim: the scenarios that hold for {self.release}, {runner}"
        return f"dmsim: each scenario on {DEFAULT}, or on the nearest release that it is tagged for; --dmsim-release asks for one"

    # --- collecting -----------------------------------------------------------------------------------------------

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """A feature file of one of the folders."""
        if file_path.suffix != ".feature" or not any(folder in file_path.resolve().parents for folder in self.folders):
            return None
        return FeatureFile.from_parent(parent, path=file_path)

    def pytest_bdd_apply_tag(self, tag: str, function: Any) -> bool | None:
        """A tag becomes a marker, an issue's one with its number; an unregistered tag is an error.

        Tags of an Examples block become markers of their rows without passing here.
        """
        if not FeatureFile.is_binding:
            return None
        if wrong := problem(tag):
            if tag in self._markers:
                return None  # the project's own
            raise pytest.UsageError(f"{wrong}; a tag of your own is to be one of the markers in {self.config.inipath}")
        mark = pytest.mark.issue(tag.removeprefix("issue-")) if tag.startswith("issue-") else getattr(pytest.mark, tag)
        mark(function)
        return True

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """With a release only the scenarios that hold for it are run; on a container, none that are only for the model."""
        ours = [item for item in items if isinstance(item.parent, FeatureFile)]
        if self.in_container:
            for item in ours:
                for why, text in SIMULATED_ONLY.items():
                    if item.get_closest_marker(f"simulated-only-{why}"):
                        item.add_marker(pytest.mark.skip(reason=f"excluded: {text}"))
        if self.release is None:
            return
        at = ORDER[self.release]
        dropped = {item for item in ours if not _holds(item, at)}
        if dropped:
            items[:] = [item for item in items if item not in dropped]
            config.hook.pytest_deselected(items=list(dropped))

    # --- running ----------------------------------------------------------------------------------------------------

    def pytest_bdd_before_scenario(self, request: pytest.FixtureRequest, scenario: Scenario) -> None:
        """Every file of the host is noted only for a scenario that looks at them all; where its own hosts may lie."""
        request.node.stash[NOTES_TREE] = any(step.name.endswith(_NEEDS_TREE) for step in scenario.steps)
        request.node.stash[FOLDERS] = folders_of(request.node.path, self.config.rootpath)

    def pytest_bdd_step_error(self, request: pytest.FixtureRequest, step: Step) -> None:
        """Which step it was."""
        request.node.stash[_FAILED] = step

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """What is wrong with a scenario or a file it names is told in a line or two; a step that fails begins with its own lines."""
        if isinstance(item.parent, FeatureFile) and call.excinfo is not None and not self.config.getoption("fulltrace"):
            _cut(call.excinfo)
        report = yield
        if isinstance(item.parent, FeatureFile) and call.excinfo is not None:
            match call.excinfo.value:
                case Unmet() as unmet:
                    report.longrepr = NotMet(*_step_of(item), str(unmet))
                case InputError() as error:
                    report.longrepr = f"{item.nodeid.partition('::')[0]}: {error}"
                case StepDefinitionNotFoundError() as error:
                    said = re.search(r'not found: (\w+) "(.*)"\. Line ', str(error))
                    report.longrepr = f"{error}\n{nearest_sentence(said[1].lower(), said[2])}" if said else str(error)
        return report

    # --- telling ----------------------------------------------------------------------------------------------------

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """On a container: what was excluded and why, and what could not be observed."""
        if not self.in_container:
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
        terminalreporter.line(f"image: {self.config.getoption(option_name('image'))} as {self.release}")
        passed = sum(report.when == "call" and _of_feature(report) for report in terminalreporter.stats.get("passed", ()))
        terminalreporter.line(f"scenarios passed: {passed}")
        terminalreporter.line(f"scenarios excluded: {excluded.total()}")
        for reason, count in excluded.most_common():
            terminalreporter.line(f"  {count} {reason}")
        terminalreporter.line(f"comparisons not made, because unobserved: {unobserved.total()}")
        for part, count in unobserved.most_common():
            terminalreporter.line(f"  {count} {part}")


def _tags(item: pytest.Item) -> set[str]:
    return {mark.name for mark in item.iter_markers()}


def _holds(item: pytest.Item, at: int) -> bool:
    since, until = releases(_tags(item))
    return since <= at <= until


def _cut(excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """Leave out of a traceback what pytest-bdd and pytest do to call a step."""
    calls = [index for index, entry in enumerate(excinfo.traceback) if entry.name == "call_fixture_func"]
    if calls and calls[-1] + 1 < len(excinfo.traceback):
        excinfo.traceback = excinfo.traceback[calls[-1] + 1 :]


def _step_of(item: pytest.Item) -> tuple[str, int, str]:
    """The step that an item failed in: its feature file, line and text."""
    file = item.nodeid.partition("::")[0]
    step = item.stash.get(_FAILED, None)
    return (file, step.line_number, f"{step.keyword.strip()} {step.name}") if step else (file, 0, "")


def _of_feature(report: pytest.TestReport) -> bool:
    return report.nodeid.partition("::")[0].endswith(".feature")
