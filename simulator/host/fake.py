"""The fake host: the `Host` port on a tree, a kernel and a handful of programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from simulator.host.commands import Commands, is_executable
from simulator.host.kernel import Kernel
from simulator.host.spec import HostSpec, Program
from simulator.host.tree import Tree, render
from simulator.ports import CommandNotFound, ProcessResult

_WATCHED: Final = ("/run/nvidia/nvidia-driver.pid", "/run/nvidia/nvidia-driver.state", "/run/nvidia/driver")
"""Files whose existence at the end belongs to a run's outcome."""


class FakeHost:
    """A host in memory. `path` is the container's PATH."""

    def __init__(self, spec: HostSpec, path: Sequence[str], pod_exists: Callable[[str], bool] = lambda _: False) -> None:
        self.spec = spec
        self.path = tuple(path)
        self.tree: Tree = render(spec)
        self.kernel = Kernel(spec, self.tree, pod_exists)
        self.commands = Commands(self.tree, self.kernel, spec.programs, spec.installable)
        self._container: Mapping[str, Program | None] = spec.container_programs

    def run(self, argv: Sequence[str]) -> ProcessResult:
        """Run a program of the container. Raises CommandNotFound."""
        name = argv[0]
        if not self._on_path(name):
            raise CommandNotFound(name)
        stand_in = self._container.get(name)
        if stand_in is not None:
            return ProcessResult(stand_in.exit_code, stderr=stand_in.stderr)
        if name == "chroot":
            return self.commands.chroot(argv, self.path)
        return self._vfio_manage()

    def _on_path(self, name: str) -> bool:
        """`exec.LookPath`: a file that may be executed, in one of PATH's directories."""
        for directory in self.path:
            try:
                node = self.tree.find(f"{directory}/{name}")
            except OSError:
                continue
            if is_executable(node):
                return True
        return False

    def _vfio_manage(self) -> ProcessResult:
        """`vfio-manage unbind --all`: every NVIDIA GPU is taken from whatever driver it has."""
        for address in self.kernel.gpu_drivers():
            self.kernel.unbind(address)
        return ProcessResult(0)

    def stat(self, path: str) -> None:
        """Does the path exist, links followed? Raises OSError."""
        self.tree.find(path)

    def read_file(self, path: str) -> str:
        """A file's text. Raises OSError."""
        return self.tree.read(path)

    def list_directory(self, path: str) -> list[str]:
        """The names in a directory, sorted. Raises OSError."""
        return self.tree.names(path)

    def remove(self, path: str) -> None:
        """`os.Remove`. Raises OSError."""
        self.kernel.remove(path)

    def mount_points(self) -> list[str]:
        """The mount points, in mount order."""
        return self.kernel.mount_points()

    def unmount(self, path: str) -> None:
        """`umount2(path, MNT_DETACH)`. Raises OSError."""
        self.kernel.unmount(path)

    def delete_module(self, name: str) -> None:
        """`delete_module(name, 0)`. Raises OSError."""
        self.kernel.delete_module(name)

    # --- what happens by itself, and how it ended -----------------------------------------------------------------

    def change(self, write: Mapping[str, str], remove: Sequence[str]) -> None:
        """A planned change: files written, paths removed (the container's paths)."""
        for path, text in write.items():
            self.tree.write(path, text)
        for path in remove:
            self.tree.remove_tree(path)

    def files(self) -> dict[str, bool]:
        """The watched files: do they exist?"""
        return {path: self.tree.exists(path) for path in _WATCHED}

    def mounts(self) -> tuple[str, ...]:
        """The mount points left under /run."""
        return tuple(path for path in self.kernel.mount_points() if path.startswith("/run"))

    def modules(self) -> tuple[str, ...]:
        """The modules left, sorted."""
        return tuple(self.kernel.loaded())

    def gpu_drivers(self) -> dict[str, str]:
        """Each GPU's driver at the end."""
        return self.kernel.gpu_drivers()
