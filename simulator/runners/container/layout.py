"""A world's files on disk: the host tree of the simulated runner, written out for a container to mount.

What the node shares with the container (`/host`, `/run`, `/sys`) is laid out in folders that are mounted there; everything
else that the container has of its own (a kubeconfig, its service account, stand-ins for programs of the image) is put into
the container's own file system by commands that the supervisor runs. Nothing here follows a link of the tree's.
"""

from __future__ import annotations

import os
import posixpath
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pyfakefs.fake_file import FakeDirectory, FakeFile

from simulator.host.commands import is_executable
from simulator.host.fake import FakeHost
from simulator.host.spec import HostSpec, Program
from simulator.host.sysfs import ControlFile
from simulator.host.tree import HOST
from simulator.ports import IoFailure
from simulator.runners.container.scripts import INTERPRETER, NOTHING, OURS, host_script, made, stand_in
from simulator.runners.container.unfit import Unfit

SHARED: Final = ("host", "run", "sys")
"""Top-level folders that are mounted whole."""
PROC_MODULES: Final = "/proc/modules"
CONTROL_FILES: Final = frozenset({"bind", "unbind"})
"""Files of a PCI driver that act when they are written."""
_IMAGE_OWN: Final = ("chroot", "vfio-manage")
"""Programs that the tree has for the model's sake; in a container the image has them."""


class Drawer:
    """Texts on their way into the container: files that its supervisor copies to their places."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def put(self, text: str, path: str, mode: int = 0o644) -> str:
        """Keep a text; the command that writes it to a path of the container."""
        self._count += 1
        name = f"text-{self._count}"
        (self._folder / name).write_bytes(os.fsencode(text))
        return f"put {OURS}/{name} {shlex.quote(path)} {mode:o}\n"


@dataclass(frozen=True, slots=True)
class Layout:
    """What is on disk, and what is still to be done in the container."""

    tree: Path
    """The folder that holds `host`, `run` and `sys`, as far as they are there."""
    commands: str
    """Shell commands for the supervisor that make the rest."""
    controls: Mapping[str, Path]
    """Control file of a PCI driver, by its path in the container -> the named pipe that stands for it."""
    modules: str | None
    """Text of /proc/modules; None: there is no such file."""

    @property
    def mounted(self) -> list[str]:
        """The folders to mount, by name."""
        return [name for name in SHARED if (self.tree / name).is_dir()]


def lay_out(
    spec: HostSpec,
    tree: Path,
    drawer: Drawer,
    busybox: Path,
    path: Sequence[str],
    *,
    helpers: Mapping[str, str],
    replaced: Mapping[str, str],
) -> Layout:
    """Write a host's tree, as it is before anything is mounted, below the folder `tree`.

    `path` is the container's PATH, `helpers` where the image has the programs that driver-manager runs; `replaced` are texts
    that take the place of the tree's (a certificate that the real API server has). Raises Unfit, OSError.
    """
    host = FakeHost(replace(spec, mounts=()), path)
    writer = _Writer(spec, host, tree, busybox)
    skipped = {f"/usr/bin/{name}" for name in (*_IMAGE_OWN, *spec.container_programs)}
    commands: list[str] = []
    for name, node in host.tree.top.entries.items():
        if name in SHARED:
            writer.write(node, tree / name)
        elif name != "proc":
            commands += _own_files(node, f"/{name}", drawer, skipped, replaced)
    commands += _stand_ins(spec.container_programs, drawer, path)
    places = " ".join(shlex.quote(directory) for directory in path)
    for name, place in helpers.items():
        if name not in spec.container_programs:
            commands.append(f"on_path {shlex.quote(place)} {places}\n")
    if (tree / "host").is_dir():
        ours = tree / "host" / OURS.strip("/")
        ours.mkdir(exist_ok=True)
        _link(busybox, ours / "busybox")
    modules = host.tree.read(PROC_MODULES) if host.tree.exists(PROC_MODULES) else None
    return Layout(tree, "".join(commands), writer.controls, modules)


class _Writer:
    """Nodes of the tree -> files."""

    def __init__(self, spec: HostSpec, host: FakeHost, root: Path, busybox: Path) -> None:
        self.controls: dict[str, Path] = {}
        self._root = root
        self._busybox = busybox
        self._texts: dict[int, str] = {}
        for node, program in host.commands.programs():
            self._texts[id(node)] = host_script(FakeHost(spec, host.path), program)
        for node in _interpreters(host):
            self._texts[id(node)] = INTERPRETER
        self._shell = _found(host, "/bin/sh")

    def write(self, node: FakeFile, place: Path) -> None:
        """A node and what is below it."""
        mode = stat.S_IMODE(node.st_mode)
        if isinstance(node, FakeDirectory):
            place.mkdir()
            for name, child in node.entries.items():
                self.write(child, place / name)
            place.chmod(mode)
        elif stat.S_ISLNK(node.st_mode):
            place.symlink_to(node.contents or "")
        elif isinstance(node, ControlFile) and node.name in CONTROL_FILES:
            os.mkfifo(place)
            place.chmod(mode)
            self.controls[f"/{place.relative_to(self._root)}"] = place
        elif node is self._shell and id(node) not in self._texts:
            _link(self._busybox, place)
        else:
            place.write_bytes(os.fsencode(self._text(node, place)))
            place.chmod(mode)

    def _text(self, node: FakeFile, place: Path) -> str:
        if id(node) in self._texts:
            return self._texts[id(node)]
        try:
            text = node.contents or ""
        except IoFailure as error:
            raise Unfit(
                f"/{place.relative_to(self._root)} cannot be read on this host ({error.strerror}), but any file of ours can"
            ) from None
        return NOTHING if not text and is_executable(node) else text


def _interpreters(host: FakeHost) -> Iterator[FakeFile]:
    """The files that programs name as their interpreters, the host's shell left out."""
    shell = _found(host, "/bin/sh")
    for _, program in host.commands.programs():
        node = _found(host, program.interpreter) if program.interpreter else None
        if node is not None and node is not shell and is_executable(node):
            yield node


