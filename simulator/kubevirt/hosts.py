"""A described host as a node: the GPU Operator's pods are started on it, and what they leave is what it announces."""

from __future__ import annotations

from typing import Final

from simulator.host.spec import HostSpec
from simulator.kubevirt.devices import NodeDevices, idle_node, start_plugin
from simulator.node import pods
from simulator.node.plugin.releases import plugin_release
from simulator.node.validator.program import PASSTHROUGH
from simulator.scenario import load_cluster, make_world

CHART: Final = "v26.3.1"
"""The GPU Operator's chart that Cozystack v1.6.2 brings."""
_NODE: Final = "gpu-1"


def node_of_host(host: HostSpec, pci_ids: str | None = None) -> NodeDevices:
    """vfio-manager, the validator, the device plugin, once each, one after the other. Raises InputError."""
    world = make_world(host, load_cluster("vm-passthrough-node", _NODE), env={"NODE_NAME": _NODE})
    manager = pods.start_vfio_manager(world, CHART)
    if not manager.is_running:
        return idle_node(host, f"vfio-manager does not get beyond its init container: {_last_line(manager.log)}", pci_ids)
    validator = pods.start_sandbox_validator(manager.world, CHART, default_workload=PASSTHROUGH)
    if not validator.is_running:
        return idle_node(validator.world.host, f"the sandbox validator fails: {_last_line(validator.log)}", pci_ids)
    return start_plugin(validator.world.host, plugin_release(CHART), pci_ids)


def _last_line(log: str) -> str:
    return next((line for line in reversed(log.splitlines()) if line), "")
