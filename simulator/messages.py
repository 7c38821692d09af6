"""Upstream's log and error texts, byte for byte.

One name per text; `%s` and `%d` stand where upstream formats a value. A release that rewords a text has its own constant
beside the others, never in its release module. Usage texts are in `config` (they are the flags' own), client-go's and
kubectl's in `kube`.

Source: cmd/driver-manager/main.go, cmd/driver-manager/messages.go, internal/kubernetes/client.go,
internal/linuxutils/kmod.go; v0.9.0 to v0.12.0.
"""

from __future__ import annotations

from typing import Final

# --- uninstallDriver and its steps ----------------------------------------------------------------------------
STARTING: Final = "Starting driver uninstallation process"
COMPLETED: Final = "Driver uninstallation completed successfully"
HOST_DRIVER_DETECTED: Final = "Host driver detected: %s"
PRE_INSTALLED: Final = "NVIDIA GPU driver is already pre-installed on the node, disabling the containerized driver"
LABELING_NODE: Final = "Labeling node %s with %s=%s"
DRIVER_IS_PRE_INSTALLED: Final = "driver is pre-installed on host"
FAILED_TO_DISABLE: Final = "failed to disable containerized driver"

FETCHING_LABELS: Final = "Fetching current component labels"
GETTING_LABEL: Final = "Getting current value of the %s node label"
GETTING_CUSTOM_LABEL: Final = "Getting current value of the %s node label used by custom operands"
CURRENT_LABEL: Final = "Current value of %s=%s"
CURRENT_UPGRADE_POLICY: Final = "Current value of AUTO_UPGRADE_POLICY_ENABLED=%s"
FAILED_TO_FETCH_LABELS: Final = "failed to fetch current labels"
FAILED_TO_GET_LABEL: Final = "failed to get label %s"
FAILED_TO_GET_CUSTOM_LABEL: Final = "failed to get custom operand label %s"
FAILED_TO_FETCH_ANNOTATION: Final = "failed to fetch auto upgrade annotation"
FAILED_TO_GET_ANNOTATION: Final = "failed to get node %s annotation"

SHUTTING_DOWN_CLIENTS: Final = (
    "Shutting down all GPU clients on the current node by disabling their component-specific nodeSelector labels"
)
SHUTTING_DOWN_CUSTOM_CLIENTS: Final = "Shutting down GPU clients using node selector label %s=%s"
WAITING_FOR_OPERAND: Final = "Waiting for %s to shutdown"
FAILED_TO_WAIT_FOR_OPERAND: Final = "Failed to wait for %s to shutdown: %s"
EVICT_OPERANDS_FAILED: Final = "Failed to evict GPU operator components, attempting cleanup"
FAILED_TO_EVICT_OPERANDS: Final = "failed to evict GPU operator components"
RESCHEDULING_CLIENTS: Final = (
    "Rescheduling all GPU clients on the current node by enabling their component-specific nodeSelector labels"
)
RESCHEDULE_FAILED: Final = "Failed to reschedule GPU operator components: %s"
RESCHEDULE_FAILED_IN_CLEANUP: Final = "Failed to reschedule GPU operator components during cleanup: %s"
FAILED_TO_RESCHEDULE: Final = "failed to reschedule GPU operator components"

CHECKING_LOADED_DRIVER: Final = (
    "Checking if the currently loaded NVIDIA driver version and configuration matches the desired state..."
)
DIGEST_NOT_SET: Final = "DRIVER_CONFIG_DIGEST env var not set, assuming config changed"
NO_PREVIOUS_CONFIG: Final = "No previous driver configuration found"
STATE_FILE_UNREADABLE: Final = "Failed to read driver config state file: %s"
FORCE_REINSTALL: Final = "Force reinstall is enabled, proceeding with driver uninstall"
ALREADY_LOADED: Final = (
    "The NVIDIA driver is already loaded with the desired version and configuration, skipping the uninstallation of the"
    " driver in an attempt to not disrupt running workloads"
)
CLEANING_STALE: Final = "Cleaning up stale mounts and state files..."
FAILED_TO_UNMOUNT_STALE: Final = "failed to unmount stale rootfs"

FAILED_TO_CORDON: Final = "failed to cordon node"
DRAINING_GPU_PODS: Final = "Draining node %s of any GPU pods..."
GPU_DRAIN_FAILED: Final = "Failed to drain node of GPU pods"
CANNOT_PROCEED: Final = "cannot proceed until all GPU pods are drained from the node"
ATTEMPTING_DRAIN: Final = "Attempting node drain"
FAILED_TO_DRAIN: Final = "failed to drain node"
FAILED_TO_CLEAN_UP_DRIVER: Final = "failed to cleanup NVIDIA driver"
RETRYING_WITH_DRAIN: Final = "Unable to cleanup driver modules, attempting again with node drain..."
UNINSTALL_FAILED: Final = "Failed to uninstall nvidia driver components"
FAILED_TO_UNINSTALL: Final = "failed to uninstall nvidia driver components"
UNINSTALLED: Final = "Successfully uninstalled nvidia driver components"

