"""A host, described: frozen values read from a YAML file, or made from a recording's input.

A file describes the node as its administrator sees it, with the node's own paths; the container sees them below /host,
and `/sys`, `/proc`, `/run` also as its own. What the container itself has is under `container`. How the description
becomes a tree is `host.tree`'s business.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from simulator.gocompat import errno_number
from simulator.reading import Place, nearest, read_format

NVIDIA: Final = "0x10de"
MELLANOX: Final = "0x15b3"
_ADDRESS: Final = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]\Z")
_SHORT_ADDRESS: Final = re.compile(r"[0-9a-f]{2}:[01][0-9a-f]\.[0-7]\Z")
_HEX: Final = re.compile(r"0x[0-9a-f]+\Z")
_MODULE: Final = re.compile(r"[A-Za-z0-9_]+\Z")
_VERSION: Final = re.compile(r"[0-9]+(\.[0-9]+)+\Z")
_LONGEST_NAME: Final = 255
SHARED: Final = ("/run", "/sys", "/proc")
"""The node's directories that are the container's too."""
KINDS: Final = tuple(f"A{number}" for number in range(1, 53))
"""The kinds of host there are, as the facts about hosts count them."""
LOADERS: Final = {
    "x86_64": "/lib64/ld-linux-x86-64.so.2",
    "aarch64": "/lib/ld-linux-aarch64.so.1",
    "ppc64le": "/lib64/ld64.so.2",
}
"""Architecture, as `uname -m` has it -> what the kernel needs to start a program of it."""
_X86: Final = "x86_64"


@dataclass(frozen=True, slots=True)
class Program:
    """An executable: what it is, and what running it prints.

    `driver_version` makes it NVIDIA's own nvidia-smi, whose answer follows from the host's state; else the answer is
    fixed, and if `hands_over_to` names a path, what that prints and exits with comes after it, as after a script's
    `exec`. `interpreter` is what the kernel needs to start it; None: it names none, so that the shell runs it (a script
    without `#!`, an empty file), or a driver's binary is static.
    """

    path: str
    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0
    mode: int = 0o755
    driver_version: str = ""
    state: str = "ok"
    interpreter: str | None = "/bin/sh"
    hands_over_to: str = ""
    needs: tuple[str, ...] = ()
    """Shared libraries, as paths, without which the loader does not start it."""
    architecture: str = ""
    """"" is the host's own."""


@dataclass(frozen=True, slots=True)
class PciFunction:
    """A PCI function. Ids are lower-case hexadecimal with 0x; `driver` is "" for none."""

    address: str
    vendor: str
    device: str = "0x0000"
    class_: str = "0x030200"
    driver: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Further files of the function's directory in sysfs, by name."""
    iommu_group: int | None = None
    state: str = "ok"
    """What NVML makes of the GPU."""

    @property
    def is_display(self) -> bool:
        """An NVIDIA display controller of any sort: what makes NVML load the driver."""
        return self.vendor == NVIDIA and self.class_.startswith("0x03")

    @property
    def is_switch(self) -> bool:
        """An NVSwitch, which the driver claims too."""
        return self.vendor == NVIDIA and self.class_.startswith("0x0680")

    @property
    def is_gpu(self) -> bool:
        """An NVIDIA display function: VGA or 3D controller."""
        return self.vendor == NVIDIA and self.class_[:6] in {"0x0300", "0x0302"}


@dataclass(frozen=True, slots=True)
class Module:
    """A loaded kernel module: who holds it (modules), and how many others do (open files)."""

    name: str
    size: int = 16384
    used_by: tuple[str, ...] = ()
    users: int = 0
    taint: str = "(OE)"
    version: str = ""
    """As in /sys/module/NAME/version; "" where it does not matter."""
    pods: tuple[str, ...] = ()
    """Pods (namespace/name) whose processes are the `users`, which are gone when none of these pods is left."""
    processes: tuple[str, ...] = ()
    """Names of processes that are among the `users` and in no pod, for people: "nvidia-persistenced (1201)"."""


@dataclass(frozen=True, slots=True)
class File:
    """A text file. `mode` are permission bits."""

    path: str
    text: str
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class HeldByPods:
    """A module's handles that pods hold: `handles` of them, let go when none of these pods (namespace/name) is left."""

    pods: tuple[str, ...]
    handles: int


