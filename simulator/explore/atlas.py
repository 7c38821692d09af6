"""The atlas of a release: its paths grouped by how they leave the node.

What a path does is folded along its stretches into an `OutcomeSoFar`; for each node and each of those it is counted how many
ways lead there, so that no path is walked one by one. What is counted are walks through the graph: where two stretches go the
same way to two nodes of one cut, the ways through both count. A witness is the way with the fewest answers that are not the
usual one.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple

from simulator.explore.branches import Site, instrumented, noting
from simulator.explore.effects import Cordon, Effect
from simulator.explore.proving import proving, steps_of
from simulator.explore.stretches import Cut, End
from simulator.explore.walking import CLIENT_CUTS, HELPER_CUTS, LOOP_CUTS, START, Edge, Graph, Node, Walker, Whole
from simulator.explore.witness import world_of
from simulator.manager.releases import Flow
from simulator.world import World

SOURCES: Final = {
    "simulator.manager.kubernetes": "internal/kubernetes/client.go",
    "simulator.manager.linuxutils": "internal/linuxutils/kmod.go",
    "simulator.kube.drain": "k8s.io/kubectl/pkg/drain",
    "simulator.kube.clientset": "k8s.io/client-go/kubernetes",
    "simulator.kube.rest": "k8s.io/client-go/rest",
    "simulator.kube.waiting": "k8s.io/apimachinery/pkg/util/wait",
}
"""Module of the model -> upstream's file or package; every other module is of `MAIN`."""
_CLIENT: Final = frozenset(
    (
        "get_node_label_value",
        "get_node_annotation_value",
        "update_node_labels",
        "cordon_node",
        "uncordon_node",
        "wait_for_pod_termination",
        "delete_or_evict_pods",
    )
)
"""Methods of `KubeClient` that upstream exports under the same name."""
_AT_ONCE: Final = 2000
"""So many runs are kept in memory until they are proven."""
_UNLOADED: Final = {"nvidia": 2}
MAIN: Final = "cmd/driver-manager/main.go"


class OutcomeSoFar(NamedTuple):
    """What a run has done to the node up to a place."""

    labels: str = "as they were"
    plugin_paused: bool = False
    cordon: Cordon = Cordon.AS_IT_WAS
    unloaded: int = 0
    """0: no module of NVIDIA's, 1: modules beside `nvidia`, 2: `nvidia`, which goes last."""
    mounts: frozenset[str] = frozenset()
    evicted: bool = False
    failed: bool = False

    def after(self, effects: Iterable[Effect]) -> OutcomeSoFar:
        """What it has done after these too."""
        state = self
        for effect in effects:
            state = state._after(effect)
        return state

    def _after(self, effect: Effect) -> OutcomeSoFar:
        match effect:
            case Effect("labelled", "plugin paused"):
                return self._replace(plugin_paused=True)
            case Effect("labelled", "restored"):
                return self._replace(labels="restored", plugin_paused=False)
            case Effect("labelled", found):
                return self._replace(labels=found)
            case Effect("cordoned" | "uncordoned"):
                return self._replace(cordon=self.cordon.after(effect))
            case Effect("unloaded", module):
                return self if module == "nouveau" else self._replace(unloaded=max(self.unloaded, _UNLOADED.get(module, 1)))
            case Effect("unmounted"):
                return self._replace(mounts=self.mounts | {"gone"})
            case Effect("failed", "umount"):
                return self._replace(mounts=self.mounts | {"stay"}, failed=True)
            case Effect("evicted" | "deleted"):
                return self._replace(evicted=True)
            case Effect("failed" | "held"):
                return self._replace(failed=True)
        return self


