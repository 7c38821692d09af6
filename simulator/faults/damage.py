"""What a fault does to a node: how a run ended, held against how the same run ends without the fault.

Only what the fault-free run does not do as well is a fault's damage. Ordered by what somebody with a node fears most.
Pods of DaemonSets are no damage: the next one comes by itself. Nor is a mount, while its driver is still loaded and the run
fails. Leaves out time: a run that only takes longer does no damage.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from simulator import labels
from simulator.trace import NodeState, Outcome, State
from simulator.world import World

KINDS: Final = {
    "cordoned": "the node ends cordoned, though it was not before",
    "foreign-cordon-lifted": "a cordon that was there before is lifted",
    "operands-paused": "operands stay paused",
    "evicted-in-vain": "pods were evicted, and the driver is still loaded",
    "host-driver-unloaded": "modules are unloaded that stay without the fault",
    "silent": "exit code 0, though the end is another",
    "half-unloaded": "some of the driver's modules are unloaded, some are not",
    "gpus-without-driver": "GPUs are bound to no driver",
    "mount-left": "mounts are left",
    "panic": "the program panics",
    "never-ends": "the run does not end",
    "fails": "the run fails",
    "other": "the exit code is the same, but labels, modules or files are others",
}
"""Kind of damage -> what it is; the worst first."""
RANK: Final = {kind: rank for rank, kind in enumerate(KINDS)}

DRIVER_MODULE: Final = "nvidia"
_OTHER_MODULES: Final = ("gdrdrv",)


class Damage(NamedTuple):
    """One thing that is worse than without the fault."""

    kind: str
    what: str
    """In words, for people."""


def damages(world: World, base: Outcome, outcome: Outcome) -> tuple[Damage, ...]:
    """What is worse at the end of a run in a world than at the end of the fault-free one; the worst first."""
    before = base.before
    found = sorted(_damages(world, before, outcome, base), key=lambda damage: RANK[damage.kind])
    differences = _differences(world, base.after, outcome.after)
    if not found and differences:
        return (Damage("other", differences[0]),)
    return tuple(found)


def _damages(world: World, before: State, outcome: Outcome, base: Outcome) -> Iterator[Damage]:
    after, expected = outcome.after, base.after
    yield from _on_node(before.node, after.node, expected.node)
    driver_stays = DRIVER_MODULE in after.modules
    evicted = sorted(evicted_pods(world, after))
    if evicted and driver_stays and not (DRIVER_MODULE in expected.modules and set(evicted) <= set(evicted_pods(world, expected))):
        yield Damage("evicted-in-vain", f"evicted, and the driver is still loaded: {_listed(evicted)}")
    taken = [name for name in expected.modules if _is_drivers(name) and name in before.modules and name not in after.modules]
    if taken:
        yield Damage("host-driver-unloaded", f"unloaded, though the run leaves it alone: {_listed(taken)}")
    differences = _differences(world, expected, after)
    if outcome.exit_code == 0 and base.exit_code != 0:
        yield Damage("silent", f"exit code 0, where it is {_code(base)}")
    elif outcome.exit_code == 0 and differences:
        yield Damage("silent", f"exit code 0, though {differences[0]}")
    stays, goes = _split(before, after)
    if stays and goes and (stays, goes) != _split(before, expected):
        yield Damage("half-unloaded", f"unloaded {_listed(goes)}, but not {_listed(stays)}")
    bare = [address for address, driver in after.gpu_drivers.items() if not driver and expected.gpu_drivers.get(address)]
    if bare:
        yield Damage("gpus-without-driver", f"bound to no driver: {_listed(bare)}")
    mounts = [path for path in dict.fromkeys(after.mounts) if after.mounts.count(path) > expected.mounts.count(path)]
    if mounts and (outcome.exit_code == 0 or not driver_stays):
        yield Damage("mount-left", f"still mounted: {_listed(mounts)}")
    yield from _how_it_ended(outcome, base)


def _on_node(before: NodeState | None, after: NodeState | None, expected: NodeState | None) -> Iterator[Damage]:
    if before is None or after is None or expected is None:
        return
    if after.unschedulable and not before.unschedulable and not expected.unschedulable:
        yield Damage("cordoned", "the node stays cordoned")
    if before.unschedulable and not after.unschedulable and expected.unschedulable:
        yield Damage("foreign-cordon-lifted", "a cordon that was there before is lifted")
    paused = sorted(_paused(after) - _paused(before) - _paused(expected))
    if paused:
        yield Damage("operands-paused", f"paused: {_listed([key.removeprefix(labels.PREFIX) for key in paused])}")


def _how_it_ended(outcome: Outcome, base: Outcome) -> Iterator[Damage]:
    if outcome.panic and not base.panic:
        yield Damage("panic", f"panic: {outcome.panic}")
    elif outcome.exit_code is None:
        if base.exit_code is not None:
            yield Damage("never-ends", f"still running after {outcome.stopped_after} s")
    elif outcome.exit_code not in {0, base.exit_code}:
        yield Damage("fails", f"fails: {_code(outcome)}")


def _code(outcome: Outcome) -> str:
    if outcome.exit_code is None:
        return "still running"
    return f"exit code {outcome.exit_code}" if outcome.exit_code >= 0 else f"killed by signal {-outcome.exit_code}"


def _paused(node: NodeState) -> set[str]:
    return {key for key, value in node.labels.items() if labels.PAUSED in value}


def evicted_pods(world: World, after: State) -> set[str]:
    """Pods of a world that went, or were told to go, and are of no DaemonSet."""
    gone = {
        pod.full_name for pod in world.cluster.pods if not (pod.owner and pod.owner.kind == "DaemonSet") and not pod.terminating
    }
    return {name for name in gone if name not in after.pods or name in after.terminating}


def _is_drivers(name: str) -> bool:
    return name.startswith(DRIVER_MODULE) or name in _OTHER_MODULES


def _split(before: State, after: State) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The driver's modules that are still loaded, and those that are no longer."""
    drivers = [name for name in before.modules if _is_drivers(name)]
    return tuple(name for name in drivers if name in after.modules), tuple(name for name in drivers if name not in after.modules)


