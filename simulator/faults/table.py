"""All single faults of a run: the table, sorted by damage.

A row is a place and the faults there that end alike: same exit code, same end state. Calls of one kind with one argument in
which the same faults end alike share a row, and so do the moments of a signal that follow one another. A row's first fault at its
first place stands for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from simulator.faults.damage import RANK, Damage, damages, evicted_pods
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
    """Places, the faults there that end alike, and how."""

    places: tuple[Place, ...]
    ends: tuple[CallEnd | RequestEnd | SignalEnd, ...]
    world: World
    """The world of the first of these faults at the first place."""
    outcome: Outcome
    damages: tuple[Damage, ...]
    """The worst first."""
    heals: bool | None
    """Is nothing of it left after the next start of the pod? None where there is nothing to heal."""

    @property
    def place(self) -> Place:
        """The first place."""
        return self.places[0]

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


def tabulate(world: World, release: str, *, what_if: str = "", over: Callable[[Sequence[Place]], Iterable[Place]] = iter) -> Table:
    """Run a release in a world once for each fault. `over` may watch how the places are gone through.

    Raises KeyError for an unknown release or what-if.
    """
    resolved = resolve(release, what_if=what_if)
    fault_free = base(world, resolved)
    rows: list[Row] = []
    runs = 1
    for place in over(fault_free.places):
        found, made = _rows(world, resolved, fault_free, place)
        rows += found
        runs += made
    return Table(world, release, what_if, fault_free, tuple(sorted(_joined(rows), key=lambda row: row.rank)), runs)


def _rows(world: World, resolved: Resolved, fault_free: Base, place: Place) -> tuple[list[Row], int]:
    """The rows of one place, and how many runs they took."""
    found: dict[Any, Row] = {}
    runs = 0
    for end in ends(place, world, resolved):
        broken = faulted(world, place, end)
        outcome = run(broken, resolved)
        runs += 1
        key = _end_of(world, outcome)
        same = found.get(key)
        if same is not None:
            found[key] = replace(same, ends=(*same.ends, end))
            continue
        worse = damages(world, fault_free.outcome, outcome)
        heals = None
        if worse:
            heals = is_healed(world, resolved, fault_free.outcome, outcome)
            runs += 1
        found[key] = Row((place,), (end,), broken, outcome, worse, heals)
    return list(found.values()), runs


def _joined(rows: Iterable[Row]) -> Iterable[Row]:
    """Rows, in the order of their places, that are one but for the place become one."""
    out: dict[Any, Row] = {}
    for row in rows:
        place = row.place
        where: Any = (place.call[:2], place.function)
        if isinstance(row.ends[0], SignalEnd):
            where = None
        key = (where, row.ends, _end_of(row.world, row.outcome), row.damages, row.heals)
        known = out.get(key)
        if known is not None and where is None and known.places[-1].number != place.number - 1:
            out[*key, known.place.number] = known
            known = None
        out[key] = row if known is None else replace(known, places=(*known.places, place))
    return out.values()


def is_healed(world: World, resolved: Resolved, fault_free: Outcome, outcome: Outcome) -> bool:
    """Is the damage gone once the program has run again on what the faulted run left?"""
    again = run(after_fault(world, outcome), resolved)
    return not damages(world, fault_free, again)


def after_fault(world: World, outcome: Outcome) -> World:
    """The world as a faulted run left it; what had not happened by itself yet still will."""
    later = tuple(replace(change, after=max(0.0, change.after - outcome.elapsed / SECOND)) for change in world.changes)
    return replace(followed_by(world, outcome), changes=later)


def _end_of(world: World, outcome: Outcome) -> Any:
    """What two outcomes have in common that are one row. When a DaemonSet's pod goes is left out, as in `damages`."""
    after = outcome.after
    node = after.node
    return (
        outcome.exit_code,
        outcome.panic,
        None if node is None else (tuple(sorted(node.labels.items())), tuple(sorted(node.annotations.items())), node.unschedulable),
        tuple(sorted(evicted_pods(world, after))),
        after.mounts,
        after.modules,
        tuple(sorted(after.files.items())),
        tuple(sorted(after.gpu_drivers.items())),
    )
