"""What v1.5.0 of the sandbox device plugin changed: the kubelet's devices are functions, each with its NUMA node.

Since then nvgrace_gpu_vfio_pci counts as a vfio driver, and the log says more.

Source: kubevirt-gpu-device-plugin v1.5.0, pkg/device_plugin/device_plugin.go, generic_device_plugin.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulator.gocompat import GoError, trim_space
from simulator.node.plugin import messages as m
from simulator.node.plugin.v1_4_0 import VFIO_PCI, DevicePlugin, NvidiaGpuDevice, Registration, go_map
from simulator.vfio.files import SYS_DEVICES, join, read_file
from simulator.vfio.numbers import parse_int


class DevicePluginV150(DevicePlugin):
    """The plugin as of v1.5.0."""

    release = "v1.5.0"
    drivers = frozenset({VFIO_PCI, "nvgrace_gpu_vfio_pci"})
    lines: Mapping[str, int] = {
        "read_id": 297,
        "read_numa_node": 307,
        "parse_numa_node": 313,
        "read_link": 326,
        "read_vgpu_type": 338,
        "read_gpu_of_vgpu": 350,
    }

    def other_driver(self, address: str, driver: str) -> None:
        """Said now."""
        self.out.log(m.NOT_VFIO % (address, driver))

    def record(self, address: str, group: str) -> None:
        """Every function stands for itself."""
        numa_node = self.numa_node(address, m.NO_NUMA_NODE)
        self.out.log(m.IOMMU_GROUP % group)
        device_id = self.device_id(address)
        if device_id is None:
            return
        device = NvidiaGpuDevice(address, numa_node)
        self.found.devices.setdefault(device_id, []).append(device)
        self.found.iommu_groups.setdefault(group, []).append(device)
        self.found.bdf_to_group[address] = group

    def vgpu_numa_node(self, gpu: str) -> int:
        """The GPU's."""
        return self.numa_node(gpu, m.NO_VGPU_NUMA_NODE)

    def numa_node(self, address: str, otherwise: str) -> int:
        """`readNUMANode`, and what its callers make of an error. A node below zero is none, and counts as 0."""
        try:
            return max(self.read_numa_node(address), 0)
        except GoError as error:
            self.out.log(otherwise % (address, error.text))
            return 0

    def read_numa_node(self, address: str) -> int:
        """The number in the file. Raises GoError."""
        try:
            text = read_file(self.host, join(SYS_DEVICES, address, "numa_node"))
        except GoError as error:
            self.out.klog(self.lines["read_numa_node"], m.COULD_NOT_READ_NUMA % (address, error.text))
            raise
        try:
            return parse_int(trim_space(text), 10, 64)
        except GoError as error:
            self.out.klog(self.lines["parse_numa_node"], m.COULD_NOT_PARSE_NUMA % (address, error.text))
            raise

    def before_registering(self, devices: Sequence[NvidiaGpuDevice]) -> None:
        """Each device, with its node."""
        for device in devices:
            self.out.log(m.REGISTERING_DEVICE % (device.address, device.numa_node))

    def registered(self, registration: Registration) -> None:
        """Said now."""
        name = registration.name
        self.out.log(m.REGISTERED % (name, *registration.resource.split("/", 1), registration.endpoint))

    @staticmethod
    def written(device: NvidiaGpuDevice) -> str:
        """The structure has two fields now."""
        return f"{{{device.address} {device.numa_node}}}"

    @staticmethod
    def kubelet_id(device: NvidiaGpuDevice) -> str:
        """The device map holds the structure."""
        return DevicePluginV150.written(device)

    def allocate_one(self, asked: str, nodes: list[str], *, iommufd: bool) -> list[str]:
        """A function's whole group is handed over, and its variable names all of it. Raises GoError."""
        group = self.found.bdf_to_group.get(asked)
        if group is None:
            raise GoError(m.UNKNOWN_DEVICE % asked)
        addresses = super().allocate_one(group, nodes, iommufd=iommufd)
        if asked not in addresses:
            raise GoError(m.UNKNOWN_DEVICE % asked)
        return addresses

    def allocate_called(self, name: str, requests: Sequence[Sequence[str]]) -> None:
        """In four lines and more."""
        self.out.log(m.ALLOCATE_CALLED % name)
        self.out.log(m.ALLOCATE_REQUESTS % (name, len(requests)))
        for index, request in enumerate(requests):
            self.out.log(m.CONTAINER_REQUEST % (name, index, " ".join(request)))
        self.out.log(m.PASSED_ADMISSION % name)

    def allocated(self, name: str, env: Mapping[str, str], nodes: Sequence[str]) -> None:
        """With the number of nodes."""
        self.out.log(m.ALLOCATED % (name, go_map(env, str), len(nodes)))
