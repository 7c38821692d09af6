"""What an ELF file says of how it is started: its machine, its interpreter, the libraries it needs.

Source: System V ABI, chapters 4 and 5; Linux fs/binfmt_elf.c. Every number in the file is mistrusted.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

MAGIC: Final = b"\x7fELF"
ARCHITECTURES: Final = {62: "x86_64", 183: "aarch64", 21: "ppc64le", 3: "i386"}
"""The machine's number -> its name, as `uname -m` has it; i386 stands for all 32-bit x86."""
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB, _DT_STRSZ, _DT_RPATH, _DT_RUNPATH = 1, 5, 10, 15, 29
_MOST_SEGMENTS: Final = 512
_MOST_ENTRIES: Final = 4096
_LONGEST_TABLE: Final = 1 << 20
_LONGEST_PATH: Final = 4096


class BrokenElf(Exception):
    """It starts as an ELF file, and the rest is missing or makes no sense."""


@dataclass(frozen=True, slots=True)
class Elf:
    """An executable or a library. `interpreter` is None for a static program; `search` are its own library paths."""

    machine: int
    interpreter: str | None = None
    needed: tuple[str, ...] = ()
    search: tuple[str, ...] = ()

    @property
    def architecture(self) -> str:
        """As `uname -m` has it, "" if unknown here."""
        return ARCHITECTURES.get(self.machine, "")


Read = Callable[[int, int], bytes]
"""So many bytes of the file, from an offset; fewer at its end."""


def read_elf(read: Read) -> Elf | None:
    """The file's account of itself; None if it is no ELF file. Raises BrokenElf."""
    ident = read(16, 0)
    if not ident.startswith(MAGIC):
        return None
    if len(ident) < 16 or ident[4] not in {1, 2} or ident[5] not in {1, 2}:
        raise BrokenElf
    order, wide = "<>"[ident[5] - 1], ident[4] == 2
    header = _unpacked(read, 16, f"{order}HHI{'QQQ' if wide else 'III'}IHHH")
    machine, segments_at, size, count = header[1], header[4], header[8], header[9]
    segments = []
    for index in range(min(count, _MOST_SEGMENTS)):
        fields = _unpacked(read, segments_at + index * size, f"{order}{'IIQQQQ' if wide else 'IIIII'}")
        kind, *rest = fields
        offset, address, _, length = rest[1:5] if wide else rest[:4]
        segments.append((kind, offset, address, length))
    interpreter = None
    for kind, offset, _, length in segments:
        if kind == _PT_INTERP:
            interpreter = _text(_exactly(read, min(length, _LONGEST_PATH), offset))
    dynamic = [(offset, length) for kind, offset, _, length in segments if kind == _PT_DYNAMIC]
    if not dynamic:
        return Elf(machine, interpreter)
    loads = [(offset, address, length) for kind, offset, address, length in segments if kind == _PT_LOAD]
    tags = [*_tags(read, *dynamic[0], f"{order}{'qQ' if wide else 'iI'}")]
    table = _table(read, dict(reversed(tags)), loads)

    def texts(*wanted: int) -> Iterator[str]:
        for tag, value in tags:
            if tag in wanted:
                yield _text(table[value : value + _LONGEST_PATH])

    search = [*texts(_DT_RUNPATH)] or [*texts(_DT_RPATH)]
    return Elf(machine, interpreter, tuple(texts(_DT_NEEDED)), tuple(part for text in search for part in text.split(":") if part))


def _tags(read: Read, offset: int, length: int, form: str) -> Iterator[tuple[int, int]]:
    """The entries of the dynamic section."""
    size = struct.calcsize(form)
    for index in range(min(length // size, _MOST_ENTRIES)):
        tag, value = _unpacked(read, offset + index * size, form)
        if tag == 0:
            return
        yield tag, value


def _table(read: Read, tags: dict[int, int], loads: list[tuple[int, int, int]]) -> bytes:
    """The table of texts that the dynamic section refers to."""
    address = tags.get(_DT_STRTAB, 0)
    for offset, start, length in loads:
        if start <= address < start + length:
            return read(min(tags.get(_DT_STRSZ, 0), _LONGEST_TABLE), offset + address - start)
    return b""


def _unpacked(read: Read, offset: int, form: str) -> tuple[int, ...]:
    return struct.unpack(form, _exactly(read, struct.calcsize(form), offset))


def _exactly(read: Read, size: int, offset: int) -> bytes:
    data = read(size, offset)
    if len(data) < size:
        raise BrokenElf
    return data


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("utf-8", "surrogateescape")