CLEANING_UP_DRIVER: Final = "Cleaning up NVIDIA driver"
UNLOADING_MODULES: Final = "Unloading NVIDIA driver kernel modules"
MODULE_UNLOAD_FAILED: Final = "Failed to unload kernel module %s: %s"
DRIVER_IN_USE: Final = "Could not unload NVIDIA driver kernel modules, driver is in use"
LISTING_MODULES_FAILED: Final = "Failed to list kernel modules: %s"
FAILED_TO_UNLOAD: Final = "failed to unload driver"
UNMOUNTING: Final = "Unmounting NVIDIA driver rootfs"
NOTHING_TO_UNMOUNT: Final = "Driver root directory does not exist, nothing to unmount"
UNMOUNTED: Final = "Successfully unmounted %s and all its submounts"
FAILED_TO_UNMOUNT: Final = "failed to unmount rootfs"
FAILED_TO_UNMOUNT_RECURSIVELY: Final = "failed to recursively unmount %s"
PID_FILE_STAYS: Final = "Failed to remove PID file %s: %s"

UNBINDING_VFIO: Final = "Unbinding vfio-pci driver from all devices"
UNBIND_FAILED: Final = "Unable to unbind vfio-pci driver from all devices"
FAILED_TO_UNBIND: Final = "failed to unbind vfio-pci driver"

RDMA_ENABLED: Final = "GPUDirectRDMA is enabled, validating MOFED driver installation"
MELLANOX_FOUND: Final = "Mellanox device found at %s"
NO_MELLANOX: Final = "No Mellanox devices were found"
WAITING_FOR_MOFED_ONCE: Final = "Waiting for MOFED to be installed"
WAITING_FOR_MOFED: Final = "Waiting for MOFED to be installed..."
PROC_MODULES_UNREADABLE: Final = "Failed to read /proc/modules: %s"

UNCORDON_FAILED: Final = "Failed to uncordon node: %s"
UNCORDON_FAILED_IN_CLEANUP: Final = "Failed to uncordon node during cleanup: %s"
CLEANING_UP_ON_FAILURE: Final = "Performing cleanup on failure"

NO_DRIVER_LOADED: Final = "No NVIDIA driver loaded, skipping eviction of GPU clients and workloads"
FAILED_TO_UNMOUNT_STALE_DRIVER: Final = "failed to unmount stale NVIDIA driver rootfs"
DRAINING_KUBELET_PLUGIN: Final = "Draining the DRA kubelet-plugin (last, after its claim-holding clients)"
FAILED_TO_EVICT_KUBELET_PLUGIN: Final = "failed to evict DRA kubelet-plugin"
FAILED_TO_CHECK_CLAIM_HOLDERS: Final = "failed to check for GPU resource claim holders"
CLAIMS_STILL_HELD: Final = "cannot drain the DRA kubelet-plugin: pod(s) still hold GPU resource claims: %s"
WAITING_FOR_CLIENTS: Final = "Waiting for any daemon set pods with nodeSelector key %s to terminate"
FAILED_TO_WAIT_FOR_CLIENTS: Final = "Failed to wait for GPU client pods to terminate: %s"

UNLOADING_NOUVEAU: Final = "Unloading nouveau driver"
NOUVEAU_UNLOADED: Final = "Successfully unloaded nouveau driver"
FAILED_TO_UNLOAD_NOUVEAU: Final = "failed to unload nouveau driver"