def _differences(world: World, expected: State, after: State) -> list[str]:
    """What is another at the end, in words; the most telling first."""
    out = []
    if DRIVER_MODULE in after.modules and DRIVER_MODULE not in expected.modules:
        out.append("the driver is still loaded")
    out += (
        f"the module {name} is still loaded" for name in after.modules if name not in expected.modules and name != DRIVER_MODULE
    )
    out += (f"the module {name} is unloaded" for name in expected.modules if name not in after.modules)
    out += (
        f"GPU {address} is bound to {driver or 'no driver'}"
        for address, driver in sorted(after.gpu_drivers.items())
        if expected.gpu_drivers.get(address) != driver
    )
    paths = list(dict.fromkeys((*expected.mounts, *after.mounts)))
    counts = [(path, after.mounts.count(path) - expected.mounts.count(path)) for path in paths]
    out += (f"{path} is {'still mounted' if more > 0 else 'not mounted'}" for path, more in counts if more)
    one, other = expected.node, after.node
    if one is not None and other is not None:
        if one.unschedulable != other.unschedulable:
            out.append("the node is cordoned" if other.unschedulable else "the node is not cordoned")
        for key in sorted(one.labels.keys() | other.labels.keys()):
            if one.labels.get(key) != other.labels.get(key):
                out.append(f"label {key} is {_valued(other.labels.get(key))}, not {_valued(one.labels.get(key))}")
        if one.annotations != other.annotations:
            out.append("the annotations are others")
    lost, kept = (
        evicted_pods(world, after) - evicted_pods(world, expected),
        evicted_pods(world, expected) - evicted_pods(world, after),
    )
    out += (f"pod {name} is gone" for name in sorted(lost))
    out += (f"pod {name} is still there" for name in sorted(kept))
    out += (
        f"{path} is {'still there' if there else 'gone'}"
        for path, there in after.files.items()
        if expected.files.get(path, False) != there
    )
    return out


def _valued(value: str | None) -> str:
    return "absent" if value is None else f'"{value}"'


def _listed(names: list[str] | tuple[str, ...]) -> str:
    """The names, the first few of many."""
    few = 3
    return ", ".join(names) if len(names) <= few + 1 else f"{', '.join(names[:few])} and {len(names) - few} more"
