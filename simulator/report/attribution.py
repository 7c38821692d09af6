"""Which named changes make two releases differ in a world.

Between two releases lie named changes. Let T(S) be the trace of the newer release with only the set S of them. The set
that is *responsible* is a smallest one that explains the newer trace: T(S) is the newer trace, and no longer is when any
one member is left out. So a change that does nothing here is never named, one that shows only together with another is
named with it, and where two would each do alone the older is named. What T(no change) has that the older release has
not is *unnamed*: the model differs there by something that is no named change.

A shell release and a Go release are two programs. There the traces are the *effects* on node and cluster, and T(S) leaves a
change of the rewrite out by doing that one thing as the script does. A way over the rewrite is two ways, one up to the last
shell release and one from there.

Every answer is checked by running; sets that explained one world are only tried first in the next. A run that is held
against another stops at the first event that is different.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, NamedTuple, TypeAlias

from simulator.manager.releases import RELEASES, SHELL_RELEASES
from simulator.report.effects import effects, end_of
from simulator.report.events import AnyEvent
from simulator.report.named import Named, named_between
from simulator.report.trials import Finished, Trial
from simulator.trace import ApiRequest, ChildProcess, KernelCall, LogLine, Outcome, StderrText, StdoutText
from simulator.vfio.trace import SysfsWrite

Names: TypeAlias = "frozenset[str]"

_NONE: Final[Names] = frozenset()
_FEW: Final = 8
"""A set up to this size is made smaller one change at a time, a larger one by halves first."""


class Divergence(NamedTuple):
    """The first place at which two traces differ: the event's number from 1, the two events (None: that run is over).

    Where all events are equal and only the end is not, both events are None.
    """

    number: int
    left: AnyEvent | None
    right: AnyEvent | None

    def turned(self) -> Divergence:
        """The same, seen from the other side."""
        return Divergence(self.number, self.right, self.left)


class Blame(NamedTuple):
    """A change that is responsible, and the first event that is another without it (left: without, right: with)."""

    named: Named
    shows: Divergence


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why two releases differ in a world; `first` is None where they do not."""

    older: Finished
    newer: Finished
    first: Divergence | None
    """Left the older, right the newer."""
    blames: tuple[Blame, ...] = ()
    """In the order in which they show."""
    unnamed: Divergence | None = None
    """What is left without a name: the older release, and the newer one without any named change between."""

    @property
    def names(self) -> Names:
        """The responsible changes."""
        return frozenset(blame.named.change.name for blame in self.blames)


class _Diverged(Exception):
    """A watched run did something else."""


class _Watched(list[AnyEvent]):
    """A list of events that have to be those of another run."""

    def __init__(self, expected: Sequence[AnyEvent]) -> None:
        super().__init__()
        self.expected = expected

    def append(self, event: AnyEvent) -> None:
        """Note an event. Raises _Diverged if the other run did not do that."""
        index = len(self)
        super().append(event)
        if index >= len(self.expected) or not _equal(self.expected[index], event):
            raise _Diverged


def _equal(left: AnyEvent, right: AnyEvent) -> bool:
    """Named tuples of two kinds can be equal as tuples. Of a child that still runs only the start can be compared."""
    if isinstance(left, ChildProcess) and isinstance(right, ChildProcess) and right.exit_code is None:
        return left._replace(exit_code=None) == right
    return type(left) is type(right) and left == right


def divergence(left: Finished, right: Finished) -> Divergence | None:
    """Where two traces differ first: events with their times, exit code, panic, time taken, end state; None if nowhere."""
    for number, (one, other) in enumerate(zip_longest(left.events, right.events), 1):
        if one is None or other is None or not _equal(one, other):
            return Divergence(number, one, other)
    return None if left.end == right.end else Divergence(len(left.events) + 1, None, None)


_KLOG: Final = re.compile(r"[IWE]\d{4} [^\]]*\bclient_config\.go:\d+\] ")
"""A line of client-go's log about its configuration: its line number is another in each version, and means nothing."""


def first_of_weight(left: Finished, right: Finished) -> Divergence | None:
    """As `divergence`, but a difference in client-go's own log is only told where there is no later one."""
    for number, (one, other) in enumerate(zip_longest(left.events, right.events), 1):
        if one is None or other is None or not (_equal(one, other) or (_is_klog(one) and _is_klog(other))):
            return Divergence(number, one, other)
    return divergence(left, right) if left.end == right.end else Divergence(len(left.events) + 1, None, None)


def _is_klog(event: AnyEvent) -> bool:
    return isinstance(event, StderrText) and _KLOG.match(event.text) is not None


