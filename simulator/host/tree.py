"""The fake file tree: a host's description -> a pyfakefs file system, only the parts a run can reach.

One tree stands for the container's root. The node's own paths lie below /host; `/run`, `/sys` and `/proc` of the node
are the container's too. Look-ups walk the tree the way the kernel does (links, a root that is not /), so that a link in
the host's root cannot lead out of it. Nothing here touches the machine's real files.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from functools import lru_cache
from threading import Lock
from typing import Final

from pyfakefs.fake_file import FakeDirectory, FakeFile

from simulator.host.nodes import Directory, File, Link
from simulator.host.spec import LOADERS, SHARED, HostSpec

HOST: Final = "/host"
_MOST_LINKS: Final = 40
_LONGEST_NAME: Final = 255
_DOTS: Final = (".", "..")
_SHORT_NAME: Final = _LONGEST_NAME // 4
"""So many characters are not too long in any script."""
_SHEBANG: Final = "#!"
_ORDINARY: Final = ("/bin/sh", "/sbin/modprobe")
"""What a host's root has unless it is described otherwise, beside a loader."""


def failure(number: int, path: str) -> OSError:
    """An OSError of the kernel's."""
    return OSError(number, errno.errorcode[number], path)


class Tree:
    """A file tree, and the kernel's way through it."""

    def __init__(self) -> None:
        self.top = Directory("/")

    def copy(self) -> Tree:
        """A tree of its own, the same files in it; far cheaper than rendering the description again."""
        twin = Tree()
        twin.top = self.top.copy()
        return twin

    # --- looking up -------------------------------------------------------------------------------------------

    def find(self, path: str, *, root: str = "", follow: bool = True) -> FakeFile:
        """What is at a path, below a root directory if one is given. Raises OSError."""
        base = self._at(self.top, root.rstrip("/"), follow=True) if root else self.top
        if not isinstance(base, FakeDirectory):
            raise failure(errno.ENOTDIR, root)
        return self._at(base, path, follow=follow)

    def _at(self, base: FakeDirectory, path: str, *, follow: bool) -> FakeFile:
        """What is at a path. Most paths are names from one directory to the next; for any other the walk is begun anew."""
        node: FakeFile = base
        for name in _names(path):
            child = node.entries.get(name) if isinstance(node, FakeDirectory) else None
            if child is None and node is not base and isinstance(node, FakeDirectory):
                raise failure(errno.ENOENT, path)
            if child is None or isinstance(child, Link):
                return self._walk(base, path, base, follow=follow)[0]
            node = child
        return node

    def _walk(
        self, start: FakeDirectory, path: str, root: FakeDirectory, *, follow: bool = True
    ) -> tuple[FakeFile, list[FakeDirectory]]:
        trail: list[FakeDirectory] = [start]
        todo = list(_steps(path))
        node: FakeFile = start
        links = 0
        while todo:
            part = todo.pop()
            if not isinstance(node, FakeDirectory):
                raise failure(errno.ENOTDIR, path)
            if part in _DOTS:
                if part == ".." and len(trail) > 1:
                    trail.pop()
                node = trail[-1]
                continue
            if len(part) > _SHORT_NAME and len(part.encode("utf-8", "surrogateescape")) > _LONGEST_NAME:
                raise failure(errno.ENAMETOOLONG, path)
            child = node.entries.get(part)
            if child is None and node is root and f"/{part}" in SHARED:
                child = self.top.entries.get(part)
            if child is None:
                raise failure(errno.ENOENT, path)
            if isinstance(child, Link) and (todo or follow):
                links += 1
                if links > _MOST_LINKS:
                    raise failure(errno.ELOOP, path)
                todo += _steps(child.target)
                if child.target.startswith("/"):
                    trail = [root]
                    node = root
                continue
            if isinstance(child, FakeDirectory):
                trail.append(child)
            node = child
        return node, trail

    def resolve(self, path: str) -> str:
        """The path without links (`realpath(3)`). Raises OSError."""
        node, trail = self._walk(self.top, path, self.top)
        names = [str(directory.name) for directory in trail[1:]]
        return "/" + "/".join(names if isinstance(node, FakeDirectory) else [*names, str(node.name)])

    def parent(self, path: str) -> tuple[FakeDirectory, str]:
        """The directory a path is in, and its name there. Raises OSError."""
        head, _, name = path.rstrip("/").rpartition("/")
        found = self.find(head)
        if not isinstance(found, FakeDirectory):
            raise failure(errno.ENOTDIR, path)
        return found, name

    def read(self, path: str) -> str:
        """A file's text. Raises OSError."""
        found = self.find(path)
        if isinstance(found, FakeDirectory):
            raise failure(errno.EISDIR, path)
        return found.contents or ""

    def names(self, path: str) -> list[str]:
        """The names in a directory, sorted. Raises OSError."""
        found = self.find(path)
        if not isinstance(found, FakeDirectory):
            raise failure(errno.ENOTDIR, path)
        return sorted(found.entries)

    def exists(self, path: str, *, root: str = "", follow: bool = True) -> bool:
        """Is there something at a path, links followed unless asked otherwise?"""
        try:
            self.find(path, root=root, follow=follow)
        except OSError:
            return False
        return True

    def snapshot(self) -> dict[str, str]:
        """Every path with its text: a link's is `-> target`, a directory's empty."""
        out: dict[str, str] = {}
        stack: list[tuple[str, FakeDirectory]] = [("", self.top)]
        while stack:
            base, directory = stack.pop()
            for name, node in directory.entries.items():
                path = f"{base}/{name}"
                if isinstance(node, FakeDirectory):
                    out[path + "/"] = ""
                    stack.append((path, node))
                else:
                    out[path] = ("-> " if isinstance(node, Link) else "") + (node.contents or "")
        return out

    # --- changing ---------------------------------------------------------------------------------------------

    def make_directory(self, path: str) -> FakeDirectory:
        """A directory and its parents, where they are missing. A file or a link to nowhere in the way makes room."""
        node: FakeDirectory = self.top
        done, root = "", ""
        for part in path.split("/"):
            if not part:
                continue
            child = node.entries.get(part)
            done += f"/{part}"
            if isinstance(child, Link):
                child = self.directory(done, root=root) or child
            if done == HOST:
                done, root = "", HOST
            if not isinstance(child, FakeDirectory):
                if child is not None:
                    node.remove_entry(part)
                child = Directory(part)
                node.add_entry(child)
            node = child
        return node

    def directory(self, path: str, *, root: str = "") -> FakeDirectory | None:
        """The directory at a path, links followed; None if none is there."""
        try:
            found = self.find(path, root=root)
        except OSError:
            return None
        return found if isinstance(found, FakeDirectory) else None

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """A file with its parents; one that is there is replaced."""
        head, _, name = path.rpartition("/")
        self.make_directory(head).add_entry(File(name, text, mode))

    def link(self, path: str, target: str) -> None:
        """A symbolic link with its parents; what is there is replaced."""
        head, _, name = path.rpartition("/")
        self.make_directory(head).add_entry(Link(name, target))

    def remove_tree(self, path: str) -> None:
        """Remove whatever is at a path, if anything is."""
        try:
            directory, name = self.parent(path)
        except OSError:
            return
        if name in directory.entries:
            directory.remove_entry(name)

    def remove(self, path: str) -> None:
        """`os.Remove` of Go: unlink, else rmdir, and of the two errors the telling one. Raises OSError."""
        directory, name = self.parent(path)
        if name == ".":
            raise failure(errno.EINVAL, path)
        found = self.find(path, follow=False)
        if isinstance(found, FakeDirectory) and (found.entries or name == ".."):
            raise failure(errno.ENOTEMPTY, path)
        directory.remove_entry(name)

    def swap(self, path: str, fresh: FakeDirectory | None) -> FakeFile:
        """Put a directory (a new empty one if None) in place of what is at a path; returns what was there."""
        directory, name = self.parent(path)
        before = directory.entries[name]
        directory.add_entry(fresh if fresh is not None else Directory(name))
        return before

    def restore(self, path: str, before: FakeFile) -> None:
        """Undo `swap`."""
        directory, _ = self.parent(path)
        directory.add_entry(before)


