"""The nodes of the fake tree: pyfakefs' types without its times, owners, inodes and link counts.

A host has hundreds of nodes and a session thousands of hosts; nobody asks for what is left out, and making and copying
it took longer than the runs. Files and links never change, so that trees may share them; a directory is of one tree.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping

from pyfakefs.fake_file import FakeDirectory, FakeFile


class File(FakeFile):
    """A regular file."""

    def __init__(self, name: str, text: str = "", mode: int = 0o644) -> None:  # the slow one is skipped
        self.__dict__.update(name=name, text=text, st_mode=stat.S_IFREG | mode)

    text: str
    st_mode: int

    @property
    def contents(self) -> str:
        """The text."""
        return self.text


class Link(FakeFile):
    """A symbolic link."""

    def __init__(self, name: str, target: str) -> None:
        self.__dict__.update(name=name, target=target)

    target: str
    st_mode = stat.S_IFLNK | 0o777

    @property
    def contents(self) -> str:
        """Where it points, as `readlink` has it."""
        return self.target


class Directory(FakeDirectory):
    """A directory."""

    def __init__(self, name: str, entries: Mapping[str, FakeFile] | None = None) -> None:
        self.__dict__.update(name=name, _entries={} if entries is None else entries)

    st_mode = stat.S_IFDIR | 0o777

    @property
    def entries(self) -> dict[str, FakeFile]:
        """The nodes by name."""
        return self._entries

    def add_entry(self, path_object: FakeFile) -> None:
        """Put a node in, in place of one of its name."""
        self.entries[str(path_object.name)] = path_object

    def remove_entry(self, pathname_name: str, recursive: bool = True) -> None:  # noqa: ARG002, FBT001, FBT002  # pyfakefs' signature
        """Take a node out. Raises KeyError."""
        del self.entries[pathname_name]

    def copy(self) -> Directory:
        """A directory of another tree that has the same in it."""
        return Directory(
            str(self.name), {name: node.copy() if isinstance(node, Directory) else node for name, node in self.entries.items()}
        )