class Attribution:
    """Two releases, and what has been found out about them so far. The order of the two does not matter.

    Raises KeyError for an unknown release.
    """

    def __init__(self, one: str, other: str) -> None:
        tags = list(RELEASES)
        self.changes = named_between(one, other)
        self.older, self.newer = sorted((one, other), key=tags.index)
        self.runs = 0
        """So many runs were made."""
        self._all: Names = frozenset(named.change.name for named in self.changes)
        self._order = {named.change.name: index for index, named in enumerate(self.changes)}
        last = list(SHELL_RELEASES)[-1]
        self._is_rewrite = RELEASES[self.older].is_script and not RELEASES[self.newer].is_script
        self._ways: tuple[Attribution, ...] = ()
        """The two ways of one that begins before the last shell release and ends after it."""
        if self._is_rewrite and self.older != last:
            self._ways = Attribution(self.older, last), Attribution(last, self.newer)
        self._known: dict[Names, Names] = {}
        """Set -> the marks (`_marks`) of the world it explained last; the newest last."""

    def explain(self, trial: Trial) -> Explanation:
        """Run both releases in a world; where they differ, say by which changes."""
        self.runs += 2
        older, newer = self._run(trial, self.older, _NONE, []), self._run(trial, self.newer, _NONE, [])
        first = divergence(older, newer)
        if first is None:
            return Explanation(older, newer, None)
        if self._ways:
            found = [way.explain(trial) for way in self._ways]
            unnamed = next((one.unnamed for one in found if one.unnamed is not None), None)
            return Explanation(older, newer, first, tuple(blame for one in found for blame in one.blames), unnamed)
        stripped = self._held_against(trial, _NONE, older)
        unnamed = stripped.turned() if stripped else None
        return Explanation(older, newer, first, self._responsible(trial, newer, _marks(older, newer)), unnamed)

    def _run(self, trial: Trial, release: str, without: Names, events: list[AnyEvent]) -> Finished:
        """One run; over the rewrite its effects."""
        if not self._is_rewrite:
            return trial.run(release, without, events)
        finished = trial.run(release, without, [])
        if isinstance(finished.outcome, Outcome):
            finished = Finished(effects(finished.outcome), end_of(finished.outcome), finished.outcome)
        for event in finished.events:
            events.append(event)  # noqa: PERF402  # one by one: the list may be a watched one
        return finished

    def _held_against(self, trial: Trial, kept: Names, expected: Finished) -> Divergence | None:
        """Run the newer release with only these changes, and hold it against a finished run, which is on the right."""
        self.runs += 1
        events = _Watched(expected.events)
        try:
            finished = self._run(trial, self.newer, self._all - kept, events)
        except _Diverged:
            number = len(events)
            return Divergence(number, events[-1], expected.events[number - 1] if number <= len(expected.events) else None)
        return divergence(finished, expected)

    def _responsible(self, trial: Trial, newer: Finished, marks: Names) -> tuple[Blame, ...]:
        kept = self._sufficient(trial, newer, marks)
        shown: dict[str, Divergence] = {}
        waiting, needed = deque(self._newest_first(kept)), 0
        while needed < len(waiting):  # until each member was left out of the same set
            name = waiting.popleft()
            found = self._held_against(trial, kept - {name}, newer)
            if found is None:
                kept, needed = kept - {name}, 0
            else:
                shown[name] = found
                waiting.append(name)
                needed += 1
        self._known.pop(kept, None)
        self._known[kept] = marks
        blames = (Blame(named, shown[named.change.name]) for named in self.changes if named.change.name in kept)
        return tuple(sorted(blames, key=lambda blame: blame.shows.number))

    def _sufficient(self, trial: Trial, newer: Finished, marks: Names) -> Names:
        """A set that explains the newer trace, not yet a smallest one."""
        kept = next((guess for guess in self._guesses(marks) if self._held_against(trial, guess, newer) is None), self._all)
        size = len(kept)
        while size > _FEW:
            size //= 2
            for chunk in _chunks(self._newest_first(kept), size):
                if self._held_against(trial, kept - chunk, newer) is None:
                    kept -= chunk
        return kept

    def _guesses(self, marks: Names) -> Iterator[Names]:
        """Sets that explained worlds like this one, then what several of them have together."""
        newest_first = list(self._known)[::-1]
        likely = sorted(newest_first, key=lambda known: len(self._known[known] ^ marks))
        tried = set()
        for guess in (*likely[:3], *(_NONE.union(*likely[:count]) for count in (2, 4, 8, len(likely)))):
            if guess not in tried:
                tried.add(guess)
                yield guess

    def _newest_first(self, names: Names) -> list[str]:
        return sorted(names, key=self._order.__getitem__, reverse=True)


def _marks(older: Finished, newer: Finished) -> Names:
    """What kinds of events only one of two runs has: worlds alike in this are likely to have one explanation."""
    one, other = frozenset(map(_kind, older.events)), frozenset(map(_kind, newer.events))
    return frozenset(f"-{kind}" for kind in one - other) | frozenset(f"+{kind}" for kind in other - one)


def _kind(event: AnyEvent) -> str:
    match event:
        case LogLine():
            return event.message[:40]
        case ApiRequest():
            return f"{event.method} {event.status} {sorted(event.body or ())}"
        case KernelCall():
            return f"{event.call} {event.result}"
        case StdoutText() | StderrText():
            return event.text[:12]
        case SysfsWrite():
            return f"{event.text!r} {event.result}"
        case _:
            return type(event).__name__


def _chunks(names: Sequence[str], size: int) -> Iterable[Names]:
    return (frozenset(names[start : start + size]) for start in range(0, len(names), size))
