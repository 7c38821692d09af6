"""What the script says, byte for byte. `%` takes the node's name unless said otherwise.

Source: driver-manager (the script), v0.4.2 to v0.8.1; GNU bash 5.2 for its own words.
"""

from __future__ import annotations

from typing import Final

SCRIPT: Final = "/usr/local/bin/driver-manager"
USAGE: Final = f"""Usage: {SCRIPT} COMMAND [ARG...]

Commands:
  uninstall_driver
  preflight_check
"""
MISSING_NODE_NAME: Final = "NODE_NAME: Missing node name"

PRE_INSTALLED: Final = "NVIDIA GPU driver is already pre-installed on the node, disabling the containerized driver on the node"
GETTING_LABEL: Final = "Getting current value of the '%s' node label"
"""Of a label."""
GETTING_CUSTOM_LABEL: Final = "Getting current value of the '%s' node label used by custom operands"
GETTING_NODE_TYPE: Final = "Getting current value of the 'nodeType' node label(used by NVIDIA Fleet Command)"
NO_LABEL: Final = "Unable to get the value of the '%s' label"
CURRENT_LABEL: Final = "Current value of '%s=%s'"
"""Of a label and its value."""
NO_ANNOTATION: Final = "Unable to get the value of the '%s' annotation"
CURRENT_POLICY: Final = "Current value of AUTO_UPGRADE_POLICY_ENABLED=%s'"
"""Of the annotation's value. The quote that opens nothing is the script's."""

SHUTTING_DOWN_REQUIRED: Final = (
    "Shutting GPU Operator components that must be restarted on driver restarts by disabling their component-specific"
    " nodeSelector labels"
)
SHUTTING_DOWN_CLIENTS: Final = (
    "Shutting down all GPU clients on the current node by disabling their component-specific nodeSelector labels"
)
SHUTTING_DOWN_FLEET: Final = "Shutting down GPU clients on NVIDIA Fleet Command"
SHUTTING_DOWN_CUSTOM: Final = "Shutting down GPU clients using node selector label %s=%s"
WAITING: Final = "Waiting for %s to shutdown"
RESCHEDULING: Final = "Rescheduling all GPU clients on the current node by enabling their component-specific nodeSelector labels"
RESTARTING_FLEET: Final = "Restarting GPU clients on NVIDIA Fleet Command"
RESTARTING_CUSTOM: Final = "Restarting GPU clients using node selector label %s=%s"

DRAINING: Final = "Draining node %s..."
DRAINING_GPU_PODS: Final = "Draining node %s of any GPU pods..."
CORDONING: Final = "Cordoning node %s..."
UNCORDONING: Final = "Uncordoning node %s..."
DRAIN_DISABLED_BY_POLICY: Final = "Auto drain of the node %s is disabled by the upgrade policy"
DRAIN_DISABLED: Final = "Auto drain of the node %s is disabled"
EVICTION_DISABLED_BY_POLICY: Final = "Auto eviction of GPU pods on node %s is disabled by the upgrade policy"
EVICTION_DISABLED: Final = "Auto eviction of GPU pods on node %s is disabled"
POLICY_DISABLED: Final = "Auto upgrade policy of the GPU driver on the node %s is disabled"
GPU_DRAIN_FAILED: Final = "Failed to drain node of GPU pods"
CANNOT_PROCEED: Final = "Cannot proceed until all GPU pods are drained from the node. Exiting."
ATTEMPTING_DRAIN: Final = "Attempting node drain"

LOADED: Final = "nvidia driver module is already loaded with refcount %s"
"""Of the count."""
UNLOADING: Final = "Unloading NVIDIA driver kernel modules..."
IN_USE: Final = "Could not unload NVIDIA driver kernel modules, driver is in use"
UNMOUNTING: Final = "Unmounting NVIDIA driver rootfs..."
RETRYING_WITH_DRAIN: Final = "Unable to cleanup driver modules, attempting again with node drain..."
UNINSTALL_FAILED: Final = "Failed to uninstall nvidia driver components"
UNINSTALLED: Final = "Successfully uninstalled nvidia driver components"
UNBIND_FAILED: Final = "Unable to unbind vfio-pci driver from all devices"
UNLOADING_NOUVEAU: Final = "Unloading nouveau driver..."
NOUVEAU_STAYS: Final = "Failed to unload nouveau driver"
NOUVEAU_UNLOADED: Final = "Successfully unloaded nouveau driver"

MELLANOX_FOUND: Final = "Mellanox device found at %s"
"""Of an address."""
NO_MELLANOX: Final = "No Mellanox devices were found..."
RDMA_ENABLED: Final = "GPUDirectRDMA is enabled, validating MOFED driver installation"
WAITING_FOR_MOFED: Final = "Waiting for MOFED to be installed..."
NOT_READY: Final = "stat: cannot statx '%s': No such file or directory"
"""GNU stat's, of a path."""
READY: Final = "  File: %s"
"""The first line of GNU stat's output; those after it (sizes and dates) are left out."""
