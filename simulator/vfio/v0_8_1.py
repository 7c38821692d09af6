"""What the script of v0.8.1 does that that of v0.6.2 did not (2025-09-03)."""

from __future__ import annotations

from typing import Final

from simulator.vfio.change import Change
from simulator.vfio.files import SYS_DEVICES
from simulator.vfio.script import NONE, Script

_VGA_CONTROLLER: Final = "0x030000"
_CONTROLLER_3D: Final = "0x030200"
_CONSUMER: Final = "consumer"
_CONSUMER_PREFIX: Final = "consumer:pci:"


class _GpusOnly(Script):
    def is_nvidia_gpu_device(self, gpu: str) -> bool:
        """`is_nvidia_gpu_device`: by class alone."""
        return self.cat(self.readlink_f(f"{SYS_DEVICES}/{gpu}/class")) in {_CONTROLLER_3D, _VGA_CONTROLLER}


class _AuxiliaryFollows(Script):
    def get_graphics_aux_dev(self, gpu: str) -> str:
        """`get_graphics_aux_dev`: with several consumers the text has several lines, which name no device."""
        if self.cat(self.readlink_f(f"{SYS_DEVICES}/{gpu}/class")) != _VGA_CONTROLLER:
            return NONE
        consumers = [name for name in self.ls(f"{SYS_DEVICES}/{gpu}") if _CONSUMER in name]
        fields = [name.split(_CONSUMER_PREFIX) for name in consumers]
        auxiliary = "\n".join(field[1] if len(field) > 1 else "" for field in fields).rstrip("\n")
        if auxiliary and self.is_listable(f"{SYS_DEVICES}/{auxiliary}/"):
            return auxiliary
        return NONE


CHANGES: Final = (
    Change(
        name="gpus-only",
        upstream="first in v0.6.5",
        summary="vfio-manage looks at the PCI class: only display controllers are bound and unbound.",
        notice="A GPU's audio and USB functions keep their drivers.",
        script=_GpusOnly,
    ),
    Change(
        name="auxiliary-function-follows",
        upstream="first in v0.6.9",
        summary="The first consumer of a GPU in graphics mode, mostly its audio function, goes where the GPU goes.",
        notice="A VGA controller can be given to a virtual machine together with its audio function.",
        script=_AuxiliaryFollows,
    ),
)