Answer = "str | tuple[str, ...] | Mapping[str, tuple[str, ...]]"
"""What the kernel is made to answer: "ok" or "real", an errno's name, one of these for each attempt, or
`{"busy_while_pods": ("ns/name", ...)}`."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package. `status` is dpkg's: installed, removed but for its configuration, only half installed, merely known."""

    version: str = ""
    status: str = "ii"
    auto: bool | None = None
    """Did it come along with another, so that `apt autoremove` may take it? None: not known."""
    depends: str | None = None
    """What it needs, as dpkg's field Depends has it; None: not known."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the description's author expects: the host check's answer, and the truth.

    `driver`: NVIDIA's driver, installed on the host itself, owns a GPU or can take one that is free: its module is in
    memory or could be loaded as the host stands.
    """

    host_check: bool
    driver: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class HostSpec:
    """A whole host."""

    name: str
    description: str = ""
    source: str = ""
    kind: str = ""
    """Which kind of host it is an example of, one of `KINDS`; "" if of none."""
    verdict: Verdict | None = None
    root: str = "normal"
    """What /host is in the container: "normal", "empty" (there, without /bin/sh) or "absent"."""
    files: tuple[File, ...] = ()
    directories: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    programs: tuple[Program, ...] = ()
    pci: tuple[PciFunction, ...] = ()
    modules: tuple[Module, ...] = ()
    installable: tuple[str, ...] = ()
    """Modules that are on disk for the running kernel, so that nvidia-smi's modprobe can load them."""
    mounts: tuple[str, ...] = ()
    packages: Mapping[str, Package] = field(default_factory=dict)
    container_files: tuple[File, ...] = ()
    container_programs: Mapping[str, Program | None] = field(default_factory=dict)
    """Name -> a stand-in for the image's own program, or None if the image lacks it."""
    proc_modules: str | None = ""
    """Text of /proc/modules where `modules` does not give it; None: there is no such file."""
    module_uses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Module -> the modules it uses, once for each handle, where `files` gives the reference counts and not `modules`."""
    held_by_pods: Mapping[str, HeldByPods] = field(default_factory=dict)
    """Module -> its handles that pods hold; they are part of the reference count that `files` gives."""
    delete_module: Mapping[str, Any] = field(default_factory=dict)
    umount: Mapping[str, Any] = field(default_factory=dict)
    unlink: Mapping[str, Any] = field(default_factory=dict)
    init_module: Mapping[str, Any] = field(default_factory=dict)
    """What loading a module that is on disk is answered with, by module."""
    os: Mapping[str, str] = field(default_factory=dict)
    """`name`, `version`, `kernel`, `architecture`."""

    @property
    def architecture(self) -> str:
        """The machine's, as `uname -m` has it."""
        return self.os.get("architecture", _X86)

    @property
    def module_holders(self) -> Mapping[str, tuple[str, ...]]:
        """Module -> the pods (namespace/name) that hold it, where the description says so."""
        out = {module.name: module.pods for module in self.modules if module.pods}
        out |= {name: held.pods for name, held in self.held_by_pods.items()}
        for name, answer in self.delete_module.items():
            if isinstance(answer, Mapping):
                out[name] = (*out.get(name, ()), *answer["busy_while_pods"])
        return out


KEYS: Final = (
    "format",
    "description",
    "source",
    "kind",
    "verdict",
    "os",
    "root",
    "packages",
    "gpus",
    "pci",
    "modules",
    "installable_modules",
    "programs",
    "links",
    "files",
    "directories",
    "mounts",
    "proc_modules",
    "container",
    "kernel",
)


