"""Programs on the fake host: how one is found and started, and what it prints.

`chroot` looks a command up along the container's PATH inside the host's root, as execvp(3) does: it goes on after "not
found" and "permission denied", a script whose interpreter is missing counts as not found. NVIDIA's nvidia-smi answers
from the host's state; its texts all go to standard output, also with the errors, and asking it loads the module.

Source: busybox coreutils/chroot.c, coreutils chroot.c, musl and glibc execvp; nvidia-smi 535 and 550 by experiment with a
stub NVML.
"""

from __future__ import annotations

import errno
import stat
from collections.abc import Sequence
from typing import Final

from pyfakefs.fake_file import FakeDirectory, FakeFile

from simulator.host.kernel import Kernel
from simulator.host.spec import Program
from simulator.host.tree import HOST, Tree
from simulator.ports import ProcessResult

NOT_FOUND: Final = 127
CANNOT_RUN: Final = 126
_GO_ON: Final = {errno.ENOENT, errno.ENOTDIR, errno.EACCES}


def is_executable(node: FakeFile) -> bool:
    """May root execute it? A file with any execute bit."""
    return not isinstance(node, FakeDirectory) and bool(node.st_mode & (stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH))


def look_up(tree: Tree, name: str, path: Sequence[str], root: str = "") -> tuple[FakeFile | None, int]:
    """execvp: the file that would be started, or None and the errno that remains."""
    last = errno.ENOENT
    for candidate in [name] if "/" in name else [f"{directory}/{name}" for directory in path]:
        number = _try(tree, candidate, root)
        if not number:
            return tree.find(candidate, root=root), 0
        if number == errno.EACCES:
            last = errno.EACCES
        elif number not in _GO_ON:
            return None, number
    return None, last


def _try(tree: Tree, candidate: str, root: str) -> int:
    """execve: 0 if it would start, else the errno."""
    try:
        node = tree.find(candidate, root=root)
    except OSError as error:
        return error.errno or errno.ENOENT
    if not is_executable(node):
        return errno.EACCES
    text = node.contents or ""
    if text.startswith("#!"):
        interpreter = text[2:].split("\n", 1)[0].strip()
        return _try_interpreter(tree, interpreter, root)
    return 0


def _try_interpreter(tree: Tree, interpreter: str, root: str) -> int:
    try:
        node = tree.find(interpreter, root=root)
    except OSError as error:
        return error.errno or errno.ENOENT
    return 0 if is_executable(node) else errno.EACCES


class Commands:
    """What happens when something is run in the host's root."""

    def __init__(self, tree: Tree, kernel: Kernel, programs: Sequence[Program], installable: Sequence[str]) -> None:
        self.tree = tree
        self.kernel = kernel
        self.installable = frozenset(installable)
        self._programs: dict[int, Program] = {}
        for program in programs:
            try:
                node = tree.find(program.path, root=HOST, follow=False)
            except OSError:
                continue
            self._programs[id(node)] = program

    def chroot(self, argv: Sequence[str], path: Sequence[str]) -> ProcessResult:
        """`chroot ROOT COMMAND ...` of busybox."""
        root, command = argv[1], argv[2]
        if not self.tree.exists(root):
            return ProcessResult(1, stderr=f"chroot: can't change root directory to '{root}': No such file or directory\n")
        node, number = look_up(self.tree, command, path, root)
        if node is None:
            text = "No such file or directory" if number == errno.ENOENT else "Permission denied"
            return ProcessResult(
                NOT_FOUND if number == errno.ENOENT else CANNOT_RUN, stderr=f"chroot: can't execute '{command}': {text}\n"
            )
        program = self._programs.get(id(node))
        if program is None or program.interpreter is None:
            return ProcessResult(CANNOT_RUN, stderr=f"chroot: can't execute '{command}': Exec format error\n")
        return (
            self.nvidia_smi(program) if program.driver_version else ProcessResult(program.exit_code, program.stdout, program.stderr)
        )

    def nvidia_smi(self, program: Program) -> ProcessResult:
        """NVIDIA's own program, asked for the driver's version."""
        if program.state == "library-missing":
            return _LIBRARY_MISSING
        gpus = self.kernel.gpu_drivers()
        if "nvidia" not in self.kernel.loaded() and gpus:
            self._modprobe(list(gpus))
        if "nvidia" not in self.kernel.loaded():
            return _NOT_LOADED
        fixed = _STATES.get(program.state)
        if fixed is not None:
            return fixed
        mine = [address for address, driver in gpus.items() if driver == "nvidia"]
        if program.state in _GPU_STATES and mine:
            code, text = _GPU_STATES[program.state]
            return ProcessResult(code, f"Unable to determine the device handle for GPU{mine[0].upper()}: {text}\n\n")
        if not mine:
            return ProcessResult(6, "No devices were found\n")
        line = "[Unknown Error]" if program.state == "version-unreadable" else program.driver_version
        return ProcessResult(0, f"{line}\n" * len(mine))

    def _modprobe(self, gpus: Sequence[str]) -> None:
        """NVML loads the module as root, past any blacklist; the driver then takes the GPUs that are free."""
        free = [address for address in gpus if not self.kernel.bound[address]]
        if "nvidia" not in self.installable or not free:
            return
        self.kernel.load("nvidia")
        for address in free:
            self.kernel.bind(address, "nvidia")


_LIBRARY_MISSING: Final = ProcessResult(
    12,
    "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display Driver is"
    " properly installed and present in your system.\n"
    "Please also try adding directory that contains libnvidia-ml.so to your system PATH.\n",
)
_NOT_LOADED: Final = ProcessResult(
    9,
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver"
    " is installed and running.\n\n",
)
_STATES: Final = {
    "library-mismatch": ProcessResult(
        18, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.82\n"
    ),
    "no-permission": ProcessResult(4, "Failed to initialize NVML: Insufficient Permissions\n"),
    "blocked": ProcessResult(17, "Failed to initialize NVML: GPU access blocked by the operating system\n"),
    "unknown-error": ProcessResult(255, "Failed to initialize NVML: Unknown Error\n"),
}
_GPU_STATES: Final = {
    "gpu-lost": (15, "GPU is lost.  Reboot the system to recover this GPU\n"),
    "gpu-needs-reset": (255, "A GPU reset must occur before this GPU can be used again."),
    "gpu-unpowered": (8, "Unable to communicate with GPU because it is insufficiently powered."),
}