@lru_cache(maxsize=4096)
def _names(path: str) -> tuple[str, ...]:
    """A path's parts, first first, if each of them can be looked up as it is; else none that is anywhere."""
    names = _steps(path)[::-1]
    plain = names and not any(name in _DOTS or len(name) > _SHORT_NAME for name in names)
    return names if plain else ("/",)


@lru_cache(maxsize=4096)
def _steps(path: str) -> tuple[str, ...]:
    """A path's parts, last first. A slash at the end is a step too: only from a directory can it be taken."""
    parts = path.split("/")
    steps = tuple(part for part in reversed(parts) if part)
    return steps if parts[-1] else (".", *steps)


_rendered: Final[dict[tuple[int, ...], tuple[HostSpec, Tree]]] = {}
_rendering: Final = Lock()
"""Several threads may ask at once."""
_MOST_RENDERED: Final = 64
_SHOWN: Final = ("root", "architecture", "directories", "programs", "links", "container_programs", "container_files", "files")
"""The fields of a host that `render` looks at."""


def fresh(spec: HostSpec) -> Tree:
    """A tree of this host to change at will. What the last few hosts show is rendered once; each call gets a copy."""
    key = tuple(id(getattr(spec, field)) for field in _SHOWN)  # as good as their values, as long as the host is kept
    with _rendering:
        known = _rendered.get(key)
        if known is None:
            if len(_rendered) >= _MOST_RENDERED:
                del _rendered[next(iter(_rendered))]
            known = _rendered[key] = (spec, render(spec))
    return known[1].copy()


