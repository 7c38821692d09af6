"""The fake cluster: the `Cluster` port on a store, with faults in front of it."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from simulator.cluster.kinds import POD
from simulator.cluster.objects import DROP, LOST, REFUSE, TIMEOUT, ClusterSpec, Fault
from simulator.cluster.reactions import Reactions, Timer
from simulator.cluster.status import failure
from simulator.gocompat import json_marshal
from simulator.messages import NO_TLS
from simulator.ports import ConnectionDropped, ConnectionFailed, ConnectionRefused, ConnectionTimedOut, Request, Response
from simulator.trace import NodeState

_BREAKS: Final[Mapping[int | str, type[Exception]]] = {
    DROP: ConnectionDropped,
    LOST: ConnectionDropped,
    REFUSE: ConnectionRefused,
    TIMEOUT: ConnectionTimedOut,
}


@dataclass(slots=True)
class _LiveFault:
    fault: Fault
    skipped: int = 0
    used: int = 0

    def takes(self, request: Request) -> bool:
        """Does it answer this request? Counts what it lets pass."""
        fault = self.fault
        if fault.times is not None and self.used >= fault.times:
            return False
        if not (
            (not fault.method or re.search(fault.method, request.method))
            and (not fault.path or re.search(fault.path, request.path))
            and (not fault.query or re.search(fault.query, request.query_text))
            and (not fault.body or re.search(fault.body, raw_body(request.body)))
        ):
            return False
        if self.skipped < fault.skip:
            self.skipped += 1
            return False
        self.used += 1
        return True


def raw_body(body: Mapping[str, Any] | None) -> str:
    """The compact JSON that was sent."""
    return "" if body is None else json_marshal(body)


class FakeCluster:
    """A cluster in memory. `start` is the date at which its clock stands at 0 (default 2026-01-01)."""

    def __init__(self, spec: ClusterSpec, clock: Timer, start: datetime.datetime | None = None) -> None:
        self.spec = spec
        self.reactions = Reactions(spec, clock, start)
        self.store = self.reactions.store
        self._faults = [_LiveFault(fault) for fault in spec.faults]

    def request(self, request: Request) -> Response:
        """Answer a request. Raises ConnectionDropped, ConnectionRefused, ConnectionTimedOut or ConnectionFailed."""
        return self.fault(request) or self.store.answer(request)

    def fault(self, request: Request) -> Response | None:
        """The answer of a fault that takes the request, if one does. Raises as `request` does."""
        addresses, server = self.spec.addresses, request.server
        if self.spec.api_down or (addresses and server and server.address not in addresses):
            raise ConnectionRefused
        if addresses and server and server.url.startswith("https:"):
            raise ConnectionFailed(NO_TLS)
        for live in self._faults:
            if live.takes(request):
                fault = live.fault
                if fault.status == LOST:
                    self.store.answer(request)
                if fault.status in _BREAKS:
                    raise _BREAKS[fault.status]
                status = int(fault.status)
                return failure(status, f"injected fault {status}", retry_after=fault.retry_after, causes=list(fault.causes))
        return None

    def listed(self, request: Request) -> frozenset[str]:
        """namespace/name of the pods that a list or a watch has at this moment."""
        items = self.store.answer(request).body["items"]
        return frozenset(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in items)

    def pod_exists(self, full_name: str) -> bool:
        """Is there a pod of this namespace/name?"""
        return full_name in self.store.pods

    def delete_pod(self, full_name: str) -> None:
        """Somebody deletes a pod; it is gone at once."""
        self.store.remove(POD, full_name)

    def node(self) -> NodeState | None:
        """The node at the end."""
        node = self.store.node
        if node is None:
            return None
        metadata = node["metadata"]
        return NodeState(
            dict(metadata.get("labels") or {}), dict(metadata.get("annotations") or {}), bool(node["spec"].get("unschedulable"))
        )

    def pods(self) -> tuple[str, ...]:
        """The pods left."""
        return tuple(self.store.pods)

    def terminating(self) -> tuple[str, ...]:
        """Those of them that have been told to go."""
        return tuple(name for name, pod in self.store.pods.items() if "deletionTimestamp" in pod["metadata"])
