"""The files of a bundle: of a folder, an archive (tar, also compressed; zip) or a single file. Only looked at.

Whoever made a bundle may be hostile. A folder and a tar archive are read as `importing.roots` and `importing.archive` read
roots: no link is followed, only regular files are opened, and there is a limit to whatever could be blown up. What is passed
over is told.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simulator.importing.roots import DIRECTORY, FILE, DirectoryRoot, Root
from simulator.reading import InputError, printable

_LARGEST: Final = 32 << 20
"""Bytes of one file that is read."""
_LARGEST_SUM: Final = 128 << 20
_MOST: Final = 20_000
_DEEPEST: Final = 16
_TEXTS: Final = (".yaml", ".yml", ".json", ".log", ".txt", ".labels", ".descr", ".status", "")
"""How the names of files end that may be of use."""


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
    with closing(DirectoryRoot(path.parent)) as root:
        return Files({path.name: root.read(f"/{path.name}", _LARGEST)})


def _collect(root: Root, name: str) -> Files:
    files: dict[str, bytes] = {}
    skipped: list[str] = []
    total = 0
    for path, size in _walk(root, name):
        shown = printable(path.lstrip("/"))
        if not path.rpartition("/")[2].endswith(_TEXTS):
            continue
        if size > _LARGEST or total + size > _LARGEST_SUM:
            skipped.append(f"{shown}: too large to be read")
            continue
        total += size
        files[path.lstrip("/")] = root.read(path, _LARGEST)
    skipped += [f"{count} {'entry' if count == 1 else 'entries'} {reason}" for reason, count in sorted(root.skipped.items())]
    return Files(files, tuple(skipped))


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
