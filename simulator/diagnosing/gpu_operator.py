"""What the GPU Operator keeps on a node, as far as a diagnosis has to tell its marks from what is left over.

Source: NVIDIA/gpu-operator controllers/state_manager.go (upgrade annotation),
controllers/upgrade_controller.go, v22.9 to v26.7; NVIDIA/k8s-operator-libs pkg/upgrade/consts.go.
"""

from __future__ import annotations

import re
from typing import Final

from simulator import labels
from simulator.labels import PREFIX
from simulator.predicting.modes import WORKLOADS, Mode
from simulator.predicting.node import PAUSE

OPERANDS: Final = PREFIX + "operands"
VFIO_MANAGER: Final = WORKLOADS[Mode.VM_PASSTHROUGH].selector
VGPU_MANAGER: Final = WORKLOADS[Mode.VM_VGPU].selector
PLUGIN_APPS: Final = frozenset({"nvidia-device-plugin-daemonset", "nvidia-sandbox-device-plugin-daemonset"})

PAUSERS: Final = {
    labels.PAUSED: "driver-manager",
    "paused-for-vgpu-change": "vgpu-device-manager",
    "paused-for-mig-change": "mig-manager",
}
"""What a paused operand's label holds -> who pauses so."""

UPGRADE_SKIP: Final = "nvidia.com/gpu-driver-upgrade.skip"
DRAIN_SKIP: Final = "nvidia.com/gpu-driver-upgrade-drain.skip"
"""A pod's label: the controller's drain leaves it. The operator itself has it."""
UPGRADE_REQUESTED: Final = "nvidia.com/gpu-driver-upgrade-requested"
INITIAL_CORDON: Final = "nvidia.com/gpu-driver-upgrade.node-initial-state.unschedulable"
"""The node was cordoned before the upgrade began, so the controller leaves it cordoned."""
UPGRADE_NOTES: Final = (
    INITIAL_CORDON,
    "nvidia.com/gpu-driver-upgrade-wait-for-pod-completion-start-time",
    "nvidia.com/gpu-driver-upgrade-validation-start-time",
    "nvidia.com/gpu-driver-upgrade.driver-wait-for-safe-load",
)
"""Annotations that the upgrade controller keeps only while it upgrades the node."""
UPGRADE_DONE: Final = "upgrade-done"
UPGRADE_FAILED: Final = "upgrade-failed"
UPGRADE_REQUIRED: Final = "upgrade-required"
IN_UPGRADE: Final = (
    UPGRADE_REQUIRED,
    "node-maintenance-required",
    "cordon-required",
    "wait-for-jobs-required",
    "pod-deletion-required",
    "drain-required",
    "post-maintenance-required",
    "pod-restart-required",
    "validation-required",
    "uncordon-required",
)
"""The states of a node that is being upgraded, in their order."""
CORDONED_IN: Final = frozenset(IN_UPGRADE[2:])
"""Those in which the controller has cordoned it, or is about to."""
POLICY_NAME: Final = "cluster-policy"
"""What the chart names its ClusterPolicy."""


def pauses(value: str) -> tuple[str, ...]:
    """The pauses that a label's value holds."""
    return tuple(re.findall(f"{PAUSE}[a-z0-9-]+", value))


def unpaused(value: str) -> str:
    """The value without any pause, whoever's."""
    kept = [part for part in value.split("_") if part and not part.startswith(PAUSE)]
    return "_".join(kept) or "true"
