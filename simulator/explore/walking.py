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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from simulator.explore.branches import Tape, Way, noting, way
from simulator.explore.choosing import Chooser
from simulator.explore.effects import Effect
from simulator.explore.facts import FAULTS_LEFT, UNKNOWN, ByFacts, Event, Facts, Key, NotedText
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
from simulator.explore.stretches import Cut, End, Exit, Stretch, Stretches, Told
from simulator.gocompat import GoError, GoPanic
from simulator.kube.clientset import Clientset
from simulator.kube.drain import Helper
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
LOOP_CUTS: Final = ("wait_for_operand",)
"""The same, called in a loop: the place names what it is called with, which tells the iterations apart."""
CLIENT_CUTS: Final = ("cordon_node", "uncordon_node")
"""The same, of the client's."""
HELPER_CUTS: Final = ("delete_or_evict_pods",)
"""The same, of the drain helper's that the client makes: the place names the pods that it is to make go."""
_HELPERS: Final = ("node_helper", "gpu_pod_helper")
"""Methods of the client that make one."""
_STEPS: Final = frozenset((*CUTS, *CLIENT_CUTS))
_SERVER: Final = Server("https://10.96.0.1:443", "10.96.0.1:443")
_STAMP: Final = "0101 00:00:00.000000       1"

START: Final[Cut] = ("main",)
_TO_THE_END: Final = sys.maxsize
_UNLIMITED: Final = (0, sys.maxsize)
"""No request waits: how long one does depends on all that came before, and would decide which goroutine asks first."""


class _Reached(BaseException):
    """The stretch is over: the next cut."""


class Edge(NamedTuple):
    """A stretch from a node, and where it leads."""

    stretch: Stretch
    leads_to: Node | End
    begins: tuple[int, ...]
    """The answers that lead to the node."""
    answers: tuple[int, ...]
    """The shortest answers found that lead on through it."""

    @property
    def way(self) -> Way:
        """The way through it."""
        return self.stretch.way

    @property
    def effects(self) -> tuple[Effect, ...]:
        """What it does."""
        return self.stretch.effects

    @property
    def log(self) -> tuple[tuple[str, str], ...]:
        """The lines it logs: level, message."""
        return self.stretch.log

    @property
    def told(self) -> tuple[int, ...]:
        """Answers that lead from the run's beginning through it."""
        return (*self.begins, *self.answers)


@dataclass(slots=True, eq=False)
class Node:
    """A cut, with what is known there as far as it matters."""

    cut: Cut
    begins: tuple[int, ...]
    """The answers that first led there."""
    depends_on: frozenset[Key] = frozenset()
    """The facts that matter there, or later."""
    exits: tuple[tuple[Exit, Node | End], ...] = ()
    """Where its stretches lead: one exit for each place."""
    number: int = -1

    @property
    def edges(self) -> Iterator[Edge]:
        """Its stretches, one by one."""
        for exit_, leads_to in self.exits:
            for stretch, answers in exit_.told:
                yield Edge(stretch, leads_to, self.begins, answers)


class Whole(NamedTuple):
    """A whole run: its stretches, all that was made up for it, and the requests that failed."""

    stretches: tuple[Stretch, ...]
    facts: Facts
    failed_at: Mapping[tuple[str, str, str], tuple[int, Failing]]


def cut_of(innermost: str, frame: Any, about: str = "") -> Cut:
    """Where in the model a frame is: its calls among the steps, outermost first. `about`: what the innermost is called with."""
    calls = [innermost]
    while frame is not None:
        code = frame.f_code
        if "/manager/" in code.co_filename and not code.co_filename.endswith("program.py"):
            calls.append(f"{code.co_qualname.rpartition('.')[2]}:{frame.f_lineno}{about}")
            about = ""
        frame = frame.f_back
    return tuple(reversed(calls))


def step_of(cut: Cut) -> str:
    """The function of `CUTS` or `CLIENT_CUTS` that a stretch begins in."""
    return next((name for call in reversed(cut) if (name := call.partition(":")[0]) in _STEPS), cut[-1])


def place(cut: Cut) -> Cut:
    """A cut as it is told from others: which pods there are is none of its business."""
    if cut[-1] not in HELPER_CUTS:
        return cut
    *calls, caller, last = cut
    return (*calls, caller.rpartition(":")[0], last)


