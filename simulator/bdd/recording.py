"""What a run of pytest tells others: a results file, properties for JUnit XML, annotations and a summary for GitHub.

A scenario's account is attached to its report where it runs, and written where the reports arrive: so it is the same with
pytest-xdist, whose workers only attach.
"""

from __future__ import annotations

import datetime
import importlib
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from pytest_bdd.parser import Scenario, ScenarioTemplate

from simulator import __version__
from simulator.bdd.collecting import FeatureFile
from simulator.bdd.plugin import RESULTS, option_name
from simulator.bdd.stage import STAGE, Stage
from simulator.bdd.tags import release_for, releases
from simulator.gocompat import SECOND
from simulator.manager.releases import RELEASES
from simulator.node.timeline import Entry
from simulator.reading import InputError
from simulator.recordings.layout import write_whole
from simulator.report.events import event_text, kind_of
from simulator.report.results import FAILED, OUTCOMES, Ran, Results, Run, Step, Traced, ran_of, to_line
from simulator.report.stepping import SteppedEvents
from simulator.report.suite_markdown import suite_markdown
from simulator.report.text import ending, seconds
from simulator.trace import Outcome

ACCOUNT: Final = "dmsim"
"""A report's attribute that holds its scenario's account; pytest-xdist brings it along with the report."""
_DONE: Final = pytest.StashKey[int]()
"""So many of a scenario's steps were done."""
_LONGEST_WHY: Final = 4000


def watch(config: pytest.Config) -> None:
    """Register what is needed of this. Raises UsageError for a results file that cannot be one."""
    results: str | None = config.getoption(option_name(RESULTS))
    if results is not None and Path(results).is_dir():
        raise pytest.UsageError(f'--dmsim-results "{results}" is a folder; name a file')
    on_github = os.environ.get("GITHUB_ACTIONS") == "true"
    summary = os.environ.get("GITHUB_STEP_SUMMARY", "")
    if results is not None or on_github or summary:
        config.pluginmanager.register(Accounts(with_traces=results is not None), "dmsim-accounts")
        if not hasattr(config, "workerinput"):
            told = Told(config, Path(results) if results is not None else None, annotate=on_github, summary=summary)
            config.pluginmanager.register(told, "dmsim-told")
    if config.getoption("xmlpath", None):
        config.pluginmanager.register(Properties(config.getoption(option_name("release"))), "dmsim-properties")


# --- where scenarios run ----------------------------------------------------------------------------------------------


def _template(item: pytest.Item) -> ScenarioTemplate | None:
    """The scenario that an item is of, None for an item of somebody else's."""
    if not isinstance(item.parent, FeatureFile) or not isinstance(item, pytest.Function):
        return None
    found: ScenarioTemplate | None = importlib.import_module("pytest_bdd.scenario").scenario_wrapper_template_registry.get(item.obj)
    return found


def _row(item: pytest.Item) -> dict[str, str]:
    callspec = getattr(item, "callspec", None)
    return dict(callspec.params.get("_pytest_bdd_example", {})) if callspec is not None else {}


def _tags(item: pytest.Item, template: ScenarioTemplate) -> list[str]:
    """Of feature, rule, scenario and the row's block of examples, sorted."""
    callspec = getattr(item, "callspec", None)
    of_row = {mark.name for mark in callspec.marks} if callspec is not None else set()
    of_rule = template.rule.tags if template.rule else set()
    return sorted(template.feature.tags | of_rule | template.tags | of_row)


