"""The sandbox device plugin, kubevirt-gpu-device-plugin: what it finds on a node, what it registers, what it hands out.

It looks once, when it starts; what is bound to vfio-pci later is not seen until its pod restarts. Every NVIDIA function
that a vfio driver has is taken, whatever its class: audio and USB functions become resources of their own.

This is v1.4.0; later releases are this class with their changes on top. Leaves out: the watch over /dev/vfio and over the socket, restarts of the
kubelet, and the order in which resources are registered, which is chance upstream (a Go map) and the ids' order here.

Source: kubevirt-gpu-device-plugin v1.4.0, pkg/device_plugin/device_plugin.go, generic_device_plugin.go.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from simulator.gocompat import GoError, GoPanic, PathError, errno_of, wrap
from simulator.node.plugin import messages as m
from simulator.node.plugin.names import VENDOR, blank_runs, get_device_name, resource_name
from simulator.ports import VfioHost
from simulator.vfio.files import SYS_DEVICES, join, read_dir, read_file, read_link, stat

MDEV_DEVICES: Final = "/sys/bus/mdev/devices"
VFIO: Final = "/dev/vfio"
IOMMU: Final = "/dev/iommu"
_GPU_PREFIX: Final = "PCI_RESOURCE_NVIDIA_COM"
VFIO_PCI: Final = "vfio-pci"


class PluginLog(Protocol):
    """Where the plugin writes: two loggers, both on standard error."""

    def log(self, message: str) -> None:
        """Go's own `log`."""

    def klog(self, line: int, message: str) -> None:
        """`klog.Errorf`, from a line of device_plugin.go."""


@dataclass(frozen=True, slots=True)
class NvidiaGpuDevice:
    """`NvidiaGpuDevice`: a function's address and its NUMA node (0 where none is known)."""

    address: str
    numa_node: int = 0


@dataclass(frozen=True, slots=True)
class Discovery:
    """The plugin's maps. In `devices`, device id -> what the kubelet is given: functions, or IOMMU groups up to v1.4.0."""

    devices: dict[str, list[NvidiaGpuDevice]] = field(default_factory=dict)
    iommu_groups: dict[str, list[NvidiaGpuDevice]] = field(default_factory=dict)
    bdf_to_group: dict[str, str] = field(default_factory=dict)
    vgpus: dict[str, list[NvidiaGpuDevice]] = field(default_factory=dict)
    """vGPU type -> its mediated devices."""
    gpu_vgpus: dict[str, list[str]] = field(default_factory=dict)
    """GPU -> its mediated devices."""


@dataclass(frozen=True, slots=True)
class Registration:
    """One plugin instance, registered with the kubelet."""

    device_id: str
    name: str
    devices: tuple[NvidiaGpuDevice, ...]

    @property
    def resource(self) -> str:
        """The extended resource."""
        return resource_name(self.name)

    @property
    def endpoint(self) -> str:
        """The socket, below the kubelet's directory. Two instances of one name share it."""
        return f"kubevirt-{self.name}.sock"


@dataclass(frozen=True, slots=True)
class ContainerAllocation:
    """`ContainerAllocateResponse`: a container's variables, and the device nodes it is given."""

    env: Mapping[str, str]
    devices: tuple[str, ...]


