"""driver-manager's settings: flags and environment -> `Config`, read as upstream's command line reads them.

A table of flags per release; a what-if may add one. Where the settings come from is kept, so that `predict` can say
it. `DRIVER_CONFIG_DIGEST` is no flag: the program reads it straight from the environment, when it needs it.

Source: cmd/driver-manager/main.go, `main` and `config`; v0.9.0 to v0.12.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from simulator.gocompat import Duration
from simulator.urfave import App, Call, Command, End, Flag, Value, run

UNINSTALL_DRIVER: Final = "uninstall_driver"
PREFLIGHT_CHECK: Final = "preflight_check"

FORCE_REINSTALL: Final = Flag(
    "force-reinstall", "bool", "Force driver reinstall regardless of current state", default=False, env="FORCE_REINSTALL"
)
FLAGS: Final = (
    Flag("node-name", "string", "The name of the node to manage", default="", env="NODE_NAME", required=True),
    Flag("drain-use-force", "bool", "Use force when draining nodes", default=False, env="DRAIN_USE_FORCE"),
    Flag("drain-pod-selector-label", "string", "Pod selector label for draining", default="", env="DRAIN_POD_SELECTOR_LABEL"),
    Flag("drain-timeout-seconds", "duration", "Timeout for drain operations", default=0, env="DRAIN_TIMEOUT_SECONDS"),
    Flag(
        "drain-delete-emptydir-data", "bool", "Delete emptyDir data during drain", default=False, env="DRAIN_DELETE_EMPTYDIR_DATA"
    ),
    Flag("enable-auto-drain", "bool", "Enable automatic node draining", default=True, env="ENABLE_AUTO_DRAIN"),
    Flag("enable-gpu-pod-eviction", "bool", "Enable GPU pod eviction", default=True, env="ENABLE_GPU_POD_EVICTION"),
    Flag(
        "operator-namespace",
        "string",
        "Namespace where the GPU operator is installed in",
        default="gpu-operator",
        env="OPERATOR_NAMESPACE",
    ),
    Flag(
        "node-label-for-gpu-pod-eviction",
        "string",
        "Node label for GPU pod eviction",
        default="",
        env="NODE_LABEL_FOR_GPU_POD_EVICTION",
    ),
    Flag("gpu-direct-rdma-enabled", "bool", "Enable GPU Direct RDMA", default=False, env="GPU_DIRECT_RDMA_ENABLED"),
    Flag("use-host-mofed", "bool", "Use host MOFED driver", default=False, env="USE_HOST_MOFED"),
    Flag("kubeconfig", "string", "Path to kubeconfig file", default="", env="KUBECONFIG"),
)
"""The flags of v0.9.0, in the order of the help text; later releases append theirs."""

_COMMANDS: Final = (
    Command(UNINSTALL_DRIVER, "Uninstall NVIDIA driver and manage GPU operator components"),
    Command(PREFLIGHT_CHECK, "Perform preflight checks"),
)
_USAGE: Final = (
    "The NVIDIA Driver Manager is a Kubernetes component which assists in the seamless upgrades of NVIDIA  "
    "GPU Driver Container on each node of the cluster. This component ensures that all pre-requisites are met before driver "
    "upgrades can be performed on the gpu driver container."
)


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one run. `drain_timeout` is in nanoseconds, 0 means without limit."""

    command: str
    node_name: str
    drain_use_force: bool
    drain_pod_selector_label: str
    drain_timeout: Duration
    drain_delete_emptydir_data: bool
    enable_auto_drain: bool
    enable_gpu_pod_eviction: bool
    operator_namespace: str
    node_label_for_gpu_pod_eviction: str
    gpu_direct_rdma_enabled: bool
    use_host_mofed: bool
    kubeconfig: str
    force_reinstall: bool
    what_if: Mapping[str, Value] = field(default_factory=dict)
    """Values of flags that only a what-if knows."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Flag name -> "flag", "environment" or "default"."""


def read(flags: Sequence[Flag], args: Sequence[str], env: Mapping[str, str], version: str = "unknown") -> Config | End:
    """The settings from argv (after the program's name) and environment, or how the program ends without them.

    `version` is what `--version` prints: upstream's build sets it, and it is "unknown" otherwise.
    """
    app = App("driver-manager", _USAGE, version, tuple(flags), _COMMANDS)
    outcome = run(app, args, env)
    return outcome if isinstance(outcome, End) else _config(outcome)


_KNOWN: Final = frozenset(flag.name for flag in (*FLAGS, FORCE_REINSTALL))


def _config(call: Call) -> Config:
    values = call.values
    return Config(
        command=call.command,
        node_name=str(values["node-name"]),
        drain_use_force=bool(values["drain-use-force"]),
        drain_pod_selector_label=str(values["drain-pod-selector-label"]),
        drain_timeout=int(values["drain-timeout-seconds"]),
        drain_delete_emptydir_data=bool(values["drain-delete-emptydir-data"]),
        enable_auto_drain=bool(values["enable-auto-drain"]),
        enable_gpu_pod_eviction=bool(values["enable-gpu-pod-eviction"]),
        operator_namespace=str(values["operator-namespace"]),
        node_label_for_gpu_pod_eviction=str(values["node-label-for-gpu-pod-eviction"]),
        gpu_direct_rdma_enabled=bool(values["gpu-direct-rdma-enabled"]),
        use_host_mofed=bool(values["use-host-mofed"]),
        kubeconfig=str(values["kubeconfig"]),
        force_reinstall=bool(values.get("force-reinstall", False)),
        what_if={name: value for name, value in values.items() if name not in _KNOWN and name not in {"help", "version"}},
        sources=call.sources,
    )
