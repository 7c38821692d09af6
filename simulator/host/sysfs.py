"""Nodes of sysfs in the fake tree.

A directory's entries are made when somebody looks: most runs look at few. A file may be one that cannot be read, or one
whose text the kernel makes up; a control file names what writing to it does (`host.pci` does it).
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable

from pyfakefs.fake_file import FakeDirectory, FakeFile

from simulator.host.nodes import Directory, File
from simulator.host.tree import Tree
from simulator.ports import IoFailure


class SysfsFile(File):
    """A file. `failure` is the errno of reading it, 0 if it can be read."""

    def __init__(self, name: str, text: str, failure: int = 0) -> None:
        super().__init__(name, text, 0o444)
        self.__dict__["failure"] = failure

    failure: int

    @property
    def contents(self) -> str:
        """The text. Raises IoFailure."""
        if self.failure:
            raise IoFailure(self.failure, "", str(self.name))
        return self.text


class ControlFile(File):
    """A file that acts when it is written: `driver_override` of a function, `bind` or `unbind` of a driver."""

    def __init__(self, name: str, owner: str, path: str, shown: Callable[[], str] = str) -> None:
        super().__init__(name)
        self.__dict__.update(owner=owner, sysfs_path=path, shown=shown)

    owner: str
    """The function's address or the driver's name."""
    sysfs_path: str
    shown: Callable[[], str]

    @property
    def contents(self) -> str:
        """What reading it says."""
        return self.shown()


class SysfsDirectory(Directory):
    """A directory whose entries are made when they are looked at first."""

    def __init__(self, name: str, fill: Callable[[], Iterable[FakeFile]] | None = None) -> None:
        super().__init__(name)
        self.__dict__["_fill"] = fill

    st_mode = stat.S_IFDIR | 0o755
    _fill: Callable[[], Iterable[FakeFile]] | None

    @property
    def is_filled(self) -> bool:
        """Has somebody looked?"""
        return self._fill is None

    @property
    def entries(self) -> dict[str, FakeFile]:
        """The nodes by name."""
        fill = self._fill
        if fill is not None:
            nodes = fill()
            self.__dict__["_fill"] = None
            for node in nodes:
                self._entries[str(node.name)] = node
        return self._entries


def make_directory(tree: Tree, path: str) -> FakeDirectory:
    """The directory at a path without links, made with its parents where it is missing."""
    node: FakeDirectory = tree.top
    for part in path.strip("/").split("/"):
        child = node.entries.get(part)
        if not isinstance(child, FakeDirectory):
            child = SysfsDirectory(part)
            node.add_entry(child)
        node = child
    return node
