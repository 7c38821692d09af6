"""What a run of scenarios left: the lines that the pytest plugin writes and `dmsim report` reads.

A results file is JSON lines. The first says what was run (`Run`), each other one is a scenario, or a row of an outline, as it
was run (`Ran`). Keys are the fields' names. A file is of one run; several are read one after another.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from simulator.reading import InputError, Place, read_text

FORMAT: Final = 1
"""The version of results files."""
PASSED: Final = "passed"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"
OUTCOMES: Final = (PASSED, FAILED, SKIPPED)


@dataclass(frozen=True, slots=True)
class Run:
    """A run of pytest: when it began (UTC, ISO 8601), with which version of dmsim, on what."""

    dmsim: str
    started: str
    runner: str
    release: str = ""
    """The release that was asked for, "" for each scenario's own."""
    image: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """A step as it stands in the file."""

    keyword: str
    text: str
    line: int
    table: Sequence[Sequence[str]] = ()
    block: str = ""
    """The text that follows it."""


@dataclass(frozen=True, slots=True)
class Traced:
    """What was seen in a run of driver-manager, or of a node over time.

    An event is its time in seconds, its kind, a text, and the step of the model that was at work, "" for none.
    """

    title: str
    ended: str
    release: str
    events: Sequence[tuple[float, str, str, str]]


@dataclass(frozen=True, slots=True)
class Ran:
    """A scenario that was run, or a row of an outline."""

    file: str
    """Relative to the project's root, with slashes."""
    feature: str
    feature_description: str
    rule: str
    rule_description: str
    scenario: str
    description: str
    row: Mapping[str, str]
    line: int
    tags: Sequence[str]
    since: str
    """The first release it holds for."""
    until: str
    release: str
    """The release it was run on."""
    outcome: str
    seconds: float
    """How long that took, in real time."""
    steps: Sequence[Step]
    done: int
    """So many of the steps were done; where it failed, the next one did."""
    why: str = ""
    """Why it failed or was left out."""
    traces: Sequence[Traced] = ()

    @property
    def failed_line(self) -> int:
        """The line of the step that failed, else the scenario's."""
        return self.steps[self.done].line if self.outcome == FAILED and self.done < len(self.steps) else self.line

    @property
    def title(self) -> str:
        """The scenario's name, with those of the row's values that it does not name."""
        more = ", ".join(value for value in self.row.values() if value not in self.scenario)
        return f"{self.scenario} [{more}]" if more else self.scenario


def to_line(thing: Run | Ran) -> str:
    """One line of a results file, without its end."""
    head = {"kind": "run", "format": FORMAT} if isinstance(thing, Run) else {"kind": "scenario"}
    return json.dumps(head | asdict(thing), ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Results:
    """A results file."""

    run: Run
    scenarios: tuple[Ran, ...]


_MEND: Final = "write the file by pytest --dmsim-results FILE"


def read_results(path: Path) -> Results:
    """A results file. Raises InputError, which names the line."""
    lines = _lines(path)
    head = next(lines, None)
    if head is None:
        raise InputError(str(path), "", "is empty", _MEND)
    head.mapping()
    if head.value.get("kind") != "run":
        head.fail("is no head of a results file", _MEND)
    version = head.need("format", _MEND)
    if version.integer() != FORMAT:
        version.fail(f"is {version.value}, which this version does not read", f"this one reads {FORMAT}")
    run = Run(**{name: _text(head, name) for name in ("dmsim", "started", "runner", "release", "image")})
    return Results(run, tuple(_ran(place) for place in lines))


def _lines(path: Path) -> Iterator[Place]:
    for number, line in enumerate(read_text(path).split("\n"), 1):  # not splitlines: a text may hold what else breaks a line
        if line:
            try:
                value = json.loads(line)
            except ValueError:
                raise InputError(str(path), f"line {number}", "is no JSON", _MEND) from None
            yield Place(value, f"{path}: line {number}")


def ran_of(line: str) -> Ran:
    """A scenario from its line."""
    return _ran(Place(json.loads(line), "the results"))


def _ran(place: Place) -> Ran:
    place.mapping()
    place.need("kind", _MEND).choice("scenario")
    texts = ("file", "feature", "feature_description", "rule", "rule_description", "scenario", "description", "since", "until")
    return Ran(
        **{name: _text(place, name) for name in (*texts, "release", "why")},
        outcome=place.need("outcome", _MEND).choice(*OUTCOMES),
        row={key: item.text() for key, item in place.entries("row")},
        line=_number(place, "line"),
        tags=place.need("tags", _MEND).texts(),
        seconds=place.need("seconds", _MEND).seconds(),
        steps=[_step(step) for step in place.elements("steps")],
        done=_number(place, "done"),
        traces=[_traced(trace) for trace in place.elements("traces")],
    )


def _step(place: Place) -> Step:
    place.mapping()
    table = [row.texts() for row in place.elements("table")]
    return Step(_text(place, "keyword"), _text(place, "text"), _number(place, "line"), table, _text(place, "block"))


def _traced(place: Place) -> Traced:
    place.mapping()
    events = []
    for event in place.elements("events"):
        match event.value:
            case [int() | float() as at, str() as kind, str() as text, str() as step]:
                events.append((float(at), kind, text, step))
            case _:
                event.fail("is no event", "it is a list of its time, kind, text and step")
    return Traced(_text(place, "title"), _text(place, "ended"), _text(place, "release"), events)


def _text(place: Place, name: str) -> str:
    return place.need(name, _MEND).text()


def _number(place: Place, name: str) -> int:
    return place.need(name, _MEND).integer(low=0)


def tally(scenarios: Iterable[Ran]) -> dict[str, int]:
    """How many ended how; all three are there."""
    counts: dict[str, int] = dict.fromkeys(OUTCOMES, 0)
    for ran in scenarios:
        counts[ran.outcome] += 1
    return counts
