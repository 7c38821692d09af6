"""What `lspci -nn` prints of a machine, with or without `-k` and `-v`, as PCI functions.

Ids have to be there (`-nn`). Drivers are where `-k` was given; without it every NVIDIA display function is taken to be on
vfio-pci. IOMMU groups are where `-v` was given; without it the functions of one slot are taken to share one, as a card's
GPU, audio and USB functions do; a virtual function has one to itself.

Source: pciutils lspci.c (show_terse, show_verbose), ls-kernel.c.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from simulator.host.spec import NVIDIA, PciFunction
from simulator.kubevirt.devices import is_virtual
from simulator.node.plugin.v1_4_0 import VFIO_PCI
from simulator.reading import InputError, read_text

_FUNCTION: Final = re.compile(r"(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (?P<rest>\S.*)")
_IDS: Final = re.compile(r".*?\[(?P<class>[0-9a-f]{4})\]: .*\[(?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})\]")
_DRIVER: Final = re.compile(r"\s+Kernel driver in use: (\S+)")
_GROUP: Final = re.compile(r"\s+(?:Flags: .*, )?IOMMU group:? (\d+)")
_DETAIL: Final = re.compile(r"\s+(Subsystem|Kernel|Flags|Control|Memory|Capabilities|DeviceName)\b")
_MEND: Final = "save what `lspci -nnk` prints on the node"


@dataclass(frozen=True, slots=True)
class Listing:
    """The functions, and what had to be assumed of them."""

    functions: tuple[PciFunction, ...]
    assumed: tuple[str, ...]


def read_lspci(path: Path) -> Listing:
    """A file of lspci's output. Raises InputError: no ids, no function."""
    name = str(path)
    functions: list[PciFunction] = []
    has_drivers = has_groups = False
    for number, line in enumerate(read_text(path).splitlines(), 1):
        where = f"line {number}"
        if match := _FUNCTION.fullmatch(line.rstrip()):
            functions.append(_function(name, where, match))
        elif match := _DRIVER.match(line):
            has_drivers = True
            _last(functions, name, where, driver=match[1])
        elif match := _GROUP.match(line):
            has_groups = True
            _last(functions, name, where, iommu_group=int(match[1]))
        elif line and not line[0].isspace():
            raise InputError(name, where, "is no line of lspci", _MEND)
        elif _DETAIL.match(line):
            has_drivers = has_drivers or line.lstrip().startswith("Kernel modules:")
    if not functions:
        raise InputError(name, "", "lists no PCI function", _MEND)
    twice = next((one.address for index, one in enumerate(functions) if one.address in {o.address for o in functions[:index]}), "")
    if twice:
        raise InputError(name, "", f"lists {twice} twice", "save the output of one node")
    return _completed(functions, has_drivers=has_drivers, has_groups=has_groups)


def _function(name: str, where: str, match: re.Match[str]) -> PciFunction:
    ids = _IDS.match(match["rest"])
    if ids is None:
        raise InputError(name, where, f'says nothing of the ids of "{match["address"]}"', _MEND)
    address = match["address"]
    if address.count(":") == 1:
        address = f"0000:{address}"
    return PciFunction(address, f"0x{ids['vendor']}", f"0x{ids['device']}", f"0x{ids['class']}00")


def _last(functions: list[PciFunction], name: str, where: str, **found: str | int) -> None:
    """Say something of the function whose lines these are. Raises InputError if there is none."""
    if not functions:
        raise InputError(name, where, "belongs to no PCI function", _MEND)
    functions[-1] = replace(functions[-1], **found)  # type: ignore[arg-type]  # each is what its field is


def _completed(functions: list[PciFunction], *, has_drivers: bool, has_groups: bool) -> Listing:
    assumed = []
    if not has_drivers:
        assumed.append("NVIDIA's GPUs, and what is in their slots, are on vfio-pci: lspci was run without -k")
        slots = {_slot(one.address) for one in functions if one.is_gpu}
        functions = [
            replace(one, driver=VFIO_PCI) if one.vendor == NVIDIA and _slot(one.address) in slots else one for one in functions
        ]
    if not has_groups:
        assumed.append("the functions of one slot are one IOMMU group: lspci was run without -v")
        keys = [one.address if is_virtual(one, functions) else _slot(one.address) for one in functions]
        groups = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        functions = [replace(one, iommu_group=groups[key]) for one, key in zip(functions, keys, strict=True)]
    return Listing(tuple(functions), tuple(assumed))


def _slot(address: str) -> str:
    """An address without its function."""
    return address.partition(".")[0]
