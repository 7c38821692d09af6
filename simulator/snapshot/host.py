"""A host from a root that is alive: what files on disk tell (`importing`), and what the kernel and the driver's containers say.

The root is a directory, or the output of the host script. What cannot be seen there is None, for others to make up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from simulator.host.fake import FakeHost
from simulator.host.spec import LOADERS, MELLANOX, NVIDIA, File, HostSpec, Module, Package, PciFunction, Program
from simulator.importing.host import Imported, import_host
from simulator.importing.roots import DIRECTORY, FILE, Root, resolve
from simulator.manager.releases import RELEASES
from simulator.manager.releases import resolve as resolve_release
from simulator.manager.steps import DRIVER_PID_FILE, DRIVER_ROOT, HOST_QUERY, MOFED_READY
from simulator.manager.v0_10_0 import DRIVER_CONFIG_STATE_FILE
from simulator.mounts import listed
from simulator.snapshot.findings import Findings, quoted
from simulator.snapshot.secrets import looks_like_secret, without_secrets
from simulator.snapshot.text_root import Holder, TextRoot
from simulator.snapshot.variables import is_digest
from simulator.vfio.files import SYS_DEVICES

_OSRELEASE, _ARCHITECTURE, _MODPROBE = "/proc/sys/kernel/osrelease", "/proc/sys/kernel/arch", "/proc/sys/kernel/modprobe"
_PROC_MODULES: Final = "/proc/modules"
_CMDLINE: Final = "/proc/cmdline"
_MOUNT_TABLES: Final = ("/proc/1/mountinfo", "/proc/self/mountinfo")
_MOUNTS: Final = re.compile(r"/run/(nvidia|mellanox)(/.*)?")
_USUAL_MODPROBE: Final = "/sbin/modprobe"
_RELEVANT: Final = re.compile(r"\S*(nvidia|nouveau|gdrdrv|nv_peer_mem|nvgrace|vfio|mlx5)")
"""Lines of /proc/modules that have to do with GPUs, or with what holds their modules."""
_LINE: Final = re.compile(
    r"(?P<name>[A-Za-z0-9_]+) (?P<size>\d{1,12}) (?P<count>\d{1,6}|-) (?P<holders>\S+) \S+ \S+ ?(?P<taint>\(\w+\))?"
)
_ADDRESS: Final = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]")
_VENDORS: Final = (NVIDIA, MELLANOX)
_IDS: Final = {"vendor": 4, "device": 4, "class": 6}
_ATTRIBUTES: Final = {
    "subsystem_vendor": re.compile(r"0x[0-9a-f]{4}\n?"),
    "subsystem_device": re.compile(r"0x[0-9a-f]{4}\n?"),
    "modalias": re.compile(r"pci:[0-9A-Za-z]{1,64}\n?"),
    "driver_override": re.compile(r"[\w-]{1,64}\n?"),
}
_KERNEL: Final = re.compile(r"[\w.+~-]{1,128}")
_VERSION: Final = re.compile(r"\d+(\.\d+)+")
_CMDLINE_WORD: Final = re.compile(r"((module|modprobe)[._]blacklist|rd\.driver\.blacklist)=[\w,-]{1,256}")
_LARGEST: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class SeenHost:
    """A host, as far as it was seen. `modules` and `pci` are None where nothing told."""

    host: HostSpec
    modules: tuple[Module, ...] | None
    pci: tuple[PciFunction, ...] | None
    holders: tuple[Holder, ...] | None = None
    """Processes that have a GPU open; None: it was not looked for."""


def path_of(release: str) -> tuple[str, ...]:
    """The directories in which a release looks for nvidia-smi."""
    return resolve_release(release).container_path


def read_host_root(root: Root, name: str, release: str, findings: Findings) -> SeenHost:
    """The host of a root that is alive."""
    said = root if isinstance(root, TextRoot) else None
    kernel = _text(root, _OSRELEASE).strip() or (said.facts.get("kernel", "") if said else "")
    machine = _text(root, _ARCHITECTURE).strip() or (said.facts.get("machine", "") if said else "")
    paths = tuple(dict.fromkeys(directory for tag in RELEASES for directory in path_of(tag)))
    imported = import_host(
        root,
        name,
        paths,
        architecture=machine,
        kernel=kernel if _KERNEL.fullmatch(kernel) and not looks_like_secret(kernel) else "",
        is_booted=True,
    )
    for sentence in imported.assumed:
        findings.assumed(f"on the host: {sentence.rstrip('.')}")
    system = {key: without_secrets(value) for key, value in imported.host.os.items()}
    host = replace(imported.host, description="", os=system, directories=_directories(imported, root))
    modules, pci = _modules(root), _pci(root, findings)
    if modules is None:
        findings.unseen("which kernel modules are loaded")
    if pci is None:
        findings.unseen("which PCI functions there are")
    mounts = _mounts(root)
    if mounts is None:
        findings.unseen("what is mounted below /run")
    host = replace(
        host,
        packages={**host.packages, **_packages(said)},
        programs=tuple(_harmless(program, findings) for program in host.programs),
        files=(*(_readable(file, findings) for file in host.files), *_live_files(root, findings)),
        mounts=mounts or (),
        modules=modules or (),
        pci=pci or (),
    )
    if said is not None:
        for note in said.notes:
            findings.unseen(f"on the host: {without_secrets(note)}")
        if not said.is_whole:
            findings.unseen("the end of the host script's output: it is cut")
        host = _answering(host, said, release, findings)
    loaded = {module.name for module in modules or ()}
    if (
        "nvidia" in host.installable
        and "nvidia" not in loaded
        and any(function.is_gpu and not function.driver for function in pci or ())
    ):
        findings.assumed("the nvidia module on disk can be loaded: nothing that would forbid it (Secure Boot, a key) was looked at")
    return SeenHost(host, modules, pci, _holders(said, modules, findings))


def _holders(said: TextRoot | None, modules: tuple[Module, ...] | None, findings: Findings) -> tuple[Holder, ...] | None:
    """Who has a GPU open, if that was seen. To find nobody where the kernel counts somebody is not to have seen."""
    if said is None or not said.saw_processes:
        return None
    count = next((module.users for module in modules or () if module.name == "nvidia"), 0)
    if count and not said.holders:
        findings.unseen(
            f"which processes have a GPU open: the script found none, yet the kernel counts {count} handle{'s' * (count != 1)} of nvidia"
        )
        return None
    return tuple(said.holders)


def _text(root: Root, path: str) -> str:
    return root.read(resolve(root, path).path, _LARGEST).decode("utf-8", "replace")


def _packages(said: TextRoot | None) -> dict[str, Package]:
    """Those that rpm lists."""
    listed = said.packages if said is not None else {}
    return {name: Package(version) for name, version in listed.items() if len(name) < 256 and not looks_like_secret(name)}


def _directories(imported: Imported, root: Root) -> tuple[str, ...]:
    found = resolve(root, DRIVER_ROOT).entry
    return (*imported.host.directories, *((DRIVER_ROOT,) if found is not None and found.kind == DIRECTORY else ()))


def _harmless(program: Program, findings: Findings) -> Program:
    """A program, what looks like a secret in what it prints left out."""
    clean = replace(program, stdout=without_secrets(program.stdout), stderr=without_secrets(program.stderr))
    if clean != program:
        findings.unseen(f"a part of what {program.path} prints: it looks like a secret")
    return clean


def _readable(file: File, findings: Findings) -> File:
    """A file, what looks like a secret in it left out. Device ids of modules.alias look like one."""
    clean = file if file.path.endswith("/modules.alias") else replace(file, text=without_secrets(file.text))
    if clean != file:
        findings.unseen(f"a part of what {file.path} holds: it looks like a secret")
    return clean


# --- the kernel -----------------------------------------------------------------------------------------------------


def _modules(root: Root) -> tuple[Module, ...] | None:
    """The modules that have to do with GPUs, and those that hold one of them."""
    lines = [match for line in _text(root, _PROC_MODULES).splitlines() if (match := _LINE.match(line))]
    if not lines and resolve(root, _PROC_MODULES).entry is None:
        return None
    holders = {match["name"]: [name for name in match["holders"].split(",") if re.fullmatch(r"\w+", name)] for match in lines}
    kept = {match["name"] for match in lines if _RELEVANT.match(match[0]) or any(map(_RELEVANT.match, holders[match["name"]]))}
    while more := {holder for name in kept for holder in holders.get(name, ()) if holder in holders} - kept:
        kept |= more
    modules = []
    for match in lines:
        if match["name"] in kept:
            name, used_by = match["name"], tuple(holder for holder in holders[match["name"]] if holder in kept)
            count = int(match["count"]) if match["count"] != "-" else len(used_by)
            version = _text(root, f"/sys/module/{name}/version").strip()
            module = Module(name, int(match["size"]), used_by, max(count - len(used_by), 0), match["taint"] or "")
            modules.append(replace(module, version=version if _VERSION.fullmatch(version) and name.startswith("nvidia") else ""))
    return tuple(modules)


def _pci(root: Root, findings: Findings) -> tuple[PciFunction, ...] | None:
    """NVIDIA's and Mellanox' functions, but for virtual ones: no release counts those as GPUs."""
    folder = resolve(root, SYS_DEVICES)
    if folder.entry is None or folder.entry.kind != DIRECTORY:
        return None
    functions, virtual = [], 0
    for address in root.names(folder.path):
        if not _ADDRESS.fullmatch(address):
            continue
        place = resolve(root, f"{folder.path}/{address}").path
        ids = {name: _text(root, f"{place}/{name}").strip() for name in _IDS}
        if ids["vendor"] not in _VENDORS or any(
            not re.fullmatch(f"0x[0-9a-f]{{{_IDS[name]}}}", value) for name, value in ids.items()
        ):
            continue
        if root.look(f"{place}/physfn") is not None:
            virtual += 1
            continue
        functions.append(
            PciFunction(
                address,
                ids["vendor"],
                ids["device"],
                ids["class"],
                driver=_end_of_link(root, f"{place}/driver", r"[\w-]{1,64}"),
                attributes=_attributes(root, place, ids),
                iommu_group=int(group) if (group := _end_of_link(root, f"{place}/iommu_group", r"\d{1,6}")) else None,
            )
        )
    if virtual:
        findings.assumed(f"{virtual} virtual functions of GPUs matter to nothing")
    return tuple(functions)


def _end_of_link(root: Root, path: str, form: str) -> str:
    """The last part of where a link points, if it has the form it should have."""
    entry = root.look(path)
    name = entry.target.rpartition("/")[2] if entry is not None else ""
    return name if re.fullmatch(form, name) else ""


def _attributes(root: Root, place: str, ids: dict[str, str]) -> dict[str, str]:
    """Further files of a function, where they say anything that is not said already."""
    found = {name: _text(root, f"{place}/{name}") for name in _ATTRIBUTES}
    kept = {name: text for name, text in found.items() if _ATTRIBUTES[name].fullmatch(text)}
    plain = HostSpec("x", pci=(PciFunction("0000:00:00.0", ids["vendor"], ids["device"], ids["class"]),))
    tree = FakeHost(plain, ()).tree
    return {name: text for name, text in kept.items() if text != tree.read(f"{SYS_DEVICES}/0000:00:00.0/{name}")}


def _mounts(root: Root) -> tuple[str, ...] | None:
    """The mount points below /run that driver containers make, in the order of the mounts."""
    for table in _MOUNT_TABLES:
        if resolve(root, table).entry is None:
            continue
        whole = "\n".join(line for line in _text(root, table).split("\n") if line.count(" ") >= 4)
        points = [mount.point for mount in listed(whole)]
        return tuple(point for point in points if _MOUNTS.fullmatch(point) and ".." not in point.split("/") and point.isprintable())
    return None


def _live_files(root: Root, findings: Findings) -> list[File]:
    """Files below /run and /proc that a run may read."""
    out = []
    for path in (DRIVER_PID_FILE, DRIVER_CONFIG_STATE_FILE, MOFED_READY):
        found = resolve(root, path)
        if found.entry is not None and found.entry.kind == FILE:
            text = root.read(found.path, 4096).decode("utf-8", "replace")
            if looks_like_secret(text) and not is_digest(text.strip()):
                findings.unseen(f"what {path} holds: it looks like a secret")
                text = ""
            out.append(File(path, text))
    words = [word for word in _text(root, _CMDLINE).split() if _CMDLINE_WORD.fullmatch(word) and not looks_like_secret(word)]
    if words:
        out.append(File(_CMDLINE, " ".join(words) + "\n"))
    modprobe = _text(root, _MODPROBE)
    if modprobe.strip() not in {"", _USUAL_MODPROBE} and re.fullmatch(r"/[\w./-]{1,256}\n?", modprobe):
        out.append(File(_MODPROBE, modprobe))
    for machine in LOADERS:
        path = f"/proc/sys/fs/binfmt_misc/qemu-{machine}"
        if resolve(root, path).entry is not None:
            out.append(File(path, ""))
    return out


# --- what nvidia-smi said -------------------------------------------------------------------------------------------


def _answering(host: HostSpec, said: TextRoot, release: str, findings: Findings) -> HostSpec:
    """The host, whose nvidia-smi says what it said to the script. Where the model would say it anyway, nothing is fixed."""
    if said.answer is None:
        return host
    stdout, code = said.answer
    model = FakeHost(host, path_of(release))
    result = model.run(HOST_QUERY)
    if (result.stdout, result.exit_code) == (stdout, code):
        return host
    started = model.commands.look_up(HOST_QUERY[2], model.path)
    if isinstance(started, int):
        findings.unseen(f"which nvidia-smi answered the script: none is where {release} looks for one")
        return host
    told = without_secrets(stdout)
    findings.assumed(f"{started.path} always says what it said to the script: {quoted(told)}, with exit code {code}")
    place = resolve(said, started.path).path
    kept = tuple(program for program in host.programs if program.path != place)
    fixed = Program(place, stdout=told, exit_code=code)
    return replace(host, programs=(*kept, fixed), files=tuple(file for file in host.files if file.path != place))
