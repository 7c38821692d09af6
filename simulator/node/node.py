"""A GPU node over time: a machine, a kubelet, an operator and what they run, on one clock and one store.

Source of the order: everything that happens at one moment happens in the order in which it was caused.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final, Self

from simulator.clock import VirtualClock
from simulator.cluster import patch
from simulator.cluster.fake import FakeCluster
from simulator.cluster.kinds import POD
from simulator.cluster.objects import ClusterSpec
from simulator.cluster.store import Change
from simulator.cluster.tables import table
from simulator.gocompat import SECOND, Duration
from simulator.host.spec import HostSpec
from simulator.node.daemonsets import DaemonSets
from simulator.node.kubelet import Kubelet, Pace
from simulator.node.machine import Machine
from simulator.node.operands import Operands, Surroundings
from simulator.node.operator import FOUND, NEW_SINCE, Operator, Values
from simulator.node.process import Processes
from simulator.node.timeline import HOST, Timeline
from simulator.ports import ConnectionDropped, ConnectionFailed, ConnectionRefused, ConnectionTimedOut, Request
from simulator.reading import InputError

REBOOT: Final = 120.0
"""Seconds that a reboot takes, unless it is said otherwise."""


class Node:
    """One node with a chart of the GPU Operator on it. To be closed, so that what still runs is abandoned."""

    def __init__(
        self,
        host: HostSpec,
        cluster: ClusterSpec,
        chart: str,
        values: Values,
        *,
        namespace: str = "gpu-operator",
        new_operator: bool | None = None,
        pace: Pace | None = None,
    ) -> None:
        assert cluster.node is not None
        self.clock = VirtualClock()
        if any(function.is_gpu for function in host.pci):
            found = {FOUND[0]: "true", **cluster.node.labels}
            cluster = replace(cluster, node=replace(cluster.node, labels=found))
        self.cluster = FakeCluster(cluster, self.clock)
        self.store = self.cluster.store
        self.machine = Machine(host, self.cluster.pod_exists)
        self.processes = Processes(self.clock)
        self.namespace = namespace
        self.timeline = Timeline(self.store, self.clock, lambda name: name == namespace)
        self.timeline.look_at(self.machine.live)
        around = Surroundings(self.clock, self.cluster, self.machine, lambda: self.kubelet, self.timeline, namespace)
        self.operands = Operands(chart, around)
        self.daemonsets = DaemonSets(self.store, self.clock, self.date, namespace)
        self.kubelet = Kubelet(self.store, self.clock, self.processes, self.date, self.daemonsets.containers_of, pace)
        is_new = self.operands.chart.number >= NEW_SINCE if new_operator is None else new_operator
        self.operator = Operator(self.cluster, self.clock, self.daemonsets, values, self.operands.render, is_new=is_new)
        self.store.watchers.append(self._hears)
        self.processes.on_step = self.look
        self.operator.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.timeline.is_over = True
        self.kubelet.cut_off()

    def date(self) -> datetime.datetime:
        """The date."""
        return self.cluster.reactions.now

    def run_until(self, at: Duration) -> None:
        """Let time pass up to a moment, in nanoseconds since the start; what is due then happens too."""
        self.clock.sleep(at - self.clock.now)

    def _hears(self, change: Change) -> None:
        """Programs wait for objects to go; what the host has changes with a program's step or an administrator's."""
        if change.after is None:
            self.processes.look()

    def look(self) -> None:
        """Note what is loaded and bound, if it changed."""
        self.processes.look()
        self.timeline.look_at(self.machine.live if self.kubelet.is_up else None)

    # --- looking -------------------------------------------------------------------------------------------------

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        node = self.store.node
        assert node is not None
        return node["metadata"].get("labels") or {}

    @property
    def allocatable(self) -> dict[str, str]:
        """What `jq '.status.allocatable | with_entries(select(.key | startswith("nvidia.com/")))'` prints."""
        node = self.store.node
        assert node is not None
        return {key: value for key, value in node["status"]["allocatable"].items() if key.startswith("nvidia.com/")}

    @property
    def gpu_drivers(self) -> dict[str, str]:
        """Each GPU's driver, "" for none."""
        return self.machine.live.gpu_drivers()

    def get_pods(self) -> list[dict[str, str]]:
        """The rows of `kubectl get pods`, by column."""
        pods = [pod for pod in self.store.pods.values() if pod["metadata"]["namespace"] == self.namespace]
        made = table(POD, pods, {}, self.date(), include="None")
        names = [column["name"] for column in made["columnDefinitions"] if not column["priority"]]
        rows = [dict(zip(names, map(str, row["cells"]), strict=False)) for row in made["rows"]]
        return sorted(rows, key=lambda row: row["Name"])

    # --- acts of people --------------------------------------------------------------------------------------------

    def label(self, changes: Mapping[str, str | None]) -> None:
        """`kubectl label node`: None removes a label. Raises InputError where the API server refuses."""
        self._patch_node({"metadata": {"labels": dict(changes)}})

    def cordon(self, *, unschedulable: bool) -> None:
        """`kubectl cordon` or `uncordon`. Raises InputError."""
        self._patch_node({"spec": {"unschedulable": unschedulable or None}})

    def _patch_node(self, body: Mapping[str, Any]) -> None:
        self._request(Request("PATCH", f"/api/v1/nodes/{self.store.node_name}", body=body, content_type=patch.MERGE))

    def _request(self, request: Request) -> None:
        """What kubectl sends. Raises InputError where it is refused."""
        try:
            response = self.cluster.request(request)
        except (ConnectionDropped, ConnectionFailed, ConnectionRefused, ConnectionTimedOut):
            raise InputError("", "", "the API server does not answer", "leave the step out, or the fault") from None
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise InputError("", "", f"the API server refuses: {response.body.get('message', response.status)}")

    def delete_pods(self, prefix: str) -> list[str]:
        """`kubectl delete pod` of those in the operator's namespace whose name begins so: their names. Raises InputError."""
        names = [row["Name"] for row in self.get_pods() if row["Name"].startswith(prefix)]
        for name in names:
            self._request(Request("DELETE", f"/api/v1/namespaces/{self.namespace}/pods/{name}"))
        return names

    def reboot(self, *, takes: float = REBOOT, kernel: str = "") -> None:
        """`reboot`: down at once, up after so many seconds."""
        self.timeline.note(HOST, "power", "down")
        self.kubelet.cut_off()
        self.look()

        def up() -> None:
            self.machine.reboot(kernel)
            self.timeline.note(HOST, "power", f"up, {self.machine.kernel}")
            self.kubelet.boot()
            self.look()

        self.clock.plan(self.clock.now + round(takes * SECOND), up)
