"""The files of a bundle: of a folder, an archive (tar, also compressed; zip) or a single file. Only looked at.

Whoever made a bundle may be hostile. A folder and a tar archive are read as `importing.roots` and `importing.archive` read
roots: no link is followed, only regular files are opened, and there is a limit to whatever could be blown up. What is passed
over is told.
"""

from __future__ import annotations

import codecs
import lzma
import os
import stat
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from simulator.importing.archive import Limits, TarRoot, decompressed
from simulator.importing.roots import DIRECTORY, FILE, DirectoryRoot, Root
from simulator.reading import InputError, printable

_LARGEST: Final = 24 << 20
"""Bytes of one file that is read. As text it may take four times as much memory."""
_LARGEST_SUM: Final = 48 << 20
_MOST: Final = 20_000
_DEEPEST: Final = 16
_LONGEST: Final = 3.0
"""Seconds for an archive to be unpacked."""
_ARCHIVE: Final = Limits(members=_MOST, archive=512 << 20, seconds=_LONGEST, file=_LARGEST)
_TAR_MAGIC_AT, _TAR_MAGIC = 257, b"ustar"
_ZIP_MAGIC: Final = b"PK\x03\x04"
_ZIP_ENTRY, _ZIP_BLOCK = b"PK\x01\x02", 1 << 20
"""How an entry of a zip archive's directory begins; so much is looked at together."""
_TEXTS: Final = (".yaml", ".yml", ".json", ".log", ".txt", ".labels", ".descr", ".out")
"""How the names of files that are of use usually end; many have no ending. They are read first, the others if they are texts."""
_START: Final = 4096
"""Bytes by which a text is known."""


@dataclass(frozen=True, slots=True)
class Files:
    """Name (relative, in parts joined by "/") -> bytes, sorted by name; and what was passed over, as sentences."""

    files: dict[str, bytes]
    skipped: tuple[str, ...] = ()


