"""What can go wrong in a release, read off its graph: for each property the ways in which a run can have it.

A path has a property by what its stretches did (`Progress`), so one search over the graph, cheapest first, finds for each
property and each *kind* of way the path with the fewest unusual answers. The kind is upstream's function in which the last
failure lay, or, where nothing failed, in which the run took the step; and how the program ended.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Final, NamedTuple

from simulator import labels
from simulator.explore.branches import noting
from simulator.explore.effects import Cordon, Effect
from simulator.explore.made_up import Bounds
from simulator.explore.stretches import End
from simulator.explore.walking import Edge, Graph, Node, Walker, Whole, step_of
from simulator.explore.witness import world_of
from simulator.manager.steps import MODULES
from simulator.runners.simulated import run
from simulator.trace import Outcome
from simulator.world import World

BOUNDS: Final = Bounds(faults=1, pods=1, polls=0, labels=0, odd_pods=1, modules=1)
"""One fault, one pod, and what is waited for comes at once or never: wide enough for every kind of way, and soon walked."""
_TRIES: Final = 6
"""So many of the cheapest paths of a kind are made worlds of, until one's ordinary run has the property."""
_BAD: Final = frozenset({"warning", "error"})
_PAUSES: Final = frozenset({"paused", "plugin paused"})
_BEGINNING: Final = "uninstall_driver"
_CLEANUP: Final = "cleanup_on_failure"


class Progress(NamedTuple):
    """What a path did so far, as far as properties ask for it."""

    cordon: Cordon = Cordon.AS_IT_WAS
    """What it made of the node's cordon."""
    operands: str = ""
    """What the labels' last patch did: "paused" or "restored"."""
    modules: str = ""
    """"some" are unloaded, one is "held", "half": both; "gone": nvidia is unloaded too."""
    complained: bool = False
    """Is there a warning or an error in the log?"""
    blamed: str = ""
    """The function in which the last failure lay."""
    stepped: str = ""
    """The function in which the last cordon was set or lifted, or the operands were paused."""


class Property(NamedTuple):
    """Something that a run can have: by its path in the graph, and, for the proof, by an ordinary run's outcome."""

    name: str
    title: str
    holds: Callable[[Progress, End], bool]
    shows: Callable[[Outcome], bool]
    decided: bool = False
    """Is it a step of the program that decides, and no failure?"""


class Kind(NamedTuple):
    """A kind of way to a property."""

    function: str
    """The step or client method, as the model calls it, in which the decisive failure or step lies."""
    failed: bool
    """Did something fail there?"""
    end: End


class Finding(NamedTuple):
    """A kind of way, and the world in which an ordinary run takes it."""

    kind: Kind
    world: World
    outcome: Outcome


def _is_paused(outcome: Outcome) -> bool:
    node = outcome.after.node
    before = outcome.before.node
    assert node is not None
    assert before is not None
    return any(labels.PAUSED in value and before.labels.get(key) != value for key, value in node.labels.items())


def _cordon(outcome: Outcome) -> tuple[bool, bool]:
    """Was the node cordoned before and after?"""
    assert outcome.before.node is not None
    assert outcome.after.node is not None
    return outcome.before.node.unschedulable, outcome.after.node.unschedulable


def _is_half_unloaded(outcome: Outcome) -> bool:
    gone = set(outcome.before.modules) - set(outcome.after.modules)
    return bool(gone & set(MODULES)) and "nvidia" in outcome.after.modules


PROPERTIES: Final = (
    Property(
        "node-left-cordoned",
        "A node that was not cordoned stays cordoned",
        lambda progress, _end: progress.cordon is Cordon.SET,
        lambda outcome: _cordon(outcome) == (False, True),
    ),
    Property(
        "foreign-cordon-lifted",
        "A cordon that somebody else set is lifted",
        lambda progress, _end: progress.cordon is Cordon.LIFTED,
        lambda outcome: _cordon(outcome) == (True, False),
        decided=True,
    ),
    Property(
        "operands-left-paused",
        "The operands stay paused",
        lambda progress, _end: progress.operands == "paused",
        _is_paused,
    ),
    Property(
        "success-with-a-failure",
        "The program exits 0 although it logged a warning or an error",
        lambda progress, end: end.exit_code == 0 and progress.complained,
        lambda outcome: outcome.exit_code == 0 and any(line.level in _BAD for line in outcome.log),
    ),
    Property(
        "modules-half-unloaded",
        "Some of the driver's modules are unloaded, and nvidia is not",
        lambda progress, _end: progress.modules == "half",
        _is_half_unloaded,
    ),
    Property("panics", "The program panics", lambda _progress, end: end.panics, lambda outcome: bool(outcome.panic)),
    Property(
        "never-ends",
        "The program never ends",
        lambda _progress, end: end.exit_code is None,
        lambda outcome: outcome.exit_code is None,
    ),
)
"""In the order of the pages."""


def advanced(progress: Progress, node: Node, edge: Edge) -> Progress:
    """What a path did, one stretch later."""
    function = _function(node)
    step = node.cut[-2].partition(":")[0] if function == "uncordon_node" else function
    for effect in edge.effects:
        progress = _after(progress, effect, step)
    levels = {level for level, _ in edge.log}
    if levels & _BAD:
        progress = progress._replace(complained=True)
    if function != _CLEANUP and _is_failure(edge, levels):
        progress = progress._replace(blamed=function)
    return progress


