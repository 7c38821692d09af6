"""What happens in the cluster by itself: pods that must go do so, after their own delay.

A DaemonSet's pod whose node selector no longer matches is told to go. A pod that went does not come back, neither when its label does nor after an eviction: one run sees one departure.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Final, Protocol

from simulator.cluster.kinds import NODE, POD
from simulator.cluster.objects import EPOCH, ClusterSpec
from simulator.cluster.store import Store
from simulator.gocompat import SECOND, Duration

_EPOCH: Final = datetime.datetime.fromisoformat(EPOCH)


class Timer(Protocol):
    """A clock on which things can be planned: virtual for simulated runs, the wall's for a served cluster."""

    @property
    def now(self) -> Duration:
        """Nanoseconds since the start."""

    def plan(self, at: Duration, happens: Callable[[], None]) -> None:
        """Let something happen at a time."""


class Reactions:
    """The pods' life on a clock. `start` is the date at which the clock stands at 0."""

    def __init__(self, spec: ClusterSpec, clock: Timer, start: datetime.datetime | None = None) -> None:
        self.clock = clock
        self.start = start or _EPOCH
        created = _text(start) if start else EPOCH
        self.store = Store(spec, created, lambda: _text(self.now), self.terminate, self.node_changed)
        for pod in spec.pods:
            if pod.terminating:
                self.terminate(pod.full_name)

    @property
    def now(self) -> datetime.datetime:
        """The date."""
        return self.start + datetime.timedelta(microseconds=self.clock.now // 1000)

    def terminate(self, name: str) -> None:
        """Tell a pod to go; it does so after its own delay, counted from the first time."""
        store = self.store
        if "deletionTimestamp" in store.pods[name]["metadata"]:
            return
        store.mark_deleted(POD, name)
        life = store.lives[name]
        delay = life.spec.termination

        def go() -> None:
            if store.lives.get(name) is life:
                store.remove(POD, name)

        if delay == 0:
            go()
        elif delay is not None:
            self.clock.plan(self.clock.now + round(delay * SECOND), go)

    def node_changed(self, name: str) -> None:
        """After a change of a node: DaemonSets' pods on it that no longer fit it must go."""
        labels = self.store.objects(NODE)[name]["metadata"].get("labels") or {}
        for key, pod in list(self.store.pods.items()):
            life = self.store.lives[key].spec
            owner, selector = life.owner, life.node_selector
            if (
                owner is not None
                and owner.kind == "DaemonSet"
                and selector
                and pod["spec"].get("nodeName") == name
                and any(labels.get(key) != value for key, value in selector.items())
            ):
                self.terminate(key)


def _text(moment: datetime.datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