POLICY_DISABLED: Final = "Auto upgrade policy of the GPU driver on the node is disabled"
DRAIN_DISABLED_BY_POLICY: Final = "Auto drain of the node is disabled by the upgrade policy"
EVICTION_DISABLED_BY_POLICY: Final = "Auto eviction of GPU pods on node %s is disabled by the upgrade policy"
DRAIN_SUPERSEDED_BY_POLICY: Final = (
    "Auto drain by driver-manager has been superseded by the GPU Operator's upgrade policy. The GPU Operator will perform the"
    " GPU node drain instead"
)
EVICTION_SUPERSEDED_BY_POLICY: Final = (
    "GPU pod eviction by driver-manager has been superseded by the GPU Operator's upgrade policy. The GPU Operator will"
    " perform the workload eviction instead"
)
GUIDANCE_POLICY_ENABLED: Final = """Cleanup could not automatically proceed on node %s because the GPU driver auto-upgrade \
policy is enabled and upgrade-controller manages GPU workload eviction.

Note: reconciliation is automatic; after any option below is applied, the system will retry without manual intervention.

Cleanup guidance (choose one):
\t[1] Manually stop workloads using GPUs on this node so that the GPUs are released.
\t[2] Disable the GPU driver auto-upgrade policy in the GPU Operator ClusterPolicy and ensure k8s-driver-manager has \
ENABLE_GPU_POD_EVICTION=true (and optionally ENABLE_AUTO_DRAIN=true) so driver-manager can auto-evict GPU workloads.
\t[3] Request upgrade-controller to auto-evict GPU workloads for this node now by running:
\t\t\tkubectl label node %s nvidia.com/gpu-driver-upgrade-state=upgrade-required --overwrite
\t[4] Wait for running GPU workloads to finish and release GPUs on this node.
"""
GUIDANCE_FEATURES_DISABLED: Final = """Cleanup could not automatically proceed on node %s because both GPU pod eviction \
and auto-drain are disabled.

Note: reconciliation is automatic; after any option below is applied, the system will retry without manual intervention.

Cleanup guidance (choose one):
\t[1] Enable driver-manager eviction settings: set ENABLE_GPU_POD_EVICTION=true and/or ENABLE_AUTO_DRAIN=true.
\t[2] Manually stop GPU workloads on this node so that the GPUs are released.
\t[3] Wait for running GPU workloads to finish and release GPUs on this node.
"""

PERFORMING_PREFLIGHT: Final = "Performing preflight checks"
PREFLIGHT_COMPLETED: Final = "Preflight checks completed"
FAILED_TO_CREATE_MANAGER: Final = "failed to create driver manager"
FAILED_TO_CREATE_CLIENT: Final = "failed to create kube client"
FAILED_TO_BUILD_KUBECONFIG: Final = "failed to build kubeconfig"
FAILED_TO_CREATE_CLIENTSET: Final = "failed to create kubernetes client"

# --- internal/kubernetes ----------------------------------------------------------------------------------------
FAILED_TO_GET_NODE: Final = "failed to get node %s"
LABEL_UPDATE_FAILED: Final = "Failed to update labels on node %s, retrying: %s"
FAILED_TO_UPDATE_LABELS: Final = "failed to update the labels of node %s"
CORDONING: Final = "Cordoning node %s"
UNCORDONING: Final = "Uncordoning node %s"
DRAINING: Final = "Draining node %s"
DRAINING_OF_GPU_PODS: Final = "Draining node %s of any GPU pods"
IDENTIFYING_GPU_PODS: Final = "Identifying GPU pods to delete"
FAILED_TO_LIST_PODS: Final = "failed to list pods"
NO_GPU_PODS: Final = "No GPU pods to delete. Exiting."
CANNOT_DELETE_ALL: Final = "Cannot delete all GPU pods"
DRAIN_HELPER_ERROR: Final = "error reported by drain helper: %s"
FAILED_TO_LIST_PODS_ON_NODE: Final = "failed to list pods on node %s"
FAILED_TO_CHECK_GPU_USAGE: Final = "failed to check GPU usage for pod %s"
FAILED_TO_GET_CLAIM: Final = "failed to get ResourceClaim %s/%s"
WAITING_FOR_CLIENT_PODS: Final = "Waiting for %d daemon set pod(s) with nodeSelector key %s to terminate"
FAILED_TO_DELETE_ALL: Final = "failed to delete all GPU pods"
GPU_POD: Final = "GPU pod - %s"
DELETING_GPU_PODS: Final = "Deleting GPU pods..."

# --- internal/linuxutils ----------------------------------------------------------------------------------------
MODULE_TABLE_HEADER: Final = "Module               Size       Ref Count       Used by\n"
MODULE_TABLE_ROW: Final = "%-20s %-10d %-15d %s\n"
MODULE_SIZE_UNREADABLE: Final = "error parsing module size %s: %s"
MODULE_COUNT_UNREADABLE: Final = "error parsing module ref count %s: %s"
READING_MODULES_FAILED: Final = "Error reading /proc/modules: %s\n"
FAILED_TO_OPEN: Final = "error opening file %s"
LINE_TOO_LONG: Final = "bufio.Scanner: token too long"

# --- net/http ---------------------------------------------------------------------------------------------------
NO_TLS: Final = "http: server gave HTTP response to HTTPS client"

# --- what-ifs ---------------------------------------------------------------------------------------------------
FORCED_HOST_DRIVER_UNBIND: Final = (
    "Host NVIDIA driver detected, but FORCE_HOST_DRIVER_UNBIND is set; proceeding with uninstall flow"
)
