"""Two releases held against each other: in one world, or in every recorded case and on every named host.

The result is plain data; `comparison_text`, `comparison_markdown` and `document` here say it to people and programs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from simulator.gocompat import SECOND
from simulator.manager.releases import RELEASES
from simulator.recordings.layout import PROGRAMS, SHELL_STEM, VFIO_MANAGE, Recording, unpack
from simulator.recordings.vfio_worlds import vfio_world_of
from simulator.recordings.worlds import world_of
from simulator.report.attribution import Attribution, Blame, Divergence
from simulator.report.events import event_document
from simulator.report.named import Named
from simulator.report.trials import GONE, DriverManagerTrial, Finished, Trial, VfioTrial
from simulator.scenario import fixtures, load_host, make_world, names
from simulator.trace import Outcome

FORMAT: Final = 1
"""The version of the JSON documents."""
NODE_NAME: Final = "gpu-1"
"""What the node is called where nothing else is said."""


class Subject(NamedTuple):
    """A world to compare in: what it is called, and how much there is to read about it, in characters."""

    name: str
    trial: Trial
    size: int
    is_case: bool = False
    """Is it a recorded case's input, not a named host?"""
    is_path: bool = False
    """Is it the witness of a path?"""


class Row(NamedTuple):
    """One thing of the end state that differs: left and right as text."""

    what: str
    left: str
    right: str


@dataclass(frozen=True, slots=True)
class Title:
    """What is compared, as it was asked for: two releases, and the charts they were named by."""

    left: str
    right: str
    left_chart: str = ""
    right_chart: str = ""

    def __str__(self) -> str:
        """`v0.10.0 -> v0.12.0`, or `chart v26.3.1 (v0.10.0) -> chart v26.7.0 (v0.12.0)`."""
        return f"{_titled(self.left, self.left_chart)} -> {_titled(self.right, self.right_chart)}"

    @property
    def is_downgrade(self) -> bool:
        """Is the newer release on the left?"""
        tags = list(RELEASES)
        return tags.index(self.left) > tags.index(self.right)


def _titled(release: str, chart: str) -> str:
    return f"chart {chart} ({release})" if chart else release


@dataclass(frozen=True, slots=True)
class Compared:
    """Two releases in one world. Left and right are as they were asked for, whichever is the newer."""

    subject: Subject
    left: Finished
    right: Finished
    first: Divergence | None
    blames: tuple[Blame, ...]
    """Sides as `attribution` has them: left without the change, right with it."""
    unnamed: Divergence | None

    @property
    def weight(self) -> tuple[int, int, int, str]:
        """What makes a world a small one: few changes, few events, a short description."""
        return len(self.blames), self.events, self.subject.size, self.subject.name

    @property
    def events(self) -> int:
        """The events of the longer run."""
        return max(len(self.left.events), len(self.right.events))

    @property
    def rows(self) -> list[Row]:
        """The end states side by side, as far as they differ."""
        left, right = self.left.facts, self.right.facts
        keys = (*left, *(key for key in right if key not in left))
        rows = (Row(key, left.get(key, GONE), right.get(key, GONE)) for key in keys)
        return [row for row in rows if row.left != row.right]


@dataclass(frozen=True, slots=True)
class Group:
    """A named change, and the worlds in which it is responsible."""

    named: Named
    count: int
    alone: int
    """In so many of them it is the only one."""
    smallest: Compared

    @property
    def shows(self) -> Divergence:
        """Where it shows in the smallest world: left without it, right with it."""
        return next(blame.shows for blame in self.smallest.blames if blame.named == self.named)


@dataclass(frozen=True, slots=True)
class Survey:
    """Two releases in many worlds. Groups in the order in which the changes were made."""

    title: Title
    cases: int
    hosts: int
    differing: int
    groups: tuple[Group, ...]
    silent: tuple[Named, ...]
    """Named changes that none of these worlds shows."""
    unnamed: tuple[Compared, ...]
    paths: int = 0
    """So many of the worlds are witnesses of paths."""


# --- comparing ----------------------------------------------------------------------------------------------------


def compare(subject: Subject, attribution: Attribution, left: str) -> Compared:
    """One world. `left` is the release that was named first."""
    found = attribution.explain(subject.trial)
    if left == attribution.older:
        return Compared(subject, found.older, found.newer, found.first, found.blames, found.unnamed)
    return Compared(subject, found.newer, found.older, _turned(found.first), found.blames, _turned(found.unnamed))


def _turned(found: Divergence | None) -> Divergence | None:
    return found.turned() if found else None


class _Tally:
    """What is known so far of a change."""

    def __init__(self) -> None:
        self.count = self.alone = 0
        self.smallest: Compared | None = None

    def add(self, compared: Compared) -> None:
        """One more world in which it is responsible."""
        self.count += 1
        self.alone += len(compared.blames) == 1
        if self.smallest is None or compared.weight < self.smallest.weight:
            self.smallest = compared


