"""The PCI bus of the fake host: functions, drivers, and what writing to their files in sysfs does.

The state is here; the tree shows it. `bind`, `unbind` and `driver_override` answer as Linux does: a name that is not on
the bus, or does not fit, is ENODEV, a function that has a driver already is EBUSY. A description may make writes fail,
and let things happen meanwhile. Leaves out what a driver's own probe may say (no IOMMU), and `new_id`.

Source: Linux drivers/base/bus.c (bind_store, unbind_store), drivers/base/driver.c (driver_set_override),
drivers/pci/pci-driver.c (pci_match_device), drivers/pci/quirks.c (quirk_gpu_hda and its neighbours), fs/kernfs/file.c.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from pyfakefs.fake_file import FakeDirectory, FakeFile

from simulator.gocompat import errno_name, errno_number
from simulator.host.nodes import Link
from simulator.host.sysfs import ControlFile, SysfsDirectory, SysfsFile, make_directory
from simulator.host.tree import Tree, failure
from simulator.ports import IoFailure

PCI_DEVICES: Final = "/sys/bus/pci/devices"
PCI_DRIVERS: Final = "/sys/bus/pci/drivers"
_IOMMU_GROUPS: Final = "/sys/kernel/iommu_groups"
CONTROL_FILES: Final = ("bind", "unbind", "new_id", "remove_id")
_OVERRIDE: Final = "driver_override"
_PAGE: Final = 4096

FileText: TypeAlias = "str | int"
"""A file's text, or the errno of reading it."""


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A PCI function as sysfs shows it. `driver` is "" for none; a driver that does not exist is a link to nowhere."""

    files: Mapping[str, FileText]
    driver: str = ""
    override: str | None = None
    has_override: bool = True
    """Is there a file `driver_override`?"""
    iommu_group: str | None = None
    consumers: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    """Further directories in it."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Name -> the address of another function: `physfn`, `virtfn0`."""
    vfio_dev: str = ""
    """What `vfio-dev` holds while the driver is a vfio driver."""


@dataclass(frozen=True, slots=True)
class Attach:
    """Somebody binds a function to a driver."""

    address: str
    driver: str


@dataclass(frozen=True, slots=True)
class RemoveDevice:
    """A function goes away."""

    address: str


@dataclass(frozen=True, slots=True)
class RemoveDriver:
    """A driver goes away; its functions are bound to none."""

    name: str


@dataclass(frozen=True, slots=True)
class SetFiles:
    """Files of a function get another text; None: they go away."""

    address: str
    files: Mapping[str, FileText | None]


BusChange: TypeAlias = "Attach | RemoveDevice | RemoveDriver | SetFiles"


@dataclass(frozen=True, slots=True)
class WriteFault:
    """What meets writes to a file: the first `skip` pass, the next `times` (None: all) fail with `error`.

    `text` None meets any text; `on_open` meets the opening instead. Without an `error` the write has its effect, and only
    `then` happens.
    """

    path: str
    text: str | None = None
    on_open: bool = False
    skip: int = 0
    times: int | None = None
    error: str | None = None
    then: tuple[BusChange, ...] = ()


@dataclass(slots=True)
class _Device:
    spec: DeviceSpec
    directory: SysfsDirectory
    files: dict[str, FileText]
    override: str | None


@dataclass(slots=True)
class _Driver:
    directory: SysfsDirectory
    files: tuple[str, ...]
    ids: frozenset[str]


