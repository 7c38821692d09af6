"""nvidia-validator's component vfio-pci: is every GPU of a node for passthrough on a vfio driver? And its status files.

It looks once and fails: WITH_WAIT, for which the other components wait, is not looked at here. The first GPU on another
driver is named, in the order of addresses; a node without GPUs is valid.

Source: NVIDIA/gpu-operator cmd/nvidia-validator/main.go, v26.3.1 and v26.7.0 (the same), v25.10.1 (vfio-pci alone).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from simulator.gocompat import GoError
from simulator.host.tree import Tree
from simulator.ports import Output, VfioHost
from simulator.vfio.nvpci import NvPci

STATUS_FILES: Final = "/run/nvidia/validations"
WORKLOAD_TYPE: Final = "workload-type"
VFIO_READY: Final = "vfio-pci-ready"
DRIVER_READY: Final = "driver-ready"
VM_PASSTHROUGH: Final = "vm-passthrough"
WORKLOAD_CONFIGS: Final = ("container", VM_PASSTHROUGH, "vm-vgpu")
WORKLOAD_CONFIG_LABEL: Final = "nvidia.com/gpu.workload.config"

CONFIGURATION: Final = "GPU workload configuration: %s"
NOT_REQUIRED: Final = "vfio-pci not required on the node. Skipping validation."
NOT_BOUND: Final = "device not bound to 'vfio-pci'; device: %s driver: '%s'"
SUCCESS: Final = "Validation completed successfully - all devices are bound to vfio-pci"
FAILED: Final = "Error: error validating vfio-pci driver installation: %s"
"""Printed at level info, by way of logrus' Printf."""


class StatusFiles:
    """The files by which the operands of a node tell one another how far they are."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def write(self, name: str, text: str = "") -> None:
        """A file is there, with this text."""
        self._tree.write(f"{STATUS_FILES}/{name}", text)

    def remove(self, name: str) -> None:
        """It is gone, if it was there."""
        self._tree.remove_tree(f"{STATUS_FILES}/{name}")

    def clear(self) -> None:
        """All are gone."""
        self._tree.remove_tree(STATUS_FILES)

    def has(self, name: str) -> bool:
        """Is it there?"""
        return self._tree.exists(f"{STATUS_FILES}/{name}")

    def read(self, name: str) -> str:
        """Its text, "" if it is not there."""
        return self._tree.read(f"{STATUS_FILES}/{name}") if self.has(name) else ""


class Drivers(NamedTuple):
    """Which drivers count as bound, by the chart."""

    names: frozenset[str]

    @classmethod
    def of_chart(cls, version: tuple[int, int]) -> Drivers:
        """Grace's own vfio driver since v26.3."""
        return cls(frozenset({"vfio-pci", *(("nvgrace_gpu_vfio_pci",) if version >= (26, 3) else ())}))


def validate_vfio_pci(host: VfioHost, nvpci: type[NvPci], config: str, drivers: Drivers, files: StatusFiles, output: Output) -> int:
    """One run, for a workload configuration; returns the exit code."""

    def say(text: str) -> None:
        output.log("info", text)

    say(CONFIGURATION % config)
    files.write(WORKLOAD_TYPE, f"{config}\n")
    if config != VM_PASSTHROUGH:
        say(NOT_REQUIRED)
        return 0
    files.remove(VFIO_READY)
    problem = _problem(lambda: nvpci(host, output), drivers)
    if problem:
        say(FAILED % problem)
        return 1
    say(SUCCESS)
    files.write(VFIO_READY)
    return 0


def _problem(nvpci: Callable[[], NvPci], drivers: Drivers) -> str:
    try:
        gpus = nvpci().get_gpus()
    except GoError as error:
        return str(error)
    return next((NOT_BOUND % (gpu.address, gpu.driver) for gpu in gpus if gpu.driver not in drivers.names), "")