class DevicePlugin:
    """v1.4.0: the kubelet's devices are IOMMU groups, one for each group, and nothing is said of NUMA nodes."""

    release = "v1.4.0"
    drivers: frozenset[str] = frozenset({VFIO_PCI})
    lines: Mapping[str, int] = {"read_id": 256, "read_link": 267, "read_vgpu_type": 279, "read_gpu_of_vgpu": 291}
    """Where in device_plugin.go each function logs its error."""

    def __init__(self, host: VfioHost, out: PluginLog) -> None:
        self.host = host
        self.out = out
        self.found = Discovery()
        self.registrations: tuple[Registration, ...] = ()

    def initiate(self) -> tuple[Registration, ...]:
        """`InitiateDevicePlugin`: look once, register everything. Raises GoPanic for a vendor file of less than two bytes."""
        self.found = Discovery()
        self.create_iommu_device_map()
        self.create_vgpu_id_map()
        self.registrations = tuple(self.create_device_plugins())
        return self.registrations

    # --- looking ------------------------------------------------------------------------------------------------

    def create_iommu_device_map(self) -> None:
        """`createIommuDeviceMap`. What is in the directory are links, which filepath.Walk does not follow."""
        for address in self.walk(SYS_DEVICES):
            try:
                vendor = self.read_id(SYS_DEVICES, address, "vendor")
            except GoError:
                self.out.log(m.NO_VENDOR % address)
                continue
            if vendor == VENDOR:
                self.look_at(address)

    def look_at(self, address: str) -> None:
        """What createIommuDeviceMap does with an NVIDIA function."""
        self.out.log(m.NVIDIA_DEVICE % address)
        try:
            driver = self.read_link(address, "driver")
        except GoError:
            self.out.log(m.NO_DRIVER % address)
            return
        if driver not in self.drivers:
            self.other_driver(address, driver)
            return
        try:
            group = self.read_link(address, "iommu_group")
        except GoError:
            self.out.log(m.NO_IOMMU_GROUP % address)
            return
        self.record(address, group)

    def other_driver(self, address: str, driver: str) -> None:
        """A function of another driver: nothing is said, in this release."""

    def record(self, address: str, group: str) -> None:
        """Note a function: the first of its group, in this release, stands for the group."""
        self.out.log(m.IOMMU_GROUP % group)
        if group not in self.found.iommu_groups:
            device_id = self.device_id(address)
            if device_id is None:
                return
            self.found.devices.setdefault(device_id, []).append(NvidiaGpuDevice(group))
        self.found.iommu_groups.setdefault(group, []).append(NvidiaGpuDevice(address))

    def device_id(self, address: str) -> str | None:
        """The function's device id; None if it cannot be read."""
        try:
            device_id = self.read_id(SYS_DEVICES, address, "device")
        except GoError:
            self.out.log(m.NO_DEVICE_ID % address)
            return None
        self.out.log(m.DEVICE_ID % device_id)
        return device_id

    def create_vgpu_id_map(self) -> None:
        """`createVgpuIDMap`: mediated devices, by type and by GPU."""
        for name in self.walk(MDEV_DEVICES):
            try:
                vgpu_type = self.read_vgpu_type(name)
                gpu = self.read_gpu_of_vgpu(name)
            except GoError:
                self.out.log(m.NO_VGPU_TYPE % name)
                continue
            numa_node = self.vgpu_numa_node(gpu)
            self.out.log(m.GPU_ID % gpu)
            self.out.log(m.VGPU_ID % vgpu_type)
            self.found.gpu_vgpus.setdefault(gpu, []).append(name)
            self.found.vgpus.setdefault(vgpu_type, []).append(NvidiaGpuDevice(name, numa_node))

    def vgpu_numa_node(self, gpu: str) -> int:  # noqa: ARG002  # later releases ask for it
        """The NUMA node of a mediated device's GPU: not asked for, in this release."""
        return 0

    def walk(self, directory: str) -> list[str]:
        """`filepath.Walk` of a directory of sysfs, its own line said: the names in it."""
        try:
            names = self.host.list_directory(directory)
        except OSError as error:
            self.out.log(m.WALK_FAILED % (directory, PathError("lstat", directory, errno_of(error)).text))
            return []
        self.out.log(m.NO_DEVICE)
        return names

    # --- reading ------------------------------------------------------------------------------------------------

    def read_id(self, base: str, address: str, name: str) -> str:
        """`readIDFromFile`: all but the first two bytes. Raises GoError, and GoPanic where there are fewer."""
        try:
            text = read_file(self.host, join(base, address, name))
        except GoError as error:
            self.out.klog(self.lines["read_id"], m.COULD_NOT_READ % (name, address, error.text))
            raise
        data = text.encode("utf-8", "surrogateescape")
        if len(data) < 2:
            raise GoPanic(m.SLICE_BOUNDS % len(data))
        return data[2:].decode("utf-8", "surrogateescape").strip("\n")

    def read_link(self, address: str, name: str) -> str:
        """`readLink`: the last element of where a link points. Raises GoError."""
        try:
            target = read_link(self.host, join(SYS_DEVICES, address, name))
        except GoError as error:
            self.out.klog(self.lines["read_link"], m.COULD_NOT_READ_LINK % (name, address, error.text))
            raise
        return target.rpartition("/")[2]

    def read_vgpu_type(self, name: str) -> str:
        """`readVgpuIDFromFile`: a mediated device's type, blanks as underscores. Raises GoError."""
        place = "mdev_type/name"
        try:
            text = read_file(self.host, join(MDEV_DEVICES, name, place))
        except GoError as error:
            self.out.klog(self.lines["read_vgpu_type"], m.COULD_NOT_READ % (place, name, error.text))
            raise
        return "_".join(blank_runs(text.strip("\n")))

    def read_gpu_of_vgpu(self, name: str) -> str:
        """`readGpuIDForVgpu`: the directory above the one a mediated device is. Raises GoError."""
        try:
            target = read_link(self.host, join(MDEV_DEVICES, name))
        except GoError as error:
            self.out.klog(self.lines["read_gpu_of_vgpu"], m.COULD_NOT_READ_OWN_LINK % (name, error.text))
            raise
        above, slash, _ = target.rpartition("/")
        if not slash:
            raise GoPanic(m.INDEX_OUT_OF_RANGE)
        return above.rpartition("/")[2].strip("\n")

    # --- registering --------------------------------------------------------------------------------------------

    def create_device_plugins(self) -> Iterator[Registration]:
        """`createDevicePlugins`: an instance for each device id, then for each vGPU type."""
        self.out.log(m.IOMMU_MAP % go_map(self.found.iommu_groups, self.written))
        self.out.log(m.DEVICE_MAP % go_map(self.found.devices, self.kubelet_id))
        self.out.log(m.VGPU_MAP % go_map(self.found.vgpus, self.written))
        self.out.log(m.GPU_VGPU_MAP % go_map(self.found.gpu_vgpus, str))
        for device_id, devices in sorted(self.found.devices.items()):
            self.before_registering(devices)
            name = get_device_name(self.host, self.out.log, device_id)
            if not name:
                self.out.log(m.NO_DEVICE_NAME % device_id)
            yield self.start(device_id, name or device_id, devices)
        for vgpu_type, devices in sorted(self.found.vgpus.items()):
            name = get_device_name(self.host, self.out.log, vgpu_type)
            yield self.start(vgpu_type, name or vgpu_type, devices)

    def before_registering(self, devices: Sequence[NvidiaGpuDevice]) -> None:
        """What is said of the devices of one id: nothing, in this release."""

    def start(self, device_id: str, name: str, devices: Sequence[NvidiaGpuDevice]) -> Registration:
        """One instance made and started. A socket of its name goes first, also that of another instance."""
        self.out.log(m.DP_NAME % name)
        self.out.log(m.DEVICE_NAME % name)
        registration = Registration(device_id, name, tuple(devices))
        self.registered(registration)
        self.out.log(m.SERVER_READY % name)
        return registration

    def registered(self, registration: Registration) -> None:
        """What is said of a registration: nothing, in this release."""

    @staticmethod
    def written(device: NvidiaGpuDevice) -> str:
        """A device as Go prints the structure."""
        return f"{{{device.address}}}"

    @staticmethod
    def kubelet_id(device: NvidiaGpuDevice) -> str:
        """An entry of the device map as Go prints it: the group's number, in this release."""
        return device.address

    # --- what the kubelet has of it -----------------------------------------------------------------------------

    def contested(self) -> dict[str, tuple[str, ...]]:
        """Resource -> the device ids that claim it, where those are several.

        Their instances share one socket. Each start takes it from the other, which sees that its socket is gone and
        starts again: it never ends, and of the functions of all but one id the kubelet knows nothing at any time.
        """
        claims: dict[str, list[str]] = {}
        for registration in self.registrations:
            claims.setdefault(registration.resource, []).append(registration.device_id)
        return {resource: tuple(ids) for resource, ids in claims.items() if len(ids) > 1}

    def allocatable(self) -> dict[str, int]:
        """Resource -> how many the kubelet can give out. Of a contested resource, those that registered last."""
        return {registration.resource: len(registration.devices) for registration in self.registrations}

    # --- giving out ---------------------------------------------------------------------------------------------

    def allocate(self, name: str, requests: Sequence[Sequence[str]]) -> tuple[ContainerAllocation, ...]:
        """`Allocate` of the instance of this name: one request a container. Raises GoError.

        A later container is given the variables of the earlier ones too.
        """
        self.allocate_called(name, requests)
        supported = self.supports_iommufd()
        self.before_requests(name)
        env: dict[str, list[str]] = {}
        key = f"{_GPU_PREFIX}_{name.upper()}"
        out = []
        for request in requests:
            nodes: list[str] = []
            for asked in request:
                addresses = self.allocate_one(asked, nodes, iommufd=supported)
                env.setdefault(key, []).extend(addresses)
            self.after_request(name, request, nodes)
            variables = {variable: ",".join(values) for variable, values in env.items()}
            self.allocated(name, variables, nodes)
            out.append(ContainerAllocation(variables, tuple(nodes)))
        return tuple(out)

    def allocate_one(self, asked: str, nodes: list[str], *, iommufd: bool) -> list[str]:
        """One device of a request, an IOMMU group in this release: the addresses that its variable gets."""
        addresses = []
        for device in self.found.iommu_groups.get(asked, ()):
            self.check(device.address, asked)
            addresses.append(device.address)
            if iommufd:
                self.give(nodes, f"{VFIO}/devices/{self.read_vfio_dev(device.address)}")
        self.give_group(nodes, asked, iommufd=iommufd)
        return addresses

    def give_group(self, nodes: list[str], group: str, *, iommufd: bool) -> None:
        """The nodes that every device of a group needs."""
        self.give(nodes, f"{VFIO}/vfio")
        self.give(nodes, join(VFIO, group))
        if iommufd:
            self.give(nodes, IOMMU)

    def give(self, nodes: list[str], node: str) -> None:
        """One device node, as often as it is named, in this release."""
        nodes.append(node)

    def check(self, address: str, group: str) -> None:
        """Is the function what it was when the plugin started? Its driver is not looked at. Raises GoError."""
        try:
            same = self.read_link(address, "iommu_group") == group
        except GoError:
            same = False
        if not same:
            self.out.log(m.GROUP_CHANGED % address)
            raise GoError(m.UNKNOWN_DEVICE % address)
        try:
            same = self.read_id(SYS_DEVICES, address, "vendor") == VENDOR
        except GoError:
            same = False
        if not same:
            self.out.log(m.VENDOR_CHANGED % address)
            raise GoError(m.UNKNOWN_DEVICE % address)

    def supports_iommufd(self) -> bool:
        """`supportsIOMMUFD`: is there /dev/iommu? Raises GoError."""
        try:
            stat(self.host, IOMMU)
        except PathError as error:
            if error.number == errno.ENOENT:
                return False
            raise wrap(m.NO_IOMMUFD_SUPPORT, error) from None
        return True

    def read_vfio_dev(self, address: str) -> str:
        """`readVFIODev`: the function's node below /dev/vfio/devices. Raises GoError."""
        directory = join(SYS_DEVICES, address, "vfio-dev")
        try:
            names = read_dir(self.host, directory)
        except PathError as error:
            raise GoError(m.NO_IOMMUFD_DEVICE % (address, error.text)) from None
        for name in names:
            if name.startswith("vfio") and self.host.is_directory(f"{directory}/{name}"):
                return name
        raise GoError(m.NO_IOMMUFD_DEVICE % (address, m.NO_VFIO_DEV))

    def before_requests(self, name: str) -> None:
        """What else is looked for at each call: nothing, in this release."""

    def after_request(self, name: str, request: Sequence[str], nodes: list[str]) -> None:
        """What a request gets beside its devices: nothing, in this release."""

    def allocate_called(self, name: str, requests: Sequence[Sequence[str]]) -> None:  # noqa: ARG002  # later releases say more
        """What is said of the call."""
        self.out.log(m.IN_ALLOCATE)

    def allocated(self, name: str, env: Mapping[str, str], nodes: Sequence[str]) -> None:  # noqa: ARG002  # as above
        """What is said of the answer."""
        self.out.log(m.ALLOCATED_V1_4 % go_map(env, str))


def go_map(values: Mapping[str, Any], written: Callable[[Any], str]) -> str:
    """A map as Go prints it: in the order of its keys, a list in brackets."""

    def value_text(value: Any) -> str:
        return f"[{' '.join(map(written, value))}]" if isinstance(value, list) else written(value)

    return f"map[{' '.join(f'{key}:{value_text(value)}' for key, value in sorted(values.items()))}]"
