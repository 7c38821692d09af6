"""Few whole runs that together go through every stretch of a graph.

Greedy: the stretch that lies deepest of those not yet gone through is run, on to an end by the usual answers, and what lies
on the way is done too. Of stretches that a run's way does not tell apart only the one it was made for counts as gone through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from simulator.explore.branches import noting
from simulator.explore.findings import watched
from simulator.explore.made_up import Bounds
from simulator.explore.stretches import End, Stretch
from simulator.explore.walking import Edge, Graph, Node, Walker, walk
from simulator.manager.releases import Flow
from simulator.world import World

_WATCHED: Final = 600.0
"""Seconds that an endless run is watched: more than the longest wait that ends by itself."""


class Covering(NamedTuple):
    """Worlds made for every stretch of a release. That their ordinary runs go through it is `proving`'s to show."""

    worlds: tuple[World, ...]
    stretches: int


def covering(flow: Flow, bounds: Bounds, advance: Callable[[], None] = lambda: None) -> Covering:
    """Walk a release and cover it. `advance` hears of each run."""
    graph = walk(flow, bounds, advance)
    edges = sorted(((node, edge) for node in graph.nodes for edge in node.edges), key=lambda one: len(one[1].told), reverse=True)
    done: set[tuple[int, int]] = set()
    worlds: dict[str, World] = {}
    with noting() as tape:
        walker = Walker(flow, bounds, tape)
        for node, edge in edges:
            if _name(node, edge) in done:
                continue
            whole = walker.whole(edge.told)
            done.add(_name(node, edge))
            done.update(_certain(graph, whole.stretches))
            world = watched(whole, _WATCHED)
            worlds.setdefault(repr(world), world)
    return Covering(tuple(worlds.values()), len(edges))


def _name(node: Node, edge: Edge) -> tuple[int, int]:
    return node.number, id(edge.stretch)


def _certain(graph: Graph, stretches: Sequence[Stretch]) -> Iterator[tuple[int, int]]:
    """The edges that a run surely went along: at each stretch those that fit, if it is one."""
    nodes: set[Node] = {graph.root}
    fitting: list[list[tuple[Node, Edge]]] = []
    for stretch in stretches:
        fits = [(node, edge) for node in nodes for edge in node.edges if _fits(edge, stretch)]
        fitting.append(fits)
        nodes = {edge.leads_to for _, edge in fits if isinstance(edge.leads_to, Node)}
    alive: set[Node] | None = None
    for fits in reversed(fitting):
        kept = [(node, edge) for node, edge in fits if alive is None or edge.leads_to in alive]
        if len(kept) == 1:
            yield _name(*kept[0])
        alive = {node for node, _ in kept}


def _fits(edge: Edge, stretch: Stretch) -> bool:
    there = edge.leads_to if isinstance(edge.leads_to, End) else edge.leads_to.cut
    return there == stretch.ends and edge.way == stretch.way and edge.effects == stretch.effects
