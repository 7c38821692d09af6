"""What is known of the stretches that begin at one cut.

A stretch looks at facts and is told answers, one after the other, and depends on nothing else. Once it was run, it need not be
run again for other facts that it never looks at: a tree of looks and answers says how it ends (`Stretches`). All that begin
with the same facts, as far as any of them looks, are a `Fan`; those of a fan that leave behind the same facts, as far as these
matter later, are an `Exit`, and lead to one node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import and_
from typing import Any, Final, NamedTuple, TypeAlias

from simulator.explore.branches import Way, notes_of
from simulator.explore.effects import Effect
from simulator.explore.facts import UNKNOWN, ByFacts, Event, Key, Looked

Cut: TypeAlias = "tuple[str, ...]"
"""Where a stretch begins: the calls that lead there, `function:line` from the outermost to the innermost, which has no line.
Where it matters what the innermost is called with its caller is `function:line:that`."""
_DEPENDS: Final = "a stretch depends on nothing but the facts it looks at and what it is told"


class End(NamedTuple):
    """How a run ends. `exit_code` is None where it never does."""

    exit_code: int | None
    panics: bool = False


class Stretch(NamedTuple):
    """What lies between two cuts of a run."""

    way: Way
    effects: tuple[Effect, ...]
    log: tuple[tuple[str, str], ...]
    """The lines it logs: level, message."""
    ends: Cut | End
    looked_at: frozenset[Key]
    changed: Mapping[Key, Any]
    """The facts that it makes up or changes, and what they are then."""
    notes: tuple[Any, ...]
    """The notes of which its way is made."""


class Told(NamedTuple):
    """A stretch, and the answers that it is told."""

    stretch: Stretch
    answers: tuple[int, ...]

    @property
    def unusual(self) -> int:
        """So many answers are not the usual one."""
        return sum(map(bool, self.answers))


Run: TypeAlias = "Callable[[Sequence[int]], tuple[Sequence[Event], Stretch]]"
"""Runs the stretch that is told these answers, and then the first one each time: what it depends on, and what it is."""


# --- the tree -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Look:
    """A fact is looked at: what comes after, for each value."""

    key: Key
    after: _After = field(default_factory=dict)


@dataclass(slots=True)
class _Ask:
    """A question with so many answers: what comes after, for each."""

    answers: int
    after: _After = field(default_factory=dict)


_After: TypeAlias = "dict[Any, _Look | _Ask | Told]"


class Stretches:
    """All that were run from one cut, and the fans that are known there."""

    def __init__(self) -> None:
        self._roots: _After = {}
        self._fans: ByFacts[Fan] = ByFacts()

    def fan(self, known: Mapping[Key, Any], run: Run) -> Fan:
        """All that begin with these facts."""
        fan = self._fans.find(known)
        if fan is None:
            fan = Fan(tuple(self.each(known, run)))
            self._fans.add({key: known.get(key, UNKNOWN) for key in fan.looked_at}, fan)
        return fan

    def each(self, known: Mapping[Key, Any], run: Run) -> Iterator[Told]:
        """Every stretch that begins with these facts, in the lexicographic order of the answers it is told."""
        told: list[int] = []
        asked: list[_Ask] = []
        after, value = self._roots, None
        while True:
            place = after.get(value)
            if place is None:
                self._grow(*run(told))
                place = after[value]
            if isinstance(place, _Look):
                after, value = place.after, known.get(place.key, UNKNOWN)
                continue
            if isinstance(place, _Ask):
                asked.append(place)
                told.append(0)
            else:
                yield place
                while asked and told[-1] + 1 == asked[-1].answers:
                    asked.pop()
                    told.pop()
                if not asked:
                    return
                told[-1] += 1
            after, value = asked[-1].after, told[-1]

    def _grow(self, events: Sequence[Event], stretch: Stretch) -> None:
        after, value = self._roots, None
        answers = []
        for event in events:
            if isinstance(event, Looked):
                place = after.setdefault(value, _Look(event.key))
                assert isinstance(place, _Look), _DEPENDS
                assert place.key == event.key, _DEPENDS
                after, value = place.after, event.value
            else:
                place = after.setdefault(value, _Ask(event.answers))
                assert isinstance(place, _Ask), _DEPENDS
                assert place.answers == event.answers, _DEPENDS
                after, value = place.after, event.answer
                answers.append(event.answer)
        after[value] = Told(stretch, tuple(answers))


# --- fans -----------------------------------------------------------------------------------------------------------


class Fan:
    """All stretches that begin at one cut with the same facts, as far as one of them looks at these."""

    def __init__(self, told: Sequence[Told]) -> None:
        self.told: Final = told
        self.looked_at: Final = frozenset[Key]().union(*(one.stretch.looked_at for one in told))
        self._ends: Final = tuple({one.stretch.ends: None for one in told})
        self._matters: tuple[int, ...] | None = None
        self._exits: tuple[Exit, ...] = ()
        self._joined: dict[tuple[int, ...], Exit] = {}

    def exits(self, matters: Mapping[Cut | End, frozenset[Key]]) -> tuple[Exit, ...]:
        """Its stretches by what they leave behind, as far as it matters at the cut where they end. The same ones until more does."""
        sizes = tuple([len(matters.get(end, ())) for end in self._ends])
        if sizes != self._matters:
            groups: dict[tuple[Any, ...], list[Told]] = {}
            nothing: frozenset[Key] = frozenset()
            for one in self.told:
                here = matters.get(one.stretch.ends, nothing)
                left = frozenset([item for item in one.stretch.changed.items() if item[0] in here])
                groups.setdefault((one.stretch.ends, left), []).append(one)
            self._matters, self._exits = sizes, tuple([Exit(group) for group in groups.values()])
            self._joined.clear()
        return self._exits

    def joined(self, numbers: tuple[int, ...]) -> Exit:
        """Several of the exits that were given last as one."""
        if len(numbers) == 1:
            return self._exits[numbers[0]]
        if numbers not in self._joined:
            self._joined[numbers] = Exit([one for number in numbers for one in self._exits[number].told])
        return self._joined[numbers]


class Summary(NamedTuple):
    """What the stretches of an exit that do the same have in common."""

    effects: tuple[Effect, ...]
    ways: int
    notes: int
    """Bits of the branch outcomes that all of them hold."""
    cheapest: Told
    """With the fewest answers that are not the usual one."""
    last: Mapping[str, int]
    """The last line of the log -> so many."""


class Exit:
    """Stretches of a fan that lead to the same place.

    Of those that go the same way and do the same the one with the fewest answers stands for all.
    """

    def __init__(self, told: Sequence[Told]) -> None:
        self.first: Final = told[0]
        """The one that is told the usual answers for the longest."""
        shortest: dict[tuple[Way, tuple[Effect, ...]], Told] = {}
        for one in told:
            key = (one.stretch.way, one.stretch.effects)
            if key not in shortest or len(one.answers) < len(shortest[key].answers):
                shortest[key] = one
        self.told: Final = tuple(shortest.values())

    @cached_property
    def ways(self) -> frozenset[Way]:
        """The ways of its stretches."""
        return frozenset(one.stretch.way for one in self.told)

    @cached_property
    def changes(self) -> frozenset[Key]:
        """The facts that one of its stretches makes up or changes: those that matter are the same ones in all."""
        return frozenset(self.first.stretch.changed)

    @cached_property
    def summaries(self) -> tuple[Summary, ...]:
        """Its stretches by what they do."""
        by_effects: dict[tuple[Effect, ...], list[Told]] = {}
        for one in self.told:
            by_effects.setdefault(one.stretch.effects, []).append(one)
        return tuple([_summary(effects, told) for effects, told in by_effects.items()])


def _summary(effects: tuple[Effect, ...], told: Sequence[Told]) -> Summary:
    last = Counter(one.stretch.log[-1][1].split("\n")[0] if one.stretch.log else "(no line)" for one in told)
    notes = reduce(and_, (_bits(one.stretch.way) for one in told))
    return Summary(effects, len(told), notes, min(told, key=lambda one: one.unusual), last)


def _bits(way: Way) -> int:
    out = 0
    for note in notes_of(way):
        out |= 1 << note
    return out
