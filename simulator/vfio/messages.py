"""vfio-manage's log and error texts, byte for byte.

One name per text; `%s` and `%d` stand where upstream formats a value. What wraps an error ends before the `: %w`. A
release that rewords a text has its own constant beside the others. BusyBox's words are the script's own.

Source: cmd/vfio-manage/bind.go and unbind.go, internal/nvpassthrough/*.go, v0.10.0 to v0.12.0; go-nvlib pkg/nvpci/nvpci.go
and pkg/pciids/pciids.go, v0.8.1, v0.10.0 and v0.12.0; scripts/vfio-manage, v0.9.0 and v0.9.1.
"""

from __future__ import annotations

from typing import Final

# --- cmd/vfio-manage ------------------------------------------------------------------------------------------
NEITHER_ALL_NOR_DEVICE: Final = "either --all or --device-id must be specified"
BOTH_ALL_AND_DEVICE: Final = "cannot specify both --all and --device-id"
FAILED_TO_GET_GPUS: Final = "failed to get NVIDIA GPUs"
FAILED_TO_GET_NVSWITCHES: Final = "failed to get NVIDIA NVSwitches"
FAILED_TO_GET_DEVICE: Final = "failed to get NVIDIA device"
NOT_NVIDIA: Final = "Device %s is not an NVIDIA device"
SKIPPING_NVSWITCH: Final = "Skipping NVSwitch %s (BIND_NVSWITCHES not set)"
NEITHER_GPU_NOR_NVSWITCH: Final = "Device %s is not an NVIDIA GPU or NVSwitch"
BINDING: Final = "Binding device %s"
BIND_FAILED: Final = "Failed to bind device %s: %s"
FAILED_TO_BIND_TO_VFIO: Final = "failed to bind device %s to vfio driver"
UNBINDING: Final = "Unbinding device %s"
UNBIND_FAILED: Final = "Failed to unbind device %s: %s"
FAILED_TO_UNBIND_FROM_DRIVER: Final = "failed to unbind device %s from driver"

# --- internal/nvpassthrough/nvpassthrough.go --------------------------------------------------------------------
FAILED_TO_FIND_VARIANT: Final = "failed to find best vfio variant driver"
FAILED_TO_READ_MODALIAS: Final = "failed to read modalias file for %s"
FAILED_TO_PARSE_MODALIAS: Final = "failed to parse modalias string %s for device %s"
FAILED_TO_READ_ALIASES: Final = "failed to read file %s"
FAILED_TO_LOAD: Final = "failed to load %s driver"
FAILED_TO_FIND_DIRECTORY: Final = "failed to find directory for vfio driver %s at %s, is the module loaded?"
BINDING_TO_DRIVER: Final = "Binding device %s to driver: %s"
BINDING_AUXILIARY: Final = "Binding graphics auxiliary device %s to driver: %s"
FAILED_TO_UNBIND_DEVICE: Final = "failed to unbind device %s"
FAILED_TO_BIND_DEVICE: Final = "failed to bind device %s to %s"
FAILED_TO_GET_AUXILIARY: Final = "failed to get graphics auxiliary device for %s"
FAILED_TO_UNBIND_AUXILIARY: Final = "failed to unbind graphics auxiliary device %s"
FAILED_TO_BIND_AUXILIARY: Final = "failed to bind graphics auxiliary device %s to %s"
FAILED_TO_GET_AUXILIARY_DRIVER: Final = "failed to get driver for graphics auxiliary device %s"
FAILED_TO_SET_OVERRIDE: Final = "failed to set driver_override for %s"
FAILED_TO_BIND: Final = "failed to bind %s to %s"
FAILED_TO_CLEAR_OVERRIDE: Final = "failed to clear driver_override for %s"
FAILED_TO_READ_DRIVER_LINK: Final = "failed to read driver link for %s"
FAILED_TO_UNBIND: Final = "failed to unbind %s from %s"

# --- internal/nvpassthrough/modalias.go -------------------------------------------------------------------------
MODALIAS_EMPTY: Final = "modalias string is empty"
MODALIAS_WITHOUT_BUS: Final = "unexpected number of parts in modalias after trimming 'pci:' prefix: %s"
MODALIAS_WITHOUT_VENDOR: Final = "modalias must start with 'v', got: %s"
MODALIAS_WITHOUT_DELIMITER: Final = "failed to find delimiter '%s' in %s"
MODALIAS_WITHOUT_SUBCLASS: Final = "failed to find delimiter '%s' in input %s"