def _is_failure(edge: Edge, levels: set[str]) -> bool:
    """Did it fail, and was that not mended by the next attempt? Then it is said, or cleaned up after, or the end."""
    if levels & {*_BAD, "fatal"}:
        return True
    broke = any(effect.what in {"failed", "held"} for effect in edge.effects)
    leads_to = edge.leads_to
    ends_badly = leads_to.exit_code != 0 if isinstance(leads_to, End) else leads_to.cut[-1] in {_CLEANUP, "is_auto_drain_enabled"}
    return broke and ends_badly


def _after(progress: Progress, effect: Effect, function: str) -> Progress:
    match effect:
        case ("cordoned" | "uncordoned", _):
            return progress._replace(cordon=progress.cordon.after(effect), stepped=function)
        case ("labelled", what) if what in _PAUSES:
            return progress._replace(operands="paused", stepped=function)
        case ("labelled", "restored"):
            return progress._replace(operands="restored")
        case ("unloaded", "nvidia"):
            return progress._replace(modules="gone")
        case ("unloaded", name) if name in MODULES:
            return progress._replace(modules="some" if progress.modules in {"", "some"} else "half")
        case ("held", name) if name in MODULES and progress.modules != "gone":
            return progress._replace(modules="held" if progress.modules in {"", "held"} else "half")
    return progress


class _Reached(NamedTuple):
    """A stretch that a search reached, and the one before."""

    node: Node
    edge: Edge
    before: _Reached | None


def candidates(graph: Graph) -> dict[tuple[str, Kind], list[tuple[int, ...]]]:
    """(Property, kind) -> the answers of the paths that have it, those with the fewest unusual answers first."""
    found: dict[tuple[str, Kind], list[tuple[int, ...]]] = {}
    for progress, node, end, told in _searched(graph):
        for one in PROPERTIES:
            if one.holds(progress, end):
                tries = found.setdefault((one.name, _kind(one, progress, node, end)), [])
                if len(tries) < _TRIES:
                    tries.append(answers(told))
    return found


def _kind(one: Property, progress: Progress, node: Node, end: End) -> Kind:
    if one.decided:
        return Kind(progress.stepped, failed=False, end=end)
    if end.exit_code is None or end.panics:
        return Kind(_function(node), failed=False, end=end)
    return Kind(progress.blamed or progress.stepped, bool(progress.blamed), end)


def _function(node: Node) -> str:
    """The function in which a stretch begins."""
    return step_of(node.cut) if len(node.cut) > 1 else _BEGINNING


def _searched(graph: Graph) -> Iterator[tuple[Progress, Node, End, _Reached]]:
    """Every end of the graph with each progress that leads there, cheapest first."""
    order = count()
    waiting: list[tuple[int, int, int, Node, Progress, _Reached | None]] = [(0, 0, next(order), graph.root, Progress(), None)]
    ends: list[tuple[int, int, int, Progress, Node, End, _Reached]] = []
    seen: set[tuple[int, Progress]] = set()
    while waiting:
        unusual, length, _, node, progress, before = heapq.heappop(waiting)
        if (node.number, progress) in seen:
            continue
        seen.add((node.number, progress))
        for edge in node.edges:
            after = advanced(progress, node, edge)
            cost = unusual + sum(map(bool, edge.answers))
            reached = _Reached(node, edge, before)
            if isinstance(edge.leads_to, End):
                ends.append((cost, length, next(order), after, node, edge.leads_to, reached))
            elif (edge.leads_to.number, after) not in seen:
                heapq.heappush(waiting, (cost, length + 1, next(order), edge.leads_to, after, reached))
    for _, _, _, progress, node, end, reached in sorted(ends, key=lambda one: one[:3]):
        yield progress, node, end, reached


def answers(last: _Reached | None) -> tuple[int, ...]:
    """What a run has to be told to go along a path."""
    parts: list[tuple[int, ...]] = []
    while last is not None:
        parts.append(last.edge.answers)
        last = last.before
    return tuple(answer for part in reversed(parts) for answer in part)


class Found(NamedTuple):
    """What is found in a release."""

    proven: dict[tuple[str, Kind], Finding]
    unproven: tuple[tuple[str, Kind], ...]
    """On a path of the graph, and shown by none of the ordinary runs that were tried."""


def findings(graph: Graph, known: Mapping[tuple[str, Kind], World]) -> Found:
    """(Property, kind) -> the cheapest witness that an ordinary run proves. Worlds known of other releases are tried first."""
    proven: dict[tuple[str, Kind], Finding] = {}
    shows = {one.name: one.shows for one in PROPERTIES}
    told_for = candidates(graph)
    worlds: dict[tuple[str, Kind], list[World]] = {key: [] for key in told_for}
    with noting() as tape:
        walker = Walker(graph.flow, graph.bounds, tape)
        for key, tries in told_for.items():
            for told in tries:
                whole = walker.whole(told)
                if whole.stretches[-1].ends == key[1].end:
                    worlds[key].append(watched(whole))
    for key, tries_in in worlds.items():
        name, kind = key
        first = [known[key]] if key in known else []
        for world in (*first, *tries_in):
            outcome = run(world, graph.flow)
            if End(outcome.exit_code, panics=bool(outcome.panic)) == kind.end and shows[name](outcome):
                proven[key] = Finding(kind, world, outcome)
                break
    return Found(proven, tuple(key for key in told_for if key not in proven))


def watched(whole: Whole, seconds: float = 2400.0) -> World:
    """The ordinary world of a run, watched for longer than all waits together that end by themselves."""
    world = world_of(whole)
    return world if whole.stretches[-1].ends != End(None) else replace(world, stop_after=seconds)
