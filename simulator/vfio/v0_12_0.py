"""What v0.12.0 changed (2026-08-19): go-nvlib v0.12.0 in place of v0.10.0."""

from __future__ import annotations

from typing import Final

from simulator.gocompat import GoError, trim_space, wrapping
from simulator.ports import VfioHost
from simulator.vfio import messages as m
from simulator.vfio.change import Change
from simulator.vfio.files import is_not_exist, join, read_file
from simulator.vfio.numbers import parse_int, parse_uint
from simulator.vfio.nvpci import NvPci


def read_pci_field_string(host: VfioHost, path: str, field: str) -> str:
    """`readPCIFieldString`. Raises GoError."""
    with wrapping(m.FAILED_TO_READ_FIELD % (field, path)):
        return trim_space(read_file(host, join(path, field)))


def read_pci_field(host: VfioHost, path: str, field: str, bits: int) -> int:
    """`readPCIField`. Raises GoError."""
    text = read_pci_field_string(host, path, field)
    with wrapping(m.FAILED_TO_PARSE_FIELD % (field, path)):
        return parse_uint(text, 0, bits)


class _ReadsSubsystemIds(NvPci):
    def after_ids(self, path: str, address: str) -> None:
        super().after_ids(path, address)
        for field in ("subsystem_vendor", "subsystem_device"):
            try:
                read_pci_field(self.host, path, field, 16)
            except GoError as error:
                if not is_not_exist(error):
                    raise
                self.output.log("warning", m.SUBSYSTEM_FILE_MISSING % (field, address))


class _ReadsFieldsOneWay(NvPci):
    def read_number(self, path: str, address: str, field: str, bits: int) -> int:  # noqa: ARG002  # upstream's text lost the address
        return read_pci_field(self.host, path, field, bits)

    def after_ids(self, path: str, address: str) -> None:
        text = read_pci_field_string(self.host, path, "numa_node")
        with wrapping(m.FAILED_TO_PARSE_FIELD % ("numa_node", path)):
            parse_int(text, 0, 64)
        super().after_ids(path, address)

    def before_resources(self, path: str, address: str) -> None:
        pass

    def read_sriov_number(self, path: str, field: str, unreadable: str, malformed: str) -> None:  # noqa: ARG002  # one text for all
        read_pci_field(self.host, path, field, 16)


CHANGES: Final = (
    Change(
        name="subsystem-ids-read",
        upstream="go-nvlib pull request #90, driver-manager pull request #209",
        summary="The files subsystem_vendor and subsystem_device are read: missing ones are warned about, malformed ones fatal.",
        notice="A warning for functions without these files.",
        nvpci=_ReadsSubsystemIds,
    ),
    Change(
        name="pci-fields-read-one-way",
        upstream="go-nvlib pull request #101, driver-manager pull request #209",
        summary=(
            "All numbers of a function are read by one function with one wording; the NUMA node comes before the driver, and"
            " the SR-IOV counts may be hexadecimal."
        ),
        notice="Other words where a PCI function is malformed.",
        nvpci=_ReadsFieldsOneWay,
    ),
)