# --- go-nvlib pkg/nvpci -----------------------------------------------------------------------------------------
FAILED_TO_READ_BUS: Final = "unable to read PCI bus devices"
FAILED_TO_GET_ALL: Final = "error getting all NVIDIA devices"
FAILED_TO_CONSTRUCT: Final = "error constructing NVIDIA PCI device %s"
FAILED_TO_READ: Final = {
    "vendor": "unable to read PCI device vendor id for %s",
    "class": "unable to read PCI device class for %s",
    "device": "unable to read PCI device id for %s",
    "numa_node": "unable to read PCI NUMA node for %s",
}
"""File of a device's directory -> the text up to v0.11.0."""
FAILED_TO_CONVERT: Final = {
    "vendor": "unable to convert vendor string to uint16: %s",
    "class": "unable to convert class string to uint32: %s",
    "device": "unable to convert device string to uint16: %s",
}
"""File of a device's directory -> the text up to v0.11.0."""
FAILED_TO_CONVERT_NUMA: Final = "unable to convert NUMA node string to int64: %d"
FAILED_TO_READ_FIELD: Final = "unable to read PCI %s for %s"
FAILED_TO_PARSE_FIELD: Final = "unable to parse PCI %s for %s"
SUBSYSTEM_FILE_MISSING: Final = "%s file not found for %s"
FAILED_TO_DETECT_DRIVER: Final = "unable to detect driver for %s"
FAILED_TO_DETECT_IOMMU_GROUP: Final = "unable to detect IOMMU group for %s"
FAILED_TO_CONVERT_IOMMU_GROUP: Final = "unable to convert iommu_group string to int64: %s"
FAILED_TO_DETECT_IOMMU_FD: Final = "unable to detect IOMMU FD for %s: %s"
NO_IOMMU_FD: Final = "no iommufd device found"
FAILED_TO_READ_RESOURCE: Final = "unable to read PCI resource file for %s"
BAD_RESOURCE_LINE: Final = "more than 3 entries in line '%d' of resource file"
NO_DEVICE_NAME: Final = "unable to get device name: failed to find device with id '%x'\n"
NO_CLASS_NAME: Final = "unable to get class name for device: failed to find class with id '%x'\n"
FAILED_TO_DETECT_PHYSFN: Final = "unable to detect physfn for %s"
FAILED_TO_READ_SRIOV: Final = "unable to read SRIOV physical function details for %s"
FAILED_TO_READ_PHYSFN: Final = "unable to read %s"
FAILED_TO_READ_TOTAL_VFS: Final = "unable to read sriov_totalvfs"
FAILED_TO_CONVERT_TOTAL_VFS: Final = "unable to convert sriov_totalvfs to uint64"
FAILED_TO_READ_NUM_VFS: Final = "unable to read sriov_numvfs for"
FAILED_TO_CONVERT_NUM_VFS: Final = "unable to convert sriov_numvfs to uint64"

# --- Go's standard library --------------------------------------------------------------------------------------
TOO_MANY_LINKS: Final = "EvalSymlinks: too many links"

# --- scripts/vfio-manage, v0.9.x --------------------------------------------------------------------------------
SCRIPT_USAGE: Final = """Usage: /usr/bin/vfio-manage COMMAND [ARG...]

 Commands:
   bind   [-a | --all] [-d | --device-id]
   unbind [-a | --all] [-d | --device-id]
   help [-h]
"""
SCRIPT_UNBINDING: Final = "unbinding device %s"
SCRIPT_UNBINDING_FROM: Final = "unbinding device %s from driver %s"
SCRIPT_EXISTING_DRIVER: Final = "existing driver is %s"
SCRIPT_BINDING: Final = "binding device %s"
SCRIPT_ALREADY_BOUND: Final = "device %s already bound to vfio-pci"
SCRIPT_GRAPHICS_MODE: Final = "gpu %s is in graphics mode aux_dev %s"
SCRIPT_NOT_A_GPU: Final = "device %s is not a gpu!"
