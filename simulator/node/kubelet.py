"""The kubelet of the node: pods whose containers are programs, their statuses, restarts and events.

Init containers run one after the other, then the others; what ends with an error is started again, with back-off. A pod
that must go has its containers stopped by `preStop`, SIGTERM and, after its grace period, SIGKILL. Statuses are written
as the API has them, so that `kubectl get pods` shows what it would show: `Init:Error` until the kubelet looks at the pod
again, ten seconds later, then `Init:CrashLoopBackOff`.

Times are exact unless a `Pace` says otherwise: a real kubelet hears of an ended container up to a second late, and up to
v1.34 starts it up to fifteen seconds late. Leaves out probes, images, and pods that no DaemonSet here owns (`cluster.reactions` lets those go).

Source: k8s.io/kubernetes pkg/kubelet: kuberuntime/kuberuntime_manager.go, kubelet_pods.go, pod_workers.go,
events/event.go, cm/devicemanager/manager.go; restart after a boot: kubelet.go, `SandboxChanged`.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from simulator.clock import VirtualClock
from simulator.cluster.kinds import EVENT, NODE, POD
from simulator.cluster.store import Change, Store
from simulator.gocompat import SECOND, Duration, format_duration
from simulator.node.backoff import Backoff
from simulator.node.process import KILL, TERM, Process, Processes, Program

LOOKS_AGAIN: Final = 10 * SECOND
"""After a failed sync a pod is looked at again (`backOffPeriod`)."""
_JITTER: Final = 0.5
"""By which share of that later at most (`workerBackOffPeriodJitterFactor`)."""
RESOURCE_FORGOTTEN: Final = 300 * SECOND
"""How long the capacity of a device plugin that went is kept (`endpointStopGracePeriod`)."""
_CUT_OFF: Final = 255
"""The exit code of a container that a reboot cut off."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How late a kubelet is."""

    relist: Duration = 0
    """How long after a container's end it hears of it; a real one up to a second (PLEG)."""
    looks_on_time: bool = True
    """Does it look at a pod again when its back-off ends (since v1.35), or every 10 to 15 seconds?"""
    seed: int = 0
    """Decides those."""


class Container(Protocol):
    """A container of a pod: what runs in it."""

    @property
    def name(self) -> str:
        """As in the pod's spec."""

    @property
    def is_deaf(self) -> bool:
        """Is it process 1 and handles no SIGTERM?"""

    def run(self, pod: PodRef) -> Program:
        """Start it: a new program."""

    def pre_stop(self, pod: PodRef) -> None:
        """The `preStop` hook."""


