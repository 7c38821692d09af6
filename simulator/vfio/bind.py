"""The command `bind`: upstream's cmd/vfio-manage/bind.go.

Source: v0.10.0 to v0.12.0, where it is the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulator.gocompat import GoError, wrapping
from simulator.ports import Output
from simulator.vfio import messages as m
from simulator.vfio.nvpassthrough import NvPassthrough
from simulator.vfio.nvpci import NvPci


@dataclass(frozen=True, slots=True)
class Options:
    """`bindOptions` and `unbindOptions`. `nvswitches` is the flag --bind-nvswitches or --unbind-nvswitches."""

    all_devices: bool
    device_id: str
    nvswitches: bool
    host_root: str = ""


class BindCommand:
    """`bindCommand`."""

    def __init__(self, options: Options, nvpci: NvPci, nvpassthrough: NvPassthrough, output: Output) -> None:
        self.options = options
        self.nvpci = nvpci
        self.nvpassthrough = nvpassthrough
        self.output = output

    def run(self) -> None:
        """`run`. Raises GoError."""
        if self.options.device_id:
            self.bind_device()
        else:
            self.bind_all()

    def bind_all(self) -> None:
        """`bindAll`: a device that cannot be bound is only warned about."""
        with wrapping(m.FAILED_TO_GET_GPUS):
            devices = self.nvpci.get_gpus()
        if self.options.nvswitches:
            with wrapping(m.FAILED_TO_GET_NVSWITCHES):
                devices = devices + self.nvpci.get_nv_switches()
        for device in devices:
            self.output.log("info", m.BINDING % device.address)
            try:
                self.nvpassthrough.bind_to_vfio_driver(device)
            except GoError as error:
                self.output.log("warning", m.BIND_FAILED % (device.address, error))

    def bind_device(self) -> None:
        """`bindDevice`: a device of another kind is only mentioned, one that cannot be bound is an error."""
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
        self.output.log("info", m.BINDING % address)
        with wrapping(m.FAILED_TO_BIND_TO_VFIO % address):
            self.nvpassthrough.bind_to_vfio_driver(device)
