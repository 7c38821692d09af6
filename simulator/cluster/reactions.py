"""What happens in the cluster by itself: pods that must go do so, after their own delay.

A DaemonSet's pod whose node selector no longer matches is told to go. A pod that went does not come back, neither when its label does nor after an eviction: one run sees one departure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from simulator.cluster.objects import ClusterSpec
from simulator.cluster.store import LivePod, Store
from simulator.gocompat import SECOND, Duration

_EPOCH: Final = "2026-01-01T00:00:00Z"
"""The deletion timestamp: that there is one is all that is looked at."""


class Timer(Protocol):
    """A clock on which things can be planned: virtual for simulated runs, the wall's for a served cluster."""

    @property
    def now(self) -> Duration:
        """Nanoseconds since the start."""

    def plan(self, at: Duration, happens: Callable[[], None]) -> None:
        """Let something happen at a time."""


class Reactions:
    """The pods' life on a clock."""

    def __init__(self, spec: ClusterSpec, clock: Timer) -> None:
        self.clock = clock
        self.store = Store(spec, self.terminate, self.node_changed)
        for pod in list(self.store.pods.values()):
            if pod.spec.terminating:
                self.terminate(pod)

    def terminate(self, pod: LivePod) -> None:
        """Tell a pod to go; it does so after its own delay, counted from the first time."""
        if pod.terminating:
            return
        pod.document["metadata"] = {**pod.document["metadata"], "deletionTimestamp": _EPOCH}
        delay = pod.spec.termination
        if delay is None:
            return
        name = pod.spec.full_name
        if delay == 0:
            self.store.remove_pod(name)
        else:
            self.clock.plan(self.clock.now + round(delay * SECOND), lambda: self.store.remove_pod(name))

    def node_changed(self) -> None:
        """After a change of the node: DaemonSets' pods that no longer fit it must go."""
        assert self.store.node is not None
        labels = self.store.node["metadata"].get("labels") or {}
        for pod in list(self.store.pods.values()):
            owner, selector = pod.spec.owner, pod.spec.node_selector
            if (
                owner is not None
                and owner.kind == "DaemonSet"
                and selector
                and pod.document["spec"]["nodeName"] == self.store.node_name
                and any(labels.get(key) != value for key, value in selector.items())
            ):
                self.terminate(pod)