class Outcome(NamedTuple):
    """How a path leaves the node: what the atlas groups by."""

    ends: str
    labels: str
    cordon: Cordon
    modules: str
    mounts: str
    pods: str
    failed: str

    @classmethod
    def of(cls, end: End, state: OutcomeSoFar) -> Outcome:
        """The outcome of a path that ends so, having done that."""
        ends = "panic" if end.panics else "never" if end.exit_code is None else f"exit {end.exit_code}"
        labels = "kubelet plugin left paused" if state.plugin_paused and state.labels != "paused" else state.labels
        modules = ("untouched", "half unloaded", "gone")[state.unloaded]
        mounts = {frozenset(): "untouched", frozenset({"gone"}): "gone", frozenset({"stay"}): "stay"}.get(state.mounts, "half gone")
        pods = "evicted" if state.evicted else "left alone"
        return cls(ends, labels, state.cordon, modules, mounts, pods, "something failed" if state.failed else "nothing failed")

    @property
    def badness(self) -> tuple[int, ...]:
        """The larger, the worse: what leaves a node unusable counts first."""
        return (
            {"exit 0": 0, "exit 1": 1, "never": 2, "panic": 3}.get(self.ends, 3),
            {"as they were": 0, "restored": 0, "pre-installed": 1, "kubelet plugin left paused": 2, "paused": 3}[self.labels],
            {Cordon.AS_IT_WAS: 0, Cordon.LIFTED: 1, Cordon.SET: 2}[self.cordon],
            {"untouched": 0, "gone": 0, "half unloaded": 1}[self.modules],
            {"untouched": 0, "gone": 0, "stay": 1, "half gone": 2}[self.mounts],
            int(self.failed == "something failed"),
            int(self.pods == "evicted"),
        )

    @property
    def text(self) -> str:
        """In one line."""
        return (
            f"{self.ends}; labels {self.labels}; cordon {self.cordon}; modules {self.modules}; mounts {self.mounts};"
            f" pods {self.pods}; {self.failed}"
        )


@dataclass(frozen=True, slots=True)
class Witness:
    """A way through the graph, and the answers that lead along it."""

    edges: tuple[Edge, ...]
    told: tuple[int, ...]

    @property
    def unusual(self) -> int:
        """So many answers are not the usual one."""
        return sum(map(bool, self.told))

    @property
    def log(self) -> tuple[tuple[str, str], ...]:
        """Its log: level, message."""
        return tuple(line for edge in self.edges for line in edge.log)


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer that every path of an outcome gives, and not every path of the release."""

    file: str
    function: str
    text: str
    answer: str


@dataclass(frozen=True, slots=True)
class Entry:
    """An outcome in the atlas."""

    id: str
    outcome: Outcome
    walks: int
    decisions: tuple[Decision, ...]
    last_lines: tuple[str, ...]
    """What the log ends with, the commonest first."""
    witness: Witness


@dataclass(frozen=True, slots=True)
class Atlas:
    """Every outcome of a release within the bounds, the worst first."""

    graph: Graph
    entries: tuple[Entry, ...]

    @property
    def walks(self) -> int:
        """All of them."""
        return sum(entry.walks for entry in self.entries)


@dataclass(slots=True)
class _Reached:
    """What is known of all ways to one place with one outcome so far."""

    walks: int = 0
    notes: int = -1
    """Bits of the branch outcomes that all of them hold."""
    cost: int = -1
    before: tuple[_Reached, Edge] | None = None


@dataclass(slots=True)
class _Arrived(_Reached):
    last: Counter[str] = field(default_factory=Counter)


def atlas(graph: Graph) -> Atlas:
    """The atlas of a graph."""
    at: dict[Node, dict[OutcomeSoFar, _Reached]] = {graph.root: {OutcomeSoFar(): _Reached(1, 0, 0)}}
    arrived: dict[Outcome, _Arrived] = {}
    for node in reversed(graph.nodes):
        states = at.pop(node, {})
        for exit_, leads_to in node.exits:
            for summary in exit_.summaries:
                for state, here in states.items():
                    after = state.after(summary.effects)
                    there: _Reached
                    if isinstance(leads_to, End):
                        there = ended = arrived.setdefault(Outcome.of(leads_to, after), _Arrived())
                        for line, ways in summary.last.items():
                            ended.last[line] += here.walks * ways
                    else:
                        there = at.setdefault(leads_to, {}).setdefault(after, _Reached())
                    there.walks += here.walks * summary.ways
                    there.notes &= here.notes | summary.notes
                    cost = here.cost + summary.cheapest.unusual
                    if there.cost < 0 or cost < there.cost:
                        there.cost, there.before = (
                            cost,
                            (here, Edge(summary.cheapest.stretch, leads_to, node.begins, summary.cheapest.answers)),
                        )
    everywhere = -1
    for found in arrived.values():
        everywhere &= found.notes
    ordered = sorted(arrived.items(), key=lambda item: (item[0].badness, item[1].walks), reverse=True)
    return Atlas(graph, tuple(_entry(outcome, found, everywhere) for outcome, found in ordered))


def _entry(outcome: Outcome, found: _Arrived, everywhere: int) -> Entry:
    name = hashlib.sha256(outcome.text.encode()).hexdigest()[:6]
    last = tuple(line for line, _ in found.last.most_common(3))
    decisions = tuple(decision_of(note) for note in _notes_in(found.notes & ~everywhere))
    return Entry(name, outcome, found.walks, decisions, last, _witness(found))


def _witness(found: _Reached) -> Witness:
    edges: list[Edge] = []
    told: list[tuple[int, ...]] = []
    before = found.before
    while before is not None:
        here, edge = before
        before = here.before
        edges.append(edge)
        told.append(edge.answers)
    return Witness(tuple(reversed(edges)), tuple(answer for part in reversed(told) for answer in part))


def _notes_in(bits: int) -> Iterator[int]:
    return (note for note in range(bits.bit_length()) if bits >> note & 1)


# --- upstream's functions -------------------------------------------------------------------------------------------


def decision_of(note: int) -> Decision:
    """A branch outcome in words."""
    site = instrumented().sites[note // 2]
    return Decision(SOURCES.get(site.module, MAIN), upstream_function(site), site.text, site.outcomes[note % 2])


def upstream_function(site: Site) -> str:
    """What upstream calls the function that a site is in; the model's own name, in snake_case, where it has none for it."""
    found: Any = importlib.import_module(site.module)
    for name in site.function.split("."):
        found = getattr(found, name, None)
    return _upstream_name(inspect.getdoc(found), site.function.rpartition(".")[2])


