"""A host file from a root directory: what the host check and the other steps would find in it.

Looks for nvidia-smi where a container's PATH leads, follows what starts it (a script's interpreter, a binary's loader and
libraries), and notes modules on disk, modprobe's configuration, the system and its packages. What no file can tell (which
GPUs there are, what a longer script prints) is assumed, and each assumption is told. What is below /run, /sys, /proc and /dev
is left out: on a running node something else is mounted there.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from simulator.host import modprobe
from simulator.host.spec import LOADERS, NVIDIA, SHARED, File, HostSpec, Module, PciFunction, Program
from simulator.host.tree import render
from simulator.importing.elf import BrokenElf, Elf, read_elf
from simulator.importing.libraries import find_library, folders, needed
from simulator.importing.packages import installed
from simulator.importing.roots import DIRECTORY, FILE, Entry, Found, Root, resolve
from simulator.importing.scripts import read_script
from simulator.reading import printable

COMMAND: Final = "nvidia-smi"
ELSEWHERE: Final = (
    "/opt/bin",
    "/opt/nvidia/bin",
    "/usr/local/nvidia/bin",
    "/usr/local/cuda/bin",
    "/home/kubernetes/bin/nvidia/bin",
    "/usr/libexec/nvidia/tesla/bin",
    "/usr/lib/wsl/lib",
)
"""Where systems are known to keep nvidia-smi off every PATH."""
ORDINARY: Final = ("/bin/sh", "/sbin/modprobe")
"""What driver-manager and NVML start in the host's root, beside nvidia-smi."""
_INSTALLER: Final = ("/usr/bin/nvidia-uninstall", "/var/lib/nvidia/log")
"""What NVIDIA's own installer leaves."""
_GPU: Final = PciFunction("0000:01:00.0", NVIDIA, "0x2236")
_MODULE_NAMES: Final = re.compile(r"nvidia.*|nouveau|gdrdrv|nv_peer_mem|nvgrace_gpu_vfio_pci|mlx5_core")
_KO: Final = re.compile(r"\.ko(\.(gz|xz|zst))?$")
_DEBIANS: Final = re.compile(r"nvidia-(current|tesla(-\d+)?)(?=-|$)")
"""Debian's files of NVIDIA's modules have other names than the modules."""
_NVML: Final = "libnvidia-ml.so"
_NVML_VERSION: Final = re.compile(r"libnvidia-ml\.so\.(?P<version>\d+(\.\d+)+)$")
_DRIVER_VERSION: Final = re.compile(r"(\d+:)?(?P<version>\d+(\.\d+)+)")
_NAMES: Final = {"Debian GNU/Linux": "Debian", "Red Hat Enterprise Linux": "RHEL"}
_EMPTY_ON_A_NODE: Final = (*SHARED, "/dev")
_LARGEST_TEXT: Final = 1 << 20
_LARGEST_PROGRAM: Final = 64 << 20
_LONGEST_SCRIPT: Final = 1 << 16
_MOST_FILES: Final = 200_000
_MOST_HANDOVERS: Final = 16


@dataclass(frozen=True, slots=True)
class Imported:
    """A host, what of it was assumed, and what was passed over: sentences for a person."""

    host: HostSpec
    assumed: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()

    @property
    def comments(self) -> Iterator[str]:
        """Both as lines to put above the host's file."""
        if self.assumed:
            yield from ("Assumed:", *(f"- {sentence}" for sentence in self.assumed))
        if self.passed_over:
            yield from ("Passed over:", *(f"- {sentence}" for sentence in self.passed_over))


def import_host(
    root: Root,
    name: str,
    path: Sequence[str],
    *,
    architecture: str = "",
    kernel: str = "",
    is_booted: bool = False,
    source: str = "",
) -> Imported:
    """The host of a root. `path` are the directories in which nvidia-smi is looked for; `architecture` is what an image says.

    `kernel` is the running one's release, where that is known. A root that is booted already has no GPU made up for it, and no
    module loaded: its caller knows them.
    """
    importer = _Importer(root, path, architecture)
    return importer.imported(importer.host(name, kernel, source), is_booted=is_booted)


