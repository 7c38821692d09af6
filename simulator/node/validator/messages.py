"""The validator's texts, byte for byte, as of the GPU Operator v24.9.0 to v26.7.0; before, some began with a capital.

Source: NVIDIA/gpu-operator cmd/nvidia-validator/main.go (validator/main.go up to v25.10.1).
"""

from __future__ import annotations

from typing import Final

VERSION: Final = "version: %s"
ERROR: Final = "Error: %s"

NO_COMPONENT: Final = "invalid -c <component-name> flag: must not be empty string"
UNKNOWN_COMPONENT: Final = "invalid -c <component-name> flag value: %s"
NO_NODE_NAME: Final = "invalid -n <node-name> flag: must not be empty string for %s validation"
INVALID_VFIO: Final = "error validating vfio-pci driver installation"
INVALID_VGPU_MANAGER: Final = "error validating vGPU Manager installation"
INVALID_VGPU_DEVICES: Final = "error validating vGPU devices"
INVALID_CC_MANAGER: Final = "error validating CC Manager installation"

WORKLOAD_CONFIG_FAILED: Final = "error getting gpu workload config"
NODE_LABELS_FAILED: Final = "error getting node labels - %s"
NO_NODE: Final = "unable to get node with name %s, err %s"
NO_LABEL: Final = "No %s label found; using default workload config: %s"
INVALID_LABEL: Final = "%s is an invalid workload config; using default workload config: %s"
WORKLOAD_CONFIG: Final = "GPU workload configuration: %s"

STATUS_FILE_FAILED: Final = "error updating %s status file"
NO_TEMPORARY_FILE: Final = "failed to create temporary status file"
NO_STATUS_FILE: Final = "unable to create status file %s: %s"
NOT_REMOVED: Final = "unable to remove driver status file %s"

VFIO_SKIPPED: Final = "vfio-pci not required on the node. Skipping validation."
NO_PCI_DEVICES: Final = "error getting NVIDIA PCI devices"
NOT_BOUND: Final = "device not bound to 'vfio-pci'; device: %s driver: '%s'"
VFIO_VALID: Final = "Validation completed successfully - all devices are bound to vfio-pci"

VGPU_MANAGER_SKIPPED: Final = "vGPU Manager not required on the node. Skipping validation."
RUNNING: Final = "running command %s with args [%s]\n"
COMMAND_FAILED: Final = "error running command: %s"
COMMAND_RETRIED: Final = "command failed, retrying after %d seconds\n"

VGPU_DEVICES_SKIPPED: Final = "vgpu devices not required on the node. Skipping validation."
VGPU_DEVICES_UNKNOWN: Final = "error checking for vGPU devices on the host"
MDEV_UNREADABLE: Final = "unable to read MDEV devices directory: %s"
NO_VGPU_DEVICES: Final = "No vGPU devices found, retrying after %d seconds"
VGPU_DEVICES_FOUND: Final = "Found %d vGPU devices"
VGPU_DEVICES_VALID: Final = "Validation completed successfully - vGPU devices present on the host"

CC_UNKNOWN: Final = "unable to fetch node by name %s to check for %s label"
CC_SKIPPED: Final = "Not a CC capable node, skipping CC Manager validation"
CC_NOT_READY: Final = "CC Manager is not ready\n"
