"""Results of scenarios as a page: the suite as living documentation.

Feature, rule, scenario and its steps; for each release what driver-manager did, event by event with the upstream function that
was at work; which recordings show the same, and what a real image did in a container. Texts, events and equal courses of events
stand once, in tables, so that the suite on every release stays small; the page draws what is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from simulator.manager.releases import RELEASES, resolve
from simulator.report.page import make_page, part
from simulator.report.results import Ran, Results, Step, Traced, tally
from simulator.report.stepping import upstream_name
from simulator.report.suite_markdown import name_of
from simulator.report.verified import RECORDED, recordings_of, verified_counts

_Key: TypeAlias = "tuple[str, str, str, tuple[str, ...], tuple[str, ...]]"
_PACKAGE = "simulator.report"


def suite_page(results: Sequence[Results], title: str = "driver-manager scenarios") -> str:
    """The page's text."""
    return make_page(
        title,
        body=part(_PACKAGE, "suite_page.html"),
        style=part(_PACKAGE, "suite_page.css"),
        script=part(_PACKAGE, "suite_page.js"),
        data={"title": title, **suite_data(results)},
    )


class _Table:
    """Things that stand once, by number."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}

    def number(self, thing: Any) -> int:
        return self.numbers.setdefault(thing, len(self.numbers))


class _Tables:
    """What scenarios share."""

    def __init__(self) -> None:
        self.texts = _Table()
        self.events = _Table()
        """Numbers of three texts: kind, text, step."""
        self.courses = _Table()
        self.traces = _Table()


def suite_data(results: Sequence[Results]) -> dict[str, Any]:
    """What the page's script draws, and `dmsim report -o json` prints."""
    tables = _Tables()
    texts, traces = tables.texts, tables.traces
    scenarios: dict[_Key, dict[str, Any]] = {}
    features: dict[str, dict[str, Any]] = {}
    for index, one in enumerate(results):
        for ran in one.scenarios:
            key = ran.file, ran.rule, ran.scenario, tuple(ran.row.values()), tuple(ran.tags)
            if key not in scenarios:
                scenarios[key] = _scenario(ran, texts)
                _rule(features, ran)["scenarios"].append(scenarios[key])
            scenarios[key]["ran"].append(
                {
                    "run": index,
                    "release": ran.release,
                    "outcome": ran.outcome,
                    "done": ran.done,
                    "why": ran.why,
                    "traces": [traces.number(_trace(traced, tables)) for traced in ran.traces],
                }
            )
    return {
        "format": 1,
        "runs": [_run(one) for one in results],
        "releases": list(RELEASES),
        "features": [{**feature, "rules": list(feature["rules"].values())} for feature in features.values()],
        "texts": list(texts.numbers),
        "events": list(tables.events.numbers),
        "courses": list(tables.courses.numbers),
        "traces": list(traces.numbers),
        "functions": _functions(
            (traced.release, event[3]) for one in results for traced in _traced(one) for event in traced.events
        ),
        "recorded": RECORDED,
    }


def _traced(one: Results) -> Iterable[Traced]:
    return (traced for ran in one.scenarios for traced in ran.traces)


def _run(one: Results) -> dict[str, Any]:
    run = one.run
    return {
        "name": name_of(one),
        "runner": run.runner,
        "image": run.image,
        "started": run.started,
        "dmsim": run.dmsim,
        **tally(one.scenarios),
    }


def _rule(features: dict[str, dict[str, Any]], ran: Ran) -> dict[str, Any]:
    """The rule that a scenario stands under, made when it is first met."""
    feature = features.setdefault(ran.file, {"file": ran.file, "name": ran.feature, "about": ran.feature_description, "rules": {}})
    found: dict[str, Any] = feature["rules"].setdefault(
        ran.rule, {"name": ran.rule, "about": ran.rule_description, "scenarios": []}
    )
    return found


def _scenario(ran: Ran, texts: _Table) -> dict[str, Any]:
    return {
        "name": ran.scenario,
        "about": ran.description,
        "row": dict(ran.row),
        "line": ran.line,
        "tags": list(ran.tags),
        "since": ran.since,
        "until": ran.until,
        "recordings": list(recordings_of(ran.description, ran.tags)),
        "steps": [_step(step, texts) for step in ran.steps],
        "ran": [],
    }


def _step(step: Step, texts: _Table) -> list[Any]:
    """Keyword, text, then a table or a block where there is one."""
    out: list[Any] = [step.keyword, texts.number(step.text)]
    if step.table:
        out.append([list(row) for row in step.table])
    elif step.block:
        out.append(texts.number(step.block))
    return out


def _trace(traced: Traced, tables: _Tables) -> tuple[str, str, str, int]:
    """Release, title, end, and the number of its course: for each event its number, and the milliseconds since the one before."""
    course, before = [], 0
    for at, kind, text, step in traced.events:
        event = tables.texts.number(kind), tables.texts.number(text), tables.texts.number(step)
        now = round(at * 1000)
        course += [tables.events.number(event), now - before]
        before = now
    return traced.release, traced.title, traced.ended, tables.courses.number(tuple(course))


def _functions(steps: Iterable[tuple[str, str]]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Release -> step -> upstream's name of it, and by how many recordings it is verified."""
    out: dict[str, dict[str, Mapping[str, Any]]] = {}
    counts = verified_counts()
    for release, step in sorted(set(steps)):
        if step and release in RELEASES:
            found = {"name": upstream_name(resolve(release), step) or step, "recordings": counts[release].get(step, 0)}
            out.setdefault(release, {})[step] = found
    return out