class _Root:
    """A root as it is on a running node: with nothing below the directories where file systems will be mounted."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._known: dict[str, Entry | None] = {}

    @property
    def skipped(self) -> Counter[str]:
        """What was passed over."""
        return self._root.skipped

    def look(self, path: str) -> Entry | None:
        if path not in self._known:
            hidden = path.startswith(tuple(f"{top}/" for top in _EMPTY_ON_A_NODE))
            self._known[path] = None if hidden else Entry(DIRECTORY) if path in _EMPTY_ON_A_NODE else self._root.look(path)
        return self._known[path]

    def names(self, path: str) -> list[str]:
        return [] if path in _EMPTY_ON_A_NODE else self._root.names(path)

    def read(self, path: str, size: int, offset: int = 0) -> bytes:
        return self._root.read(path, size, offset)


class _Importer:
    """What was found so far."""

    def __init__(self, root: Root, path: Sequence[str], architecture: str) -> None:
        self.root = _Root(root)
        self.path = path
        self.links: dict[str, str] = {}
        self.files: dict[str, File] = {}
        self.directories: dict[str, None] = {}
        self.programs: dict[str, Program] = {}
        self.assumed: dict[str, None] = {}
        self.architecture = self._architecture(architecture)
        self.packages = installed(self.root)
        self.nvml = find_library(self.root, f"{_NVML}.1", folders(self.root, self.architecture))
        if self.nvml is not None:
            self._keep(self.nvml.asked)
        self.version = self._driver_version()

    def host(self, name: str, kernel: str, source: str) -> HostSpec:
        """What files tell."""
        ordinary = [self._keep(path) for path in (*ORDINARY, LOADERS[self.architecture])]
        for directory in dict.fromkeys((*self.path, *ELSEWHERE)):
            self._command(f"{directory}/{COMMAND}")
        for path in _INSTALLER:
            self._keep(path)
        os = self._os()
        kernel = kernel or self._kernel()
        self._keep_aliases(kernel)
        for directory in modprobe.DIRECTORIES:
            found = self._resolved(directory)
            for file in self.root.names(found.path) if found.entry else ():
                if file.endswith(".conf"):
                    self._keep(f"{found.path}/{file}", with_text=True)
        return HostSpec(
            name=name,
            description=f"Imported from {printable(source)}." if source else "",
            os={**os, **({"kernel": kernel} if kernel else {}), "architecture": self.architecture},
            root="normal" if all(found.entry for found in ordinary) else "empty",
            packages=self.packages,
            installable=tuple(self._modules(kernel)),
            programs=tuple(self.programs.values()),
            links={path: target for path, target in self.links.items() if path not in SHARED},
            files=tuple(file for path, file in self.files.items() if path not in self.programs),
            directories=tuple(self.directories),
        )

    def imported(self, host: HostSpec, *, is_booted: bool) -> Imported:
        """The host with what was assumed and passed over."""
        host = host if is_booted else self._booted(host)
        skipped = tuple(
            f"{count} {'entry' if count == 1 else 'entries'} {reason}" for reason, count in sorted(self.root.skipped.items())
        )
        return Imported(host, tuple(self.assumed), skipped)

    # --- looking --------------------------------------------------------------------------------------------------

    def _resolved(self, path: str) -> Found:
        """Follow a path; the links on the way belong to the host. A name that is no UTF-8 can stand in no file."""
        found = resolve(self.root, path)
        if not all(_is_text(text) for pair in found.links.items() for text in pair) or not _is_text(found.path):
            self._assume(f"{path} leads over a name that is no UTF-8, which no host file can hold: taken for missing.")
            return Found(path, path, None, {})
        self.links |= found.links
        return found

    def _keep(self, path: str, *, with_text: bool = False) -> Found:
        """A file belongs to the host if it is there: its text, if asked for, else only that it is there, and who may run it."""
        found = self._resolved(path)
        if found.entry is not None and found.entry.kind == DIRECTORY:
            if found.path != "/":
                self.directories.setdefault(found.path)
        elif found.entry is not None:
            text = self._text(found.path) if with_text else ""
            self.files[found.path] = File(found.path, text, found.entry.mode & 0o777 if found.entry.kind == FILE else 0)
        return found

    def _text(self, path: str) -> str:
        return self.root.read(path, _LARGEST_TEXT).decode("utf-8", "replace")

    def _elf(self, path: str) -> Elf | None:
        """Raises BrokenElf."""
        return read_elf(lambda size, offset: self.root.read(path, size, offset))

    def _assume(self, sentence: str) -> None:
        self.assumed.setdefault(sentence)

    # --- the system -----------------------------------------------------------------------------------------------

    def _architecture(self, given: str) -> str:
        """The machine's: that of the image, of the shell, or of the loader that is there."""
        try:
            shell = self._elf(self._resolved(ORDINARY[0]).path)
        except BrokenElf:
            shell = None
        if shell is not None and shell.architecture in LOADERS:
            return shell.architecture
        there = [machine for machine, loader in LOADERS.items() if resolve(self.root, loader).entry]
        if given in LOADERS or there:
            return given if given in LOADERS else there[0]
        default = next(iter(LOADERS))
        self._assume(f"The machine is {default}: neither /bin/sh nor a loader tells.")
        return default

    def _os(self) -> dict[str, str]:
        for path in ("/etc/os-release", "/usr/lib/os-release"):
            found = self._keep(path, with_text=True)
            if found.entry is not None and found.entry.kind == FILE:
                pairs = (line.partition("=") for line in self.files[found.path].text.splitlines())
                told = {key.strip(): value.strip().strip("\"'") for key, _, value in pairs}
                name, version = told.get("NAME", ""), told.get("VERSION_ID", "")
                return {key: value for key, value in (("name", _NAMES.get(name, name)), ("version", version)) if value}
        return {}

    def _kernel(self) -> str:
        """The release of the kernel that has modules here; of several, the highest."""
        releases = sorted(
            (name for name in self.root.names(self._resolved("/lib/modules").path) if name[:1].isdigit() and _is_text(name)),
            key=lambda name: [int(number) for number in re.findall(r"\d{1,9}", name)],
        )
        if len(releases) > 1:
            self._assume(f"It runs kernel {releases[-1]}, the highest of {len(releases)} that have modules in /lib/modules.")
        return releases[-1] if releases else ""

    def _modules(self, kernel: str) -> list[str]:
        """The modules on disk for a kernel that matter to driver-manager, sorted."""
        found: set[str] = set()
        todo, met = [resolve(self.root, f"/lib/modules/{kernel}").path] if kernel else [], 0
        while todo and met < _MOST_FILES:
            directory = todo.pop()
            for name in self.root.names(directory):
                met += 1
                entry = self.root.look(f"{directory}/{name}")
                if entry is not None and entry.kind == DIRECTORY:
                    todo.append(f"{directory}/{name}")
                elif entry is not None and _KO.search(name):
                    found.add(_DEBIANS.sub("nvidia", _KO.sub("", name)).replace("-", "_"))
        if met >= _MOST_FILES:
            self._assume(f"/lib/modules/{kernel} holds no more of interest than the first {_MOST_FILES} files.")
        return sorted(name for name in found if re.fullmatch(r"[a-z0-9_]+", name) and _MODULE_NAMES.fullmatch(name))

    def _keep_aliases(self, kernel: str) -> None:
        """The lines of modules.alias by which vfio-manage finds the driver of a device."""
        found = self._resolved(f"/lib/modules/{kernel}/modules.alias") if kernel else None
        if found is not None and found.entry is not None and found.entry.kind == FILE:
            lines = self.root.read(found.path, _LARGEST_PROGRAM).decode("utf-8", "replace").splitlines(keepends=True)
            if aliases := "".join(line for line in lines if line.startswith("alias vfio_pci:")):
                self.files[found.path] = File(found.path, aliases)

    def _booted(self, host: HostSpec) -> HostSpec:
        """The host with a GPU, and with the driver that a boot would have given it."""
        tree = render(host)

        def loads(module: str) -> bool:
            may = not modprobe.is_blacklisted(tree, module) and modprobe.goes_on_to_load(tree, module)
            return module in host.installable and may

        driver = next((module for module in ("nvidia", "nouveau") if loads(module)), "")
        state = (
            f"on {driver}, whose module is on disk and loads at boot"
            if driver
            else "without a driver: no module for it loads at boot"
        )
        sources = [name for name in self.root.names(self._resolved("/usr/src").path) if re.fullmatch(r"nvidia-\d[\d.]*", name)]
        if sources and "nvidia" not in host.installable:
            self._assume(f"The driver in /usr/src/{sources[0]} is not built: no module of that name is in /lib/modules.")
        self._assume(f"It has one GPU, {_GPU.address} ({_GPU.vendor[2:]}:{_GPU.device[2:]}), {state}.")
        modules = (Module(driver),) if driver else ()
        return replace(host, pci=(replace(_GPU, driver=driver),), modules=modules)

    # --- nvidia-smi -----------------------------------------------------------------------------------------------

    def _command(self, path: str, handovers: int = 0) -> None:
        """Something that may be started, and what starting it needs."""
        found = self._keep(path)
        if found.entry is None or found.entry.kind != FILE or found.path in self.programs:
            return
        self.programs[found.path] = self._program(found.path, found.entry, handovers)

    def _program(self, path: str, entry: Entry, handovers: int) -> Program:
        program = Program(path, mode=entry.mode & 0o777)
        if not entry.is_executable:
            return replace(program, interpreter=None)
        try:
            elf = self._elf(path)
        except BrokenElf:
            return replace(program, interpreter=None, exit_code=127)  # the kernel refuses it, and the shell makes nothing of it
        return self._binary(program, elf) if elf is not None else self._script(program, entry, handovers)

    def _script(self, program: Program, entry: Entry, handovers: int) -> Program:
        script = read_script(self.root.read(program.path, _LONGEST_SCRIPT), is_whole=entry.size <= _LONGEST_SCRIPT)
        interpreter = self._interpreter(script.interpreter) if script.interpreter else None
        program = replace(program, interpreter=interpreter)
        if not script.is_known:
            return self._unknown(program, "a script that does more than print fixed text")
        if not script.hands_over_to:
            return replace(program, stdout=script.stdout, stderr=script.stderr, exit_code=script.exit_code)
        other = self._target(script.hands_over_to)
        if other == program.path or handovers >= _MOST_HANDOVERS:
            return self._unknown(program, "a script that starts itself")
        self._command(other, handovers + 1)
        return replace(program, stdout=script.stdout, stderr=script.stderr, hands_over_to=other)

    def _interpreter(self, path: str) -> str:
        """Where a file's interpreter is; it is kept if it is there."""
        target = self._target(path)
        self._keep(target)
        return target

    def _target(self, path: str) -> str:
        """A path that a file of the root names, as a host file can: absolute, without `..`, in UTF-8."""
        plain = "/" + path.lstrip("/")
        if ".." in plain.split("/"):
            plain = resolve(self.root, plain).path
        plain = plain.encode("utf-8", "replace").decode()
        fits = (
            len(plain) < 1000 and all(len(part.encode()) < 256 for part in plain.split("/")) and "\0" not in plain and plain != "/"
        )
        return posixpath.normpath(plain).replace("//", "/") if fits else "/no/such/interpreter"

    def _unknown(self, program: Program, what: str) -> Program:
        """A program whose output cannot be told counts as one that answers."""
        answer = self.version or "unknown"
        self._assume(f'{program.path} is {what}: it prints "{answer}" and exits with 0.')
        return replace(program, stdout=f"{answer}\n")

    def _binary(self, program: Program, elf: Elf) -> Program:
        machine = elf.architecture
        runs_here = machine == self.architecture or (machine, self.architecture) == ("i386", "x86_64")
        if not runs_here:
            if machine not in LOADERS:
                written = next(other for other in LOADERS if other != self.architecture)
                self._assume(
                    f"{program.path} is for machine {elf.machine} of the ELF standard, written as {written}: neither runs here."
                )
                machine = written
            return replace(program, architecture=machine, interpreter=LOADERS[machine])
        if elf.interpreter is None:
            interpreter = program.path  # static: what it needs is itself
        else:
            interpreter = self._interpreter(elf.interpreter)
        program = replace(program, interpreter=interpreter, needs=tuple(self._needed(program.path, elf)))
        if not self._is_nvidias(program.path):
            return self._unknown(program, "a binary that is not NVIDIA's")
        if not self.version:
            self._assume(f"{program.path} is of driver 0.0: neither {_NVML} nor a package tells the version.")
        return replace(program, driver_version=self.version or "0.0", state="ok" if self.nvml else "library-missing")

    def _needed(self, path: str, elf: Elf) -> Iterator[str]:
        """Each library that a binary needs, directly or not: where it is, or, if it is missing, where it would be."""
        for wanted, found in needed(self.root, path, elf, self.architecture):
            if found is None:
                yield self._target(wanted)
            elif self._keep(wanted).entry is not None:
                yield found.path

    def _is_nvidias(self, path: str) -> bool:
        """NVIDIA's nvidia-smi opens its library by name."""
        return _NVML.encode() in self.root.read(path, _LARGEST_PROGRAM)

    def _driver_version(self) -> str:
        """The version of NVML that nvidia-smi would open, else that of the package which has nvidia-smi; "" if nothing tells."""
        names = [name for name in self.packages if re.match(r"nvidia-(smi|utils|driver-cuda|compute)", name)]
        versions = [_DRIVER_VERSION.match(self.packages[name].version) for name in names]
        told = [_NVML_VERSION.search(self.nvml.path) if self.nvml else None, *versions]
        return next((match["version"] for match in told if match), "")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