@dataclass(frozen=True, slots=True)
class PodRef:
    """A pod, for its containers."""

    namespace: str
    name: str
    uid: str

    @property
    def full_name(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Containers:
    """The containers of a pod, and how long it has to stop, in seconds."""

    init: tuple[Container, ...] = ()
    main: tuple[Container, ...] = ()
    grace: float = 30.0


@dataclass(slots=True)
class _State:
    """One container: its state and last state as the API has them, its process."""

    container: Container
    is_init: bool
    state: Mapping[str, Any] = field(default_factory=lambda: {"waiting": {"reason": "PodInitializing"}})
    last: Mapping[str, Any] = field(default_factory=dict)
    restarts: int = 0
    process: Process | None = None
    started: Duration = 0
    ended: Duration | None = None
    """When it ended last."""

    @property
    def is_done(self) -> bool:
        """Did it end well?"""
        return bool("terminated" in self.state and self.state["terminated"]["exitCode"] == 0)

    @property
    def is_running(self) -> bool:
        """Does it run?"""
        return "running" in self.state

    def document(self) -> dict[str, Any]:
        """What the pod's status says of it."""
        return {
            "name": self.container.name,
            "ready": self.is_done if self.is_init else self.is_running,
            "started": self.is_running,
            "restartCount": self.restarts,
            "image": "",
            "imageID": "",
            "state": self.state,
            "lastState": self.last,
        }


class _PodWorker:
    """What the kubelet does for one pod."""

    def __init__(self, kubelet: Kubelet, pod: PodRef, containers: Containers) -> None:
        self.kubelet = kubelet
        self.pod = pod
        self.grace = containers.grace
        self.init = [_State(container, is_init=True) for container in containers.init]
        self.main = [_State(container, is_init=False) for container in containers.main]
        self.is_going = False
        self._generation = 0
        """Counted up at each boot: what was planned before is void."""

    @property
    def _states(self) -> list[_State]:
        return [*self.init, *self.main]

    # --- starting ----------------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Start what is to run next: an init container, or, when all are done, the others."""
        if self.is_going:
            return
        for state in self.init:
            if not state.is_done:
                if not state.is_running:
                    self._start(state)
                return
        for state in self.main:
            if not state.is_running and "terminated" not in state.state:
                self._start(state)

    def _start(self, state: _State) -> None:
        kubelet = self.kubelet
        now = kubelet.clock.now
        if state.ended is not None:
            kubelet.backoff.next((self.pod.uid, state.container.name), state.ended, now)
            state.restarts += 1
            state.last = state.state if "terminated" in state.state else state.last
        state.started = now
        state.state = {"running": {"startedAt": kubelet.date()}}
        name = state.container.name
        kubelet.event(self.pod, "Normal", "Created", f"Created container: {name}", self._field(state))
        kubelet.event(self.pod, "Normal", "Started", f"Started container {name}", self._field(state))
        state.process = kubelet.processes.start(
            state.container.run(self.pod), lambda code: self._exited(state, code), is_deaf=state.container.is_deaf
        )
        self.write()

    def _field(self, state: _State) -> str:
        return f"spec.{'initContainers' if state.is_init else 'containers'}{{{state.container.name}}}"

    # --- ending ------------------------------------------------------------------------------------------------

    def _exited(self, state: _State, exit_code: int) -> None:
        """A container ended. The kubelet hears of it in its time."""
        kubelet, generation, finished = self.kubelet, self._generation, self.kubelet.date()
        state.process, state.ended = None, kubelet.clock.now
        if self.is_going or not kubelet.pace.relist:
            self._ended(state, exit_code, finished)
            return

        def hears() -> None:
            if generation == self._generation:
                self._ended(state, exit_code, finished)

        kubelet.clock.plan(kubelet.clock.now + kubelet.pace.relist, hears)

    def _ended(self, state: _State, exit_code: int, finished: str) -> None:
        started = state.state["running"]["startedAt"]
        reason = "Completed" if exit_code == 0 else "Error"
        state.state = {"terminated": {"exitCode": exit_code, "reason": reason, "startedAt": started, "finishedAt": finished}}
        if self.is_going:
            self.write()
            self._remove_if_stopped()
        elif state.is_init and exit_code == 0:
            self.write()
            self.go_on()
        else:
            self._back_off(state)

    def _back_off(self, state: _State) -> None:
        """`doBackOff`: start it again, at once or in its time."""
        kubelet = self.kubelet
        now, key = kubelet.clock.now, (self.pod.uid, state.container.name)
        assert state.ended is not None
        until = kubelet.backoff.until(key, state.ended)
        self.write()
        if until <= now:
            self._start(state)
            return
        name, pod = state.container.name, self.pod
        where = f"{pod.name}_{pod.namespace}({pod.uid})"
        kubelet.event(pod, "Warning", "BackOff", f"Back-off restarting failed container {name} in pod {where}", self._field(state))
        wait = format_duration(kubelet.backoff.span(key))
        generation = self._generation

        def look() -> None:
            if generation != self._generation or self.is_going:
                return
            if kubelet.clock.now >= until:
                self._start(state)
                return
            if "terminated" in state.state:
                message = f"back-off {wait} restarting failed container={name} pod={where}"
                state.last, state.state = state.state, {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
                self.write()
            kubelet.clock.plan(until if kubelet.pace.looks_on_time else kubelet.next_look(), look)

        kubelet.clock.plan(min(kubelet.next_look(), until) if kubelet.pace.looks_on_time else kubelet.next_look(), look)

    def terminate(self) -> None:
        """The pod has been told to go."""
        if self.is_going:
            return
        self.is_going = True
        kubelet, generation = self.kubelet, self._generation
        for state in self._states:
            if state.process is not None:
                kubelet.event(self.pod, "Normal", "Killing", f"Stopping container {state.container.name}", self._field(state))
                state.container.pre_stop(self.pod)
        for state in self._states:
            if state.process is not None:
                state.process.kill(TERM)

        def kill() -> None:
            if generation == self._generation:
                for state in self._states:
                    if state.process is not None:
                        state.process.kill(KILL)

        if any(state.process is not None for state in self._states):
            kubelet.clock.plan(kubelet.clock.now + round(self.grace * SECOND), kill)
        self._remove_if_stopped()

    def _remove_if_stopped(self) -> None:
        if all(state.process is None for state in self._states):
            self.kubelet.removed(self.pod)

    # --- rebooting ---------------------------------------------------------------------------------------------

    def cut_off(self) -> None:
        """The machine goes down."""
        self._generation += 1
        for state in self._states:
            if state.process is not None:
                state.process.abandon()
                state.process = None

    def boot(self) -> None:
        """The machine is up again: a new sandbox, and every container anew."""
        kubelet = self.kubelet
        if self.is_going:
            kubelet.removed(self.pod)
            return
        kubelet.event(self.pod, "Normal", "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
        for state in self._states:
            if state.is_running:
                state.ended = kubelet.clock.now
                started = state.state["running"]["startedAt"]
                ended = {"exitCode": _CUT_OFF, "reason": "Unknown", "startedAt": started, "finishedAt": kubelet.date()}
                state.last = {"terminated": ended}
            elif "terminated" in state.state:
                state.last = state.state
            state.state = {"waiting": {"reason": "PodInitializing"}}
        self.go_on()

    # --- the status --------------------------------------------------------------------------------------------

    def write(self) -> None:
        """The pod's status as it is now."""
        running = all(state.is_running for state in self.main)
        initialized = all(state.is_done for state in self.init)
        conditions = [
            {"type": kind, "status": "True" if holds else "False"}
            for kind, holds in (
                ("Initialized", initialized),
                ("Ready", running),
                ("ContainersReady", running),
                ("PodScheduled", True),
            )
        ]
        began = initialized and any(state.is_running or "terminated" in state.state or state.restarts for state in self.main)
        self.kubelet.write_status(
            self.pod,
            {
                "phase": "Running" if began else "Pending",
                "conditions": conditions,
                "initContainerStatuses": [state.document() for state in self.init],
                "containerStatuses": [state.document() for state in self.main],
            },
        )


class Kubelet:
    """The kubelet. `containers_of` says what runs in a pod; None for a pod of which nothing is known."""

    def __init__(
        self,
        store: Store,
        clock: VirtualClock,
        processes: Processes,
        date: Callable[[], datetime.datetime],
        containers_of: Callable[[Mapping[str, Any]], Containers | None],
        pace: Pace | None = None,
    ) -> None:
        self.store = store
        self.clock = clock
        self.processes = processes
        self.backoff = Backoff()
        self.pace = pace or Pace()
        self.is_up = True
        self._random = random.Random(self.pace.seed)  # noqa: S311  # jitter, seeded by the story
        self._date = date
        self._containers_of = containers_of
        self._workers: dict[str, _PodWorker] = {}
        self._events: dict[tuple[str, ...], str] = {}
        self._resources: dict[str, int] = {}
        store.watchers.append(self._hears)

    def date(self) -> str:
        """The time, as the API writes it."""
        return f"{self._date():%Y-%m-%dT%H:%M:%SZ}"

    def next_look(self) -> Duration:
        """When a pod whose sync failed is looked at again."""
        late = 0.0 if self.pace.looks_on_time else _JITTER * self._random.random()
        return self.clock.now + round(LOOKS_AGAIN * (1 + late))

    # --- pods --------------------------------------------------------------------------------------------------

    def _hears(self, change: Change) -> None:
        document = change.after or change.before
        if change.kind is not POD or document is None:
            return
        metadata = document["metadata"]
        pod = PodRef(metadata["namespace"], metadata["name"], metadata["uid"])
        if change.after is None:
            if pod.uid in self._workers:  # deleted with no grace: its containers are stopped all the same
                self.clock.plan(self.clock.now, lambda: self._terminate(pod))
        elif change.before is None:
            if change.after["spec"].get("nodeName") == self.store.node_name:
                self.clock.plan(self.clock.now, lambda: self._admit(pod))
        elif "deletionTimestamp" in metadata and "deletionTimestamp" not in change.before["metadata"]:
            self.clock.plan(self.clock.now, lambda: self._terminate(pod))

    def _admit(self, pod: PodRef) -> None:
        document = self.store.pods.get(pod.full_name)
        if not self.is_up or document is None or document["metadata"]["uid"] != pod.uid or pod.uid in self._workers:
            return
        containers = self._containers_of(document)
        if containers is not None:
            worker = self._workers[pod.uid] = _PodWorker(self, pod, containers)
            if "deletionTimestamp" in document["metadata"]:
                worker.terminate()
            else:
                worker.go_on()

    def _terminate(self, pod: PodRef) -> None:
        worker = self._workers.get(pod.uid)
        if worker is not None and self.is_up:
            worker.terminate()

    def removed(self, pod: PodRef) -> None:
        """All containers of a pod that must go have stopped."""
        if self._workers.pop(pod.uid, None) is None:
            return
        self.backoff.forget(pod.uid)
        document = self.store.pods.get(pod.full_name)
        if document is not None and document["metadata"]["uid"] == pod.uid:
            self.store.remove(POD, pod.full_name)

    def write_status(self, pod: PodRef, status: Mapping[str, Any]) -> None:
        """Patch a pod's status, if the pod is still there."""
        document = self.store.pods.get(pod.full_name)
        if document is not None and document["metadata"]["uid"] == pod.uid:
            self.store.put(POD, {**document, "status": {**document["status"], **status}})

    # --- the machine -------------------------------------------------------------------------------------------

    def cut_off(self) -> None:
        """The machine goes down: nothing runs, and nobody says so."""
        self.is_up = False
        for worker in self._workers.values():
            worker.cut_off()

    def boot(self) -> None:
        """The machine is up again."""
        self.is_up = True
        self.backoff = Backoff()
        for resource in self._resources:
            self._resources[resource] = 0
        self._write_resources()
        for worker in list(self._workers.values()):
            worker.boot()
        for document in list(self.store.pods.values()):
            metadata = document["metadata"]
            if document["spec"].get("nodeName") == self.store.node_name:
                pod = PodRef(metadata["namespace"], metadata["name"], metadata["uid"])
                self._admit(pod)
                if "deletionTimestamp" in metadata:
                    self._terminate(pod)

    # --- extended resources --------------------------------------------------------------------------------------

    def register(self, resource: str, count: int) -> None:
        """A device plugin lists its healthy devices."""
        self._resources[resource] = count
        self._write_resources()

    def unregister(self, resource: str) -> None:
        """A device plugin is gone: none of its devices can be had, and after a while they do not count."""
        self._resources[resource] = 0
        self._write_resources(kept=resource)

        def forget() -> None:
            if self._resources.get(resource) == 0:
                self._write_resources()

        self.clock.plan(self.clock.now + RESOURCE_FORGOTTEN, forget)

    def _write_resources(self, kept: str = "") -> None:
        node = self.store.node
        if node is None or not self._resources:
            return
        amounts = {name: str(count) for name, count in self._resources.items()}
        status = node["status"]
        capacity = {**status["capacity"], **{name: amount for name, amount in amounts.items() if name != kept}}
        changed = {**status, "capacity": capacity, "allocatable": {**status["allocatable"], **amounts}}
        if changed != status:
            self.store.put(NODE, {**node, "status": changed})

    # --- events ------------------------------------------------------------------------------------------------

    def event(self, pod: PodRef, kind: str, reason: str, message: str, field_path: str = "") -> None:
        """Record an event; one that was recorded before is counted up."""
        store, date = self.store, self.date()
        key = (pod.uid, reason, message)
        name = self._events.get(key)
        known = store.objects(EVENT).get(f"{pod.namespace}/{name}") if name else None
        if known is not None:
            store.put(EVENT, {**known, "count": known["count"] + 1, "lastTimestamp": date})
            return
        name = self._events[key] = f"{pod.name}.{len(self._events):016x}"
        involved = {"kind": "Pod", "apiVersion": "v1", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
        if field_path:
            involved["fieldPath"] = field_path
        store.put(
            EVENT,
            {
                "kind": "Event",
                "apiVersion": "v1",
                "metadata": {"name": name, "namespace": pod.namespace, "uid": f"event-{name}", "creationTimestamp": date},
                "involvedObject": involved,
                "type": kind,
                "reason": reason,
                "message": message,
                "source": {"component": "kubelet", "host": store.node_name},
                "count": 1,
                "firstTimestamp": date,
                "lastTimestamp": date,
            },
        )
