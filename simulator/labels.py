"""The operand labels of a GPU node: which there are, how their values are paused and restored.

Why pure: what happens to a label is the question asked most, and it needs no host, no cluster and no clock.
The label keys and the tables that say which release fetches, pauses and restores which key.

Source: cmd/driver-manager/main.go, `maybeSetPaused`, `maybeSetTrue`, `fetchCurrentLabels`,
`evictAllGPUOperatorComponents`, `waitForPodsToTerminate`; v0.9.0 to v0.12.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

PAUSED: Final = "paused-for-driver-upgrade"
"""The value of a paused operand's label; other values get it as a suffix."""

PREFIX: Final = "nvidia.com/gpu.deploy."
UPGRADE_ANNOTATION: Final = "nvidia.com/gpu-driver-upgrade-enabled"
"""Set to "true" by the GPU Operator's upgrade controller, which then owns eviction and drain."""
UPGRADE_STATE: Final = "nvidia.com/gpu-driver-upgrade-state"
"""The upgrade controller's own label: how far it is with the node."""

DRIVER: Final = PREFIX + "driver"
OPERATOR_VALIDATOR: Final = PREFIX + "operator-validator"
CONTAINER_TOOLKIT: Final = PREFIX + "container-toolkit"
DEVICE_PLUGIN: Final = PREFIX + "device-plugin"
GPU_FEATURE_DISCOVERY: Final = PREFIX + "gpu-feature-discovery"
DCGM_EXPORTER: Final = PREFIX + "dcgm-exporter"
DCGM: Final = PREFIX + "dcgm"
MIG_MANAGER: Final = PREFIX + "mig-manager"
NVSM: Final = PREFIX + "nvsm"
SANDBOX_VALIDATOR: Final = PREFIX + "sandbox-validator"
SANDBOX_DEVICE_PLUGIN: Final = PREFIX + "sandbox-device-plugin"
VGPU_DEVICE_MANAGER: Final = PREFIX + "vgpu-device-manager"
CLIENT: Final = PREFIX + "client"
DRA_DRIVER: Final = PREFIX + "dra-driver"
DRA_VALIDATOR: Final = PREFIX + "dra-validator"
DRA_DCGM: Final = PREFIX + "dcgm-dra"
DRA_DCGM_EXPORTER: Final = PREFIX + "dcgm-exporter-dra"

PRE_INSTALLED: Final = "pre-installed"
"""What the driver label becomes on a host that has a driver of its own."""

FETCHED: Final = (
    OPERATOR_VALIDATOR,
    CONTAINER_TOOLKIT,
    DEVICE_PLUGIN,
    GPU_FEATURE_DISCOVERY,
    DCGM_EXPORTER,
    DCGM,
    MIG_MANAGER,
    NVSM,
    SANDBOX_VALIDATOR,
    SANDBOX_DEVICE_PLUGIN,
    VGPU_DEVICE_MANAGER,
)
"""The labels read from the node, in the order of the requests."""

ALWAYS: Final = (
    OPERATOR_VALIDATOR,
    CONTAINER_TOOLKIT,
    DEVICE_PLUGIN,
    GPU_FEATURE_DISCOVERY,
    DCGM_EXPORTER,
    DCGM,
    NVSM,
    SANDBOX_VALIDATOR,
    SANDBOX_DEVICE_PLUGIN,
    VGPU_DEVICE_MANAGER,
)
"""Paused and restored in any case: one that the node lacks is created with an empty value."""

IF_DEPLOYED: Final = (MIG_MANAGER,)
"""Paused and restored only if the node has a value for it."""


class Wait(NamedTuple):
    """A wait for an operand's pods to go: the name in the log, the pods' `app` label."""

    name: str
    app: str


WAITED_FOR: Final = tuple(
    Wait(app, app)
    for app in (
        "nvidia-operator-validator",
        "nvidia-container-toolkit-daemonset",
        "nvidia-device-plugin-daemonset",
        "gpu-feature-discovery",
        "nvidia-dcgm-exporter",
        "nvidia-dcgm",
    )
)
"""Waited for in any case, in this order."""

WAITED_FOR_IF_DEPLOYED: Final = (
    (MIG_MANAGER, Wait("mig-manager", "nvidia-mig-manager")),
    (SANDBOX_VALIDATOR, Wait("sandbox-validator", "nvidia-sandbox-validator")),
    (SANDBOX_DEVICE_PLUGIN, Wait("sandbox-device-plugin", "nvidia-sandbox-device-plugin-daemonset")),
    (VGPU_DEVICE_MANAGER, Wait("vgpu-device-manager", "nvidia-vgpu-device-manager")),
)
"""Waited for after those, if the node had a value for the label ("false" counts as a value)."""

_SUFFIX: Final = re.compile(PAUSED + "_?")


def pause(value: str) -> str:
    """The value that stops an operand's pods (`maybeSetPaused`). "" and "false" stay, a paused value too."""
    if value in {"", "false"}:
        return value
    if value == "true":
        return PAUSED
    if PAUSED in value:
        return value
    return f"{value}_{PAUSED}"


def restore(value: str) -> str:
    """The value that lets an operand's pods come back (`maybeSetTrue`).

    Not the inverse of `pause` for every value: underscores at the ends are lost (`_foo_` becomes `foo`), and a label
    paused twice comes back empty.
    """
    if value == "false":
        return "false"
    if value == PAUSED:
        return "true"
    return _SUFFIX.sub("", value).strip("_")


def pause_all(values: Mapping[str, str], always: Iterable[str], if_deployed: Iterable[str]) -> dict[str, str]:
    """The labels of the pausing patch, from the values read before."""
    return _apply(pause, values, always, if_deployed)


def restore_all(values: Mapping[str, str], always: Iterable[str], if_deployed: Iterable[str]) -> dict[str, str]:
    """The labels of the restoring patch, from the values read before pausing."""
    return _apply(restore, values, always, if_deployed)


def _apply(change: object, values: Mapping[str, str], always: Iterable[str], if_deployed: Iterable[str]) -> dict[str, str]:
    assert callable(change)
    out = {key: change(values.get(key, "")) for key in always}
    out.update({key: change(values[key]) for key in if_deployed if values.get(key, "")})
    return out