def container_path(path: str) -> str:
    """Where a path of the node lies in the container's tree."""
    return path if path.startswith(tuple(f"{shared}/" for shared in SHARED)) or path in SHARED else HOST + path


def render(spec: HostSpec) -> Tree:
    """The tree of a host, before mounts. Without /host, the node's own files are nowhere; what it shares is there."""
    tree = Tree()
    for directory in SHARED:
        tree.make_directory(directory)
    if spec.root != "absent":
        tree.make_directory(HOST)

    def places(path: str) -> Iterator[str]:
        place = container_path(path)
        if place == path or spec.root != "absent":
            yield place

    for directory in spec.directories:
        for place in places(directory):
            tree.make_directory(place)
    for program in spec.programs:
        for place in places(program.path):
            tree.write(place, f"{_SHEBANG}{program.interpreter}\n" if program.interpreter else "", program.mode)
    for path, target in spec.links.items():
        for place in places(path):
            tree.link(place, target)
    for name in ("chroot", "vfio-manage"):
        if name not in spec.container_programs:
            tree.write(f"/usr/bin/{name}", "", 0o755)
    for stand_in in spec.container_programs.values():
        if stand_in is not None:
            tree.write(stand_in.path, "", stand_in.mode)
    for file in spec.container_files:
        tree.write(file.path, file.text, file.mode)
    for file in spec.files:
        for place in places(file.path):
            tree.write(place, file.text, file.mode)
    if spec.root == "normal":
        for path in (*_ORDINARY, LOADERS[spec.architecture]):
            _write_unless_there(tree, path)
    return tree


def _write_unless_there(tree: Tree, path: str) -> None:
    """A program of an ordinary root, where the description says nothing else; where /bin is a link, where that leads."""
    head = path.rpartition("/")[0]
    leads_nowhere = tree.exists(head, root=HOST, follow=False) and tree.directory(head, root=HOST) is None
    if not leads_nowhere and not tree.exists(path, root=HOST, follow=False):
        tree.write(HOST + path, "", 0o755)
