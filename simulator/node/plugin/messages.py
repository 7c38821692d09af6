"""The plugin's texts, byte for byte.

Source: kubevirt-gpu-device-plugin v1.4.0 to v1.6.0, pkg/device_plugin.
"""

from __future__ import annotations

from typing import Final

# --- kubevirt-gpu-device-plugin, device_plugin.go ---------------------------------------------------------------

WALK_FAILED: Final = 'Error accessing file path "%s": %s'
NO_DEVICE: Final = "Not a device, continuing"
NO_VENDOR: Final = "Could not get vendor ID for device  %s"
NVIDIA_DEVICE: Final = "Nvidia device  %s"
NO_DRIVER: Final = "Could not get driver for device  %s"
NOT_VFIO: Final = "Skipping %s: driver %s is not a supported VFIO driver"
NO_IOMMU_GROUP: Final = "Could not get IOMMU Group for device  %s"
NO_NUMA_NODE: Final = "Could not get NUMA node for device %s: %s. Defaulting to NUMA node 0"
IOMMU_GROUP: Final = "Iommu Group %s"
NO_DEVICE_ID: Final = "Could get deviceID for PCI address  %s"
DEVICE_ID: Final = "Device Id %s"
NO_VGPU_TYPE: Final = "Could not get vGPU type identifier for device  %s"
NO_VGPU_NUMA_NODE: Final = "Could not get NUMA node for GPU %s: %s. Defaulting to NUMA node 0"
GPU_ID: Final = "Gpu id is %s"
VGPU_ID: Final = "Vgpu id is %s"
COULD_NOT_READ: Final = "Could not read %s for device %s: %s"
COULD_NOT_READ_LINK: Final = "Could not read link %s for device %s: %s"
COULD_NOT_READ_OWN_LINK: Final = "Could not read link for device %s: %s"
COULD_NOT_READ_NUMA: Final = "Could not read NUMA node for device %s: %s"
COULD_NOT_PARSE_NUMA: Final = "Could not parse NUMA node for device %s: %s"
SLICE_BOUNDS: Final = "runtime error: slice bounds out of range [2:%d]"
INDEX_OUT_OF_RANGE: Final = "runtime error: index out of range [-1]"

IOMMU_MAP: Final = "Iommu Map %s"
DEVICE_MAP: Final = "Device Map %s"
VGPU_MAP: Final = "vGPU Map  %s"
GPU_VGPU_MAP: Final = "GPU vGPU Map  %s"
REGISTERING_DEVICE: Final = "Registering device: ID=%s, NUMA=%d, Health=Healthy"
NO_DEVICE_NAME: Final = "Error: Could not find device name for device id: %s"
DP_NAME: Final = "DP Name %s"

NO_PCI_IDS: Final = "Error opening pci ids file %s"
NO_VENDOR_BLOCK: Final = "Error locating NVIDIA in pci.ds file: %s"
VENDOR_NOT_FOUND: Final = "failed to find vendor id in pci.ids file: %s"
PCI_IDS_UNREADABLE: Final = "error reading pci.ids file: %s"
PCI_IDS_READ_ERROR: Final = "Error reading pci ids file %s"
ID_NOT_FOUND: Final = "Could not find NVIDIA device with id: %s"
TOKEN_TOO_LONG: Final = "bufio.Scanner: token too long"

# --- generic_device_plugin.go ------------------------------------------------------------------------------------

DEVICE_NAME: Final = "Devicename %s"
REGISTERED: Final = "[%s] Successfully registered with kubelet for resource: %s/%s (endpoint: %s)"
SERVER_READY: Final = "%s Device plugin server ready"
IN_ALLOCATE: Final = "In allocate"
ALLOCATE_CALLED: Final = "[%s] ========== ALLOCATE CALLED =========="
ALLOCATE_REQUESTS: Final = "[%s] Allocate() called with %d container request(s)"
CONTAINER_REQUEST: Final = "[%s] Container request %d: DeviceIDs=[%s]"
PASSED_ADMISSION: Final = "[%s] This means kubelet passed Topology Manager admission!"
GROUP_CHANGED: Final = "IommuGroup has changed on the system  %s"
VENDOR_CHANGED: Final = "Vendor has changed on the system  %s"
ALLOCATED_V1_4: Final = "Allocated devices %s"
ALLOCATED: Final = "[%s] Allocated devices - Envs: %s, DeviceSpecs count: %d"
EGM_INJECTED: Final = "[%s] EGM devices injected: [%s]"
EGM_NOT_DISCOVERED: Final = "[%s] Warning: unable to discover EGM devices, continuing without EGM mounts: %s"
EGM_UNREADABLE: Final = "warning: skipping EGM device %s: unable to read gpu_devices: %s"
EGM_NO_NODE: Final = "warning: skipping EGM device %s: device node %s is not accessible: %s"
UNKNOWN_DEVICE: Final = "invalid allocation request: unknown device: %s"
NO_IOMMUFD_SUPPORT: Final = "could not determine iommufd support"
NO_IOMMUFD_DEVICE: Final = "could not determine iommufd device for device %s: %s"
NO_VFIO_DEV: Final = "no iommufd device found"