def read_host(place: Place, name: str) -> HostSpec:
    """A host from its document. Raises InputError."""
    place.mapping(KEYS)
    read_format(place)
    kernel = place.get("kernel")
    container = place.get("container")
    if kernel is not None:
        kernel.mapping(("delete_module", "umount", "unlink", "init_module"))
    if container is not None:
        container.mapping(("files", "programs"))
    _check_paths(place)
    os = _os(place.get("os"))
    host = HostSpec(
        name=name,
        description=_text(place, "description"),
        source=_text(place, "source"),
        kind=_kind(place),
        verdict=_verdict(place.get("verdict")),
        os=os,
        root=root.choice("normal", "empty", "absent") if (root := place.get("root")) else "normal",
        packages={key: _package(item) for key, item in place.entries("packages")},
        pci=_pci(place),
        modules=_modules(place),
        installable=tuple(_module_name(item) for item in place.elements("installable_modules")),
        programs=tuple(_program(path, item, os.get("architecture", _X86)) for path, item in place.entries("programs")),
        links={_key_path(item, path): link_target(item) for path, item in place.entries("links")},
        files=tuple(_file(path, item) for path, item in place.entries("files")),
        directories=tuple(node_path(item) for item in place.elements("directories")),
        mounts=tuple(node_path(item) for item in place.elements("mounts")),
        proc_modules=_proc_modules(place),
        container_files=tuple(_file(path, item) for path, item in (container.entries("files") if container else ())),
        container_programs={
            key: None if item.value is None else _container_program(key, item)
            for key, item in (container.entries("programs") if container else ())
        },
        delete_module={key: _answer(item, pods=True) for key, item in (kernel.entries("delete_module") if kernel else ())},
        umount={_key_path(item, key): _answer(item) for key, item in (kernel.entries("umount") if kernel else ())},
        unlink={_key_path(item, key): _answer(item) for key, item in (kernel.entries("unlink") if kernel else ())},
        init_module={key: _answer(item) for key, item in (kernel.entries("init_module") if kernel else ())},
    )
    for item in (*place.elements("gpus"), *place.elements("pci")):
        if item.value["address"] in bound_without_module(host):
            mend = "add {name: nvidia} to modules, or leave the driver out"
            item.child("driver").fail('is "nvidia", but no module of that name is loaded', mend)
    _check_drivers(place, host)
    return host


PCI_DRIVERS: Final = (
    "igb_uio",
    "nouveau",
    "nova_core",
    "nvgrace_gpu_vfio_pci",
    "nvidia",
    "nvidia-gpu",
    "nvidia-nvswitch",
    "pci-stub",
    "pciback",
    "snd_hda_intel",
    "uio_pci_generic",
    "vfio-pci",
    "xhci_hcd",
    "xhci-pci-renesas",
)
"""Drivers that are seen on NVIDIA's functions: they may be built into the kernel, or be named otherwise than their module."""


def _check_drivers(place: Place, host: HostSpec) -> None:
    """NVIDIA's functions are on drivers that are known, or whose module is loaded. Other vendors' may be on any: they are many."""
    drivers = {function.address: function.driver for function in host.pci if function.vendor == NVIDIA and function.driver}
    for item in (*place.elements("gpus"), *place.elements("pci")):
        driver = drivers.get(item.value["address"], "")
        if not driver or driver in PCI_DRIVERS or _is_loaded(host, driver.replace("-", "_")):
            continue
        mend = nearest(driver, (*PCI_DRIVERS, *(module.name for module in host.modules)))
        item.child("driver").fail(
            f'is "{driver}", which is no known driver, and no module of that name is loaded',
            f"{mend} A driver of another name needs its module among modules.",
        )


def bound_without_module(host: HostSpec) -> tuple[str, ...]:
    """The PCI functions on NVIDIA's driver where nothing says that its module is loaded: no kernel would have it so."""
    bound = tuple(function.address for function in host.pci if function.driver == "nvidia")
    return bound if bound and not _is_loaded(host, "nvidia") else ()


def _is_loaded(host: HostSpec, module: str) -> bool:
    """Does anything say that a module is loaded: the list of modules, sysfs, /proc/modules?"""
    paths = (*(file.path for file in host.files), *host.directories, *host.links)
    return (
        any(one.name == module for one in host.modules)
        or any(f"{path}/".startswith(f"/sys/module/{module}/") for path in paths)
        or any(line.startswith(f"{module} ") for line in (host.proc_modules or "").splitlines())
    )


