"""One world on a real image and in the model, and the two traces held against each other."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from simulator.recordings.comparing import Mismatch, mismatches
from simulator.recordings.observation import observation
from simulator.runners.container.supervisor import Broken
from simulator.runners.container.unfit import Unfit
from simulator.runners.parallel import in_parallel, nothing
from simulator.runners.simulated import simulate
from simulator.trace import Outcome
from simulator.world import World

Observation = Mapping[str, Any]
"""A run in the recordings' own form."""

ATTEMPTS: Final = 3
"""A difference that is gone when the world is run again was the machine's, not the program's; it is named all the same."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one world."""

    name: str
    world: World | None = None
    """As it was run."""
    found: tuple[Mismatch, ...] = ()
    """Where image (`recorded`) and model (`simulated`) differ, at every attempt."""
    excluded: str = ""
    """Why nothing was compared."""
    broken: str = ""
    """What went wrong in the runner: neither the world's fault nor the program's."""
    unobserved: tuple[str, ...] = ()
    """Fields that could not be observed, and so were not compared."""
    unsteady: tuple[Mismatch, ...] = ()
    """What differed at the first attempt and no more at a later one."""

    @property
    def word(self) -> str:
        """In a word."""
        if self.excluded:
            return f"excluded: {self.excluded}"
        return "broken" if self.broken else "differs" if self.found else "equal"


@dataclass(frozen=True, slots=True)
class Model:
    """A release as the model has it; `without` leaves named changes out."""

    release: str
    without: frozenset[str] = frozenset()

    def observation(self, world: World) -> Observation:
        """What the model does in a world."""
        return plain(simulate(world, self.release, without=self.without))


def plain(outcome: Outcome) -> Observation:
    """An outcome in the recordings' form, as a file would give it back: lists, no tuples."""
    document: dict[str, Any] = json.loads(json.dumps(observation(outcome)))
    return document


def judge(name: str, world: World, image: Callable[[], Observation], model: Model) -> Verdict:
    """Compare what an image does in a world with what the model does."""
    expected = model.observation(world)
    try:
        observed = image()
    except Unfit as unfit:
        return Verdict(name, world, excluded=unfit.reason)
    except Broken as error:
        return Verdict(name, world, broken=str(error))
    found = tuple(mismatches(model.release, observed, expected))
    return Verdict(name, world, found, unobserved=tuple(observed.get("unobserved", ())))


def judge_all(
    items: Iterable[Item],
    act: Callable[[Item], Verdict],
    *,
    jobs: int,
    attempts: int = ATTEMPTS,
    cancel: Callable[[], None] = nothing,
) -> Iterator[Verdict]:
    """A verdict on each item, as they are done, `jobs` at once.

    What is not equal is looked at again when all others are done, and few at once, before it is believed.
    """
    doubtful: list[tuple[Item, Verdict]] = []
    for item, verdict in in_parallel(act, items, jobs, cancel):
        if attempts > 1 and (verdict.found or verdict.broken):
            doubtful.append((item, verdict))
        else:
            yield verdict

    def again(doubt: tuple[Item, Verdict]) -> Verdict:
        item, first = doubt
        for _ in range(attempts - 1):
            verdict = act(item)
            if not verdict.found and not verdict.broken:
                return replace(verdict, unsteady=first.found)
        return verdict

    for _, verdict in in_parallel(again, doubtful, max(1, jobs // 4), cancel):
        yield verdict


@dataclass(slots=True)
class Tally:
    """What came of all worlds."""

    equal: int = 0
    differ: int = 0
    broken: int = 0
    """Worlds in which the runner failed, at every attempt."""
    excluded: Counter[str] = field(default_factory=Counter)
    """Reason -> how many worlds."""
    unobserved: Counter[str] = field(default_factory=Counter)
    """Field -> in how many of the compared worlds it could not be observed."""

    def count(self, verdict: Verdict) -> None:
        """Take a verdict in."""
        if verdict.broken:
            self.broken += 1
            return
        if verdict.excluded:
            self.excluded[verdict.excluded] += 1
            return
        self.unobserved.update(verdict.unobserved)
        if verdict.found:
            self.differ += 1
        else:
            self.equal += 1

    def __str__(self) -> str:
        """The last line of a report."""
        broken = f"{self.broken} broken, " if self.broken else ""
        return (
            f"{self.equal} equal, {self.differ} differ, {broken}{with_reasons(self.excluded)},"
            f" {self.unobserved.total()} fields unobserved"
        )

    @property
    def passed(self) -> bool:
        """Was anything compared, and all of it equal?"""
        return self.equal > 0 and not self.differ and not self.broken


def with_reasons(excluded: Counter[str]) -> str:
    """How many were excluded, and why."""
    reasons = ", ".join(f"{times} {reason}" for reason, times in excluded.most_common())
    return f"{excluded.total()} excluded" + (f" ({reasons})" if reasons else "")