def survey(title: Title, subjects: Iterable[Subject]) -> Survey:
    """Many worlds, grouped by named change. The same release twice differs nowhere and is not run."""
    attribution = Attribution(title.left, title.right)
    tallies = {named.change.name: _Tally() for named in attribution.changes}
    cases = hosts = paths = differing = 0
    unnamed = []
    for subject in subjects:
        cases += subject.is_case
        paths += subject.is_path
        hosts += not (subject.is_case or subject.is_path)
        if title.left == title.right:
            continue
        compared = compare(subject, attribution, title.left)
        if compared.first is None:
            continue
        differing += 1
        if compared.unnamed is not None:
            unnamed.append(compared)
        for blame in compared.blames:
            tallies[blame.named.change.name].add(compared)
    groups, silent = [], []
    for named in attribution.changes:
        tally = tallies[named.change.name]
        if tally.smallest is None:
            silent.append(named)
        else:
            groups.append(Group(named, tally.count, tally.alone, tally.smallest))
    return Survey(title, cases, hosts, differing, tuple(groups), tuple(silent), tuple(unnamed), paths)


def recorded_cases() -> Iterator[Subject]:
    """The inputs of the recordings that the project carries, each once."""
    met = set()
    for program in (*PROGRAMS, SHELL_STEM):
        path = fixtures() / "recordings" / f"{program}.json.xz"
        for case, given in unpack(path)["cases"].items():
            text = json.dumps(given, sort_keys=True)
            if text not in met:
                met.add(text)
                name = f"{program} case {case}" if program == VFIO_MANAGE else f"case {case}"
                yield Subject(name, _trial(Recording(case, "", given, {}, f"{path}:{case}")), len(text), is_case=True)


def _trial(recording: Recording) -> Trial:
    if recording.program == VFIO_MANAGE:
        return VfioTrial(vfio_world_of(recording))
    return DriverManagerTrial(world_of(recording))


def named_hosts() -> Iterator[Subject]:
    """The named hosts, each in the cluster that is taken where none is named."""
    for name in names("hosts"):
        world = make_world(load_host(name), env={"NODE_NAME": NODE_NAME})
        yield Subject(f"host {name}", DriverManagerTrial(world), len(repr(world.host)))


# --- documents ----------------------------------------------------------------------------------------------------


def compared_document(title: Title, compared: Compared) -> dict[str, Any]:
    """One world as JSON."""
    return {
        "format": FORMAT,
        **_title_document(title),
        "world": compared.subject.name,
        "differs": compared.first is not None,
        "first": _divergence_document(compared.first, "from", "to"),
        "end": {
            "from": _end_document(compared.left),
            "to": _end_document(compared.right),
            "rows": [{"what": row.what, "from": row.left, "to": row.right} for row in compared.rows],
        },
        "changes": [
            change_document(blame.named) | {"shows": _divergence_document(blame.shows, "without", "with")}
            for blame in compared.blames
        ],
        "unnamed": _divergence_document(compared.unnamed, "from", "to"),
    }


def survey_document(found: Survey) -> dict[str, Any]:
    """Many worlds as JSON."""
    return {
        "format": FORMAT,
        **_title_document(found.title),
        "worlds": {"cases": found.cases, "hosts": found.hosts, "differing": found.differing}
        | ({"paths": found.paths} if found.paths else {}),
        "changes": [
            change_document(group.named)
            | {
                "worlds": group.count,
                "alone": group.alone,
                "smallest": {
                    "world": group.smallest.subject.name,
                    "events": group.smallest.events,
                    "changes": [blame.named.change.name for blame in group.smallest.blames],
                    "shows": _divergence_document(group.shows, "without", "with"),
                },
            }
            for group in found.groups
        ],
        "silent": [change_document(named) for named in found.silent],
        "unnamed": [
            {"world": compared.subject.name, "first": _divergence_document(compared.unnamed, "from", "to")}
            for compared in found.unnamed
        ],
    }


def change_document(named: Named) -> dict[str, Any]:
    """A named change as JSON."""
    change = named.change
    return {
        "name": change.name,
        "release": named.release,
        "program": named.program,
        "upstream": change.upstream,
        "summary": change.summary,
        "notice": change.notice,
        "action": change.action,
    }


def _title_document(title: Title) -> dict[str, Any]:
    charts = {"charts": {"from": title.left_chart, "to": title.right_chart}} if title.left_chart else {}
    return {"from": title.left, "to": title.right, **charts}


def _divergence_document(found: Divergence | None, left: str, right: str) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"event": found.number, left: event_document(found.left), right: event_document(found.right)}


def _end_document(finished: Finished) -> dict[str, Any]:
    outcome = finished.outcome
    if isinstance(outcome, Outcome):
        return {
            "exit_code": outcome.exit_code,
            "panic": outcome.panic,
            "elapsed_s": round(outcome.elapsed / SECOND, 3),
            "events": len(finished.events),
        }
    return {"exit_codes": [step.exit_code for step in outcome], "events": len(finished.events)}
