"""What was seen on a node over time: entries in lanes, made by comparing before and after.

Source of each entry is the API server's store, the fake host, or a run of driver-manager; nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from simulator.clock import VirtualClock
from simulator.cluster.kinds import NODE, POD
from simulator.cluster.store import Change, Store
from simulator.cluster.tables import pod_status
from simulator.gocompat import Duration
from simulator.host.fake import FakeHost
from simulator.node.kubelet import PodRef
from simulator.trace import LogLine, Outcome

ACTS: Final = "people"
HOST: Final = "host"
DRIVER_MANAGER: Final = "driver-manager"
KUBELET: Final = "kubelet"
LABELS: Final = "labels"
GPUS: Final = "GPU drivers"
ALLOCATABLE: Final = "allocatable"
LANES: Final = (ACTS, HOST, DRIVER_MANAGER, KUBELET, LABELS, GPUS, ALLOCATABLE)
NO_DRIVER: Final = "no driver"
"""What is said of a GPU that none has."""
_RESOURCES: Final = "nvidia.com/"


class Entry(NamedTuple):
    """Something became so: when, in which lane, of what (a pod, a label, a GPU), what it is now; "" for gone."""

    at: Duration
    lane: str
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class Run:
    """A run of driver-manager in a pod."""

    pod: str
    began: Duration
    outcome: Outcome
    is_running: bool = False
    """Was it still running when nobody looked any more?"""

    @property
    def ended(self) -> Duration:
        """When it ended."""
        return self.began + self.outcome.elapsed

    @property
    def verdict(self) -> str:
        """How it ended, in a line."""
        if self.outcome.exit_code is None:
            return "still running" if self.is_running else "cut off"
        last = self.outcome.log[-1] if self.outcome.log else None
        text = f": {last.message}" if last is not None and last.level == "fatal" else ""
        return f"exit {self.outcome.exit_code}{text}"


@dataclass(slots=True)
class Log:
    """What a container printed in one of its runs, by a logger's level, "" for plain text."""

    pod: str
    container: str
    at: Duration
    lines: list[LogLine] = field(default_factory=list)


class _Writer:
    """The streams of a container."""

    def __init__(self, clock: VirtualClock, log: Log) -> None:
        self._clock = clock
        self._log = log

    def log(self, level: str, message: str) -> None:
        """A line of the program's logger."""
        self._log.lines.append(LogLine(self._clock.now, level, message))

    def stdout(self, text: str) -> None:
        """Plain text."""
        self._log.lines.append(LogLine(self._clock.now, "", text.rstrip("\n")))

    stderr = stdout


class Timeline:
    """The entries so far, in order, with runs of driver-manager and containers' logs."""

    def __init__(self, store: Store, clock: VirtualClock, is_of_interest: Callable[[str], bool]) -> None:
        self.entries: list[Entry] = []
        self.runs: list[Run] = []
        self.logs: list[Log] = []
        self.is_over = False
        """Does nobody look any more?"""
        self._store = store
        self._clock = clock
        self._is_of_interest = is_of_interest
        self._labels: dict[str, str] = {}
        self._resources: dict[str, str] = {}
        self._pods: dict[str, str] = {}
        self._gpus: dict[str, str] = {}
        self._modules: set[str] = set()
        self._cordoned = False
        if store.node is not None:
            self._compare_node(store.node)
        store.watchers.append(self._hears)

    def note(self, lane: str, subject: str, text: str) -> None:
        """Something became so, now."""
        self.entries.append(Entry(self._clock.now, lane, subject, text))

    # --- containers' logs (operands.Logs) ------------------------------------------------------------------------

    def output(self, pod: PodRef, container: str) -> _Writer:
        """The streams of a container that starts now."""
        log = Log(pod.full_name, container, self._clock.now)
        self.logs.append(log)
        return _Writer(self._clock, log)

    def driver_manager_starts(self, pod: PodRef) -> None:
        """A run of driver-manager begins."""
        self.note(DRIVER_MANAGER, pod.name, "starts")

    def driver_manager_ran(self, pod: PodRef, outcome: Outcome) -> None:
        """A run of driver-manager is over."""
        run = Run(pod.full_name, self._clock.now - outcome.elapsed, outcome, self.is_over and outcome.exit_code is None)
        self.runs.append(run)
        if not self.is_over:
            self.note(DRIVER_MANAGER, pod.name, run.verdict)

    # --- the store -------------------------------------------------------------------------------------------------

    def _hears(self, change: Change) -> None:
        if change.kind is NODE and change.after is not None and change.after["metadata"]["name"] == self._store.node_name:
            self._compare_node(change.after)
        elif change.kind is POD:
            document = change.after or change.before
            assert document is not None
            if self._is_of_interest(document["metadata"]["namespace"]):
                self._compare_pod(document["metadata"]["name"], change.after)

    def _compare_node(self, node: Mapping[str, Any]) -> None:
        labels = {key: f'"{value}"' for key, value in (node["metadata"].get("labels") or {}).items()}
        self._labels = self._compare(LABELS, self._labels, labels)
        resources = {key: value for key, value in node["status"]["allocatable"].items() if key.startswith(_RESOURCES)}
        self._resources = self._compare(ALLOCATABLE, self._resources, resources)
        cordoned = bool(node["spec"].get("unschedulable"))
        if cordoned != self._cordoned:
            self._cordoned = cordoned
            self.note(LABELS, "spec.unschedulable", "true" if cordoned else "")

    def _compare_pod(self, name: str, pod: Mapping[str, Any] | None) -> None:
        status, restarts = ("", 0) if pod is None else pod_status(pod)
        if restarts:
            status = f"{status} {restarts}"
        if self._pods.get(name, "") != status:
            self._pods[name] = status
            self.note(KUBELET, name, status)

    # --- the host --------------------------------------------------------------------------------------------------

    def look_at(self, host: FakeHost | None) -> None:
        """What is loaded and bound now; None: the machine is down."""
        gpus = {} if host is None else {address: driver or NO_DRIVER for address, driver in host.gpu_drivers().items()}
        if gpus != self._gpus:
            self._gpus = self._compare(GPUS, self._gpus, gpus)
        modules = set() if host is None else set(host.modules())
        if modules != self._modules:
            for name in sorted(modules ^ self._modules):
                self.note(HOST, f"module {name}", "loaded" if name in modules else "")
            self._modules = modules

    def _compare(self, lane: str, before: Mapping[str, str], after: dict[str, str]) -> dict[str, str]:
        for key in sorted(before.keys() | after.keys()):
            if before.get(key) != after.get(key):
                self.note(lane, key, after.get(key, ""))
        return after