def cutting(flow: Flow, on_cut: Callable[[Cut, str], None]) -> Flow:
    """A flow that says where each stretch begins: its place, and the function."""

    def wrapped(name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Any, *args: Any, **more: Any) -> Any:
            on_cut(cut_of(name, sys._getframe(1)), name)  # the calls that lead here are the place
            return inner(self, *args, **more)

        return method

    def wrapped_in_loop(name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Any, item: Any) -> Any:
            on_cut(cut_of(name, sys._getframe(1), f":{item.name}"), name)  # the calls that lead here are the place
            return inner(self, item)

        return method

    def making(inner: Callable[..., Helper]) -> Callable[..., Helper]:
        def method(self: Any, options: Any) -> Helper:
            made = inner(self, options)
            made.__class__ = helper
            return made

        return method

    def wrapped_of_helper(name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Any, pods: Sequence[Any]) -> Any:
            names = " ".join([pod["metadata"]["name"] for pod in pods])
            on_cut(cut_of(name, sys._getframe(1), f":{names or 'no pod'}"), name)  # the calls that lead here are the place
            return inner(self, pods)

        return method

    of_helper = {name: wrapped_of_helper(name, getattr(Helper, name)) for name in HELPER_CUTS}
    helper = type(Helper.__name__, (Helper,), {"__slots__": (), **of_helper})
    steps = {name: wrapped(name, getattr(flow.steps, name)) for name in CUTS if hasattr(flow.steps, name)}
    steps |= {name: wrapped_in_loop(name, getattr(flow.steps, name)) for name in LOOP_CUTS}
    client = {name: wrapped(name, getattr(flow.client, name)) for name in CLIENT_CUTS}
    client |= {name: making(getattr(flow.client, name)) for name in _HELPERS}
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
        self._known: Mapping[Key, Any] | None = None

    def _cut(self, cut: Cut, step: str) -> None:
        self._passed += 1
        if self._passed > self._depth:
            self._cut_at = cut
            raise _Reached
        self._clock.begin()
        if step in _STEPS:
            self._cluster.step = step
        if self._listen is not None:
            self._listen(self._stretch(cut))
            self._begin()
        if self._passed == self._depth:
            assert self._known is None or self._facts.known == self._known, cut
            self._begin()

    def _begin(self) -> None:
        self._facts.begin()
        self._tape.notes = []
        self._effects.clear()
        self._output.lines = []

    def run(self, chooser: Chooser, depth: int, known: Mapping[Key, Any] | None = None) -> Stretch:
        """The stretch after `depth` cuts of the run that the chooser decides. `known`: what has to be known there."""
        self.runs += 1
        self._passed, self._depth, self._known = 0, depth, known
        self._facts = facts = Facts(chooser, self._bounds.faults)
        self._effects: list[Effect] = []
        self._output = Output()
        self._clock = clock = MadeUpClock(self._bounds)
        facts.now = lambda: clock.now + self._cluster.waited
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

    @property
    def events(self) -> Sequence[Event]:
        """What the stretch that was run last depends on."""
        return self._facts.events

    def _stretch(self, ends: Cut | End) -> Stretch:
        facts = self._facts
        return Stretch(
            way(self._tape.notes, self._bounds.repeats, endless=ends == End(None)),
            tuple(dict.fromkeys(self._effects)),
            tuple(self._output.lines),
            ends,
            frozenset(facts.looked_at),
            facts.changed,
            tuple(self._tape.notes),
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
        clientset = Clientset(RestClient(connection, clock, output, flow.libraries, lambda: _STAMP, rate=_UNLIMITED))
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

    @property
    def stretches(self) -> int:
        """So many stretches lead on from its nodes."""
        return sum(len(exit_.told) for node in self.nodes for exit_, _ in node.exits)


def walk(flow: Flow, bounds: Bounds = DEFAULT_BOUNDS, advance: Callable[[], None] = lambda: None) -> Graph:
    """Walk every path of a Go release within the bounds. `advance` hears of each node."""
    with noting() as tape:
        walking = _Walking(Walker(flow, bounds, tape), advance)
        root = walking.visit(START, {FAULTS_LEFT: bounds.faults}, (), 0)
    return Graph(flow, bounds, root, tuple(walking.nodes), walking.walker.runs)


class _Walking:
    """A walk: what is known of its cuts."""

    def __init__(self, walker: Walker, advance: Callable[[], None]) -> None:
        self.walker, self._advance = walker, advance
        self.nodes: list[Node] = []
        self._stretches: dict[Cut, Stretches] = {}
        self._nodes: dict[Cut, ByFacts[Node]] = {}
        self._matters: dict[Cut | End, frozenset[Key]] = {}
        """At each cut the facts that one of its nodes depends on: as far as the walk has come."""
        self._sets: dict[frozenset[Key], frozenset[Key]] = {}
        """Each set of facts, once."""

    def visit(self, cut: Cut, known: Mapping[Key, Any], begins: tuple[int, ...], depth: int) -> Node:
        """Walk on from a cut to which these answers lead, after `depth` others."""

        def run(told: Sequence[int]) -> tuple[Sequence[Event], Stretch]:
            stretch = self.walker.run(Chooser((*begins, *told)), depth, known)
            return self.walker.events, stretch

        fan = self._stretches.setdefault(cut, Stretches()).fan(known, run)
        exits: tuple[Exit, ...] = ()
        while exits is not (now := fan.exits(self._matters)):  # more may matter after one of them was followed
            exits = now
            leads_to = [self._follow(exit_.first, known, begins, depth) for exit_ in exits]
        node = Node(cut, begins)
        depends_on = set(fan.looked_at)
        places: dict[Any, list[int]] = {}
        for number, (exit_, there) in enumerate(zip(exits, leads_to, strict=True)):
            places.setdefault(there, []).append(number)
            if isinstance(there, Node):
                depends_on |= there.depends_on - exit_.changes
        node.exits = tuple([(fan.joined(tuple(numbers)), there) for there, numbers in places.items()])
        node.depends_on = self._sets.setdefault(frozenset(depends_on), frozenset(depends_on))
        node.number = len(self.nodes)
        self.nodes.append(node)
        self._advance()
        self._nodes.setdefault(cut, ByFacts()).add({key: known.get(key, UNKNOWN) for key in depends_on}, node)
        self._matters[cut] = self._matters.get(cut, frozenset()) | depends_on
        return node

    def _follow(self, told: Told, known: Mapping[Key, Any], begins: tuple[int, ...], depth: int) -> Node | End:
        stretch = told.stretch
        if isinstance(stretch.ends, End):
            return stretch.ends
        known = {**known, **stretch.changed}
        node = self._nodes.setdefault(stretch.ends, ByFacts()).find(known)
        return node if node is not None else self.visit(stretch.ends, known, (*begins, *told.answers), depth + 1)
