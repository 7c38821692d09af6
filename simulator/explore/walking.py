"""Walking every path of a release.

A run is cut where one of upstream's functions begins. What lies between two cuts is a *stretch*: the way through it (the
outcomes of its branches), what it did, and the place where the next one begins. How a run goes on from a cut depends on the
place and on those facts alone that what follows looks at; runs that agree on both go on alike, so each such *node* is walked
once. A path is a walk from the first node to an end. There are far more of them than nodes, and none needs a run of its own to
be known: they are counted, found and recognised in the graph.

Where a stretch begins with the same place, looks at the same facts and is told the same, it ends the same: a run depends on
nothing but its answers. Time is left out: no branch that counts here depends on how late it is (`branches.UNNOTED`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from simulator.explore.branches import Tape, Way, noting, way
from simulator.explore.choosing import Chooser, explored
from simulator.explore.effects import Effect
from simulator.explore.facts import UNKNOWN, Facts, Key, NotedText
from simulator.explore.made_up import (
    DEFAULT_BOUNDS,
    Bounds,
    Failing,
    MadeUpClock,
    MadeUpCluster,
    MadeUpHost,
    MadeUpSettings,
    MadeUpVariables,
)
from simulator.gocompat import GoError, GoPanic
from simulator.kube.clientset import Clientset
from simulator.kube.rest import Connection, RestClient
from simulator.manager.log import Log
from simulator.manager.program import FAILURE, PANIC
from simulator.manager.releases import Flow
from simulator.ports import Server, Stopped

CUTS: Final = (
    "is_host_driver",
    "disable_containerized_driver",
    "fetch_current_labels",
    "fetch_auto_upgrade_annotation",
    "evict_all_gpu_operator_components",
    "should_skip_uninstall",
    "is_driver_loaded",
    "is_gpu_pod_eviction_enabled",
    "is_auto_drain_enabled",
    "nv_drain_node",
    "drain_node",
    "evict_kubelet_plugin",
    "unload_driver",
    "unmount_rootfs",
    "remove_pid_file",
    "unbind_vfio_pci",
    "is_gpu_direct_rdma_enabled",
    "wait_for_mofed_driver",
    "reschedule_gpu_operator_components",
    "cleanup_on_failure",
    "is_nouveau_loaded",
    "unload_nouveau",
)
"""Methods of the steps at whose beginning a run is cut. None of them is called in a loop."""
CLIENT_CUTS: Final = ("cordon_node", "uncordon_node")
"""The same, of the client's."""
_SERVER: Final = Server("https://10.96.0.1:443", "10.96.0.1:443")
_STAMP: Final = "0101 00:00:00.000000       1"

Cut: TypeAlias = "tuple[str, ...]"
"""Where a stretch begins: the calls that lead there, `function:line` from the outermost to the innermost."""
START: Final[Cut] = ("main",)
_TO_THE_END: Final = sys.maxsize


class End(NamedTuple):
    """How a run ends. `exit_code` is None where it never does."""

    exit_code: int | None
    panics: bool = False


class _Reached(BaseException):
    """The stretch is over: the next cut."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A stretch, and where it leads."""

    way: Way
    effects: tuple[Effect, ...]
    log: tuple[tuple[str, str], ...]
    """The lines it logs: level, message."""
    leads_to: Node | End
    told: tuple[int, ...]
    """The shortest answers found that lead from the run's beginning through it."""


@dataclass(slots=True, eq=False)
class Node:
    """A cut, with what is known there as far as it matters."""

    cut: Cut
    depends_on: Mapping[Key, Any] = field(default_factory=dict)
    edges: tuple[Edge, ...] = ()
    number: int = -1
    begins: tuple[int, ...] = ()
    """The answers that first led there: those with which what its edges are told begins."""


class Stretch(NamedTuple):
    """One stretch of one run."""

    way: Way
    effects: tuple[Effect, ...]
    log: tuple[tuple[str, str], ...]
    ends: Cut | End
    known: Mapping[Key, Any]
    looked_at: Mapping[Key, Any]
    changed: frozenset[Key]


class Whole(NamedTuple):
    """A whole run: its stretches, all that was made up for it, and the requests that failed."""

    stretches: tuple[Stretch, ...]
    facts: Facts
    failed_at: Mapping[tuple[str, str, str], tuple[int, Failing]]


