"""The list of NVIDIA and Mellanox PCI functions: go-nvlib's pkg/nvpci, as driver-manager vendors it.

This is go-nvlib v0.8.1, which v0.10.0 of driver-manager vendors; later releases are this class with their changes on
top. One malformed function makes the whole list fail. Leaves out what vfio-manage never looks at (names, memory regions).

Source: go-nvlib v0.8.1 pkg/nvpci/nvpci.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from simulator.gocompat import GoError, GoPanic, trim_space, wrapping
from simulator.ports import Output, VfioHost
from simulator.vfio import messages as m
from simulator.vfio.files import SYS_DEVICES, base, bound_driver, eval_symlinks, is_not_exist, join, read_dir, read_file, stat
from simulator.vfio.numbers import NumError, parse_int, parse_uint
from simulator.vfio.pci_ids import CLASSES, DEVICES

NVIDIA: Final = 0x10DE
MELLANOX: Final = 0x15B3
VGA_CONTROLLER: Final = 0x030000
CONTROLLER_3D: Final = 0x030200
NVSWITCH: Final = 0x068000
_STACK_OVERFLOW: Final = "stack overflow"
_DEEPEST: Final = 64


@dataclass(frozen=True, slots=True)
class NvidiaPciDevice:
    """`NvidiaPCIDevice`, as far as vfio-manage uses it. `driver` is "" for none."""

    path: str
    address: str
    class_: int
    driver: str
    is_virtual_function: bool = False
    is_physical_function: bool = False

    @property
    def is_gpu(self) -> bool:
        """`IsGPU`: by class alone, whoever made it."""
        return self.class_ in {VGA_CONTROLLER, CONTROLLER_3D}

    @property
    def is_nvswitch(self) -> bool:
        """`IsNVSwitch`."""
        return self.class_ == NVSWITCH


class NvPci:
    """`nvpci`. What upstream lets return an error raises GoError."""

    def __init__(self, host: VfioHost, output: Output) -> None:
        self.host = host
        self.output = output

    def get_all_devices(self) -> list[NvidiaPciDevice]:
        """`GetAllDevices`: every NVIDIA and Mellanox function, by the number its address makes."""
        with wrapping(m.FAILED_TO_READ_BUS):
            addresses = read_dir(self.host, SYS_DEVICES)
        devices = []
        cache: dict[str, NvidiaPciDevice] = {}
        for address in addresses:
            with wrapping(m.FAILED_TO_CONSTRUCT % address):
                device = self.construct(address, cache)
            if device is not None:
                devices.append(device)
        return sorted(devices, key=lambda device: _address_to_id(device.address))

    def get_gpus(self) -> list[NvidiaPciDevice]:
        """`GetGPUs`: VGA and 3D controllers without virtual functions."""
        with wrapping(m.FAILED_TO_GET_ALL):
            devices = self.get_all_devices()
        return [device for device in devices if device.is_gpu and not device.is_virtual_function]

    def get_nv_switches(self) -> list[NvidiaPciDevice]:
        """`GetNVSwitches`. Lists all devices again, with the same warnings."""
        with wrapping(m.FAILED_TO_GET_ALL):
            devices = self.get_all_devices()
        return [device for device in devices if device.is_nvswitch]

    def get_gpu_by_pci_bus_id(self, address: str) -> NvidiaPciDevice | None:
        """`GetGPUByPciBusID`: despite its name any NVIDIA or Mellanox function, in this release."""
        return self.construct(address, None)

    def construct(self, address: str, cache: dict[str, NvidiaPciDevice] | None, depth: int = 0) -> NvidiaPciDevice | None:
        """`getGPUByPciBusID` (`getNvidiaDeviceByPciBusID` from v0.11.0): one function, None if it is of another vendor."""
        if depth > _DEEPEST:  # a physical function that is its own virtual function
            raise GoPanic(_STACK_OVERFLOW)
        if cache is not None and address in cache:
            return cache[address]
        path = join(SYS_DEVICES, address)
        vendor = self.read_number(path, address, "vendor", 16)
        if vendor not in {NVIDIA, MELLANOX}:
            return None
        class_ = self.read_number(path, address, "class", 32)
        device = self.read_number(path, address, "device", 16)
        self.after_ids(path, address)
        with wrapping(m.FAILED_TO_DETECT_DRIVER % address):
            driver = bound_driver(self.host, path)
        with wrapping(m.FAILED_TO_DETECT_IOMMU_GROUP % address):
            self.get_iommu_group(path)
        self.after_iommu_group(path, address)
        self.before_resources(path, address)
        self.read_resources(path, address)
        self.look_up_names(vendor, device, class_)
        is_virtual, is_physical = self.read_sriov_info(path, address, cache, depth)
        found = NvidiaPciDevice(path, address, class_, driver, is_virtual, is_physical)
        if cache is not None and is_physical:
            cache[address] = found
        return found

    # --- seams: what later releases insert or move --------------------------------------------------------------

    def after_ids(self, path: str, address: str) -> None:
        """What is read between the ids and the driver: nothing, in this release."""

    def after_iommu_group(self, path: str, address: str) -> None:
        """What is looked for after the IOMMU group: nothing, in this release."""

    def before_resources(self, path: str, address: str) -> None:
        """What is read before the memory regions: the NUMA node, in this release."""
        with wrapping(m.FAILED_TO_READ["numa_node"] % address):
            text = read_file(self.host, join(path, "numa_node"))
        try:
            parse_int(trim_space(text), 0, 64)
        except NumError as error:
            raise GoError(m.FAILED_TO_CONVERT_NUMA % error.value) from None

    # --- the parts of getGPUByPciBusID that have no function of their own upstream ------------------------------

    def read_number(self, path: str, address: str, field: str, bits: int) -> int:
        """One of the files `vendor`, `class` and `device`."""
        with wrapping(m.FAILED_TO_READ[field] % address):
            content = read_file(self.host, join(path, field))
        text = trim_space(content)
        try:
            return parse_uint(text, 0, bits)
        except NumError:
            raise GoError(m.FAILED_TO_CONVERT[field] % text) from None

    def read_resources(self, path: str, address: str) -> None:
        """The file `resource`: three columns a line, whatever is in them."""
        with wrapping(m.FAILED_TO_READ_RESOURCE % address):
            content = read_file(self.host, join(path, "resource"))
        for index, line in enumerate(trim_space(content).split("\n")):
            if len(line.split(" ")) != 3:
                raise GoError(m.BAD_RESOURCE_LINE % index)

    def look_up_names(self, vendor: int, device: int, class_: int) -> None:
        """The names of device and class, which only matter where the library has none."""
        if device not in DEVICES[vendor]:
            self.output.log("warning", m.NO_DEVICE_NAME % device)
        if class_ not in CLASSES:
            self.output.log("warning", m.NO_CLASS_NAME % class_)

    def read_sriov_info(self, path: str, address: str, cache: dict[str, NvidiaPciDevice] | None, depth: int) -> tuple[bool, bool]:
        """Is it a virtual function, and is it a physical one?"""
        link = join(path, "physfn")
        try:
            target = eval_symlinks(self.host, link)
        except GoError as error:
            if not is_not_exist(error):
                with wrapping(m.FAILED_TO_READ_PHYSFN % link):
                    raise
            with wrapping(m.FAILED_TO_READ_SRIOV % path):
                return False, self.get_sriov_info_for_physical_function(path)
        with wrapping(m.FAILED_TO_DETECT_PHYSFN % address):
            self.construct(base(target), cache, depth + 1)
        return True, False

    def get_sriov_info_for_physical_function(self, path: str) -> bool:
        """`getSriovInfoForPhysicalFunction`: has it virtual functions, or could it have some?"""
        if not self.is_sriov_device(path):
            return False
        self.read_sriov_number(path, "sriov_totalvfs", m.FAILED_TO_READ_TOTAL_VFS, m.FAILED_TO_CONVERT_TOTAL_VFS)
        self.read_sriov_number(path, "sriov_numvfs", m.FAILED_TO_READ_NUM_VFS, m.FAILED_TO_CONVERT_NUM_VFS)
        return True

    def is_sriov_device(self, path: str) -> bool:
        """Is there a file `sriov_totalvfs`, or is that unknown?"""
        try:
            stat(self.host, join(path, "sriov_totalvfs"))
        except GoError as error:
            return not is_not_exist(error)
        return True

    def read_sriov_number(self, path: str, field: str, unreadable: str, malformed: str) -> None:
        """One of the files `sriov_totalvfs` and `sriov_numvfs`, decimal."""
        with wrapping(unreadable):
            content = read_file(self.host, join(path, field))
        with wrapping(malformed):
            parse_uint(trim_space(content), 10, 16)

    def get_iommu_group(self, path: str) -> int:
        """`getIOMMUGroup`: -1 for none."""
        try:
            target = eval_symlinks(self.host, join(path, "iommu_group"))
        except GoError as error:
            if is_not_exist(error):
                return -1
            raise
        text = trim_space(base(target))
        try:
            return parse_int(text, 0, 64)
        except NumError:
            raise GoError(m.FAILED_TO_CONVERT_IOMMU_GROUP % text) from None


def _address_to_id(address: str) -> int:
    """`addressToID`: an address that is no number counts as 0, one that is too large as the largest."""
    try:
        return parse_uint(address.replace(":", "").replace(".", ""), 16, 64)
    except NumError as error:
        return error.value
