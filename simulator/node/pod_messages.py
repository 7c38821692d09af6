"""What the shell scripts of the sandbox's pods print, byte for byte.

Source: NVIDIA/gpu-operator assets/state-sandbox-validation and state-sandbox-device-plugin (0500_daemonset.yaml,
0400_configmap.yaml).
"""

from __future__ import annotations

from typing import Final

WAITING_FOR_WORKLOAD_TYPE: Final = "waiting for workload type status file\n"
VFIO_PCI_NOT_NEEDED: Final = "vfio-pci not needed, skipping validation\n"
WAITING_FOR_VFIO_PCI: Final = "waiting for vfio-pci driver ...\n"
VGPU_DEVICES_NOT_NEEDED: Final = "vgpu-devices not needed, skipping validation\n"
WAITING_FOR_VGPU_DEVICES: Final = "waiting for vGPU devices...\n"
ALL_SUCCESSFUL: Final = "all validations are successful\n"
