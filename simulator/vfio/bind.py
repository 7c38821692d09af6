"""The commands `bind` and `unbind`: upstream's cmd/vfio-manage/bind.go and unbind.go.

Source: v0.10.0 to v0.12.0, where they are the same. The two files differ in the act and its words only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from simulator.gocompat import GoError, wrapping
from simulator.ports import Output
from simulator.vfio import messages as m
from simulator.vfio.nvpassthrough import NvPassthrough
from simulator.vfio.nvpci import NvidiaPciDevice, NvPci


@dataclass(frozen=True, slots=True)
class Options:
    """`bindOptions` and `unbindOptions`. `nvswitches` is the flag --bind-nvswitches or --unbind-nvswitches."""

    all_devices: bool
    device_id: str
    nvswitches: bool
    host_root: str = ""


class DeviceCommand:
    """What `bindCommand` and `unbindCommand` have in common: all but the act and its words. Methods are named after bind's."""

    doing: ClassVar[str]
    could_not: ClassVar[str]
    failed: ClassVar[str]

    def __init__(self, options: Options, nvpci: NvPci, nvpassthrough: NvPassthrough, output: Output) -> None:
        self.options = options
        self.nvpci = nvpci
        self.nvpassthrough = nvpassthrough
        self.output = output

    def act(self, device: NvidiaPciDevice) -> None:
        """Bind or unbind one device. Raises GoError."""
        raise NotImplementedError

    def run(self) -> None:
        """`run`. Raises GoError."""
        if self.options.device_id:
            self.one_device()
        else:
            self.all_devices()

    def all_devices(self) -> None:
        """`bindAll`, `unbindAll`: a device with which it fails is only warned about."""
        with wrapping(m.FAILED_TO_GET_GPUS):
            devices = self.nvpci.get_gpus()
        if self.options.nvswitches:
            with wrapping(m.FAILED_TO_GET_NVSWITCHES):
                devices = devices + self.nvpci.get_nv_switches()
        for device in devices:
            self.output.log("info", self.doing % device.address)
            try:
                self.act(device)
            except GoError as error:
                self.output.log("warning", self.could_not % (device.address, error))

    def one_device(self) -> None:
        """`bindDevice`, `unbindDevice`: a device of another kind is only mentioned, one with which it fails is an error."""
        address = self.options.device_id
        with wrapping(m.FAILED_TO_GET_DEVICE):
            device = self.nvpci.get_gpu_by_pci_bus_id(address)
        if device is None:
            self.output.log("info", m.NOT_NVIDIA % address)
            return
        if device.is_nvswitch and not self.options.nvswitches:
            self.output.log("info", m.SKIPPING_NVSWITCH % address)
            return
        if not device.is_gpu and not device.is_nvswitch:
            self.output.log("info", m.NEITHER_GPU_NOR_NVSWITCH % address)
            return
        self.output.log("info", self.doing % address)
        with wrapping(self.failed % address):
            self.act(device)


class BindCommand(DeviceCommand):
    """`bindCommand`."""

    doing = m.BINDING
    could_not = m.BIND_FAILED
    failed = m.FAILED_TO_BIND_TO_VFIO

    def act(self, device: NvidiaPciDevice) -> None:
        """`BindToVFIODriver`."""
        self.nvpassthrough.bind_to_vfio_driver(device)


class UnbindCommand(DeviceCommand):
    """`unbindCommand`: from any driver."""

    doing = m.UNBINDING
    could_not = m.UNBIND_FAILED
    failed = m.FAILED_TO_UNBIND_FROM_DRIVER

    def act(self, device: NvidiaPciDevice) -> None:
        """`UnbindFromDriver`."""
        self.nvpassthrough.unbind_from_driver(device)