def _check_paths(place: Place) -> None:
    """Each path of the tree is one thing, and nothing lies below what is no directory. So the tree can always be made."""
    kinds = {path: "a link" for path, _ in _paths(place, "links")}
    for section, word in (("programs", "a program"), ("files", "a file")):
        for path, item in _paths(place, section):
            if path in kinds:
                item.fail(f'"{path}" is also {kinds[path]}', "each path is one thing")
            kinds[path] = word
    directories = [(node_path(item), item) for key in ("directories", "mounts") for item in place.elements(key)]
    for path, item in (*(pair for section in ("links", "programs", "files") for pair in _paths(place, section)), *directories):
        if path in SHARED and path in kinds:
            item.fail(f'"{path}" cannot be {kinds[path]}', "it is a file system of the kernel's")
        above = posixpath.dirname(path)
        while above != "/":
            if above in kinds:
                mend = "write the path that the link leads to" if kinds[above] == "a link" else "each path is one thing"
                item.fail(f'"{path}" lies below "{above}", which is {kinds[above]}', mend)
            above = posixpath.dirname(above)
    for path, item in directories:
        if path in kinds:
            item.fail(f'"{path}" is also {kinds[path]}', "each path is one thing")


def _paths(place: Place, section: str) -> Iterator[tuple[str, Place]]:
    seen: set[str] = set()
    for key, item in place.entries(section):
        path = _key_path(item, key)
        if path in seen:
            item.fail(f'"{path}" stands twice, spelled differently', "each path stands once")
        seen.add(path)
        yield path, item


def _kind(place: Place) -> str:
    item = place.get("kind")
    if item is None:
        return ""
    value = item.text()
    if value not in KINDS:
        item.fail(f'"{value}" is no kind of host', f'write one of "{KINDS[0]}" to "{KINDS[-1]}", or leave it out')
    return value


def _os(place: Place | None) -> dict[str, str]:
    if place is None:
        return {}
    place.mapping(("name", "version", "kernel", "architecture"))
    if (architecture := place.get("architecture")) is not None:
        architecture.choice(*LOADERS)
    return {name: item.text() for name, item in place.items() if item.value is not None}


def _package(place: Place) -> Package:
    if isinstance(place.value, str):
        return Package(place.text())
    place.mapping(("version", "status", "auto", "depends"))
    status, auto, depends = (place.get(key) for key in ("status", "auto", "depends"))
    return Package(
        _text(place, "version"),
        status.choice("ii", "hi", "rc", "un", "iF", "iU") if status else "ii",
        auto.boolean() if auto else None,
        depends.text() if depends else None,
    )


def pci_address(place: Place) -> str:
    """A PCI address with its domain."""
    value = place.text()
    if _ADDRESS.match(value):
        return value
    if _ADDRESS.match(value.lower()):
        place.fail(f'"{value}" is upper case', f'write "{value.lower()}"')
    if _SHORT_ADDRESS.match(value.lower()):
        place.fail(f'"{value}" lacks the PCI domain', f'write "0000:{value.lower()}"')
    place.fail(f'"{value}" is no PCI address', 'write it as "0000:3b:00.0"')


def _verdict(place: Place | None) -> Verdict | None:
    if place is None:
        return None
    place.mapping(("host_check", "driver", "why"))
    return Verdict(
        place.need("host_check", "write true or false").boolean(),
        place.need("driver", "write true or false").boolean(),
        _text(place, "why"),
    )


def _pci(place: Place) -> tuple[PciFunction, ...]:
    functions = [_function(item, gpu=True) for item in place.elements("gpus")]
    functions += [_function(item, gpu=False) for item in place.elements("pci")]
    seen: set[str] = set()
    for function in functions:
        if function.address in seen:
            place.fail(f'has the PCI address "{function.address}" twice', "each function stands once, under gpus or pci")
        seen.add(function.address)
    return tuple(sorted(functions, key=lambda function: function.address))


def _function(place: Place, *, gpu: bool) -> PciFunction:
    place.mapping(("address", "vendor", "device", "class", "driver", "attributes", "iommu_group", *(("state",) if gpu else ())))
    driver = place.get("driver")
    return PciFunction(
        address=pci_address(place.need("address", 'write address: "0000:3b:00.0"')),
        vendor=_hex(place, "vendor", 4, NVIDIA if gpu else None),
        device=_hex(place, "device", 4, "0x0000"),
        class_=_hex(place, "class", 6, "0x030200" if gpu else "0x020000"),
        driver=file_name(driver) if driver else "",
        attributes={_attribute(item, key): item.text() for key, item in place.entries("attributes")},
        iommu_group=group.integer(0, 2**20) if (group := place.get("iommu_group")) else None,
        state=state.choice(*GPU_STATES) if (state := place.get("state")) else "ok",
    )


