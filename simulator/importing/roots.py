"""Root directories of machines, only looked at. Here: a directory of this machine's. `archive` has the others.

Whoever made a root may be hostile. A link is read, never followed by the system: `resolve` follows it inside the root, as a
process in a chroot would. Only regular files are opened, and only as much of one is read as is asked for.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from simulator.reading import InputError

FILE: Final = "file"
DIRECTORY: Final = "directory"
LINK: Final = "link"
OTHER: Final = "other"
"""A device, a fifo, a socket: known to be there, never opened."""
_MOST_LINKS: Final = 40
_MOST_NAMES: Final = 100_000


@dataclass(frozen=True, slots=True)
class Entry:
    """What is at a path. `mode` are permission bits, `target` is a link's."""

    kind: str
    mode: int = 0o755
    size: int = 0
    target: str = ""

    @property
    def is_executable(self) -> bool:
        """May root execute it?"""
        return self.kind == FILE and bool(self.mode & 0o111)


class Root(Protocol):
    """A root directory. Paths are absolute and canonical: no link, no `..` in them, but the last part may be a link."""

    @property
    def skipped(self) -> Counter[str]:
        """What was passed over, by reason, and how often."""

    def look(self, path: str) -> Entry | None:
        """What is at a path, None if nothing is or it cannot be reached."""

    def names(self, path: str) -> list[str]:
        """The names in a directory, sorted; none if it is no directory."""

    def read(self, path: str, size: int, offset: int = 0) -> bytes:
        """At most so many bytes of a regular file; none of anything else."""


@dataclass(frozen=True, slots=True)
class Found:
    """Where a path that was asked for leads: its canonical path, what is there (None: nothing), the links on the way."""

    asked: str
    path: str
    entry: Entry | None
    links: dict[str, str]


def resolve(root: Root, path: str) -> Found:
    """Follow a path inside the root. More than 40 links lead nowhere, as for the kernel."""
    trail: list[str] = []
    todo = _steps(path)
    links: dict[str, str] = {}
    entry: Entry | None = Entry(DIRECTORY)
    followed = 0
    while todo:
        part = todo.pop()
        if part == ".":
            continue
        if part == "..":
            del trail[-1:]
            entry = Entry(DIRECTORY)
            continue
        here = "/" + "/".join([*trail, part])
        entry = root.look(here)
        if entry is not None and entry.kind == LINK:
            followed += 1
            links[here] = entry.target
            if followed > _MOST_LINKS:
                return Found(path, here, None, links)
            todo += _steps(entry.target)
            if entry.target.startswith("/"):
                trail = []
            entry = Entry(DIRECTORY)
            continue
        trail.append(part)
        if entry is None or (todo and entry.kind != DIRECTORY):
            return Found(path, "/" + "/".join([*trail, *(step for step in reversed(todo) if step not in {".", ".."})]), None, links)
    return Found(path, "/" + "/".join(trail), entry, links)


def _steps(path: str) -> list[str]:
    """The steps of a path, the first one last. One that stays where it is asks for a directory there all the same."""
    return [step or "." for step in reversed(path.split("/"))]


# --- a directory ----------------------------------------------------------------------------------------------------

_ONLY_DIRECTORY: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_ONLY_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class DirectoryRoot:
    """A directory of this machine. Each step is taken from the directory before it, by descriptor, and through no link."""

    def __init__(self, path: Path) -> None:
        self.skipped = Counter[str]()
        try:
            self._top = os.open(path, _ONLY_DIRECTORY)
        except OSError as error:
            raise InputError(str(path), "", f"cannot be entered: {error.strerror}", "check the path and its permissions") from None

    def close(self) -> None:
        """Let go of the directory."""
        os.close(self._top)

    @contextmanager
    def _above(self, path: str) -> Iterator[tuple[int, str]]:
        """A descriptor of the directory that a path is in, and the name there. Raises OSError."""
        *above, name = path.strip("/").split("/")
        descriptor = os.dup(self._top)
        try:
            for part in above:
                below = os.open(part, _ONLY_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = below
            yield descriptor, name or "."
        finally:
            os.close(descriptor)

    def look(self, path: str) -> Entry | None:
        """What is at a path."""
        try:
            with self._above(path) as (above, name):
                status = os.stat(name, dir_fd=above, follow_symlinks=False)
                target = os.readlink(name, dir_fd=above) if stat.S_ISLNK(status.st_mode) else ""
        except OSError as error:
            self._note(error)
            return None
        return Entry(_kind(status.st_mode), stat.S_IMODE(status.st_mode), status.st_size, target)

    def names(self, path: str) -> list[str]:
        """The names in a directory, as many as there is room for."""
        try:
            with self._above(path) as (above, name):
                descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
            try:
                with os.scandir(descriptor) as entries:
                    found = [entry.name for _, entry in zip(range(_MOST_NAMES), entries, strict=False)]
            finally:
                os.close(descriptor)
        except OSError as error:
            self._note(error)
            return []
        if len(found) == _MOST_NAMES:
            self.skipped[f"of a directory that has more than {_MOST_NAMES}"] += 1
        return sorted(found)

    def read(self, path: str, size: int, offset: int = 0) -> bytes:
        """At most so many bytes. What is no regular file is not opened."""
        try:
            with self._above(path) as (above, name):
                before = os.stat(name, dir_fd=above, follow_symlinks=False)
                if not stat.S_ISREG(before.st_mode) or offset >= before.st_size > 0:
                    return b""  # a file of /proc says that it is empty
                descriptor = os.open(name, _ONLY_READ, dir_fd=above)
            try:
                after = os.fstat(descriptor)
                if (before.st_dev, before.st_ino) != (after.st_dev, after.st_ino):
                    return b""  # it was swapped in between
                return os.pread(descriptor, size, offset)
            finally:
                os.close(descriptor)
        except OSError as error:
            self._note(error)
            return b""

    def _note(self, error: OSError) -> None:
        if error.errno not in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}:
            self.skipped[f"could not be looked at: {error.strerror}"] += 1


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return FILE
    if stat.S_ISDIR(mode):
        return DIRECTORY
    return LINK if stat.S_ISLNK(mode) else OTHER