def cut_of(innermost: str, frame: Any) -> Cut:
    """Where in the model a frame is: its calls among the steps, outermost first."""
    calls = [innermost]
    while frame is not None:
        code = frame.f_code
        if "/manager/" in code.co_filename and not code.co_filename.endswith("program.py"):
            calls.append(f"{code.co_qualname.rpartition('.')[2]}:{frame.f_lineno}")
        frame = frame.f_back
    return tuple(reversed(calls))


def cutting(flow: Flow, on_cut: Callable[[Cut, str], None]) -> Flow:
    """A flow that says where each stretch begins: its place, and the function."""

    def wrapped(name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Any, *args: Any, **more: Any) -> Any:
            on_cut(cut_of(name, sys._getframe(1)), name)  # the calls that lead here are the place
            return inner(self, *args, **more)

        return method

    steps = {name: wrapped(name, getattr(flow.steps, name)) for name in CUTS if hasattr(flow.steps, name)}
    client = {name: wrapped(name, getattr(flow.client, name)) for name in CLIENT_CUTS}
    return flow._replace(
        steps=type(flow.steps.__name__, (flow.steps,), steps), client=type(flow.client.__name__, (flow.client,), client)
    )


class _Components(dict[str, str]):
    """`componentState`, whose emptiness is a fact."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self._facts = facts

    def __setitem__(self, key: str, value: str) -> None:
        super().__setitem__(key, value)
        self._facts.put(("component", key), bool(value))

    def __getitem__(self, key: str) -> str:
        return NotedText.of(super().__getitem__(key), lambda: self._facts.look(("component", key)))

    def get(self, key: str, default: Any = None) -> Any:
        """The value, which notes who looks whether it is empty."""
        return self[key] if key in self else default  # noqa: SIM401  # `get` would go past __getitem__


def _remembering(flow: Flow) -> Flow:
    """A flow whose steps remember in facts what they have read."""

    def custom(self: Any) -> str:
        return NotedText.of(self.facts.known.get("custom value", ""), lambda: self.facts.look("custom value"))

    def policy(self: Any) -> str:
        return str(self.facts.look("policy"))

    attributes = {
        "custom_operand_value": property(custom, lambda self, value: self.facts.put("custom value", value)),
        "auto_upgrade_policy": property(policy, lambda self, value: self.facts.put("policy", value)),
        "facts": None,
    }
    return flow._replace(steps=type(flow.steps.__name__, (flow.steps,), attributes))


class Output:
    """The program's streams: the log is kept, all else is dropped."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def log(self, level: str, message: str) -> None:
        """A line."""
        self.lines.append((level, message))

    def stdout(self, _text: str) -> None:
        """Nothing that decides."""

    stderr = stdout

    def random(self) -> float:
        """The Chance port: jitter is time."""
        return 0.5


class Walker:
    """Runs a release against worlds that are made up, one stretch at a time."""

    def __init__(self, flow: Flow, bounds: Bounds, tape: Tape) -> None:
        self._bounds, self._tape = bounds, tape
        self._flow = _remembering(cutting(flow, self._cut))
        self._has_claims = any(change.name == "dra-claims-count-as-gpu" for change in flow.changes)
        self.runs = 0
        self._passed = 0
        self._depth = 0
        self._cut_at: Cut = START
        self._listen: Callable[[Stretch], None] | None = None

    def _cut(self, cut: Cut, step: str) -> None:
        self._passed += 1
        if self._passed > self._depth:
            self._cut_at = cut
            raise _Reached
        self._cluster.step = step
        if self._listen is not None:
            self._listen(self._stretch(cut))
            self._begin()
        if self._passed == self._depth:
            self._begin()

    def _begin(self) -> None:
        self._facts.begin()
        self._tape.notes = []
        self._effects.clear()
        self._output.lines = []

    def run(self, chooser: Chooser, depth: int) -> Stretch:
        """The stretch after `depth` cuts of the run that the chooser decides."""
        self.runs += 1
        self._passed, self._depth = 0, depth
        self._facts = facts = Facts(chooser, self._bounds.faults)
        self._effects: list[Effect] = []
        self._output = Output()
        clock = MadeUpClock(self._bounds)
        facts.now = lambda: clock.now
        sees_groups = self._flow.libraries.daemonset_needs_apps_v1
        self._cluster = MadeUpCluster(
            facts, self._bounds, clock, self._effects, has_claims=self._has_claims, sees_groups=sees_groups
        )
        self._tape.notes = []
        self._begin()
        ends: Cut | End
        try:
            ends = self._main(facts, clock)
        except _Reached:
            ends = self._cut_at
        except Stopped:
            ends = End(None)
        return self._stretch(ends)

    def _stretch(self, ends: Cut | End) -> Stretch:
        facts = self._facts
        return Stretch(
            way(self._tape.notes, self._bounds.repeats),
            tuple(dict.fromkeys(self._effects)),
            tuple(self._output.lines),
            ends,
            facts.known,
            facts.looked_at,
            facts.changed,
        )

    def whole(self, told: Sequence[int]) -> Whole:
        """The whole run that is told these answers, in stretches."""
        noted: list[Stretch] = []
        self._listen = noted.append
        try:
            last = self.run(Chooser(told), _TO_THE_END)
        finally:
            self._listen = None
        return Whole((*noted, last), self._facts, self._cluster.failed_at)

    def _main(self, facts: Facts, clock: MadeUpClock) -> End:
        host = MadeUpHost(facts, self._bounds, clock, self._effects)
        flow, output, log = self._flow, self._output, Log(self._output)
        connection = Connection(self._cluster, clock, _SERVER)
        clientset = Clientset(RestClient(connection, clock, output, flow.libraries, lambda: _STAMP))
        kube = flow.client(clientset, clock, output, output, log)
        settings: Any = MadeUpSettings(facts)
        variables: Any = MadeUpVariables(facts)
        flow.steps.facts = facts  # type: ignore[attr-defined]  # made by _remembering, where the properties look for it
        steps = flow.steps(settings, variables, host, clock, output, kube)
        steps.components = _Components(facts)
        try:
            steps.uninstall_driver()
        except GoError as error:
            log.fatal(str(error))
            return End(FAILURE)
        except GoPanic:
            return End(PANIC, panics=True)
        return End(0)