def _found(host: FakeHost, path: str) -> FakeFile | None:
    """What is at a path of the host's root."""
    try:
        return host.tree.find(path, root=HOST)
    except OSError:
        return None


def _link(source: Path, place: Path) -> None:
    """One more name for a file that nobody changes."""
    os.link(source, place)


def _own_files(node: FakeFile, path: str, drawer: Drawer, skipped: set[str], replaced: Mapping[str, str]) -> Iterator[str]:
    """Commands that make what the container alone has."""
    if path in skipped:
        return
    if isinstance(node, FakeDirectory):
        if not node.entries:
            yield f"$b mkdir -p {shlex.quote(path)}\n"
        for name, child in node.entries.items():
            yield from _own_files(child, f"{path}/{name}", drawer, skipped, replaced)
    elif stat.S_ISLNK(node.st_mode):
        yield f"$b mkdir -p {shlex.quote(posixpath.dirname(path))}\n$b ln -sfn {shlex.quote(node.contents or '')} {shlex.quote(path)}\n"
    else:
        yield drawer.put(replaced.get(path, node.contents or ""), path, stat.S_IMODE(node.st_mode))


def _stand_ins(programs: Mapping[str, Program | None], drawer: Drawer, path: Sequence[str]) -> Iterator[str]:
    """Commands that take programs of the image away, and put others in their place."""
    for name, program in programs.items():
        for directory in path:
            yield f"drop {shlex.quote(f'{directory}/{name}')}\n"
        if program is not None:
            yield drawer.put(stand_in(program), program.path, program.mode)


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Commands that make in the container what changed of a host's tree (/proc left out), from two snapshots of it."""
    gone: list[str] = []
    for path in sorted(before.keys() - after.keys()):
        if not gone or not (gone[-1].endswith("/") and path.startswith(gone[-1])):
            gone.append(path)
    lines = [f"drop {' '.join(shlex.quote(path.rstrip('/')) for path in gone)}\n"] if gone else []
    changed = (path for path in sorted(after) if before.get(path) != after[path] and not path.startswith("/proc/"))
    return "".join([*lines, *(made(path, after[path], "$b") for path in changed)])
