"""The three ways a GPU node is used, and the DaemonSet whose pod runs driver-manager first in each.

Source: NVIDIA/gpu-operator controllers/state_manager.go (labels), assets/state-driver, state-vfio-manager and
state-vgpu-manager (`0500_daemonset.yaml`, `0600_daemonset.yaml` before v26.3.0), deployments/gpu-operator/values.yaml
(`*.driverManager.env`); v22.9.2 to v26.7.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from simulator import labels

WORKLOAD_CONFIG: Final = "nvidia.com/gpu.workload.config"
"""The node's label that says which mode the operator is to set up."""


class Mode(StrEnum):
    """What a node's GPUs are for; the value is that of the node's label."""

    CONTAINER = "container"
    VM_PASSTHROUGH = "vm-passthrough"
    VM_VGPU = "vm-vgpu"


@dataclass(frozen=True, slots=True)
class Workload:
    """A mode: its DaemonSet, as `charts.Chart.releases` names it, and what the operator and its chart set for it."""

    mode: Mode
    daemonset: str
    selector: str
    """The node's label on which the DaemonSet selects, with the value "true"."""
    state_labels: tuple[str, ...]
    """What the operator sets to "true" on a node of this mode; those of the other modes it deletes."""
    env: Mapping[str, str] = field(default_factory=dict)
    """The init container's variables, beside NODE_NAME and OPERATOR_NAMESPACE."""


_VFIO_MANAGER: Final = labels.PREFIX + "vfio-manager"
_VGPU_MANAGER: Final = labels.PREFIX + "vgpu-manager"
_CC_MANAGER: Final = labels.PREFIX + "cc-manager"
_EVICTS_NOTHING: Final = {"NVIDIA_VISIBLE_DEVICES": "void", "ENABLE_GPU_POD_EVICTION": "false", "ENABLE_AUTO_DRAIN": "false"}

WORKLOADS: Final = {
    workload.mode: workload
    for workload in (
        Workload(
            Mode.CONTAINER,
            "driver",
            labels.DRIVER,
            (
                labels.DRIVER,
                labels.GPU_FEATURE_DISCOVERY,
                labels.CONTAINER_TOOLKIT,
                labels.DEVICE_PLUGIN,
                labels.DCGM,
                labels.DCGM_EXPORTER,
                labels.PREFIX + "node-status-exporter",
                labels.OPERATOR_VALIDATOR,
            ),
            {
                "NVIDIA_VISIBLE_DEVICES": "void",
                "ENABLE_GPU_POD_EVICTION": "true",
                "ENABLE_AUTO_DRAIN": "false",
                "DRAIN_USE_FORCE": "false",
                "DRAIN_POD_SELECTOR_LABEL": "",
                "DRAIN_TIMEOUT_SECONDS": "0s",
                "DRAIN_DELETE_EMPTYDIR_DATA": "false",
            },
        ),
        Workload(
            Mode.VM_PASSTHROUGH,
            "vfio-manager",
            _VFIO_MANAGER,
            (
                labels.SANDBOX_DEVICE_PLUGIN,
                labels.SANDBOX_VALIDATOR,
                _VFIO_MANAGER,
                labels.PREFIX + "kata-manager",
                _CC_MANAGER,
            ),
            _EVICTS_NOTHING,
        ),
        Workload(
            Mode.VM_VGPU,
            "vgpu-manager",
            _VGPU_MANAGER,
            (
                labels.SANDBOX_DEVICE_PLUGIN,
                _VGPU_MANAGER,
                labels.VGPU_DEVICE_MANAGER,
                labels.SANDBOX_VALIDATOR,
                _CC_MANAGER,
            ),
            _EVICTS_NOTHING,
        ),
    )
}
"""Mode -> workload."""


def mode_of(node_labels: Mapping[str, str]) -> Mode:
    """The mode that a node is in: whose DaemonSet its labels name. A node that names none is one for containers."""
    for mode in (Mode.VM_PASSTHROUGH, Mode.VM_VGPU):
        if node_labels.get(WORKLOADS[mode].selector):
            return mode
    return Mode.CONTAINER


def relabelled(node_labels: Mapping[str, str], mode: Mode, *, fills_blanks: bool) -> dict[str, str]:
    """The node's labels after the operator's next look at a node that is now in a mode.

    State labels of other modes are deleted whatever their value; those of this mode are set where they are absent, and any
    value that is there is left. `fills_blanks`: an empty value counts as absent, as for the operator since v26.7.0.
    """
    wanted = WORKLOADS[mode].state_labels
    foreign = {key for workload in WORKLOADS.values() for key in workload.state_labels} - set(wanted)
    foreign |= set() if mode is Mode.CONTAINER else {labels.MIG_MANAGER}
    out = {key: value for key, value in node_labels.items() if key not in foreign}
    for key in wanted:
        if key not in out or (fills_blanks and not out[key]):
            out[key] = "true"
    return {**out, WORKLOAD_CONFIG: mode.value}
