"""A log explained: which flows of which releases print it, or how far the nearest one comes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from simulator.explaining import go_answers, shell_answers
from simulator.explaining.search import Candidate, Found, search, shell_search
from simulator.explaining.text import ECHO, LOG, Entry, Log, begins_run, read, unwrapped
from simulator.manager.releases import GO_RELEASES, RELEASES, SHELL_RELEASES, flow, shell_flow


@dataclass(frozen=True, slots=True)
class Departure:
    """Where the nearest flow and the log part: the line's number in the text, what it says, what the release would print."""

    release: str
    line: int
    text: str
    expected: tuple[str, ...]
    fitted: int
    """So many of driver-manager's lines fit before it."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a log came to. No candidate: nothing fits, and `departure` says where; it is None if no line is driver-manager's."""

    candidates: tuple[Candidate, ...]
    departure: Departure | None
    lines: int
    """The lines of the last run that are driver-manager's."""
    foreign: int
    """Lines of the text that are not."""
    earlier_runs: int
    """Runs that the text holds before the last one, which is the one that is explained."""
    from_beginning: bool
    """Does the log begin where the run begins?"""
    complete: bool
    """Was every possibility tried?"""
    daemonset: str = ""
    """Whose init container it was, by the pod's name in front of the lines: vfio-manager, vgpu-manager; "" for the driver's, or not told."""

    @property
    def fits(self) -> bool:
        """Is there a flow that prints the log?"""
        return bool(self.candidates)


_POD: Final = re.compile(
    r"(?<![\w-])nvidia-(vfio-manager|vgpu-manager)(?:-[a-z0-9-]*)?[^\w\n-]{1,4}k8s-driver-manager\b|"
    r"\"pod(?:_name)?\"\s*:\s*\"nvidia-(vfio-manager|vgpu-manager)\b"
)
"""The pod of a DaemonSet that gives GPUs to virtual machines, as kubectl, stern, journald or Loki name it beside a line."""


def explain(text: str, *, releases: Iterable[str] = RELEASES, daemonset: str = "") -> Explanation:
    """The flows of these releases that print a log. KeyError for a release that is not known.

    `daemonset`: whose init container it was, where the text does not say so.
    """
    tags = tuple(releases)
    for tag in tags:
        RELEASES[tag]
    if (named := _POD.search(text)) is not None:
        daemonset = named[1] or named[2]
    return replace(_of_readings(text, tags), daemonset=daemonset)


def _of_readings(text: str, tags: Sequence[str]) -> Explanation:
    readings = [read(text), *map(read, unwrapped(text))]
    readings.sort(key=_known, reverse=True)  # of a wrapped log more lines are known once it is put together
    best = _explained(readings[0], tags)
    for log in readings[1:]:
        if best.fits or not best.complete or 2 * _known(log) < _known(readings[0]):
            break
        other = _explained(log, tags)
        best = other if other.fits else best
    return best


def _known(log: Log) -> int:
    """How many lines are driver-manager's."""
    return len(log.entries) + len(log.raws)


def _explained(log: Log, tags: Sequence[str]) -> Explanation:
    entries, raws, earlier = last_run(log)
    if not entries and not raws:
        return Explanation((), None, 0, log.foreign, 0, from_beginning=False, complete=True)
    found = _searched(entries, raws, tags, started=True)
    started = True
    kept = [candidate for each in found for candidate in each.candidates]
    if not kept and entries and not begins_run(entries[0]):
        started = False
        found = _searched(entries, raws, tags, started=False)
        kept = [candidate for each in found for candidate in each.candidates]
    return Explanation(
        tuple(kept),
        None if kept else _departure(found, entries, raws),
        len(entries) + len(raws),
        log.foreign,
        earlier,
        started,
        all(each.complete for each in found),
    )


def last_run(log: Log) -> tuple[list[Entry], list[Entry], int]:
    """The lines of the last run, those beside them, and how many runs there are before it."""
    begins = [index for index, entry in enumerate(log.entries) if begins_run(entry)]
    first = begins[-1] if len(begins) > 1 else 0
    if not first:
        return log.entries, log.raws, 0
    after = log.entries[first - 1].number
    return log.entries[first:], [raw for raw in log.raws if raw.number > after], sum(index < first for index in begins)


def _searched(entries: Sequence[Entry], raws: Sequence[Entry], tags: Sequence[str], *, started: bool) -> list[Found]:
    out = []
    echoes = any(entry.kind == ECHO for entry in entries)
    logged = [entry for entry in entries if entry.kind == LOG]
    if (logged or any("client_config.go:" in raw.message for raw in raws)) and not echoes:
        go = go_answers.harvest(logged, raws)
        out += [search(flow(tag), logged, raws, go, started=started) for tag in tags if tag in GO_RELEASES]
    if echoes or not logged:
        lines, beside = shell_answers.told(entries, raws)
        script = shell_answers.harvest(lines, beside)
        if lines or script.refused:
            out += [shell_search(shell_flow(tag), lines, beside, script, started=started) for tag in tags if tag in SHELL_RELEASES]
    return out


def _departure(found: Sequence[Found], entries: Sequence[Entry], raws: Sequence[Entry]) -> Departure | None:
    if not found:
        line = (entries or raws)[0]
        return Departure("", line.number, line.message, (), 0)
    nearest = max((each.nearest for each in reversed(found)), key=lambda each: each.position)  # of equals the newest
    seen = [entry for entry in entries if entry.kind == (ECHO if nearest.release in SHELL_RELEASES else LOG)] or list(raws)
    line = nearest.beside or seen[min(nearest.position, len(seen) - 1)]
    return Departure(nearest.release, line.number, line.message, nearest.expected, nearest.position)
