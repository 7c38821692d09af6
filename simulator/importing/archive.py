"""Root directories in tar archives, as `docker export` and `tar -C ROOT -c .` make them.

An archive is read once from front to end and indexed in memory; nothing of it is unpacked. Members that could lie in no root
(`..`, absolute names, hard links to nothing) are skipped and counted. There is a limit to whatever a forged archive could
blow up: members, their headers, the whole length once decompressed, the time it takes.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import os
import tarfile
import time
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Final, cast

from simulator.importing.roots import DIRECTORY, FILE, LINK, OTHER, Entry
from simulator.reading import InputError

_LONGEST_NAME: Final = 255
_LONGEST_PATH: Final = 4095
_WHITEOUT: Final = ".wh."
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of an archive is taken in."""

    members: int = 1_000_000
    archive: int = 1 << 36
    """Bytes, unpacked."""
    seconds: float = 600
    file: int = 64 << 20
    """Bytes of a file that is looked into; a larger one is only known to be there."""
    header: int = 1 << 20
    """Bytes of one member's headers."""


@dataclass(slots=True)
class _Node:
    entry: Entry
    offset: int = -1
    """Where its text starts in the file that is read from; negative: it is not to be had."""
    children: dict[str, _Node] = field(default_factory=dict)


class TarRoot:
    """The tar archive of a root, read once from front to end. Without `spool` the archive itself can be sought in."""

    def __init__(self, name: str, archive: IO[bytes], spool: IO[bytes] | None = None, limits: Limits = Limits()) -> None:
        self.skipped = Counter[str]()
        self._top = _Node(Entry(DIRECTORY))
        self._name = name
        self._limits = limits
        self._texts = archive if spool is None else spool
        self._index(_Forward(name, archive, limits, can_seek=spool is None), spool)

    def look(self, path: str) -> Entry | None:
        """What is at a path."""
        node = self._node(path)
        return node.entry if node else None

    def names(self, path: str) -> list[str]:
        """The names in a directory."""
        node = self._node(path)
        return sorted(node.children) if node else []

    def read(self, path: str, size: int, offset: int = 0) -> bytes:
        """At most so many bytes."""
        node = self._node(path)
        if node is None or node.offset < 0 or offset >= node.entry.size:
            return b""
        self._texts.seek(node.offset + offset)
        return self._texts.read(min(size, node.entry.size - offset))

    def _node(self, path: str) -> _Node | None:
        node: _Node | None = self._top
        for part in path.strip("/").split("/"):
            node = node if not part else node.children.get(part) if node else None
        return node

    def _index(self, reader: _Forward, spool: IO[bytes] | None) -> None:
        try:
            archive = tarfile.TarFile(fileobj=reader, mode="r", encoding="utf-8", errors="surrogateescape")  # type: ignore[arg-type]  # what it reads by
            count = 0
            while (member := self._next(archive, reader)) is not None:
                archive.members.clear()  # type: ignore[attr-defined]  # it keeps them all
                count += 1
                if count > self._limits.members:
                    raise InputError(self._name, "", f"has more than {self._limits.members} members", "leave out what is no host")
                self._add(member, reader, spool)
            if reader.ended_well and spool is not None:
                reader.finish()
        except (tarfile.TarError, ValueError, OverflowError, EOFError, lzma.LZMAError, zlib.error, OSError) as error:
            if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
                raise InputError(self._name, "", "does not fit into the temporary folder", "set TMPDIR to a larger one") from None
            raise InputError(self._name, "", f"is no tar archive, or a damaged one: {error}", "name a tar file of a root") from None
        if not reader.ended_well:
            raise InputError(self._name, f"byte {reader.tell()}", "is damaged: no member and no end is there", "make it again")
        if {"manifest.json"} < set(self._top.children) and not {"bin", "etc", "usr"} & set(self._top.children):
            mend = "`docker load` it and name the image, or use `docker export`"
            raise InputError(self._name, "", "is an archive of images' layers, not of a root", mend)

    @staticmethod
    def _next(archive: tarfile.TarFile, reader: _Forward) -> tarfile.TarInfo | None:
        reader.start_header()
        return archive.next()

    def _add(self, member: tarfile.TarInfo, reader: _Forward, spool: IO[bytes] | None) -> None:
        parts = _parts(member.name)
        if parts is None:
            self.skipped["with a name that lies in no root"] += 1
            return
        if not parts:
            return
        if parts[-1].startswith(_WHITEOUT):
            self.skipped["whiteouts: that is a layer, not a whole root"] += 1
            return
        node = self._made(member, reader, spool)
        if node is None:
            return
        above = self._top
        for part in parts[:-1]:
            above = above.children.setdefault(part, _Node(Entry(DIRECTORY)))
            if above.entry.kind != DIRECTORY:
                self.skipped["below what is no directory"] += 1
                return
        before = above.children.get(parts[-1])
        if before is not None:
            if before.entry.kind == DIRECTORY == node.entry.kind:
                before.entry = node.entry
                return
            self.skipped["that a later one replaces"] += 1
        above.children[parts[-1]] = node

    def _made(self, member: tarfile.TarInfo, reader: _Forward, spool: IO[bytes] | None) -> _Node | None:
        mode = member.mode & 0o7777
        if member.isdir():
            return _Node(Entry(DIRECTORY, mode))
        if member.issym():
            return _Node(Entry(LINK, 0o777, target=member.linkname))
        if member.islnk():
            parts = _parts(member.linkname)
            same = self._node("/" + "/".join(parts)) if parts else None
            if same is None or same.entry.kind == DIRECTORY:
                self.skipped["hard links to nothing in the root"] += 1
                return None
            return same
        if not member.isreg():
            return _Node(Entry(OTHER, mode))
        node = _Node(Entry(FILE, mode, member.size))
        if member.issparse() or member.size > self._limits.file:
            self.skipped["too large or sparse, so not looked into"] += 1
        elif spool is None:
            node.offset = member.offset_data
        else:
            node.offset = spool.seek(0, os.SEEK_END)
            reader.copy(member.size, spool)
        return node