def read_files(path: Path) -> Files:
    """The files that may be of use. Raises InputError."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise InputError(str(path), "", "does not exist", "check the path") from None
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        raise InputError(str(path), "", f"cannot be looked at: {problem}", "check the path and its permissions") from None
    if stat.S_ISDIR(mode):
        with closing(DirectoryRoot(path)) as root:
            return _collect(root, str(path))
    if not stat.S_ISREG(mode):
        raise InputError(str(path), "", "is neither a folder nor a regular file", "name a folder, an archive or a file")
    try:
        with path.open("rb") as file:
            return _from_file(file, path)
    except OSError as error:
        raise InputError(str(path), "", f"cannot be read: {error.strerror}", "check the file and its permissions") from None


def _from_file(file: IO[bytes], path: Path) -> Files:
    """The files of an archive, or the one file that it is otherwise."""
    head = file.read(_TAR_MAGIC_AT + len(_TAR_MAGIC))
    file.seek(0)
    if head.startswith(_ZIP_MAGIC):
        return _unzipped(file, str(path))
    unpacked = decompressed(file)
    if unpacked is None and head[_TAR_MAGIC_AT:] != _TAR_MAGIC:
        data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise InputError(str(path), "", f"is larger than {_LARGEST >> 20} MiB", "save less: the objects of one node")
        return Files({path.name: data})
    with tempfile.TemporaryFile() as spool:
        try:
            root = TarRoot(str(path), file, limits=_ARCHIVE) if unpacked is None else TarRoot(str(path), unpacked, spool, _ARCHIVE)
        except InputError as error:
            mend = error.mend if "TMPDIR" in error.mend else "make the archive again, of what was saved"
            raise InputError(error.file, error.place, error.problem, mend) from None
        return _collect(root, str(path))


def _unzipped(file: IO[bytes], name: str) -> Files:
    """The files of a zip archive. Whatever its directory claims, no more than so many bytes are unpacked."""
    files: dict[str, bytes] = {}
    skipped: list[str] = []
    left, until = _LARGEST_SUM, time.monotonic() + _LONGEST
    _limit_directory(file, name)
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            for member in sorted(members, key=lambda member: (not is_usual(member.filename), member.filename)):
                parts = member.filename.split("/")
                if member.is_dir():
                    continue
                if stat.S_IFMT(member.external_attr >> 16) not in {0, stat.S_IFREG} or ".." in parts or not parts[0]:
                    skipped.append(f"{member.filename[:200]}: no regular file of the bundle")
                    continue
                if time.monotonic() > until:
                    raise InputError(name, "", f"takes longer than {_LONGEST:g} seconds to read", "name a smaller one")
                with archive.open(member) as text:
                    start = text.read(_START)
                    if not is_usual(member.filename) and not _is_text(start):
                        continue
                    data = start + text.read(max(min(left, _LARGEST) + 1 - len(start), 0))
                if len(data) > min(left, _LARGEST):
                    skipped.append(f"{member.filename[:200]}: too large to be read")
                    continue
                left -= len(data)
                files[member.filename] = data
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
        ValueError,
        EOFError,
        OSError,  # what bzip2 says of damage
        lzma.LZMAError,
        zlib.error,
    ) as error:
        raise InputError(
            name, "", f"is a damaged zip archive, or one of a form that is not read: {error}", "make it again"
        ) from None
    return Files(dict(sorted(files.items())), tuple(skipped))


def _limit_directory(file: IO[bytes], name: str) -> None:
    """`zipfile` reads the whole directory at once, however large it is: it is looked at before. Raises InputError."""
    size = file.seek(0, os.SEEK_END)
    if size > _ARCHIVE.archive:
        raise InputError(name, "", f"is larger than {_ARCHIVE.archive >> 20} MiB", "name an archive that holds the bundle alone")
    file.seek(0)
    entries, end = 0, b""
    while block := file.read(_ZIP_BLOCK):
        seen = end + block
        entries += seen.count(_ZIP_ENTRY)
        if entries > _MOST:
            raise InputError(name, "", f"has more than {_MOST} members", "name an archive that holds the bundle alone")
        end = seen[1 - len(_ZIP_ENTRY) :]
    file.seek(0)


def _collect(root: Root, name: str) -> Files:
    files: dict[str, bytes] = {}
    skipped: list[str] = []
    total = 0
    for path, size in sorted(_walk(root, name), key=lambda found: not is_usual(found[0])):
        shown = printable(path.lstrip("/"))
        if not is_usual(path) and not _is_text(root.read(path, _START)):
            continue
        if size > _LARGEST or total + size > _LARGEST_SUM:
            skipped.append(f"{shown}: too large to be read")
            continue
        total += size
        files[path.lstrip("/")] = root.read(path, _LARGEST)
    skipped += [f"{count} {'entry' if count == 1 else 'entries'} {reason}" for reason, count in sorted(root.skipped.items())]
    return Files(dict(sorted(files.items())), tuple(skipped))


def _walk(root: Root, name: str) -> Iterator[tuple[str, int]]:
    """The regular files below a root, sorted: path and size."""
    todo, met = [("", 0)], 0
    while todo:
        directory, depth = todo.pop()
        below = []
        for child in root.names(directory or "/"):
            met += 1
            if met > _MOST:
                raise InputError(name, "", f"holds more than {_MOST} entries", "name a folder that holds the bundle alone")
            path = f"{directory}/{child}"
            entry = root.look(path)
            if entry is not None and entry.kind == DIRECTORY and depth < _DEEPEST:
                below.append((path, depth + 1))
            elif entry is not None and entry.kind == FILE:
                yield path, entry.size
            elif entry is not None:
                root.skipped["that are links, devices or too deep"] += 1
        todo += reversed(below)


def is_usual(path: str) -> bool:
    """Is this how the files are named that are of use?"""
    name = path.rpartition("/")[2]
    return "." not in name or name.endswith(_TEXTS)


def _is_text(start: bytes) -> bool:
    """Does a text begin like this, in UTF-8 or in PowerShell's UTF-16?"""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(start[:_START])
    except UnicodeDecodeError:
        return False
    return "\0" not in text
