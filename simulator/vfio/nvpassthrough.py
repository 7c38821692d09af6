"""Binding to a vfio driver and unbinding from any: upstream's internal/nvpassthrough/nvpassthrough.go.

Source: v0.10.0 to v0.12.0, where it is the same.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from simulator.gocompat import GoError, exit_status, quote, trim_space, wrapping
from simulator.ports import Output, VfioHost
from simulator.vfio import messages as m
from simulator.vfio.files import (
    SYS_DEVICES,
    SYS_DRIVERS,
    base,
    bound_driver,
    exists,
    is_not_exist,
    join,
    read_dir,
    read_file,
    read_link,
    stat,
    write_file,
)
from simulator.vfio.modalias import find_best_match, get_vfio_aliases, parse_mod_alias_string
from simulator.vfio.nvpci import VGA_CONTROLLER, NvidiaPciDevice

_VFIO_PCI: Final = "vfio-pci"
_CONSUMER: Final = "consumer"
_CONSUMER_PREFIX: Final = "consumer:pci:"
_LIB_MODULES: Final = "/lib/modules/"


class AuxiliaryDevice(NamedTuple):
    """`nvidiaPCIAuxDevice`: a function that a GPU in graphics mode brings along."""

    path: str
    address: str
    driver: str

    def __str__(self) -> str:
        """As Go prints a pointer to it."""
        return f"&{{{self.path} {self.address} {self.driver}}}"


class NvPassthrough:
    """`nvpassthrough`. What upstream lets return an error raises GoError."""

    def __init__(self, host: VfioHost, output: Output, host_root: str = "") -> None:
        self.host = host
        self.output = output
        self.host_root = host_root or "/"

    def find_best_vfio_variant(self, device: NvidiaPciDevice) -> str:
        """`FindBestVFIOVariant`: the module whose alias fits the device best, `vfio-pci` if none fits."""
        with wrapping(m.FAILED_TO_READ_MODALIAS % device.address):
            content = read_file(self.host, join(device.path, "modalias"))
        text = trim_space(content)
        with wrapping(m.FAILED_TO_PARSE_MODALIAS % (quote(text), quote(device.address))):
            mod_alias = parse_mod_alias_string(text)
        path = join(_LIB_MODULES, self.host.kernel_release(), "modules.alias")
        with wrapping(m.FAILED_TO_READ_ALIASES % path):
            aliases = get_vfio_aliases(read_file(self.host, path))
        return find_best_match(mod_alias, aliases) or _VFIO_PCI

    def bind_to_vfio_driver(self, device: NvidiaPciDevice) -> None:
        """`BindToVFIODriver`: find the driver, load it, move the device, then its auxiliary device."""
        with wrapping(m.FAILED_TO_FIND_VARIANT):
            driver = self.find_best_vfio_variant(device)
        with wrapping(m.FAILED_TO_LOAD % quote(driver)):
            self.load(driver)
        if not exists(self.host, join(SYS_DRIVERS, driver)):
            dashed = driver.replace("_", "-")
            if not exists(self.host, join(SYS_DRIVERS, dashed)):
                raise GoError(m.FAILED_TO_FIND_DIRECTORY % (driver, SYS_DRIVERS))
            driver = dashed
        self.output.log("info", m.BINDING_TO_DRIVER % (device.address, driver))
        if device.driver != driver:
            with wrapping(m.FAILED_TO_UNBIND_DEVICE % device.address):
                self.unbind(device.address)
            with wrapping(m.FAILED_TO_BIND_DEVICE % (device.address, driver)):
                self.bind(device.address, driver)
        with wrapping(m.FAILED_TO_GET_AUXILIARY % device.address):
            auxiliary = self.get_graphics_aux_dev(device)
        if auxiliary is None or auxiliary.driver == driver:
            return
        self.output.log("info", m.BINDING_AUXILIARY % (auxiliary.address, driver))
        with wrapping(m.FAILED_TO_UNBIND_AUXILIARY % auxiliary.address):
            self.unbind(auxiliary.address)
        with wrapping(m.FAILED_TO_BIND_AUXILIARY % (auxiliary, driver)):
            self.bind(auxiliary.address, driver)

    def unbind_from_driver(self, device: NvidiaPciDevice) -> None:
        """`UnbindFromDriver`: take the device from whatever driver it has, then its auxiliary device."""
        with wrapping(m.FAILED_TO_UNBIND_DEVICE % device.address):
            self.unbind(device.address)
        with wrapping(m.FAILED_TO_GET_AUXILIARY % device.address):
            auxiliary = self.get_graphics_aux_dev(device)
        if auxiliary is not None:
            with wrapping(m.FAILED_TO_UNBIND_AUXILIARY % auxiliary.address):
                self.unbind(auxiliary.address)

    def load(self, module: str) -> None:
        """`KernelModules.Load` of internal/linuxutils/kmod.go: `chroot <host root> modprobe <module>`."""
        result = self.host.run(("chroot", self.host_root, "modprobe", module))
        if result.exit_code != 0:
            raise GoError(exit_status(result.exit_code))

    def bind(self, device: str, driver: str) -> None:
        """`bind`."""
        with wrapping(m.FAILED_TO_SET_OVERRIDE % device):
            write_file(self.host, join(SYS_DEVICES, device, "driver_override"), driver)
        with wrapping(m.FAILED_TO_BIND % (device, driver)):
            write_file(self.host, join(SYS_DRIVERS, driver, "bind"), device)

    def unbind(self, device: str) -> None:
        """`unbind`: the override goes first, whether or not there is a driver."""
        with wrapping(m.FAILED_TO_CLEAR_OVERRIDE % device):
            write_file(self.host, join(SYS_DEVICES, device, "driver_override"), "\n")
        driver_path = join(SYS_DEVICES, device, "driver")
        try:
            stat(self.host, driver_path)
        except GoError as error:
            if is_not_exist(error):
                return
        with wrapping(m.FAILED_TO_READ_DRIVER_LINK % device):
            driver = base(read_link(self.host, driver_path))
        with wrapping(m.FAILED_TO_UNBIND % (device, driver)):
            write_file(self.host, join(driver_path, "unbind"), device)

    def get_graphics_aux_dev(self, device: NvidiaPciDevice) -> AuxiliaryDevice | None:
        """`getGraphicsAuxDev`: the first consumer of a VGA controller that is on the bus."""
        if device.class_ != VGA_CONTROLLER:
            return None
        for name in read_dir(self.host, device.path):
            if not name.startswith(_CONSUMER):
                continue
            parts = name.split(_CONSUMER_PREFIX)
            if len(parts) != 2 or not parts[1]:
                continue
            address = parts[1]
            path = join(SYS_DEVICES, address)
            if not exists(self.host, path):
                continue
            with wrapping(m.FAILED_TO_GET_AUXILIARY_DRIVER % address):
                return AuxiliaryDevice(path, address, bound_driver(self.host, path))
        return None
