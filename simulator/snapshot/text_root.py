"""The output of the host script: a node's root as far as the script looked, as text; and what commands said there.

One record a line, its fields apart by tabs; the lines of a file or an answer follow it behind bars. An empty line after them says
that the last one has its newline.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Final

from simulator.host.spec import LOADERS
from simulator.importing.elf import ARCHITECTURES, MAGIC
from simulator.importing.roots import DIRECTORY, FILE, LINK, OTHER, Entry
from simulator.reading import InputError

_HEAD: Final = re.compile(r"#[ ]dmsim host (\d+)[ ]*$", re.MULTILINE)
_FORMAT: Final = "1"
_MODE: Final = re.compile(r"[-a-z]([-r][-w][-xsS])([-r][-w][-xsS])([-r][-w][-xtT])")
_FIELDS: Final = {"l": 2, "d": 1, "x": 1, "f": 2, "e": 4, "n": 1, "h": 4, "p": 2, "a": 1, "kernel": 1, "machine": 1, "uid": 1}
"""Record -> how many fields it has."""
_MOST: Final = 100_000
_DEEPEST: Final = 64
_LONGEST: Final = 4095
_EI_DATA, _BIG_ENDIAN = 5, 2


def host_script() -> str:
    """The script that a person runs on the node."""
    return resources.files("simulator.snapshot").joinpath("host_script.sh").read_text(encoding="utf-8")


def is_host_output(text: str) -> bool:
    """Is it what the script printed?"""
    return _HEAD.match(text) is not None


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that has a device file of a GPU open. `pod` is the pod's uid, "" if it is in none."""

    pid: str
    command: str
    pod: str
    file: str


class TextRoot:
    """A `Root`, and what else the script said."""

    def __init__(self, text: str, file: str) -> None:
        """Raises InputError."""
        self.skipped = Counter[str]()
        self.facts: dict[str, str] = {}
        """`uid`, `kernel`, `machine`."""
        self.notes: list[str] = []
        self.holders: list[Holder] = []
        self.packages: dict[str, str] = {}
        self.answer: tuple[str, int] | None = None
        """What nvidia-smi printed, and its exit code, if it was asked."""
        self.saw_processes = False
        self.is_whole = False
        self._entries: dict[str, Entry] = {"/": Entry(DIRECTORY)}
        self._children: dict[str, dict[str, None]] = {}
        self._texts: dict[str, bytes] = {}
        head = _HEAD.match(text)
        if head is None or head[1] != _FORMAT:
            raise InputError(file, "line 1", "is not of a form that this version reads", "run the script of this version again")
        for record, fields, lines in _records(text):
            self._take(record, fields, lines)
            if len(self._entries) > _MOST:
                raise InputError(file, "", f"tells of more than {_MOST} files", "run the script again")

    # --- a root -----------------------------------------------------------------------------------------------------

    def look(self, path: str) -> Entry | None:
        """What is at a path."""
        return self._entries.get(path)

    def names(self, path: str) -> list[str]:
        """The names in a directory."""
        return sorted(self._children.get(path, ()))

    def read(self, path: str, size: int, offset: int = 0) -> bytes:
        """At most so many bytes."""
        return self._texts.get(path, b"")[offset : offset + size]

    # --- records ----------------------------------------------------------------------------------------------------

    def _take(self, record: str, fields: list[str], lines: list[str]) -> None:
        if record == "end":
            self.is_whole = True
        elif record == "open":
            self.saw_processes = True
        if len(fields) < _FIELDS.get(record, len(fields) + 1):
            return  # nothing that the script writes
        match record:
            case "l":
                self._add(fields[0], Entry(LINK, 0o777, target=fields[1]))
            case "d":
                self._add(fields[0], Entry(DIRECTORY))
            case "x":
                self._add(fields[0], Entry(OTHER))
            case "f":
                text = "\n".join(lines).encode("utf-8", "replace")
                self._add(fields[0], Entry(FILE, _mode(fields[1]), len(text)), text)
            case "e":
                binary = _binary(fields[2], says_nvml=fields[3] == "nvml")
                self._add(fields[0], Entry(FILE, _mode(fields[1]), len(binary)), binary)
            case "h":
                self.holders.append(Holder(*fields[:4]))
            case "p":
                self.packages[fields[0]] = fields[1]
            case "n":
                self.notes.append(fields[0])
            case "a":
                code = fields[0]
                self.answer = ("\n".join(lines).removesuffix("\n"), int(code) if re.fullmatch(r"\d{1,3}", code) else 1)
            case _:
                self.facts[record] = fields[0]

    def _add(self, path: str, entry: Entry, text: bytes = b"") -> None:
        parts = path.split("/")
        if not path.startswith("/") or len(path) > _LONGEST or len(parts) > _DEEPEST or not {"", ".", ".."}.isdisjoint(parts[1:]):
            self.skipped["with a name that lies in no root"] += 1
            return
        above = ""
        for part in parts[1:-1]:
            self._children.setdefault(above or "/", {})[part] = None
            above = f"{above}/{part}"
            if self._entries.setdefault(above, Entry(DIRECTORY)).kind != DIRECTORY:
                self.skipped["below what is no directory"] += 1
                return
        before = self._entries.get(path)
        if before is not None and before.kind != entry.kind:
            return
        self._children.setdefault(above or "/", {})[parts[-1]] = None
        self._entries[path] = entry
        if text or path not in self._texts:
            self._texts[path] = text


def _records(text: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Each record: its name, its fields, the lines that follow it."""
    record, fields, lines = "", [""], []
    for line in text.split("\n"):
        if line.startswith("|"):
            lines.append(line[1:])
        elif not line and lines:
            lines.append("")
        elif line and not line.startswith("#"):
            if record:
                yield record, fields, lines
            record, *fields = line.split("\t")
            lines = []
    if record:
        yield record, fields, lines


def _mode(text: str) -> int:
    """Permission bits as `ls -l` shows them."""
    match = _MODE.match(text)
    if match is None:
        return 0o644
    return int(
        "".join(str(sum(4 >> at for at, char in enumerate(three) if char.islower() and char != "-")) for three in match.groups()), 8
    )


def _binary(head: str, *, says_nvml: bool) -> bytes:
    """A binary that says of itself what the script saw of the real one: machine, usual loader, whether it opens NVML."""
    try:
        ident = bytes.fromhex(head)
    except ValueError:
        ident = b""
    if len(ident) < 20:
        return MAGIC
    order = ">" if ident[_EI_DATA] == _BIG_ENDIAN else "<"
    (machine,) = struct.unpack(f"{order}H", ident[18:20])
    loader = LOADERS.get(ARCHITECTURES.get(machine, ""), "").encode()
    interp = loader + b"\0" if loader else b""
    header = MAGIC + b"\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56, 1 if interp else 0, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 3, 4, 120, 0, 0, len(interp), len(interp), 0) if interp else b""
    return header + segment + interp + (b"libnvidia-ml.so\0" if says_nvml else b"")
