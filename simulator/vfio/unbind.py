"""The command `unbind`: upstream's cmd/vfio-manage/unbind.go.

Source: v0.10.0 to v0.12.0, where it is the same.
"""

from __future__ import annotations

from simulator.gocompat import GoError, wrapping
from simulator.ports import Output
from simulator.vfio import messages as m
from simulator.vfio.bind import Options
from simulator.vfio.nvpassthrough import NvPassthrough
from simulator.vfio.nvpci import NvPci


class UnbindCommand:
    """`unbindCommand`."""

    def __init__(self, options: Options, nvpci: NvPci, nvpassthrough: NvPassthrough, output: Output) -> None:
        self.options = options
        self.nvpci = nvpci
        self.nvpassthrough = nvpassthrough
        self.output = output

    def run(self) -> None:
        """`run`. Raises GoError."""
        if self.options.device_id:
            self.unbind_device()
        else:
            self.unbind_all()

    def unbind_all(self) -> None:
        """`unbindAll`: from any driver; a device that cannot be unbound is only warned about."""
        with wrapping(m.FAILED_TO_GET_GPUS):
            devices = self.nvpci.get_gpus()
        if self.options.nvswitches:
            with wrapping(m.FAILED_TO_GET_NVSWITCHES):
                devices = devices + self.nvpci.get_nv_switches()
        for device in devices:
            self.output.log("info", m.UNBINDING % device.address)
            try:
                self.nvpassthrough.unbind_from_driver(device)
            except GoError as error:
                self.output.log("warning", m.UNBIND_FAILED % (device.address, error))

    def unbind_device(self) -> None:
        """`unbindDevice`: a device of another kind is only mentioned, one that cannot be unbound is an error."""
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
        self.output.log("info", m.UNBINDING % address)
        with wrapping(m.FAILED_TO_UNBIND_FROM_DRIVER % address):
            self.nvpassthrough.unbind_from_driver(device)