class PciBus:
    """The bus of one host. `on_write` hears of each write: canonical path, text (None: not even opened), result."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.bound: dict[str, str] = {}
        """Address -> driver, "" for none."""
        self.faults: Sequence[WriteFault] = ()
        self.on_write: Callable[[str, str | None, str], None] = lambda _path, _text, _result: None
        self._met: dict[int, int] = {}
        self._devices: dict[str, _Device] = {}
        self._drivers: dict[str, _Driver] = {}

    # --- functions and drivers ----------------------------------------------------------------------------------

    def add_device(self, address: str, spec: DeviceSpec) -> None:
        """A function appears. What the tree has at its place already is kept and goes first."""
        parent = make_directory(self.tree, PCI_DEVICES)
        before = parent.entries.get(address)
        kept = list(before.entries.values()) if isinstance(before, FakeDirectory) else []
        directory = SysfsDirectory(address, lambda: [*self._entries(address), *kept])
        self._devices[address] = _Device(spec, directory, dict(spec.files), spec.override)
        parent.add_entry(directory)
        self.bound[address] = ""
        if spec.iommu_group is not None:
            make_directory(self.tree, f"{_IOMMU_GROUPS}/{spec.iommu_group}")
        if spec.driver:
            self.bind(address, spec.driver)

    def remove_device(self, address: str) -> None:
        """A function goes away, and its driver's link with it."""
        if address in self._devices:
            self.unbind(address)
            del self._devices[address], self.bound[address]
            self._take(PCI_DEVICES, address)

    def add_driver(self, name: str, files: Sequence[str] = CONTROL_FILES, ids: Sequence[str] = ()) -> list[str]:
        """A driver appears, unless it is there, and takes what is free and fits: the addresses."""
        if name in self._drivers:
            return []
        directory = SysfsDirectory(name, lambda: self._driver_entries(name))
        self._drivers[name] = _Driver(directory, tuple(files), frozenset(ids))
        make_directory(self.tree, PCI_DRIVERS).add_entry(directory)
        taken = [address for address in sorted(self._devices) if not self.bound[address] and self.fits(address, name)]
        for address in taken:
            self.bind(address, name)
        return taken

    def remove_driver(self, name: str) -> None:
        """A driver goes away; its functions are bound to none."""
        for address, driver in self.bound.items():
            if driver == name:
                self.unbind(address)
        if self._drivers.pop(name, None) is not None:
            self._take(PCI_DRIVERS, name)

    def drivers(self) -> list[str]:
        """The drivers, sorted."""
        return sorted(self._drivers)

    def overrides(self) -> dict[str, str | None]:
        """Address -> what driver_override says, None for nothing."""
        return {address: device.override for address, device in self._devices.items()}

    def fits(self, address: str, driver: str) -> bool:
        """`pci_match_device`: an override decides alone, else the driver's ids do."""
        device = self._devices[address]
        if device.override:
            return device.override == driver
        vendor, number = (str(device.files.get(name, "")).strip().removeprefix("0x") for name in ("vendor", "device"))
        return driver in self._drivers and f"{vendor}:{number}" in self._drivers[driver].ids

    def bind(self, address: str, driver: str) -> None:
        """Bind a function to a driver, whatever it was bound to: links both ways, as in sysfs."""
        self.unbind(address)
        self.bound[address] = driver
        directory = self._devices[address].directory
        if directory.is_filled:
            for node in self._bound_entries(address):
                directory.add_entry(node)
        known = self._drivers.get(driver)
        if known is not None and known.directory.is_filled:
            known.directory.add_entry(Link(address, f"{PCI_DEVICES}/{address}"))

    def unbind(self, address: str) -> None:
        """Take a function from its driver, if it has one."""
        driver = self.bound.get(address, "")
        if not driver:
            return
        directory = self._devices[address].directory
        if directory.is_filled:
            for node in self._bound_entries(address):
                directory.entries.pop(str(node.name), None)
        self.bound[address] = ""
        known = self._drivers.get(driver)
        if known is not None:
            known.directory.entries.pop(address, None)

    def apply(self, change: BusChange) -> None:
        """Something happens by itself."""
        match change:
            case Attach() if change.address in self._devices:
                self.bind(change.address, change.driver)
            case RemoveDevice():
                self.remove_device(change.address)
            case RemoveDriver():
                self.remove_driver(change.name)
            case SetFiles() if change.address in self._devices:
                self._set_files(change)
            case _:
                pass  # the function is gone already

    def _set_files(self, change: SetFiles) -> None:
        device = self._devices[change.address]
        entries = device.directory.entries
        for name, text in change.files.items():
            if text is None:
                device.files.pop(name, None)
                entries.pop(name, None)
            else:
                device.files[name] = text
                device.directory.add_entry(_file(name, text))

    # --- what the tree shows ------------------------------------------------------------------------------------

    def _take(self, path: str, name: str) -> None:
        parent = self.tree.directory(path)
        if parent is not None:
            parent.entries.pop(name, None)

    def _entries(self, address: str) -> Iterator[FakeFile]:
        device = self._devices[address]
        spec = device.spec
        for name, text in device.files.items():
            yield _file(name, text)
        for name in (*(f"consumer:pci:{consumer}" for consumer in spec.consumers), *spec.entries):
            yield SysfsDirectory(name)
        for name, other in spec.links.items():
            yield Link(name, f"{PCI_DEVICES}/{other}")
        if spec.iommu_group is not None:
            yield Link("iommu_group", f"{_IOMMU_GROUPS}/{spec.iommu_group}")
        if spec.has_override:
            path = f"{PCI_DEVICES}/{address}/{_OVERRIDE}"
            yield ControlFile(_OVERRIDE, address, path, lambda: f"{device.override or '(null)'}\n")
        yield from self._bound_entries(address)

    def _bound_entries(self, address: str) -> Iterator[FakeFile]:
        """What a function's directory has for being bound."""
        driver, name = self.bound[address], self._devices[address].spec.vfio_dev
        if driver:
            yield Link("driver", f"{PCI_DRIVERS}/{driver}")
        if name and "vfio" in driver:
            yield SysfsDirectory("vfio-dev", lambda: [SysfsDirectory(name)])

    def _driver_entries(self, name: str) -> Iterator[FakeFile]:
        for file in self._drivers[name].files:
            yield ControlFile(file, name, f"{PCI_DRIVERS}/{name}/{file}")
        for address, driver in self.bound.items():
            if driver == name:
                yield Link(address, f"{PCI_DEVICES}/{address}")

    # --- writing ------------------------------------------------------------------------------------------------

    def write(self, path: str, text: str) -> None:
        """Open a file for writing and write to it. Raises OSError; IoFailure if it could be opened."""
        try:
            node = self.tree.find(path)
        except FileNotFoundError:
            self.tree.parent(path)
            raise failure(errno.EACCES, path) from None  # sysfs lets nobody create a file
        if isinstance(node, FakeDirectory):
            raise failure(errno.EISDIR, path)
        if not isinstance(node, ControlFile):
            raise failure(errno.EACCES, path)
        opened = self._next_fault(node.sysfs_path, None)
        if opened is not None and opened.error:
            self._end(node, None, opened.error, opened)
            raise failure(_number(opened.error), path)
        for change in opened.then if opened is not None else ():
            self.apply(change)
        fault = self._next_fault(node.sysfs_path, text)
        number = _number(fault.error) if fault is not None and fault.error else self._effect(node, text)
        self._end(node, text, errno_name(number) if number else "ok", fault)
        if number:
            raise IoFailure(number, errno_name(number), path)

    def _next_fault(self, path: str, text: str | None) -> WriteFault | None:
        """The fault that meets this write (or, without a text, this opening)."""
        for index, fault in enumerate(self.faults):
            if fault.path != path or fault.on_open != (text is None):
                continue
            if text is not None and fault.text is not None and fault.text != text.strip():
                continue
            met = self._met.get(index, 0)
            self._met[index] = met + 1
            if met >= fault.skip and (fault.times is None or met < fault.skip + fault.times):
                return fault
        return None

    def _end(self, node: ControlFile, text: str | None, result: str, fault: WriteFault | None) -> None:
        self.on_write(node.sysfs_path, text, result)
        for change in fault.then if fault is not None else ():
            self.apply(change)

    def _effect(self, node: ControlFile, text: str) -> int:
        """What the kernel does with the text: 0 or an errno."""
        if node.owner not in (self._devices if node.name == _OVERRIDE else self._drivers):
            return errno.ENODEV  # gone since it was opened
        if node.name == _OVERRIDE:
            if len(text.encode("utf-8", "surrogateescape")) >= _PAGE - 1:
                return errno.EINVAL
            self._devices[node.owner].override = text.partition("\n")[0] or None
            return 0
        address = text.removesuffix("\n")
        if node.name == "unbind":
            if self.bound.get(address) != node.owner:
                return errno.ENODEV
            self.unbind(address)
        elif node.name == "bind":
            if address not in self._devices or not self.fits(address, node.owner):
                return errno.ENODEV
            if self.bound[address]:
                return errno.EBUSY
            self.bind(address, node.owner)
        return 0


