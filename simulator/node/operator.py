"""The GPU Operator's part: which labels a GPU node gets, when, and which DaemonSets there are.

Up to v26.3 the labels are set at the start of each reconciliation of the ClusterPolicy, and while an operand's DaemonSet
is not ready there is one every five seconds: a label that is foreign to the node's configuration, as
`gpu.deploy.driver=pre-installed` is on a passthrough node, is gone within five seconds. From v26.7.0 on a controller of
its own sets them, when something it watches for happens: the label stays until then. It also takes an empty value, which
driver-manager leaves behind, for a missing one.

A label that belongs to the configuration is only added, never changed: `pre-installed` stays on a container node.

Leaves out MIG capability, OSTREE, `mode: kata` and node status exporters of other charts' labels. Source:
NVIDIA/gpu-operator controllers/state_manager.go and clusterpolicy_controller.go at v26.3.1,
nodelabeling_controller.go at v26.7.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from simulator import labels
from simulator.clock import VirtualClock
from simulator.cluster import patch
from simulator.cluster.fake import FakeCluster
from simulator.cluster.kinds import DAEMON_SET, NODE, POD
from simulator.cluster.store import Change
from simulator.gocompat import SECOND
from simulator.node.daemonsets import DaemonSet, DaemonSets
from simulator.node.validator.program import CONTAINER, WORKLOAD_LABEL, WORKLOADS
from simulator.ports import ConnectionDropped, ConnectionFailed, ConnectionRefused, ConnectionTimedOut, Request

PRESENT: Final = "nvidia.com/gpu.present"
OPERANDS: Final = "nvidia.com/gpu.deploy.operands"
FOUND: Final = (
    "feature.node.kubernetes.io/pci-10de.present",
    "feature.node.kubernetes.io/pci-0302_10de.present",
    "feature.node.kubernetes.io/pci-0300_10de.present",
)
"""Labels of Node Feature Discovery: any of them makes the node a GPU node."""
NEW_SINCE: Final = (26, 7)
REQUEUED: Final = 5 * SECOND

VFIO_MANAGER: Final = labels.PREFIX + "vfio-manager"
VGPU_MANAGER: Final = labels.PREFIX + "vgpu-manager"
STATES: Final[Mapping[str, tuple[str, ...]]] = {
    CONTAINER: (
        labels.DRIVER,
        labels.GPU_FEATURE_DISCOVERY,
        labels.CONTAINER_TOOLKIT,
        labels.DEVICE_PLUGIN,
        labels.DCGM,
        labels.DCGM_EXPORTER,
        labels.PREFIX + "node-status-exporter",
        labels.OPERATOR_VALIDATOR,
    ),
    "vm-passthrough": (
        labels.SANDBOX_DEVICE_PLUGIN,
        labels.SANDBOX_VALIDATOR,
        VFIO_MANAGER,
        labels.PREFIX + "kata-manager",
        labels.PREFIX + "cc-manager",
    ),
    "vm-vgpu": (
        labels.SANDBOX_DEVICE_PLUGIN,
        VGPU_MANAGER,
        labels.VGPU_DEVICE_MANAGER,
        labels.SANDBOX_VALIDATOR,
        labels.PREFIX + "cc-manager",
    ),
}
"""Workload configuration -> the labels of its operands (`gpuStateLabels`), whether or not an operand is enabled."""
_ALL: Final = (*dict.fromkeys(key for keys in STATES.values() for key in keys), labels.MIG_MANAGER, labels.CLIENT)


@dataclass(frozen=True, slots=True)
class Values:
    """What of the chart's values decides here. The defaults are the chart's own."""

    sandbox_workloads: bool = False
    default_workload: str = CONTAINER
    driver: bool = True
    toolkit: bool = True
    device_plugin: bool = True
    vfio_manager: bool = True
    sandbox_device_plugin: bool = True
    vgpu_manager: bool = False
    vgpu_device_manager: bool = True
    driver_manager_env: Mapping[str, str] = field(default_factory=dict)
    """`driver.manager.env`, `vfioManager.driverManager.env` and `vgpuManager.driverManager.env` at once."""


VARIANTS: Final[Mapping[str, Values]] = {
    "stock": Values(),
    "passthrough": Values(
        sandbox_workloads=True, default_workload="vm-passthrough", driver=False, device_plugin=False, vgpu_device_manager=False
    ),
    "container": Values(driver=False, toolkit=False, vfio_manager=False, vgpu_device_manager=False),
    "vgpu": Values(
        sandbox_workloads=True,
        default_workload="vm-vgpu",
        driver=False,
        device_plugin=False,
        vgpu_manager=True,
        vgpu_device_manager=False,
    ),
}
"""The chart as it is, and Cozystack's variants of its package (`default` there is passthrough here)."""


def workload_config(node_labels: Mapping[str, str], values: Values) -> str:
    """The node's workload configuration (`getWorkloadConfig`): without sandbox workloads the label is not looked at."""
    if not values.sandbox_workloads:
        return CONTAINER
    asked = node_labels.get(WORKLOAD_LABEL, "")
    if asked in WORKLOADS:
        return asked
    return values.default_workload if values.default_workload in WORKLOADS else CONTAINER


