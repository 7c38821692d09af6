"""What modprobe's configuration says about loading a module: `install`, `alias`, `blacklist` in the host's modprobe.d.

An explicit `modprobe NAME` is stopped by `alias NAME off` and by `install NAME COMMAND`; a blacklist stops only loading by
alias, as for a device that is found at boot.

Source: kmod's libkmod-module.c and libkmod-config.c.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from typing import Final

from pyfakefs.fake_file import FakeDirectory

from simulator.host.tree import HOST, Tree

DIRECTORIES: Final = (
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
)
"""A file in an earlier one hides a file of the same name in a later one."""


def goes_on_to_load(tree: Tree, name: str) -> bool:
    """Does `modprobe NAME` load it? `alias NAME off` stops it, and so does `install NAME COMMAND` unless that loads it itself."""
    lines = [line.split() for line in _lines(tree)]
    for words in lines:
        if words[0] == "alias" and words[2:] == ["off"] and _matches(name, words[1]):
            return False
    for words in lines:
        if words[0] == "install" and len(words) > 2 and _matches(name, words[1]):
            return any(word.endswith("modprobe") for word in words) and not {"-i", "--ignore-install"}.isdisjoint(words)
    return True


def is_blacklisted(tree: Tree, name: str) -> bool:
    """Is it not to be loaded for a device that is found?"""
    return any(words[0] == "blacklist" and _matches(name, "".join(words[1:2])) for words in map(str.split, _lines(tree)))


def _lines(tree: Tree) -> Iterator[str]:
    files: dict[str, str] = {}
    for directory in DIRECTORIES:
        found = tree.directory(directory, root=HOST)
        for file in found.entries if found else ():
            if file.endswith(".conf"):
                files.setdefault(file, f"{directory}/{file}")
    for _, path in sorted(files.items()):
        try:
            node = tree.find(path, root=HOST)
        except OSError:
            continue
        text = "" if isinstance(node, FakeDirectory) else node.contents or ""
        for line in text.replace("\\\n", " ").splitlines():
            if line.strip() and not line.lstrip().startswith("#"):
                yield line


def _matches(name: str, pattern: str) -> bool:
    """Module names in modprobe's configuration are patterns, and a dash is an underscore."""
    return fnmatch.fnmatchcase(name, pattern.replace("-", "_"))