def _hex(place: Place, key: str, digits: int, default: str | None) -> str:
    item = place.get(key)
    if item is None:
        if default is None:
            place.fail(f'lacks the key "{key}"', f'write {key}: "0x{"0" * digits}"')
        return default
    value = item.text()
    if not _HEX.match(value) or len(value) != digits + 2:
        bare = value.lower().removeprefix("0x")
        mend = (
            f'write "0x{bare}"'
            if re.fullmatch(f"[0-9a-f]{{{digits}}}", bare)
            else f"write 0x and {digits} lower-case digits, in quotes"
        )
        item.fail(f'is "{value}"', mend)
    return value


def file_name(place: Place) -> str:
    """A name that a file can have."""
    value = place.text()
    if not value or "/" in value or value in {".", ".."} or not value.isprintable():
        place.fail(f'"{value}" is no name', "write a name without slashes")
    return value


def _attribute(place: Place, name: str) -> str:
    if not name or "/" in name or name in {".", ".."} or not name.isprintable():
        place.fail(f'"{name}" is no name of a file', "write a name without slashes")
    return name


def _module_name(place: Place) -> str:
    value = place.text()
    if not _MODULE.match(value):
        place.fail(f'"{value}" is no module name', f'write "{value.replace("-", "_")}"')
    return value


def _modules(place: Place) -> tuple[Module, ...]:
    modules = []
    for item in place.elements("modules"):
        item.mapping(("name", "size", "used_by", "users", "pods", "processes", "taint", "version"))
        size, users = item.get("size"), item.get("users")
        modules.append(
            Module(
                _module_name(item.need("name", "write name: nvidia")),
                size.integer(0, 2**40) if size else 16384,
                tuple(_module_name(holder) for holder in item.elements("used_by")),
                users.integer(0, 2**20) if users else 0,
                taint.text() if (taint := item.get("taint")) else "(OE)",
                _version(version) if (version := item.get("version")) else "",
                pods.texts() if (pods := item.get("pods")) else (),
                processes.texts() if (processes := item.get("processes")) else (),
            )
        )
    names = Counter(module.name for module in modules)
    for module in modules:
        if names[module.name] > 1:
            place.fail(f'lists the module "{module.name}" twice', "each module stands once")
        for holder in module.used_by:
            if holder not in names:
                place.fail(f'says that "{module.name}" is used by "{holder}", which is not loaded', f"add {holder} to modules")
    return tuple(modules)


STATES: Final = ("ok", "library-missing", "smi-mismatch", "no-permission", "blocked", "unknown-error", "count-unreadable")
"""What NVIDIA's nvidia-smi finds, beside what follows from modules and devices: its library is missing or of another
version than itself (of another than the kernel module: give the module's version), or says so itself."""
GPU_STATES: Final = ("ok", "lost", "needs-reset", "unpowered", "unknown-error", "no-permission", "version-unreadable")
"""What NVML makes of one GPU."""


def _program(path: str, place: Place, host_architecture: str) -> Program:
    place.mapping(
        ("stdout", "stderr", "exit_code", "mode", "driver_version", "state", "interpreter", "exec", "needs", "architecture")
    )
    version, interpreter, architecture, other = (
        place.get(key) for key in ("driver_version", "interpreter", "architecture", "exec")
    )
    needs = tuple(node_path(item) for item in place.elements("needs"))
    if version is not None and any(place.has(key) for key in ("stdout", "stderr", "exit_code", "exec")):
        place.fail("has both driver_version and a fixed answer", "leave one out: with driver_version the host's state decides")
    if version is None and place.has("state"):
        place.fail("has a state but no driver_version", "only NVIDIA's own nvidia-smi has a state")
    if other is not None and place.has("exit_code"):
        place.fail("has both exec and exit_code", "the program it hands over to decides")
    machine = architecture.choice(*LOADERS) if architecture else ""
    is_binary = bool(version or machine or needs)
    default = usual_interpreter(machine or host_architecture, is_binary=is_binary)
    return Program(
        path=_key_path(place, path),
        stdout=_text(place, "stdout"),
        stderr=_text(place, "stderr"),
        exit_code=code.integer(0, 255) if (code := place.get("exit_code")) else 0,
        mode=_mode(place),
        driver_version=_version(version) if version else "",
        state=state.choice(*STATES) if (state := place.get("state")) else "ok",
        interpreter=_interpreter(place, interpreter, default),
        hands_over_to=_other_program(other, place, path) if other else "",
        needs=needs,
        architecture=machine,
    )