def function_of_cut(cut: Cut, flow: Flow) -> str:
    """What upstream calls the function that a stretch begins with."""
    if cut == START:
        return "main"
    if cut[-1] not in {*LOOP_CUTS, *HELPER_CUTS}:
        return _name_of_step(cut[-1], flow)
    caller, _, about = cut[-2].split(":")
    return f"{_name_of_step(caller if cut[-1] in LOOP_CUTS else cut[-1], flow)} ({about})"


def calls_of_cut(cut: Cut, flow: Flow) -> tuple[str, ...]:
    """The functions that lead there, the outermost first."""
    return tuple(_name_of_step(call.partition(":")[0], flow) for call in cut[:-1])


def file_of_cut(cut: Cut) -> str:
    """Upstream's file with the function that a stretch begins with."""
    if cut[-1] in HELPER_CUTS:
        return SOURCES["simulator.kube.drain"]
    return SOURCES["simulator.manager.kubernetes"] if cut[-1] in CLIENT_CUTS else MAIN


def _name_of_step(step: str, flow: Flow) -> str:
    docs = (inspect.getdoc(vars(base).get(step)) for base in flow.steps.__mro__)
    return _upstream_name(next(filter(None, docs), None), step)


@lru_cache(maxsize=512)
def _upstream_name(doc: str | None, function: str) -> str:
    if doc and (match := re.match(r"`([A-Za-z_]\w*)`", doc)):
        return match[1]
    return "".join(map(str.capitalize, function.split("_"))) if function in _CLIENT else function


# --- witnesses ------------------------------------------------------------------------------------------------------


def wholes(graph: Graph, many: Iterable[Sequence[int]]) -> list[Whole]:
    """The whole runs that are told these answers."""
    with noting() as tape:
        walker = Walker(graph.flow, graph.bounds, tape)
        return [walker.whole(told) for told in many]


def world_of_witness(graph: Graph, witness: Witness) -> World:
    """The ordinary world in which a witness' path is taken."""
    (whole,) = wholes(graph, [witness.told])
    return world_of(whole)


class Proof(NamedTuple):
    """How many witnesses' worlds took their path when run in the ordinary way, and those that did not: their answers."""

    proven: int
    differing: tuple[tuple[int, ...], ...]


def prove(graph: Graph, many: int | None = None, seed: int = 0, advance: Callable[[], None] = lambda: None) -> Proof:
    """Run the ordinary world of each edge's witness, or of `many` drawn by a seed, and hold its path against the told one."""
    every = sorted({edge.told for node in graph.nodes for edge in node.edges})
    drawn = every if many is None or many >= len(every) else random.Random(seed).sample(every, many)  # noqa: S311  # a sample
    differing = []
    for start in range(0, len(drawn), _AT_ONCE):
        some = drawn[start : start + _AT_ONCE]
        told_runs = wholes(graph, some)
        with proving(graph.flow, graph.bounds) as prover:
            for told, whole in zip(some, told_runs, strict=True):
                if prover.take(world_of(whole)).steps != steps_of(whole):
                    differing.append(told)
                advance()
    return Proof(len(drawn) - len(differing), tuple(differing))


def walks_by_end(found: Atlas) -> Mapping[str, int]:
    """How many walks end how."""
    out: Counter[str] = Counter()
    for entry in found.entries:
        out[entry.outcome.ends] += entry.walks
    return out
