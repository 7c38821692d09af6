"""Worlds drawn at random on image and model side by side, and the smallest world of each difference."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from simulator.recordings.comparing import Mismatch
from simulator.runners.parallel import in_parallel
from simulator.verifying.images import RunsWorlds
from simulator.verifying.judging import Model, Verdict, judge, plain
from simulator.verifying.settling import settled
from simulator.verifying.shrinking import shrunk
from simulator.world import World

RACE: Final = "a race that no delay decides"
"""Why a world that cannot be settled is excluded."""


@dataclass(slots=True)
class Difference:
    """Worlds that differ in the same way, and the verdict on the smallest such world."""

    verdict: Verdict
    like: list[str] = field(default_factory=list)
    """The names of the others."""
    tried: int = 0
    """How many smaller worlds were run."""

    @property
    def first(self) -> Mismatch:
        """Where image and model differ first."""
        return self.verdict.found[0]


def judge_world(name: str, world: World, image: RunsWorlds, model: Model) -> Verdict:
    """What came of a world, settled before it was run."""
    calm = settled(world, model.release, model.without)
    if calm is None:
        return Verdict(name, world, excluded=RACE)
    return judge(name, calm, lambda: plain(image(calm)), model)


def different(verdicts: Iterable[Verdict]) -> list[Difference]:
    """The worlds that differ, those of one kind together: the same field, the same values but for numbers in them."""
    kinds: dict[tuple[str, ...], Difference] = {}
    for verdict in verdicts:
        if not verdict.found:
            continue
        kind = _kind(verdict.found[0])
        if kind in kinds:
            kinds[kind].like.append(verdict.name)
        else:
            kinds[kind] = Difference(verdict)
    return [*kinds.values()]


def _kind(mismatch: Mismatch) -> tuple[str, ...]:
    return tuple(re.sub(r"\d+", "N", part) for part in mismatch)


def smallest(difference: Difference, image: RunsWorlds, model: Model, *, runs: int, jobs: int) -> Difference:
    """The difference with its world made as small as `runs` tries allow."""
    wanted, best = difference.first.field, difference.verdict
    assert best.world is not None

    def differs(world: World) -> Verdict | None:
        for _ in range(2):
            verdict = judge_world(best.name, world, image, model)
            if not any(mismatch.field == wanted for mismatch in verdict.found):
                return None
        return verdict

    def first_of(batch: Sequence[World]) -> tuple[int, World] | None:
        nonlocal best
        results = dict(in_parallel(lambda number: differs(batch[number]), range(len(batch)), jobs, image.cancel))
        for number in range(len(batch)):
            verdict = results[number]
            if verdict is not None and verdict.world is not None:
                best = verdict
                return number, verdict.world
        return None

    _, tried = shrunk(best.world, first_of, runs=runs, at_once=jobs)
    return Difference(best, difference.like, tried)