@dataclass(slots=True)
class _Known:
    """The nodes of one cut: for each set of facts that one looks at, their values -> the node."""

    by_facts: dict[tuple[Key, ...], dict[tuple[Any, ...], Node]] = field(default_factory=dict)

    def find(self, known: Mapping[Key, Any]) -> Node | None:
        """A node that goes on as these facts have it."""
        for keys, nodes in self.by_facts.items():
            node = nodes.get(tuple([known.get(key, UNKNOWN) for key in keys]))
            if node is not None:
                return node
        return None

    def add(self, node: Node) -> None:
        """A node that is walked."""
        keys = tuple(node.depends_on)
        self.by_facts.setdefault(keys, {})[tuple(node.depends_on.values())] = node


@dataclass(frozen=True, slots=True)
class Graph:
    """Every path of a flow within the bounds."""

    flow: Flow
    bounds: Bounds
    root: Node
    nodes: tuple[Node, ...]
    """In the order in which they were walked to their end; the root is the last."""
    runs: int
    """So many runs it took."""


def walk(flow: Flow, bounds: Bounds = DEFAULT_BOUNDS, advance: Callable[[], None] = lambda: None) -> Graph:
    """Walk every path of a Go release within the bounds. `advance` hears of each run."""
    known: dict[Cut, _Known] = {}
    nodes: list[Node] = []
    with noting() as tape:
        walker = Walker(flow, bounds, tape)

        def visit(cut: Cut, prefix: tuple[int, ...], depth: int) -> Node:
            node = Node(cut, begins=prefix)
            edges: dict[tuple[Any, ...], Edge] = {}
            depends_on: dict[Key, Any] = {}
            for told, stretch in explored(lambda chooser: walker.run(chooser, depth), prefix=prefix):
                advance()
                depends_on |= stretch.looked_at
                leads_to: Node | End
                if isinstance(stretch.ends, End):
                    leads_to = stretch.ends
                else:
                    there = known.setdefault(stretch.ends, _Known())
                    leads_to = there.find(stretch.known) or visit(stretch.ends, told, depth + 1)
                    for key, value in leads_to.depends_on.items():
                        if key not in stretch.changed:
                            depends_on.setdefault(key, value)
                target = leads_to if isinstance(leads_to, End) else id(leads_to)
                key = (stretch.way, stretch.effects, target)
                if key not in edges or len(told) < len(edges[key].told):
                    edges[key] = Edge(stretch.way, stretch.effects, stretch.log, leads_to, told)
            node.edges, node.depends_on = tuple(edges.values()), depends_on
            node.number = len(nodes)
            nodes.append(node)
            known.setdefault(cut, _Known()).add(node)
            return node

        root = visit(START, (), 0)
    return Graph(flow, bounds, root, tuple(nodes), walker.runs)
