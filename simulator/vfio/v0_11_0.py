"""What v0.11.0 changed (2026-05-19): go-nvlib v0.10.0 in place of v0.8.1."""

from __future__ import annotations

from typing import Final

from simulator.gocompat import GoError
from simulator.vfio import messages as m
from simulator.vfio.change import Change
from simulator.vfio.files import join, read_dir
from simulator.vfio.nvpci import NvidiaPciDevice, NvPci


class _FindsOnlyGpus(NvPci):
    def get_gpu_by_pci_bus_id(self, address: str) -> NvidiaPciDevice | None:
        device = super().get_gpu_by_pci_bus_id(address)
        return device if device is not None and device.is_gpu else None


class _LooksForIommuFd(NvPci):
    def after_iommu_group(self, path: str, address: str) -> None:
        try:
            self.get_iommu_fd(path)
        except GoError as error:
            self.output.log("warning", m.FAILED_TO_DETECT_IOMMU_FD % (address, error))

    def get_iommu_fd(self, path: str) -> str:
        """`getIOMMUFD`: the first directory `vfio...` in `vfio-dev`. Raises GoError."""
        directory = join(path, "vfio-dev")
        for name in read_dir(self.host, directory):
            if self.host.is_directory(join(directory, name)) and name.startswith("vfio"):
                return name
        raise GoError(m.NO_IOMMU_FD)


CHANGES: Final = (
    Change(
        name="device-id-finds-only-gpus",
        upstream="go-nvlib pull request #82",
        summary="`--device-id` of a function that is no GPU finds nothing, so that NVSwitches cannot be named one by one.",
        notice="`--device-id` of an NVSwitch logs `is not an NVIDIA device` and exits 0, also with --bind-nvswitches.",
        action="Bind NVSwitches with `--all --bind-nvswitches`.",
        nvpci=_FindsOnlyGpus,
    ),
    Change(
        name="iommufd-looked-for",
        upstream="go-nvlib pull request #76, driver-manager pull request #168",
        summary="Each NVIDIA and Mellanox function without a usable directory `vfio-dev` is warned about.",
        notice="A warning `unable to detect IOMMU FD` for each function that is not bound to a vfio driver; it means nothing.",
        nvpci=_LooksForIommuFd,
    ),
)
