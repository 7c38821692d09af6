"""Programs on the fake host: how one is found and started, and what it prints.

`chroot` looks a command up along the container's PATH inside the host's root, as glibc's execvp does: it goes on after
"not found" and "permission denied"; a file whose interpreter is missing counts as not found; one that the kernel cannot
execute (another architecture, a script without `#!`) is given to the host's /bin/sh, which ends the search. NVIDIA's
nvidia-smi answers from the host's state; its texts all go to standard output, also with the errors, and asking it loads
the module, blacklisted or not. Leaves out programs that never answer, and what udev loads after the driver.

Source: busybox coreutils/chroot.c, coreutils chroot.c, glibc posix/execvpe.c; nvidia-smi 535 and 550 by experiment, with
their own NVML and with a stub; kmod's libkmod-module.c; NVIDIA's open kernel modules, nv.c, for "no devices probed".
"""

from __future__ import annotations

import copy
import errno
import os
import posixpath
import stat
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pyfakefs.fake_file import FakeDirectory, FakeFile

from simulator.host import modprobe
from simulator.host.kernel import Answers, Kernel
from simulator.host.spec import HostSpec, PciFunction, Program
from simulator.host.tree import HOST, Tree
from simulator.ports import ProcessResult

NOT_FOUND: Final = 127
CANNOT_RUN: Final = 126
_GO_ON: Final = {errno.ENOENT, errno.ENOTDIR, errno.EACCES}
_MOST_HANDOVERS: Final = 16
_SHELL: Final = "/bin/sh"
_IN_EVERY_KERNEL: Final = frozenset({"vfio", "vfio_pci", "vfio_pci_core", "vfio_iommu_type1"})
"""Modules that no distribution leaves out."""


class Chroot(NamedTuple):
    """Whose `chroot` it is: its exit code for a root that cannot be entered, and its words."""

    no_root: int
    bad_root: str
    bad_command: str


CHROOTS: Final = {
    "busybox": Chroot(1, "chroot: can't change root directory to '%s': %s\n", "chroot: can't execute '%s': %s\n"),
    "coreutils": Chroot(125, "chroot: cannot change root directory to '%s': %s\n", "chroot: failed to run command '%s': %s\n"),
}
"""Flavour -> what is its own. Both exit 127 if the command is not found, and 126 if it cannot be run."""


def is_executable(node: FakeFile) -> bool:
    """May root execute it? A file with any execute bit."""
    return not isinstance(node, FakeDirectory) and bool(node.st_mode & (stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH))


class Started(NamedTuple):
    """A program that starts: where it was found, and what it is (None: one of the root's own, of no interest)."""

    path: str
    program: Program | None
    by_shell: bool = False
    """The kernel could not execute it, and the shell reads it."""