class Properties:
    """Feature, rule, scenario, tags and release as properties of a test case in JUnit XML."""

    def __init__(self, asked: str | None) -> None:
        self._asked = asked

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Before the first report of the item is made."""
        template = _template(item)
        if template is None:
            return
        tags = _tags(item, template)
        item.user_properties += [
            ("feature", template.feature.name),
            ("rule", template.rule.name if template.rule else ""),
            ("scenario", template.name),
            ("tags", " ".join(tags)),
            ("release", release_for(tags, self._asked)),
        ]


class Accounts:
    """Attaches to a scenario's report what it did, a line of a results file."""

    def __init__(self, *, with_traces: bool) -> None:
        self._with_traces = with_traces

    def pytest_bdd_before_scenario(self, request: pytest.FixtureRequest) -> None:
        """No step is done."""
        request.node.stash[_DONE] = 0

    def pytest_bdd_after_step(self, request: pytest.FixtureRequest) -> None:
        """One more."""
        request.node.stash[_DONE] += 1

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Once for each scenario, and once more if what comes after it fails."""
        report = yield
        template = _template(item)
        if template is not None and (call.when == "call" or not report.passed) and report.outcome in OUTCOMES:
            vars(report)[ACCOUNT] = to_line(self._account(item, template, report))
        return report

    def _account(self, item: pytest.Item, template: ScenarioTemplate, report: pytest.TestReport) -> Ran:
        row, tags = _row(item), _tags(item, template)
        since, until = releases(tags)
        scenario = template.render(row)
        stage = item.stash.get(STAGE, None)
        asked: str | None = item.config.getoption(option_name("release"))
        return Ran(
            file=item.nodeid.partition("::")[0],
            feature=template.feature.name or "",
            feature_description=template.feature.description or "",
            rule=template.rule.name if template.rule else "",
            rule_description=template.rule.description if template.rule else "",
            scenario=scenario.name,
            description=template.description or "",
            row=row,
            line=template.line_number,
            tags=tags,
            since=list(RELEASES)[since],
            until=list(RELEASES)[until],
            release=release_for(tags, asked),
            outcome=report.outcome,
            seconds=round(report.duration, 4),
            steps=_steps(scenario),
            done=item.stash.get(_DONE, 0),
            why=_why(report),
            traces=tuple(_traces(stage)) if stage is not None and self._with_traces else (),
        )


def _steps(scenario: Scenario) -> list[Step]:
    return [
        Step(
            step.keyword.strip(),
            step.name,
            step.line_number,
            [[str(cell) for cell in row] for row in step.datatable.raw()] if step.datatable is not None else [],
            step.docstring or "",
        )
        for step in scenario.steps
    ]


def _why(report: pytest.TestReport) -> str:
    """Why it failed or was left out, without the way there; of a long text the end, which has the error."""
    if report.passed:
        return ""
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    text = report.longreprtext if crash is None else crash.message
    return text if len(text) <= _LONGEST_WHY else "..." + text[-_LONGEST_WHY:]


def _traces(stage: Stage) -> Iterator[Traced]:
    for number, outcome in enumerate(stage.runs, 1):
        title = "driver-manager" if len(stage.runs) == 1 else f"driver-manager, run {number}"
        yield Traced(title, f"{ending(outcome)}, after {seconds(outcome.elapsed)}", outcome.release, _events(outcome))
    for entries in stage.timelines:
        yield Traced("the node over time", "", stage.release, [_entry(entry) for entry in entries])


def _events(outcome: Outcome) -> list[tuple[float, str, str, str]]:
    events = outcome.events
    steps: Sequence[str] = events.steps if isinstance(events, SteppedEvents) else [""] * len(events)
    return [
        (round(event.at / SECOND, 3), kind_of(event), event_text(event), step) for event, step in zip(events, steps, strict=True)
    ]


def _entry(entry: Entry) -> tuple[float, str, str, str]:
    subject = f"{entry.subject}: " if entry.subject else ""
    return round(entry.at / SECOND, 3), entry.lane, f"{subject}{entry.text or 'gone'}", ""


# --- where reports arrive ---------------------------------------------------------------------------------------------


class Told:
    """Gathers the accounts, and at the end writes and prints what was asked for."""

    def __init__(self, config: pytest.Config, path: Path | None, *, annotate: bool, summary: str) -> None:
        option: Callable[[str], Any] = lambda name: config.getoption(option_name(name)) or ""  # noqa: E731  # of this place only
        began = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        self._run = Run(__version__, began, option("runner"), option("release"), option("image"))
        self._path, self._annotate, self._summary = path, annotate, summary
        self._root = config.rootpath
        self._lines: dict[str, str] = {}
        self._unread: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The last account of a scenario counts."""
        account: str | None = getattr(report, ACCOUNT, None)
        if account is not None:
            self._lines[report.nodeid] = account

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A feature file that cannot be read."""
        if report.failed and report.nodeid.endswith(".feature"):
            self._unread[report.nodeid] = report.longreprtext

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Write the results file, and add to the job's summary. Raises UsageError if one cannot be written."""
        try:
            if self._path is not None:
                write_whole(self._path, "".join(f"{line}\n" for line in (to_line(self._run), *self._lines.values())))
            if self._summary:
                with Path(self._summary).open("a", encoding="utf-8") as file:
                    file.write(suite_markdown([Results(self._run, tuple(self._ran()))]) + "\n")
        except InputError as error:
            raise pytest.UsageError(str(error)) from None
        except OSError as error:
            raise pytest.UsageError(f"GITHUB_STEP_SUMMARY: {self._summary} cannot be written: {error.strerror}") from None

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """An annotation for each scenario that failed, at the line of its step."""
        if not self._annotate:
            return
        terminalreporter.ensure_newline()
        for nodeid, text in self._unread.items():
            terminalreporter.write_line(annotation(self._file(nodeid), 1, "cannot be read", text))
        for ran in self._ran():
            if ran.outcome == FAILED:
                terminalreporter.write_line(annotation(self._file(ran.file), ran.failed_line, ran.title, ran.why))

    def _ran(self) -> Iterator[Ran]:
        return (ran_of(line) for line in self._lines.values())

    def _file(self, name: str) -> str:
        """A file as GitHub knows it: from the root of the checkout, which may lie above the project's."""
        path, workspace = self._root / name, os.environ.get("GITHUB_WORKSPACE")
        return path.relative_to(workspace).as_posix() if workspace and path.is_relative_to(workspace) else name


def annotation(file: str, line: int, title: str, text: str) -> str:
    """A workflow command that shows an error beside a line of a file."""
    properties: Mapping[str, object] = {"file": file, "line": line, "title": title}
    said = ",".join(f"{key}={_escaped(str(value), ':,')}" for key, value in properties.items())
    return f"::error {said}::{_escaped(text)}"


def _escaped(text: str, more: str = "") -> str:
    return "".join(f"%{ord(char):02X}" if char in "%\r\n" + more else char for char in text)