def wanted_labels(node_labels: Mapping[str, str], values: Values, *, is_new: bool) -> dict[str, str | None]:
    """What a pass over the node's labels changes: key -> value, None for one that is removed (`labelGPUNodes`)."""
    out: dict[str, str | None] = {}
    if not any(node_labels.get(key) == "true" for key in FOUND):
        if node_labels.get(PRESENT) == "true":
            out = dict.fromkeys((key for key in _ALL if key in node_labels), None)
            out[PRESENT] = "false"
        return out
    if node_labels.get(PRESENT) != "true":
        out[PRESENT] = "true"
    if node_labels.get(OPERANDS) == "false":
        return {**out, **dict.fromkeys((key for key in _ALL if key in node_labels), None)}
    config = workload_config(node_labels, values)
    effective = (*STATES[config], *((labels.CLIENT,) if is_new else ()))
    for key in _ALL:
        foreign = key not in effective and (key != labels.MIG_MANAGER or config != CONTAINER)
        if foreign and key in node_labels:
            out[key] = None
    for key in effective:
        if key not in node_labels or (is_new and not node_labels[key]):
            out[key] = "true"
    return out


class Operator:
    """The operator of one cluster. `render` makes its DaemonSets from the values."""

    def __init__(
        self,
        cluster: FakeCluster,
        clock: VirtualClock,
        daemonsets: DaemonSets,
        values: Values,
        render: Callable[[Values], list[DaemonSet]],
        *,
        is_new: bool,
    ) -> None:
        self.cluster = cluster
        self.clock = clock
        self.daemonsets = daemonsets
        self.values = values
        self.is_new = is_new
        self._render = render
        self._requeued = False
        self._planned = False
        self._labels_planned = False
        self._fine: tuple[Mapping[str, Any], Values] | None = None
        """The node's document with which there was nothing to do, and the values then."""
        cluster.store.watchers.append(self._hears)

    def start(self) -> None:
        """The operator's pod starts: everything it watches is new to it."""
        self._reconcile_soon(with_labels=True)

    def set_values(self, values: Values) -> None:
        """Helm changes the ClusterPolicy."""
        self.values = values
        self._reconcile_soon(with_labels=True)

    # --- what it watches ---------------------------------------------------------------------------------------

    def _hears(self, change: Change) -> None:
        if change.kind is NODE and change.after is not None:
            before = _labels(change.before)
            if _matters(before, _labels(change.after)):
                self._reconcile_soon(with_labels=True)
        elif change.kind is DAEMON_SET and change.after is not None and change.before is not None:
            if change.after["status"] != change.before["status"]:
                self._reconcile_soon(with_labels=not self.is_new)
        elif change.kind is POD and self.is_new and _started_driver(change):
            self._reconcile_soon(with_labels=True)

    def _reconcile_soon(self, *, with_labels: bool) -> None:
        self._labels_planned |= with_labels
        if not self._planned:
            self._planned = True
            self.clock.plan(self.clock.now, self._reconcile)

    def _reconcile(self) -> None:
        """`Reconcile` of the ClusterPolicy; with labels, that of the nodes before it."""
        self._planned = False
        with_labels, self._labels_planned = self._labels_planned or not self.is_new, False
        if with_labels:
            self._label()
        self.daemonsets.apply(self._render(self.values))
        self._requeue()

    def _requeue(self) -> None:
        """In five seconds again, as long as an operand is not ready. In the new controller that says nothing to labels."""
        if self.is_new or self._requeued or not self.daemonsets.unavailable():
            return
        self._requeued = True

        def again() -> None:
            self._requeued = False
            self._label()
            self._requeue()

        self.clock.plan(self.clock.now + REQUEUED, again)

    # --- what it does ------------------------------------------------------------------------------------------

    def _label(self) -> None:
        """One pass over the node's labels."""
        node = self.cluster.store.node
        if node is None or (self._fine is not None and node is self._fine[0] and self.values is self._fine[1]):
            return
        changes = wanted_labels(_labels(node), self.values, is_new=self.is_new)
        annotations = self._annotations(node["metadata"].get("annotations") or {})
        metadata: dict[str, Any] = {}
        if changes:
            metadata["labels"] = changes
        if annotations:
            metadata["annotations"] = annotations
        if not metadata:
            self._fine = (node, self.values)
            return
        path = f"/api/v1/nodes/{node['metadata']['name']}"
        try:
            response = self.cluster.request(Request("PATCH", path, body={"metadata": metadata}, content_type=patch.MERGE))
            failed = response.status >= HTTPStatus.BAD_REQUEST
        except (ConnectionDropped, ConnectionFailed, ConnectionRefused, ConnectionTimedOut):
            failed = True
        if failed:  # the controller puts the node back into its queue
            self.clock.plan(self.clock.now + REQUEUED, lambda: self._reconcile_soon(with_labels=True))

    def _annotations(self, present: Mapping[str, str]) -> dict[str, str | None]:
        """Who upgrades drivers: with a driver of its own and no sandbox workloads the upgrade controller does."""
        key, wanted = labels.UPGRADE_ANNOTATION, self.values.driver and not self.values.sandbox_workloads
        if wanted:
            return {} if present.get(key) == "true" else {key: "true"}
        return {key: None} if key in present else {}


def _labels(node: Mapping[str, Any] | None) -> Mapping[str, str]:
    return (node["metadata"].get("labels") or {}) if node else {}


def _matters(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Is it a change of the node that either controller watches for?"""
    if any(before.get(key) != after.get(key) for key in (WORKLOAD_LABEL, OPERANDS, *FOUND)):
        return True
    return any(after.get(key) == "true" for key in FOUND) and after.get(PRESENT) != "true"


def _started_driver(change: Change) -> bool:
    """Did a pod of the driver start to run?"""
    if change.after is None or change.after["metadata"].get("labels", {}).get("app") != "nvidia-driver-daemonset":
        return False
    phase = change.after["status"].get("phase")
    return bool(phase == "Running" and (change.before is None or change.before["status"].get("phase") != "Running"))
