"""All single faults of a run: the table, sorted by damage.

A row is a place and the faults there that end alike: same exit code, same end state. A row's first fault stands for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from simulator.faults.damage import RANK, Damage, damages
from simulator.faults.domains import CallEnd, RequestEnd
from simulator.faults.planning import Base, Place, SignalEnd, base, ends, faulted
from simulator.gocompat import SECOND
from simulator.manager.releases import Flow, ShellFlow, resolve
from simulator.runners.simulated import run
from simulator.trace import Outcome
from simulator.world import World, followed_by

Resolved: TypeAlias = "Flow | ShellFlow"


@dataclass(frozen=True, slots=True)
class Row:
    """A place, the faults there that end alike, and how."""

    place: Place
    ends: tuple[CallEnd | RequestEnd | SignalEnd, ...]
    world: World
    """The world of the first of these faults."""
    outcome: Outcome
    damages: tuple[Damage, ...]
    """The worst first."""
    heals: bool | None
    """Is nothing of it left after the next start of the pod? None where there is nothing to heal."""

    @property
    def restarts(self) -> bool:
        """Does the kubelet start the pod's container again by itself?"""
        return self.outcome.exit_code not in {0, None}

    @property
    def rank(self) -> tuple[int, ...]:
        """The worst first; of equals what no restart heals, then what does more damage, then what comes first."""
        kinds = tuple(RANK[damage.kind] for damage in self.damages)
        worst = kinds[0] if kinds else len(RANK)
        return worst, self.heals is not False, -len(kinds), *kinds, self.place.number


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a run, sorted."""

    world: World
    release: str
    what_if: str
    base: Base
    rows: tuple[Row, ...]
    runs: int
    """So many runs it took."""


def tabulate(world: World, release: str, *, what_if: str = "", advance: Callable[[int, int], None] = lambda _done, _of: None) -> Table:
    """Run a release in a world once for each fault. `advance` is told how many places are done, and of how many.

    Raises KeyError for an unknown release or what-if.
    """
    resolved = resolve(release, what_if=what_if)
    fault_free = base(world, resolved)
    rows: list[Row] = []
    runs = 1
    for place in fault_free.places:
        found, made = _rows(world, resolved, fault_free, place)
        rows += found
        runs += made
        advance(place.number, len(fault_free.places))
    return Table(world, release, what_if, fault_free, tuple(sorted(rows, key=lambda row: row.rank)), runs)


def _rows(world: World, resolved: Resolved, fault_free: Base, place: Place) -> tuple[list[Row], int]:
    """The rows of one place, and how many runs they took."""
    found: dict[Any, Row] = {}
    runs = 0
    for end in ends(place, world, resolved):
        broken = faulted(world, place, end)
        outcome = run(broken, resolved)
        runs += 1
        key = _end_of(outcome)
        same = found.get(key)
        if same is not None:
            found[key] = replace(same, ends=(*same.ends, end))
            continue
        worse = damages(world, fault_free.outcome, outcome)
        heals = None
        if worse:
            heals = is_healed(world, resolved, fault_free.outcome, outcome)
            runs += 1
        found[key] = Row(place, (end,), broken, outcome, worse, heals)
    return list(found.values()), runs


def is_healed(world: World, resolved: Resolved, fault_free: Outcome, outcome: Outcome) -> bool:
    """Is the damage gone once the program has run again on what the faulted run left?"""
    again = run(after_fault(world, outcome), resolved)
    return not damages(world, fault_free, again)


def after_fault(world: World, outcome: Outcome) -> World:
    """The world as a faulted run left it; what had not happened by itself yet still will."""
    later = tuple(replace(change, after=max(0.0, change.after - outcome.elapsed / SECOND)) for change in world.changes)
    return replace(followed_by(world, outcome), changes=later)


def _end_of(outcome: Outcome) -> Any:
    """What two outcomes have in common that are one row."""
    after = outcome.after
    node = after.node
    return (
        outcome.exit_code,
        outcome.panic,
        None if node is None else (tuple(sorted(node.labels.items())), tuple(sorted(node.annotations.items())), node.unschedulable),
        after.pods,
        after.terminating,
        after.mounts,
        after.modules,
        tuple(sorted(after.files.items())),
        tuple(sorted(after.gpu_drivers.items())),
    )