def usual_interpreter(architecture: str, *, is_binary: bool) -> str:
    """What the kernel needs to start a program of which nothing else is said."""
    return LOADERS[architecture] if is_binary else "/bin/sh"


def _version(place: Place) -> str:
    value = place.text()
    if not _VERSION.match(value):
        place.fail(f'"{value}" is no version of a driver', 'write it as "580.82.07"')
    return value


def _other_program(place: Place, script: Place, path: str) -> str:
    value = node_path(place)
    if value == _key_path(script, path):
        place.fail(f'"{value}" is the script itself, which would never end', "name the program it starts")
    return value


def _interpreter(place: Place, given: Place | None, default: str) -> str | None:
    if given is None:
        return None if place.has("interpreter") else default
    return node_path(given)


def _container_program(name: str, place: Place) -> Program:
    place.mapping(("exit_code", "stderr", "mode"))
    if "/" in name or not name:
        place.fail(f'"{name}" is no name of a command', "write a name without slashes")
    code = place.get("exit_code")
    return Program(
        f"/usr/bin/{name}", stderr=_text(place, "stderr"), exit_code=code.integer(0, 255) if code else 0, mode=_mode(place)
    )


def _mode(place: Place, default: int = 0o755) -> int:
    item = place.get("mode")
    if item is None:
        return default
    value = item.text()
    if not re.fullmatch(r"0?[0-7]{3}", value):
        item.fail(f'is "{value}"', 'write permission bits in quotes: "0755"')
    return int(value, 8)


def _file(path: str, place: Place) -> File:
    if not isinstance(place.value, dict):
        return File(_key_path(place, path), place.text())
    place.mapping(("text", "mode"))
    return File(_key_path(place, path), _text(place, "text"), _mode(place, 0o644))


def _proc_modules(place: Place) -> str | None:
    if (item := place.get("proc_modules")) is not None:
        return item.text()
    return None if place.has("proc_modules") else ""


def link_target(place: Place) -> str:
    """Where a link points."""
    value = place.text()
    if not value or "\0" in value:
        place.fail("is no target of a link", "write a path")
    return value


def _key_path(place: Place, path: str) -> str:
    return node_path(Place(path, place.file, place.path))


def node_path(place: Place) -> str:
    """A path of the node's that something can be at."""
    path = place.path_text()
    if path == "/":
        place.fail('"/" is the root itself', "name something in it")
    for name in path.split("/"):
        if len(name.encode("utf-8", "surrogateescape")) > _LONGEST_NAME:
            place.fail(f'"{name[:16]}..." is longer than a name can be', f"write {_LONGEST_NAME} bytes at most")
    return path


def _answer(place: Place, *, pods: bool = False) -> Any:
    value = place.value
    if isinstance(value, list):
        return tuple(kernel_answer(item) for item in place.list())
    if isinstance(value, dict) and pods:
        place.mapping(("busy_while_pods",))
        return {"busy_while_pods": place.need("busy_while_pods", "write a list of namespace/name").texts()}
    return kernel_answer(place)


def kernel_answer(place: Place) -> str:
    """What the kernel is made to answer one call: "ok", "real" or an errno's name."""
    value = place.text()
    if value not in {"ok", "real"} and errno_number(value) is None:
        place.fail(f'is "{value}"', "write ok, real or the name of an errno such as EBUSY")
    return value


def _text(place: Place, key: str) -> str:
    item = place.get(key)
    return item.text() if item else ""


def _texts(place: Place, key: str) -> dict[str, str]:
    return {name: item.text() for name, item in place.entries(key)}