def _file(name: str, text: FileText) -> SysfsFile:
    return SysfsFile(name, "", failure=text) if isinstance(text, int) else SysfsFile(name, text)


def _number(name: str) -> int:
    number = errno_number(name)
    assert number is not None, name
    return number


def device_specs(functions: Sequence[Any], *, shows_vfio_dev: bool) -> Iterator[tuple[str, DeviceSpec]]:
    """A described host's functions as sysfs shows them. `shows_vfio_dev`: is the kernel new enough for `vfio-dev`?

    A function's attributes go before what is made up for it. Audio, USB and UCSI functions of a GPU are its consumers.
    """
    for index, function in enumerate(functions):
        slot = function.address.rpartition(".")[0]
        is_gpu = function.address.endswith(".0") and function.class_.startswith("0x03")
        consumers = tuple(
            other.address
            for other in functions
            if is_gpu
            and other.address.startswith(f"{slot}.")
            and other.vendor == function.vendor
            and other.class_[:6] in {"0x0403", "0x0c03", "0x0c80"}
        )
        attributes = dict(function.attributes)
        override = attributes.pop(_OVERRIDE, "").strip()
        yield (
            function.address,
            DeviceSpec(
                files={**_made_up(function.vendor, function.device, function.class_), **attributes},
                override=None if override in {"", "(null)"} else override,
                iommu_group=None if function.iommu_group is None else str(function.iommu_group),
                consumers=consumers,
                vfio_dev=f"vfio{index}" if shows_vfio_dev else "",
            ),
        )


def _made_up(vendor: str, device: str, class_: str) -> dict[str, str]:
    """The files every function has."""
    vendor_id, device_id, class_id = (text.removeprefix("0x").upper() for text in (vendor, device, class_))
    ids = f"v0000{vendor_id}d0000{device_id}sv0000{vendor_id}sd00000000"
    return {
        "vendor": f"{vendor}\n",
        "device": f"{device}\n",
        "class": f"{class_}\n",
        "subsystem_vendor": f"{vendor}\n",
        "subsystem_device": "0x0000\n",
        "numa_node": "-1\n",
        "resource": "0x0000000000000000 0x0000000000000000 0x0000000000000000\n" * 13,
        "modalias": f"pci:{ids}bc{class_id[:2]}sc{class_id[2:4]}i{class_id[4:6]}\n",
    }