class Commands:
    """What happens when something is run in the host's root."""

    def __init__(self, tree: Tree, kernel: Kernel, spec: HostSpec, flavour: str = "busybox") -> None:
        self.tree = tree
        self.kernel = kernel
        self.architecture = spec.architecture
        self.installable = set(spec.installable)
        """Modules that are on disk; whoever removes one takes it out."""
        self._chroot = CHROOTS[flavour]
        self._init_module = Answers(spec.init_module)
        self._functions: Sequence[PciFunction] = spec.pci
        self._programs: dict[int, tuple[FakeFile, Program]] = {}
        for program in spec.programs:
            try:
                node = tree.find(program.path, root=HOST, follow=False)
            except OSError:
                continue
            self._programs[id(node)] = (node, program)

    def of_image(self, flavour: str) -> Commands:
        """The same host's programs, started by the `chroot` of another image."""
        other = copy.copy(self)
        other._chroot = CHROOTS[flavour]
        return other

    def chroot(self, argv: Sequence[str], path: Sequence[str]) -> ProcessResult:
        """`chroot ROOT COMMAND ...` of the image."""
        root, command = argv[1], argv[2]
        try:
            found = self.tree.find(root)
            if not isinstance(found, FakeDirectory):
                raise NotADirectoryError(errno.ENOTDIR, root)
        except OSError as error:
            text = self._chroot.bad_root % (root, os.strerror(error.errno or errno.ENOENT))
            return ProcessResult(self._chroot.no_root, stderr=text)
        started = self.look_up(command, path, root)
        if isinstance(started, int):
            text = self._chroot.bad_command % (command, os.strerror(started))
            return ProcessResult(NOT_FOUND if started == errno.ENOENT else CANNOT_RUN, stderr=text)
        return self._run(started, command, root)

    def programs(self) -> Iterator[tuple[FakeFile, Program]]:
        """The described programs that lie in the tree, each with its file."""
        yield from self._programs.values()

    def answer(self, program: Program) -> ProcessResult:
        """What a program gives that was started by its own path, as the host stands now. The host may change by it."""
        return self._run(Started(program.path, program, by_shell=self.needs_shell(program)), program.path, HOST)

    def needs_shell(self, program: Program) -> bool:
        """Does the kernel not execute it, so that a shell must read it?"""
        return self._is_foreign(program) or (program.interpreter is None and not program.driver_version)

    # --- finding and starting -------------------------------------------------------------------------------------

    def look_up(self, command: str, path: Sequence[str], root: str = HOST) -> Started | int:
        """execvp: what starts, or the errno that remains."""
        last, denied = errno.ENOENT, False
        for candidate in [command] if "/" in command else [f"{directory}/{command}" for directory in path]:
            started = self._execute(candidate, root)
            if started == errno.ENOEXEC:
                started = self._give_to_shell(candidate, root)
            if not isinstance(started, int):
                return started
            if started not in _GO_ON:
                return started
            last, denied = started, denied or started == errno.EACCES
        return errno.EACCES if denied else last

    def _execute(self, candidate: str, root: str) -> Started | int:
        """execve: what starts, or the errno."""
        try:
            node = self.tree.find(candidate, root=root)
        except OSError as error:
            return error.errno or errno.ENOENT
        if not is_executable(node):
            return errno.EACCES
        program = self._program(node)
        if program is None:
            return Started(candidate, None)
        if self.needs_shell(program):
            return errno.ENOEXEC
        if program.interpreter is not None and (number := self._check(program.interpreter, root)):
            return number
        return Started(candidate, program)

    def _give_to_shell(self, candidate: str, root: str) -> Started | int:
        """What execvp does with a file that the kernel cannot execute."""
        if number := self._check(_SHELL, root):
            return number
        return Started(candidate, self._program(self.tree.find(candidate, root=root)), by_shell=True)

    def _check(self, interpreter: str, root: str) -> int:
        """May this be executed? 0 or the errno."""
        try:
            node = self.tree.find(interpreter, root=root)
        except OSError as error:
            return error.errno or errno.ENOENT
        return 0 if is_executable(node) else errno.EACCES

    def _program(self, node: FakeFile) -> Program | None:
        found = self._programs.get(id(node))
        return found[1] if found else None

    def _is_foreign(self, program: Program) -> bool:
        """Is it of an architecture that neither the processor nor an emulator (binfmt_misc) runs?"""
        machine = program.architecture
        return machine not in {"", self.architecture} and not self.tree.exists(f"/proc/sys/fs/binfmt_misc/qemu-{machine}")

    # --- running ----------------------------------------------------------------------------------------------------

    def _run(self, started: Started, name: str, root: str, handovers: int = 0) -> ProcessResult:
        """What a started program prints, and how it exits. `name` is what it was called by."""
        program = started.program
        if program is None:
            return ProcessResult(0)
        if started.by_shell and self._is_foreign(program):
            return ProcessResult(2, stderr=f"{started.path}: 2: Syntax error\n")
        for library in program.needs:
            if not self.tree.exists(library, root=root):
                text = "error while loading shared libraries: %s: cannot open shared object file: No such file or directory"
                return ProcessResult(NOT_FOUND, stderr=f"{name}: {text % posixpath.basename(library)}\n")
        if program.driver_version:
            return self.nvidia_smi(program)
        if program.hands_over_to:
            return self._hand_over(program, root, handovers)
        return ProcessResult(program.exit_code, program.stdout, program.stderr)

    def _hand_over(self, program: Program, root: str, handovers: int) -> ProcessResult:
        """A script's `exec PATH "$@"`."""
        target = program.hands_over_to
        started = self.look_up(target, (), root) if handovers < _MOST_HANDOVERS else errno.ELOOP
        if isinstance(started, int):
            code = NOT_FOUND if started == errno.ENOENT else CANNOT_RUN
            return ProcessResult(code, program.stdout, f"{program.stderr}{program.path}: exec: {target}: {os.strerror(started)}\n")
        after = self._run(started, target, root, handovers + 1)
        return ProcessResult(after.exit_code, program.stdout + after.stdout, program.stderr + after.stderr)

    def nvidia_smi(self, program: Program) -> ProcessResult:
        """NVIDIA's own program, asked for the driver's version."""
        if program.state == "library-missing":
            return _LIBRARY_MISSING
        if not self._is_loaded():
            self._load_driver()
        if not self._is_loaded():
            return _NOT_LOADED
        module = self.kernel.modules.get("nvidia")
        if module is not None and module.version not in {"", program.driver_version}:
            short = ".".join(program.driver_version.split(".")[:2])
            return ProcessResult(18, f"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: {short}\n")
        if program.state != "ok":
            return _STATES[program.state]
        return self._answer(program.driver_version)

    def _answer(self, version: str) -> ProcessResult:
        """A line for each GPU that the driver has; one that is out of order silences all."""
        drivers = self.kernel.gpu_drivers()
        mine = [function for function in self._functions if drivers.get(function.address) == "nvidia"]
        lines = []
        for function in mine:
            match function.state:
                case "ok":
                    lines.append(f"{version}\n")
                case "version-unreadable":
                    lines.append("[Unknown Error]\n")
                case "no-permission":
                    continue
                case state:
                    code, text = _GPU_STATES[state]
                    address = function.address.upper()
                    return ProcessResult(code, f"Unable to determine the device handle for GPU{address}: {text}")
        if lines:
            return ProcessResult(0, "".join(lines))
        return _NONE_READABLE if mine else _NO_DEVICES

    # --- loading the module -----------------------------------------------------------------------------------------

    def _is_loaded(self) -> bool:
        return "nvidia" in self.kernel.loaded()

    def _load_driver(self) -> None:
        """What NVML does where the module is not loaded: `modprobe nvidia` as root, if there is a GPU at all; a device file."""
        if any(function.is_display for function in self._functions) and not self._check(self._modprobe_path(), HOST):
            self._modprobe("nvidia")
        if self.tree.exists(HOST) and not self.tree.exists("/dev/nvidiactl", root=HOST):
            self.tree.write(f"{HOST}/dev/nvidiactl", "", 0o666)

    def _modprobe_path(self) -> str:
        try:
            return self.tree.read("/proc/sys/kernel/modprobe").strip() or "/sbin/modprobe"
        except OSError:
            return "/sbin/modprobe"

    def can_load(self, name: str) -> bool:
        """An explicit `modprobe NAME`: is the module there, and does nothing forbid it? No blacklist of modprobe's does."""
        return (
            (name in self.installable or name in _IN_EVERY_KERNEL)
            and name not in self._denied_modules()
            and modprobe.goes_on_to_load(self.tree, name)
            and self._init_module.next(name, self.kernel.pod_exists) in {"ok", "real"}
        )

    def _modprobe(self, name: str) -> None:
        """The driver, once loaded, takes what is free of its devices."""
        if not self.can_load(name):
            return
        free = [function for function in self._functions if not self.kernel.bound[function.address]]
        gpus, switches = ([f for f in free if f.is_gpu], [f for f in free if f.is_switch])
        if not gpus and not switches:
            return
        self.kernel.load(name)
        for function in gpus:
            self.kernel.bind(function.address, "nvidia")
        for function in switches:
            self.kernel.bind(function.address, "nvidia-nvswitch")

    def _denied_modules(self) -> set[str]:
        """`module_blacklist=` on the kernel's command line: the kernel itself refuses these."""
        try:
            words = self.tree.read("/proc/cmdline").split()
        except OSError:
            return set()
        values = (word.partition("=")[2] for word in words if word.startswith("module_blacklist="))
        return {name for value in values for name in value.split(",")}


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
_NO_DEVICES: Final = ProcessResult(6, "No devices were found\n")
_NONE_READABLE: Final = ProcessResult(
    4, "No devices were found. Please make sure /dev/nvidia* files are readable by current user.\n"
)
_STATES: Final = {
    "smi-mismatch": ProcessResult(
        255,
        "Mismatch in versions between nvidia-smi and NVML.\nAre you sure you are using nvidia-smi provided with the driver?\n",
    ),
    "no-permission": ProcessResult(4, "Failed to initialize NVML: Insufficient Permissions\n"),
    "blocked": ProcessResult(17, "Failed to initialize NVML: GPU access blocked by the operating system\n"),
    "unknown-error": ProcessResult(255, "Failed to initialize NVML: Unknown Error\n"),
    "count-unreadable": ProcessResult(255, "Unable to determine the number of GPUs"),
}
_GPU_STATES: Final = {
    "lost": (15, "GPU is lost.  Reboot the system to recover this GPU\n\n\n"),
    "needs-reset": (255, "A GPU reset must occur before this GPU can be used again.\n\n.\n"),
    "unpowered": (
        8,
        """\
Unable to communicate with GPU because it is insufficiently powered.
This may be because not all required external power cables are
attached, or the attached cables are not seated properly.


""",
    ),
    "unknown-error": (255, "Unknown Error\n"),
}
