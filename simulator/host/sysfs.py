"""Nodes of sysfs in the fake tree: pyfakefs nodes without times, owners and inodes, because a host has hundreds of them.

A directory's entries are made when somebody looks: most runs look at few. A file may be one that cannot be read, or one
whose text the kernel makes up; a control file names what writing to it does (`host.pci` does it).
"""

from __future__ import annotations

import stat
import weakref
from collections.abc import Callable, Iterable
from typing import Final

from pyfakefs.fake_file import FakeDirectory, FakeFile
from pyfakefs.helpers import FakeStatResult

from simulator.host.tree import Tree
from simulator.ports import IoFailure


class _Stat(FakeStatResult):
    """What all nodes share. pyfakefs counts a node's links when it moves it; here they stay two."""

    @property
    def st_nlink(self) -> int:
        """Not counted."""
        return 2

    @st_nlink.setter
    def st_nlink(self, _: int) -> None:
        pass


_STAT: Final = _Stat(is_windows=False, user_id=0, group_id=0)


class SysfsFile(FakeFile):
    """A file or a link. `failure` is the errno of reading it, 0 if it can be read."""

    def __init__(self, name: str, text: str, mode: int = stat.S_IFREG | 0o444, failure: int = 0) -> None:  # the slow one is skipped
        self.__dict__.update(name=name, text=text, st_mode=mode, failure=failure, parent_dir=None, stat_result=_STAT)

    text: str
    failure: int

    @property
    def contents(self) -> str:
        """The text, or where a link points. Raises IoFailure."""
        if self.failure:
            raise IoFailure(self.failure, "", self.name)
        return self.text


class ControlFile(SysfsFile):
    """A file that acts when it is written: `driver_override` of a function, `bind` or `unbind` of a driver."""

    def __init__(self, name: str, owner: str, path: str, shown: Callable[[], str] = str) -> None:
        self.__dict__.update(
            name=name,
            owner=owner,
            sysfs_path=path,
            shown=shown,
            failure=0,
            st_mode=stat.S_IFREG | 0o644,
            parent_dir=None,
            stat_result=_STAT,
        )

    owner: str
    """The function's address or the driver's name."""
    sysfs_path: str
    shown: Callable[[], str]

    @property
    def contents(self) -> str:
        """What reading it says."""
        return self.shown()


class SysfsDirectory(FakeDirectory):
    """A directory whose entries are made when they are looked at first."""

    def __init__(self, name: str, tree: Tree, fill: Callable[[], Iterable[FakeFile]] = tuple) -> None:
        self.__dict__.update(
            name=name,
            st_mode=stat.S_IFDIR | 0o755,
            parent_dir=None,
            stat_result=_STAT,
            _filesystem=weakref.ref(tree.filesystem),
            _entries={},
            _fill=fill,
        )

    _fill: Callable[[], Iterable[FakeFile]] | None

    @property
    def is_filled(self) -> bool:
        """Has somebody looked?"""
        return self._fill is None

    @property
    def entries(self) -> dict[str, FakeFile]:
        """The nodes by name."""
        if self._fill is not None:
            nodes = self._fill()
            self.__dict__["_fill"] = None
            me = weakref.ref(self)
            for node in nodes:
                self._entries[str(node.name)] = node
                node.__dict__["parent_dir"] = me
        return self._entries

    def add_entry(self, path_object: FakeFile) -> None:
        """Put a node in, in place of one of its name."""
        put(self, path_object)

    def remove_entry(self, pathname_name: str, recursive: bool = True) -> None:  # noqa: ARG002, FBT001, FBT002  # pyfakefs' signature
        """Take a node out."""
        del self.entries[pathname_name]


def link(name: str, target: str) -> SysfsFile:
    """A symbolic link."""
    return SysfsFile(name, target, stat.S_IFLNK | 0o777)


def put(directory: FakeDirectory, node: FakeFile) -> None:
    """Put a node of sysfs into any directory, in place of one of its name."""
    if node.name not in directory.entries and not isinstance(directory, SysfsDirectory):
        directory.st_nlink += 1
    directory.entries[str(node.name)] = node
    node.parent_dir = weakref.ref(directory)


def make_directory(tree: Tree, path: str) -> FakeDirectory:
    """The directory at a path without links, made with its parents where it is missing."""
    node = tree.top
    for part in path.strip("/").split("/"):
        child = node.entries.get(part)
        if not isinstance(child, FakeDirectory):
            child = SysfsDirectory(part, tree)
            put(node, child)
        node = child
    return node
