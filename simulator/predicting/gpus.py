"""The driver of each GPU: before, after driver-manager, and after what its pod does then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from simulator.host.spec import HostSpec, Module, PciFunction
from simulator.predicting.answers import GpuAnswer, GpusAnswer, Path
from simulator.predicting.modes import Mode
from simulator.predicting.reading import seconds
from simulator.predicting.run import Run
from simulator.runners.vfio import host_world, make_host, run_step, vfio_flow
from simulator.trace import LogLine, StderrText
from simulator.vfio.messages import NO_DEVICE_NAME
from simulator.world import followed_by

VFIO_DRIVERS: Final = ("vfio-pci", "nvgrace_gpu_vfio_pci")
"""What the operator's validator takes for a GPU that is ready to be handed out."""
_BRIDGE: Final = "0x0604"
"""PCI to PCI. Its driver leaves DMA to others (Linux drivers/pci/pcie/portdrv.c, `driver_managed_dma`)."""
_VFIO_MODULE: Final = "vfio_pci"
_OWN: Final = {
    Mode.CONTAINER: "no driver, so that the driver container can install its own",
    Mode.VM_PASSTHROUGH: "vfio-pci, once vfio-manager's own container has bound it",
    Mode.VM_VGPU: "no driver, so that the vGPU manager can install its own",
}
_MADE_UP: Final = PciFunction("", "").device
"""The device id of a GPU that nobody looked at."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What vfio-manager's own container left: the drivers by PCI address, its exit code, its warnings."""

    drivers: Mapping[str, str] = field(default_factory=dict)
    exit_code: int | None = None
    warnings: tuple[str, ...] = ()


def bind(run: Run) -> Bound | None:
    """`vfio-manage bind --all` on the host as driver-manager left it, where that comes next; None where it does not."""
    if run.mode is not Mode.VM_PASSTHROUGH or run.outcome.exit_code != 0:
        return None
    host = followed_by(run.world, run.outcome).host
    resolved = vfio_flow(run.release)
    if resolved.is_script:
        host = _with_vfio(host)
    world = host_world(host, ("bind", "--all"), {})
    outcome = run_step(resolved, make_host(world), world.steps[0])
    said = [event.message.strip() for event in outcome.events if isinstance(event, LogLine) and event.level != "info"]
    if not run.sight.is_host_seen:  # what is missed in a list of known devices is an id that is made up
        said = [text for text in said if text != (NO_DEVICE_NAME % int(_MADE_UP, 16)).strip()]
    said += [line for event in outcome.events if isinstance(event, StderrText) for line in event.text.splitlines()]
    return Bound({address: binding.driver for address, binding in outcome.after.devices.items()}, outcome.exit_code, tuple(said))


def _with_vfio(host: HostSpec) -> HostSpec:
    """Up to v0.9.1 vfio-manager ran the operator's copy of the script, which loads vfio-pci first."""
    if any(module.name == _VFIO_MODULE for module in host.modules):
        return host
    return replace(host, modules=(*host.modules, Module(_VFIO_MODULE)))


def gpus_answer(run: Run, bound: Bound | None) -> GpusAnswer:
    """Every NVIDIA display function."""
    before, after = run.outcome.before.gpu_drivers, run.outcome.after.gpu_drivers
    drivers = (
        {function.address: function.driver for function in run.world.host.pci}
        | dict(after)
        | (dict(bound.drivers) if bound else {})
    )
    unbound = next((seconds(child.at) for child in run.outcome.children if child.argv[0] == "vfio-manage"), None)
    gpus = []
    for address, driver in sorted(before.items()):
        group, members = _group(run.world.host, address)
        left = after.get(address, "")
        viable = not any(blocks_group(function, drivers[function.address]) for function in members)
        gpus.append(
            GpuAnswer(
                address=address,
                before=driver,
                after=left,
                final=drivers.get(address, ""),
                iommu_group=group,
                taken_at=unbound if driver in VFIO_DRIVERS and left not in VFIO_DRIVERS else None,
                peers={function.address: drivers[function.address] for function in members if function.address != address},
                group_is_viable=viable,
            )
        )
    return GpusAnswer(_wanted(run), tuple(gpus), bound.warnings if bound else ())


def _wanted(run: Run) -> str:
    """What the GPUs are to be on for what the run is for."""
    if run.path is Path.KEPT_DRIVER:
        return "the driver that is loaded, which is the desired one and stays"
    if run.path is Path.HOST_DRIVER:
        return f"{_OWN[run.mode].partition(',')[0]}; but the run gives way to the host's driver and touches none"
    return _OWN[run.mode]


def blocks_group(function: PciFunction, driver: str) -> bool:
    """Does a function that is on this driver ("" for none) keep its IOMMU group from being given to a VM?"""
    return driver not in {"", *VFIO_DRIVERS} and not function.class_.startswith(_BRIDGE)


def _group(host: HostSpec, address: str) -> tuple[int | None, list[PciFunction]]:
    """A function's IOMMU group, and who is in it; itself alone where the world does not say."""
    group = next((function.iommu_group for function in host.pci if function.address == address), None)
    return group, [
        function for function in host.pci if function.address == address or (group is not None and function.iommu_group == group)
    ]
