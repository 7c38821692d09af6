"""What the programs between a VM's manifest and its start print when a GPU is in the way, byte for byte.

Source of each text: the comment above it. KubeVirt's are those of v1.8.4, which Cozystack v1.6.2 brings; Kubernetes' are
those of v1.34, which is what the served cluster says it is.
"""

from __future__ import annotations

from typing import Final

# --- the API server, and virt-api behind it ----------------------------------------------------------------------

# kubernetes staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go: ToStatusErr
DENIED: Final = 'admission webhook "%s" denied the request: %s'
# kubevirt pkg/virt-operator/resource/generate/components/webhooks.go: the names of the webhooks
VM_WEBHOOK: Final = "virtualmachine-validator.kubevirt.io"
VMI_WEBHOOK: Final = "virtualmachineinstances-create-validator.kubevirt.io"
# kubevirt pkg/virt-api/webhooks/validating-webhook/admitters/vmi-create-admitter.go: validateHostDevicesWithPassthroughEnabled
NO_HOST_DEVICES_GATE: Final = "Host Devices feature gate is not enabled in kubevirt-config"

# --- virt-controller ---------------------------------------------------------------------------------------------

# kubevirt pkg/virt-controller/services/renderresources.go: validatePermittedHostDevices
GPU_NOT_PERMITTED: Final = "GPU %s is not permitted in permittedHostDevices configuration"
HOST_DEVICE_NOT_PERMITTED: Final = "HostDevice %s is not permitted in permittedHostDevices configuration"
# kubevirt pkg/virt-controller/services/template.go: FailedToRenderLaunchManifestErrFormat
NO_LAUNCH_MANIFEST: Final = "failed to render launch manifest: %s"
# kubevirt pkg/controller/controller.go: FailedCreatePodReason
FAILED_CREATE: Final = "FailedCreate"

# --- kube-scheduler ----------------------------------------------------------------------------------------------
# Wordings of v1.34 as events show them that people have quoted; its source was not at hand.

# kubernetes pkg/scheduler/framework/types.go: FitError.Error; plugins/noderesources/fit.go: fitsRequest
NODES_AVAILABLE: Final = "0/%d nodes are available"
INSUFFICIENT: Final = "Insufficient %s"
# kubernetes pkg/scheduler/framework/plugins/dynamicresources, PostFilter; framework/preemption/preemption.go: both are asked
NO_PREEMPTION: Final = "no new claims to deallocate, preemption: %s"
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
NO_VICTIMS: Final = "No preemption victims found for incoming pod"
# kubernetes pkg/scheduler/schedule_one.go
FAILED_SCHEDULING: Final = "FailedScheduling"

# --- virt-launcher, and virt-handler which passes it on ----------------------------------------------------------

# kubevirt pkg/virt-launcher/virtwrap/device/hostdevice/{gpu,generic}/hostdev.go. Go prints structures after it, which are
# left out here.
GPUS_DO_NOT_MATCH: Final = (
    "failed to create GPU host-devices: the number of device plugin GPU/s do not match the number of devices:"
)
HOST_DEVICES_DO_NOT_MATCH: Final = (
    "failed to create generic host-devices: the number of device plugin HostDevice/s do not match the number of devices:"
)
# kubevirt pkg/virt-handler/cmd-client/errors.go: handleError
SYNC_FAILED: Final = 'server error. command SyncVMI failed: "%s'
# kubevirt pkg/virt-handler/vm.go: handleSyncError
NOT_SYNCHRONIZED: Final = "Synchronizing with the Domain failed."
# qemu hw/vfio: vfio_group_get, and the hint that follows it; by memory, no QEMU was run
GROUP_NOT_VIABLE: Final = (
    "vfio %s: group %s is not viable\\nPlease ensure all devices within the iommu_group are bound to their vfio bus driver."
)
# kubevirt pkg/virt-handler/vm.go: calculateLiveMigrationCondition; a VM with a passed-through device stays where it is
NOT_MIGRATABLE: Final = "HostDeviceNotLiveMigratable"
NOT_MIGRATABLE_TEXT: Final = "VMI uses a PCI host devices"
