"""The fake host: the `Host` port on a tree, a kernel and a handful of programs."""

from __future__ import annotations

import copy
import errno
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pyfakefs.fake_file import FakeDirectory

from simulator.host.commands import Commands, is_executable
from simulator.host.kernel import Kernel
from simulator.host.spec import HostSpec, Program
from simulator.host.tree import Tree, failure, fresh
from simulator.ports import CommandNotFound, ProcessResult

WATCHED: Final = ("/run/nvidia/nvidia-driver.pid", "/run/nvidia/nvidia-driver.state", "/run/nvidia/driver")
"""Files whose existence at the end belongs to a run's outcome."""


KERNEL: Final = "6.8.0-79-generic"
"""The kernel of a host that does not say."""


@dataclass(frozen=True, slots=True)
class ModprobeAnswer:
    """What one call of modprobe does: its exit code, and the drivers that are there afterwards."""

    exit_code: int = 0
    creates: tuple[str, ...] = ()


class FakeHost:
    """A host in memory. `path` is the container's PATH, `chroot` whose `chroot` its image has, `image` where further programs are."""

    def __init__(
        self,
        spec: HostSpec,
        path: Sequence[str],
        pod_exists: Callable[[str], bool] = lambda _: False,
        chroot: str = "busybox",
        image: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.spec = spec
        self.path = tuple(path)
        self.tree: Tree = fresh(spec)
        self._add_programs(image)
        self.kernel = Kernel(spec, self.tree, pod_exists)
        self.commands = Commands(self.tree, self.kernel, spec, chroot)
        self._container: Mapping[str, Program | None] = spec.container_programs
        self.own_programs: dict[str, Callable[[Sequence[str]], ProcessResult]] = {}
        """The image's own programs that are modelled, beside `chroot`; whoever makes the host puts them in."""
        self.modprobe_answers: Mapping[str, tuple[ModprobeAnswer, ...]] | None = None
        """Module -> what modprobe does at each call, the last for ever; None: what follows from the host."""
        self.on_modprobe: Callable[[str, Sequence[str], int, list[str]], None] = lambda _root, _argv, _code, _taken: None
        """Hears of each modprobe that was found: its root, its argv, its exit code, the functions its drivers took."""
        self._modprobe_calls: dict[str, int] = {}

    def _add_programs(self, image: Mapping[str, str]) -> None:
        for name, folder in image.items():
            if name not in self.spec.container_programs:
                self.tree.write(f"{folder}/{name}", "", 0o755)

    def of_image(self, path: Sequence[str], chroot: str = "busybox", image: Mapping[str, str] = MappingProxyType({})) -> FakeHost:
        """The same host as the container of another image has it: a PATH, a `chroot` and programs of its own, all else shared."""
        other = copy.copy(self)
        other.path = tuple(path)
        other.commands = self.commands.of_image(chroot)
        other.own_programs = {}
        other._add_programs(image)
        return other

    def run(self, argv: Sequence[str]) -> ProcessResult:
        """Run a program of the container. Raises CommandNotFound."""
        name = argv[0]
        if not self._on_path(name):
            raise CommandNotFound(name)
        stand_in = self._container.get(name)
        if stand_in is not None:
            return ProcessResult(stand_in.exit_code, stderr=stand_in.stderr)
        if name == "chroot":
            return self._modprobe(argv) if argv[2] == "modprobe" else self.commands.chroot(argv, self.path)
        own = self.own_programs.get(name)
        if own is None:
            raise CommandNotFound(name)
        return own(argv)

    def spawn(self, argv: Sequence[str], work: Callable[[], ProcessResult]) -> ProcessResult:
        """Start a program whose work the model does itself; a stand-in for it is started instead. Raises CommandNotFound."""
        if argv[0] in self._container or not self._on_path(argv[0]):
            return self.run(argv)
        return work()

    def _on_path(self, name: str) -> bool:
        return self.program_path(name) is not None

    def program_path(self, name: str) -> str | None:
        """`exec.LookPath`: a file that may be executed, in one of PATH's directories."""
        for directory in self.path:
            path = f"{directory}/{name}"
            try:
                node = self.tree.find(path)
            except OSError:
                continue
            if is_executable(node):
                return path
        return None

    def _modprobe(self, argv: Sequence[str]) -> ProcessResult:
        """`chroot ROOT modprobe MODULE`: found and started as any program; then the kernel has the module, or not."""
        result = self.commands.chroot(argv, self.path)
        if result.exit_code != 0:
            return result
        free = [address for address, driver in self.kernel.bound.items() if not driver]
        exit_code = self._load(argv[3].replace("-", "_"))
        taken = sorted(address for address in free if self.kernel.bound.get(address))
        self.on_modprobe(self.tree.resolve(argv[1]), argv[2:], exit_code, taken)
        text = f"modprobe: FATAL: Module {argv[3]} not found.\n" if exit_code else ""
        return ProcessResult(exit_code, stderr=text)

    def _load(self, module: str) -> int:
        """What modprobe does with a module's name, and its exit code."""
        if self.modprobe_answers is None:
            return 0 if module in self.kernel.loaded() or self._insert(module) else 1
        answers = self.modprobe_answers.get(module) or (ModprobeAnswer(1),)
        call = self._modprobe_calls.get(module, 0)
        self._modprobe_calls[module] = call + 1
        answer = answers[min(call, len(answers) - 1)]
        for driver in answer.creates:
            self.kernel.bus.add_driver(driver)
        return answer.exit_code

    def _insert(self, module: str) -> bool:
        """Load a module that is not loaded, if it is there and nothing forbids it."""
        if not self.commands.can_load(module):
            return False
        self.kernel.load(module)
        return True

    def stat(self, path: str) -> None:
        """Does the path exist, links followed? Raises OSError."""
        self.tree.find(path)

    def is_file(self, path: str) -> bool:
        """Is it a regular file, links followed?"""
        try:
            return not isinstance(self.tree.find(path), FakeDirectory)
        except OSError:
            return False

    def read_file(self, path: str) -> str:
        """A file's text. Raises OSError."""
        self.kernel.settle()
        return self.tree.read(path)

    def list_directory(self, path: str) -> list[str]:
        """The names in a directory, sorted. Raises OSError."""
        return self.tree.names(path)

    def is_directory(self, path: str) -> bool:
        """Is it a directory, a link to one not counting?"""
        try:
            return isinstance(self.tree.find(path, follow=False), FakeDirectory)
        except OSError:
            return False

    def read_link(self, path: str) -> str:
        """Where a link points. Raises OSError."""
        found = self.tree.find(path, follow=False)
        if not stat.S_ISLNK(found.st_mode):
            raise failure(errno.EINVAL, path)
        return found.contents or ""

    def resolve(self, path: str) -> str:
        """The path without links. Raises OSError."""
        return self.tree.resolve(path)

    def write_file(self, path: str, text: str) -> None:
        """Open a file of sysfs for writing and write to it. Raises OSError; IoFailure if it could be opened."""
        self.kernel.bus.write(path, text)

    def kernel_release(self) -> str:
        """`uname -r`."""
        return self.spec.os.get("kernel") or KERNEL

    def remove(self, path: str) -> None:
        """`os.Remove`. Raises OSError."""
        self.kernel.remove(path)

    def create_file(self, path: str, text: str) -> None:
        """A file with this text, in place of any that is there. Raises OSError for a directory that is not."""
        self.tree.parent(path)
        self.tree.write(path, text)

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
        return {path: self.tree.exists(path) for path in WATCHED}

    def mounts(self) -> tuple[str, ...]:
        """The mount points left under /run."""
        return tuple(path for path in self.kernel.mount_points() if path.startswith("/run"))

    def modules(self) -> tuple[str, ...]:
        """The modules left, sorted."""
        return tuple(self.kernel.loaded())

    def gpu_drivers(self) -> dict[str, str]:
        """Each GPU's driver at the end."""
        return self.kernel.gpu_drivers()