def _parts(name: str) -> list[str] | None:
    """A member's name in parts, None if it could lie in no root."""
    if name.startswith("/") or "\0" in name or len(os.fsencode(name)) > _LONGEST_PATH:
        return None
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if ".." in parts or any(len(os.fsencode(part)) > _LONGEST_NAME for part in parts):
        return None
    return parts


class _Forward:
    """A file that is read from front to end only, within limits. What `tarfile` needs of one."""

    def __init__(self, name: str, source: IO[bytes], limits: Limits, *, can_seek: bool) -> None:
        self._name, self._source, self._limits, self._can_seek = name, source, limits, can_seek
        self._position = 0
        self._left = limits.header
        self._until = time.monotonic() + limits.seconds
        self._last = b""

    @property
    def ended_well(self) -> bool:
        """Did reading end at a block of zeros, or at the file's end?"""
        return not self._last.strip(b"\0")

    def start_header(self) -> None:
        """The next member's headers are about to be read."""
        self._left = self._limits.header

    def tell(self) -> int:
        """How far it was read."""
        return self._position

    def seek(self, position: int) -> int:
        """Go forward."""
        if position < self._position:
            raise InputError(self._name, f"byte {self._position}", "has a member of negative size", "such an archive is forged")
        if self._can_seek:
            self._check(position)
            self._source.seek(position)
            self._position = position
        while self._position < position and self._take(min(position - self._position, _CHUNK)):
            pass
        return self._position

    def read(self, size: int) -> bytes:
        """So many bytes, fewer at the end."""
        self._left -= size
        if self._left < 0:
            raise InputError(
                self._name, f"byte {self._position}", "has a member with too large a header", "such an archive is forged"
            )
        self._last = b"".join(iter(self._whole(size), b""))
        return self._last

    def _whole(self, size: int) -> Callable[[], bytes]:
        end = self._position + size
        return lambda: self._take(min(end - self._position, _CHUNK)) if end > self._position else b""

    def copy(self, size: int, to: IO[bytes]) -> None:
        """Copy so many bytes. Raises EOFError if there are not so many."""
        end = self._position + size
        while self._position < end:
            piece = self._take(min(end - self._position, _CHUNK))
            if not piece:
                raise EOFError("it ends within a member")
            to.write(piece)

    def finish(self) -> None:
        """Read what follows the archive: only then is the checksum of a compressed one held against it. Raises what is wrong."""
        while self._take(_CHUNK):
            pass

    def _take(self, size: int) -> bytes:
        self._check(self._position + size)
        piece = self._source.read(size)
        self._position += len(piece)
        return piece

    def _check(self, position: int) -> None:
        if position > self._limits.archive:
            raise InputError(self._name, "", f"is larger than {self._limits.archive >> 30} GiB", "leave out what is no host")
        if time.monotonic() > self._until:
            raise InputError(
                self._name, "", f"takes longer than {self._limits.seconds:g} seconds to read", "leave out what is no host"
            )


def decompressed(file: IO[bytes]) -> IO[bytes] | None:
    """The archive in a compressed file, to be read forward; None if the file is not compressed."""
    start = file.read(6)
    file.seek(0)
    if start.startswith(b"\x1f\x8b"):
        return cast("IO[bytes]", gzip.open(file))
    if start.startswith(b"\xfd7zXZ\0"):
        return lzma.open(file)
    return bz2.open(file) if start.startswith(b"BZh") else None
