"""Every flow of a release that prints a log.

A log that ends where a run ends has that run's exit code. One that ends elsewhere is cut, whatever cut it (a signal, a node that
went away, `tail`, or that the program still runs): its exit code is not known. Where a run may end without another line, both
are possible, and both are found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from simulator.config import PREFLIGHT_CHECK
from simulator.explaining.go_answers import Harvest
from simulator.explaining.matching import Matcher, shown
from simulator.explaining.shell_answers import ShellHarvest, ShellMatcher
from simulator.explaining.shell_steering import steer as shell_steer
from simulator.explaining.steering import Decision, Effects, Run, steer
from simulator.explaining.text import ECHO, LOG, Entry
from simulator.explore.choosing import Chooser, explored
from simulator.manager.releases import Flow, ShellFlow

_MOST_UNUSUAL: Final = 3
_MOST_RUNS_BEFORE_BEGINNING: Final = 160
"""So many runs of one release are tried where the beginning of the log is missing."""
MOST_RUNS: Final = 400
"""So many runs of one release are tried: ten times what a log of the program's own has been seen to need, and under three seconds
for all releases together."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A flow that prints the log. `exit_code` is None where the log ends before the run does."""

    release: str
    exit_code: int | None
    decisions: tuple[Decision, ...]
    doing: tuple[Decision, ...]
    """The functions that had not returned at the last line, outermost first; none if the run ended."""
    effects: Effects
    """What it did to node and host, up to the log's last line."""
    choices: tuple[int, ...]
    """The witness: told these, a `Chooser` makes this very run."""
    started: bool
    """Was the log held against the run from its first line on?"""


@dataclass(frozen=True, slots=True)
class Nearest:
    """How far a release came: the index of the log's line at which it departs, and what it would print there."""

    release: str
    position: int
    expected: tuple[str, ...]
    beside: Entry | None = None
    """The line beside the log that it does not print, where all others fit."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to."""

    candidates: tuple[Candidate, ...]
    nearest: Nearest
    complete: bool
    """Was everything tried?"""


def search(flow: Flow, entries: Sequence[Entry], raws: Sequence[Entry], found: Harvest, *, started: bool) -> Found:
    """The flows of a Go release that print these lines. `started`: the first of them is the run's first."""

    def attempt(chooser: Chooser) -> tuple[Run, Matcher]:
        matcher = Matcher(entries, LOG, started=started)
        return steer(flow, matcher, found, chooser), matcher

    return _search(flow.release.tag, attempt, raws, started=started)


def shell_search(flow: ShellFlow, entries: Sequence[Entry], raws: Sequence[Entry], found: ShellHarvest, *, started: bool) -> Found:
    """The same, of a shell release."""

    def attempt(chooser: Chooser) -> tuple[Run, Matcher]:
        matcher = ShellMatcher(entries, ECHO, started=started)
        return shell_steer(flow, matcher, found, chooser), matcher

    out = _search(flow.release.tag, attempt, raws if not entries else (), started=started)
    if found.refused == "usage" and raws[-1].message.strip() != PREFLIGHT_CHECK:  # it is printed at once, and then cut
        return replace(out, candidates=tuple(replace(each, exit_code=None) for each in out.candidates))
    return out


def _search(tag: str, attempt: Callable[[Chooser], tuple[Run, Matcher]], raws: Sequence[Entry], *, started: bool) -> Found:
    kept: dict[tuple[Any, ...], Candidate] = {}
    expected: dict[int, dict[str, None]] = {}
    furthest = -1
    unprinted: Entry | None = None
    runs = 0
    for choices, (run, matcher) in _attempts(attempt, kept, started=started):
        runs += 1
        if not run.fits:
            if run.position >= furthest:
                furthest = run.position
                expected.setdefault(run.position, {})[run.expected] = None
            continue
        beside = matcher.unexplained(raws)
        if beside is not None:
            furthest, unprinted = run.position, beside
            continue
        for candidate in _candidates(tag, run, choices, started=started):
            kept.setdefault((candidate.exit_code, candidate.decisions), candidate)
    return Found(
        tuple(kept.values()),
        Nearest(tag, max(furthest, 0), tuple(dict.fromkeys(shown(text) for text in expected.get(furthest, {}) if text)), unprinted),
        runs < (MOST_RUNS if started else _MOST_RUNS_BEFORE_BEGINNING),
    )


def _attempts(
    attempt: Callable[[Chooser], tuple[Run, Matcher]], kept: Mapping[Any, Any], *, started: bool
) -> Iterator[tuple[tuple[int, ...], tuple[Run, Matcher]]]:
    """Every run; where the beginning of the log is missing, with as few unusual answers before it as will do."""
    if started:
        yield from explored(attempt, MOST_RUNS)
        return
    runs = 0
    for bound in range(1, _MOST_UNUSUAL + 1):
        for found in explored(attempt, _MOST_RUNS_BEFORE_BEGINNING - runs, bound):
            yield found
            runs += 1
        if kept:
            return


def _candidates(tag: str, run: Run, choices: tuple[int, ...], *, started: bool) -> list[Candidate]:
    out = []
    if run.exit_code is not None:
        out.append(Candidate(tag, run.exit_code, run.decisions, (), run.effects, choices, started))
    if run.exit_code is None or run.acted_since:
        before = run.decisions[: run.at_last_line]
        out.append(Candidate(tag, None, before, run.open_steps, run.effects_at_last_line, choices, started))
    return out
