"""Which path an ordinary run takes: the simulated runner, its branches noted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from simulator.explore.branches import Tape, Way, noting, way
from simulator.explore.made_up import Bounds
from simulator.explore.stretches import Cut, End
from simulator.explore.walking import Graph, Node, Whole, cutting, place
from simulator.manager.releases import Flow
from simulator.runners.simulated import run
from simulator.trace import Outcome
from simulator.world import World


class Step(NamedTuple):
    """One stretch of an ordinary run, and what comes after it."""

    way: Way
    ends: Cut | End


def steps_of(whole: Whole) -> tuple[Step, ...]:
    """The path of a run in a made-up world."""
    return tuple(
        Step(stretch.way, stretch.ends if isinstance(stretch.ends, End) else place(stretch.ends)) for stretch in whole.stretches
    )


class Taken(NamedTuple):
    """The path of an ordinary run, and its outcome."""

    steps: tuple[Step, ...]
    outcome: Outcome


class Prover:
    """Runs ordinary worlds with their branches noted. Made by `proving`."""

    def __init__(self, flow: Flow, bounds: Bounds, tape: Tape) -> None:
        self._bounds, self._tape = bounds, tape
        self._steps: list[Step] = []
        self._flow = cutting(flow, self._cut)

    def _cut(self, cut: Cut, _step: str) -> None:
        self._steps.append(Step(way(self._tape.notes, self._bounds.repeats), place(cut)))
        self._tape.notes = []

    def take(self, world: World) -> Taken:
        """Run a world."""
        self._steps = []
        self._tape.notes = []
        outcome = run(world, self._flow)
        ends = End(outcome.exit_code, panics=bool(outcome.panic))
        last = way(self._tape.notes, self._bounds.repeats, endless=ends == End(None))
        return Taken((*self._steps, Step(last, ends)), outcome)


@contextmanager
def proving(flow: Flow, bounds: Bounds) -> Iterator[Prover]:
    """Note what ordinary runs of a release do."""
    with noting() as tape:
        yield Prover(flow, bounds, tape)


def follow(graph: Graph, steps: Sequence[Step]) -> int:
    """How many stretches of a path are on a listed one; all of them, if it is listed itself."""
    nodes: set[Node] = {graph.root}
    for count, step in enumerate(steps):
        led = {
            leads_to for node in nodes for exit_, leads_to in node.exits if _place(leads_to) == step.ends and step.way in exit_.ways
        }
        if isinstance(step.ends, End):
            return count + bool(led)
        nodes = {there for there in led if isinstance(there, Node)}
        if not nodes:
            return count
    return len(steps)


def _place(leads_to: Node | End) -> Cut | End:
    return place(leads_to.cut) if isinstance(leads_to, Node) else leads_to
