"""Where the loader finds a binary's libraries: its own search paths, ld.so.conf, the usual folders.

ld.so.cache counts as what ld.so.conf says, as it does after every `ldconfig`.

Source: ld.so(8); glibc elf/dl-load.c.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from typing import Final

from simulator.importing.elf import BrokenElf, Elf, read_elf
from simulator.importing.roots import FILE, Found, Root, resolve

_CONFIGURATION: Final = "/etc/ld.so.conf"
_USUAL: Final = ("/lib/{0}-linux-gnu", "/usr/lib/{0}-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib")
_LARGEST_TEXT: Final = 1 << 16
_MOST: Final = 64


def folders(root: Root, architecture: str) -> list[str]:
    """The folders in which libraries are looked for, in order."""
    return [*dict.fromkeys((*_configured(root), *(folder.format(architecture) for folder in _USUAL)))]


def _configured(root: Root) -> Iterator[str]:
    """The folders that ld.so.conf names. What it includes is always `ld.so.conf.d/*.conf`."""
    lines = _lines(root, _CONFIGURATION)
    folder = resolve(root, f"{_CONFIGURATION}.d").path
    if any(line.split()[:1] == ["include"] for line in lines):
        for name in root.names(folder):
            if name.endswith(".conf"):
                lines += _lines(root, f"{folder}/{name}")
    yield from (line.strip() for line in lines if line.strip().startswith("/"))


def _lines(root: Root, path: str) -> list[str]:
    return root.read(resolve(root, path).path, _LARGEST_TEXT).decode("utf-8", "replace").splitlines()


def find_library(root: Root, name: str, places: Sequence[str]) -> Found | None:
    """The first library of that name; a name with a slash is a path."""
    for candidate in [name] if "/" in name else [f"{folder}/{name}" for folder in places]:
        found = resolve(root, candidate)
        if found.entry is not None and found.entry.kind == FILE:
            return found
    return None


def needed(root: Root, path: str, elf: Elf, architecture: str) -> Iterator[tuple[str, Found | None]]:
    """Each library that a binary needs, directly or not: its path, and where that leads. None: it is missing there."""
    usual = folders(root, architecture)
    todo, known = [(path, elf)], set[str]()
    while todo:
        above, needing = todo.pop(0)
        origin = posixpath.dirname(above)
        own = [folder.replace("${ORIGIN}", origin).replace("$ORIGIN", origin) for folder in needing.search]
        for name in needing.needed:
            if name in known or len(known) >= _MOST:
                continue
            known.add(name)
            found = find_library(root, name, [*own, *usual])
            if found is None:
                yield name if "/" in name else f"{usual[0]}/{name}", None
                continue
            yield found.asked, found
            library = _elf(root, found.path)
            if library is not None:
                todo.append((found.path, library))


def _elf(root: Root, path: str) -> Elf | None:
    try:
        return read_elf(lambda size, offset: root.read(path, size, offset))
    except BrokenElf:
        return None
