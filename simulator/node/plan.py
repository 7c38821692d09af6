"""The reviewed purge list of a host whose GPUs are to be freed for vfio-pci: what goes, what stays and why, as commands.

The list is made of what is installed, by exact names. apt's answer to it is worked out beforehand, so that what would go
along is named too, and the plan's own check (`apt-get -s`) has an expected answer. What must stay is marked as asked for
before anything is removed. What comes back after a reboot is what the host, as described, still loads by itself or lets
others load. What the description does not show is said, not guessed.

Leaves out who uses the GPUs at the moment: the reboot ends that.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from simulator.host import modprobe
from simulator.host.spec import HostSpec
from simulator.node import apt
from simulator.node.machine import NOUVEAU, NVIDIA, Machine
from simulator.node.packages import DKMS_TREE, DRIVER_MODULES
from simulator.node.roles import UNKNOWN, role_of
from simulator.reading import printable

DPKG: Final = "dpkg"
RPM: Final = "rpm"
ZYPPER: Final = "zypper"
IMAGE: Final = "image"
_SYSTEMS: Final = {
    "fedora atomic": IMAGE,
    "silverblue": IMAGE,
    "kinoite": IMAGE,
    "microos": IMAGE,
    "sle micro": IMAGE,
    "sl-micro": IMAGE,
    "coreos": IMAGE,
    "talos": IMAGE,
    "bottlerocket": IMAGE,
    "container-optimized": IMAGE,
    "flatcar": IMAGE,
    "nixos": IMAGE,
    "ubuntu": DPKG,
    "debian": DPKG,
    "dgx": DPKG,
    "rhel": RPM,
    "red hat": RPM,
    "rocky": RPM,
    "alma": RPM,
    "centos": RPM,
    "oracle": RPM,
    "fedora": RPM,
    "amazon": RPM,
    "sles": ZYPPER,
    "suse": ZYPPER,
}
"""A word of the system's name -> how its packages are removed; the first that fits."""

BLACKLIST: Final = "/etc/modprobe.d/blacklist-nvidia.conf"
_OTHER_DRIVERS: Final = (NOUVEAU, "nova_core")
CONFIGURATION: Final = "".join(
    f"blacklist {name}\ninstall {name} /bin/false\n" for name in (*_OTHER_DRIVERS, *reversed(DRIVER_MODULES))
)
"""What is written to BLACKLIST: a blacklist alone stops neither an explicit modprobe nor a dependency."""
_HOST_CHECK: Final = (
    "sudo chroot / env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    " nvidia-smi --query-gpu=driver_version --format=csv,noheader; echo $?"
)
_AUTOLOAD: Final = ("/etc/modules-load.d/", "/usr/lib/modules-load.d/", "/etc/modules", "/etc/initramfs-tools/modules")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9+._~-]*(:[a-z0-9-]+)?\Z")
_NEWEST: Final = "`update-initramfs -u` renews only the newest kernel's"
_UNINSTALLER: Final = "nvidia-uninstall"
_INSTALLER_LOG: Final = "/var/lib/nvidia/log"


@dataclass(frozen=True, slots=True)
class Item:
    """A package: what it is, and why it goes or stays. `status` is dpkg's."""

    name: str
    role: str
    why: str
    status: str = "ii"


@dataclass(frozen=True, slots=True)
class Return:
    """What comes back after a reboot if it is left, and how."""

    what: str
    how: str


@dataclass(frozen=True, slots=True)
class Step:
    """Commands that are run in this order, as root where they say sudo; `expect` is what they must answer."""

    title: str
    commands: tuple[str, ...]
    expect: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole plan."""

    host: str
    system: str
    remove: tuple[Item, ...] = ()
    along: tuple[Item, ...] = ()
    """Not the driver's, but needing it: apt lets them go too, or installs another driver for them."""
    keep: tuple[Item, ...] = ()
    returns: tuple[Return, ...] = ()
    steps: tuple[Step, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The purge list."""
        return tuple(item.name for item in (*self.remove, *self.along))


def plan(host: HostSpec, unseen: Sequence[str] = ()) -> Plan:
    """The plan for a host. `unseen`: what whoever described it says could not be seen."""
    system = _system(host)
    known = {name: package for name, package in host.packages.items() if package.status != apt.MERELY_KNOWN and _NAME.match(name)}
    chosen = [name for name in known if role_of(name).goes]
    along = [name for name in _all_that_goes(known, chosen) if name not in chosen]
    items = {name: Item(name, role_of(name).name, role_of(name).why, package.status) for name, package in known.items()}
    keep = tuple(item for name, item in items.items() if name not in chosen and name not in along and apt.is_there(known[name]))
    needing = "needs what is removed: left out of the list, it would go without being named, or bring a driver back"
    remove = tuple(items[name] for name in chosen)
    with_them = tuple(Item(name, items[name].role, needing, items[name].status) for name in along)
    uninstaller = _program(host, _UNINSTALLER)
    returns = tuple(_returns(host, system, remove))
    return Plan(
        host.name,
        system,
        remove,
        with_them,
        keep,
        returns,
        tuple(_steps(host, system, remove, with_them, keep, uninstaller)),
        (*_unknown(host, system, known, remove, keep, uninstaller), *unseen),
    )


def _all_that_goes(known: apt.Packages, chosen: Iterable[str]) -> tuple[str, ...]:
    """The list with what it takes along, so that apt has nothing left to decide."""
    names: tuple[str, ...] = tuple(chosen)
    while (more := apt.removal(known, names, swaps=False).remove) != names and set(more) != set(names):
        names = more
    return names


def _system(host: HostSpec) -> str:
    name = host.os.get("name", "").lower()
    ids = "".join(file.text.lower() for file in host.files if file.path in {"/etc/os-release", "/usr/lib/os-release"})
    image = next((system for word, system in _SYSTEMS.items() if system == IMAGE and word in name + ids), "")
    return image or next((system for text in (name, ids) for word, system in _SYSTEMS.items() if word in text), "")


def _program(host: HostSpec, name: str) -> str:
    """Where a program of this name lies, "" for nowhere."""
    places = sorted({*(program.path for program in host.programs), *host.links})
    return next((path for path in places if path.isprintable() and posixpath.basename(path) == name), "")


def _autoloading(host: HostSpec) -> list[str]:
    """The files that have the driver loaded at boot."""
    return [file.path for file in host.files if file.path.startswith(_AUTOLOAD) and "nvidia" in file.text]


# --- what comes back -----------------------------------------------------------------------------------------------


def _returns(host: HostSpec, system: str, remove: Iterable[Item]) -> Iterator[Return]:
    there = [item for item in remove if item.status != apt.CONFIGURATION_LEFT]
    modules = [item.name for item in there if item.role == "kernel module"]
    built = [name for name in modules if "dkms" in name or name.startswith("akmod")]
    live = Machine(host).live
    can_load = live.commands.can_load(NVIDIA)
    gpus = [function for function in host.pci if function.is_gpu]
    if built:
        yield Return(", ".join(built), "builds nvidia.ko again for every kernel that is installed later")
    if any(path.startswith(DKMS_TREE) for path in _paths(host)):
        yield Return(DKMS_TREE, "DKMS builds from this tree for new kernels, whether a package is left or not")
    if NVIDIA in host.installable and gpus:
        if modprobe.is_blacklisted(live.tree, NVIDIA):
            if can_load:
                yield Return(
                    "nvidia.ko",
                    "blacklisted, which stops loading for a device that is found; not `modprobe nvidia`, nor a dependency",
                )
        else:
            yield Return("nvidia.ko", f"is loaded at boot for {', '.join(gpu.address for gpu in gpus)}: nothing forbids it")
    smi = _program(host, "nvidia-smi")
    if smi and can_load and any(function.is_display for function in host.pci):
        yield Return(smi, "driver-manager's host check runs it, and asked as root it loads nvidia.ko itself, past a blacklist")
    if any(item.role == "configuration" for item in there):
        yield Return(
            "udev's rule of the driver", "once nvidia is loaded, it loads nvidia_modeset, nvidia_drm and nvidia_uvm by name"
        )
        yield Return(
            "nouveau", "is kept away by the driver's own modprobe.d; that goes with the package, so a blacklist must replace it"
        )
    for path in _autoloading(host):
        yield Return(path, "names the module to be loaded at boot, past a blacklist")
    if system != IMAGE and (there or NVIDIA in host.installable):
        one = "`dracut -f` renews only the running kernel's" if system in {RPM, ZYPPER} else _NEWEST
        yield Return("each kernel's initramfs", f"holds modules and modprobe.d as they were when it was built; {one}")


def _paths(host: HostSpec) -> Iterator[str]:
    yield from host.directories
    yield from (file.path for file in host.files)


# --- commands ------------------------------------------------------------------------------------------------------


def _steps(
    host: HostSpec, system: str, remove: tuple[Item, ...], along: tuple[Item, ...], keep: tuple[Item, ...], uninstaller: str
) -> Iterator[Step]:
    if system == IMAGE:
        return
    autoload = [path for path in _autoloading(host) if path.isprintable()]
    is_driven = any(function.is_gpu and function.driver not in {"", "vfio-pci", "nvgrace-gpu-vfio-pci"} for function in host.pci)
    has_driver = bool(remove) or bool(uninstaller) or NVIDIA in host.installable or bool(autoload) or is_driven
    if not has_driver:
        return
    if uninstaller:
        programs = sorted({path for name in ("nvidia-smi", _UNINSTALLER) if (path := _program(host, name))})
        yield Step(
            "uninstall what NVIDIA's .run installer installed, before any package",
            (f"sudo {shlex.quote(uninstaller)} -s", f"ls {_words([*programs, _INSTALLER_LOG])}"),
            "ls finds none of them; nvidia-uninstall exits with 0 also where it failed"
            + (" (it may have put the packages' nvidia-smi back: the purge takes that)" if remove else ""),
        )
    names = [item.name for item in (*remove, *along)]
    if names and system:
        yield from _removing(system, host, names, [item.name for item in keep])
    for path in autoload:
        yield Step(f"take the module out of {path}", (f"sudo sed -i /nvidia/d {shlex.quote(path)}",), "other lines stay")
    lines = CONFIGURATION.rstrip("\n")
    yield Step("keep every driver away from the GPUs", (f"sudo tee {BLACKLIST} > /dev/null <<'EOF'\n{lines}\nEOF",))
    if system in {DPKG, ""}:
        yield Step("renew every kernel's initramfs", ("sudo update-initramfs -u -k all",), "a line for each installed kernel")
    if system in {RPM, ZYPPER, ""}:
        yield Step("renew every kernel's initramfs", ("sudo dracut --regenerate-all --force",))
    yield Step("boot without it", ("sudo reboot",))
    yield from _looking(host, system, names)


def _words(names: Iterable[str]) -> str:
    """For a shell: a name that a host's description gives is a word there, and nothing else."""
    return " ".join(map(shlex.quote, names))


def _these(names: Sequence[str]) -> str:
    return f"these {len(names)}" if len(names) != 1 else "this one"


_KEEP_UNUSED: Final = "--setopt=clean_requirements_on_remove=False"
"""dnf's --noautoremove, which dnf5 spells otherwise; this both take."""
_DNF5: Final = "no error; dnf5 (Fedora 41 and newer) says `mark user` for it"


def _removing(system: str, host: HostSpec, names: list[str], keep: list[str]) -> Iterator[Step]:
    words = _words(names)
    marked = [name for name in keep if host.packages[name].auto is not False]
    kept = _words(marked)
    if system == DPKG:
        if marked:
            yield Step("mark what must stay, so that no autoremove takes it", (f"sudo apt-mark manual {kept}",))
        yield Step(
            "ask apt what it would do",
            (f"apt-get -s -o APT::Get::AutomaticRemove=false purge {words} | awk '$1 ~ /^(Inst|Remv|Purg)$/ {{ print $1, $2 }}'",),
            f"no line with Inst, no name but {_these(names)}; else stop: it would install a driver, or take what must stay",
        )
        yield Step(
            "purge exactly these",
            (f"sudo apt-get -o APT::Get::AutomaticRemove=false purge {words}",),
            "no question but this one; run no autoremove afterwards",
        )
    elif system == RPM:
        if marked:
            yield Step("mark what must stay, so that no autoremove takes it", (f"sudo dnf mark install {kept}",), _DNF5)
        yield Step(
            "ask dnf what it would do",
            (f"dnf remove {_KEEP_UNUSED} --assumeno {words}",),
            f"no name but {_these(names)}; else stop",
        )
        yield Step("remove exactly these", (f"sudo dnf remove {_KEEP_UNUSED} {words}",), "no question but this one")
    else:
        yield Step(
            "ask zypper what it would do",
            (f"zypper remove --no-clean-deps --dry-run {words}",),
            f"no name but {_these(names)}; else stop",
        )
        yield Step("remove exactly these", (f"sudo zypper remove --no-clean-deps {words}",))


def _looking(host: HostSpec, system: str, names: list[str]) -> Iterator[Step]:
    words = _words(names)
    if names and system == DPKG:
        yield Step(
            "no package of the list is left",
            (f"dpkg-query -W -f '${{db:Status-Abbrev}} ${{binary:Package}}\\n' {words}",),
            "no line that begins with anything but un; exit code 1 is no error",
        )
    elif names:
        yield Step("no package of the list is left", (f"rpm -q {words}",), "each: is not installed")
    yield Step("the kernel can find no module", (f"modinfo {NVIDIA}",), f"Module {NVIDIA} not found; again after each new kernel")
    gpus = [function.address for function in host.pci if function.is_gpu]
    if gpus:
        yield Step(
            "which driver each GPU has",
            tuple(f"lspci -nnk -s {address}" for address in gpus),
            "no driver in use, or vfio-pci once vfio-manager has run",
        )
    yield Step("driver-manager's own question", (_HOST_CHECK,), "127: there is no nvidia-smi, so the host counts as clean")


# --- what is not known ---------------------------------------------------------------------------------------------


def _unknown(
    host: HostSpec, system: str, known: apt.Packages, remove: tuple[Item, ...], keep: tuple[Item, ...], uninstaller: str
) -> Iterator[str]:
    smi = _program(host, "nvidia-smi")
    if system == IMAGE:
        has_driver = NVIDIA in host.installable or bool(smi)
        yield (
            f"{host.os.get('name', 'the system')} is installed as an image: packages cannot be purged on the node. "
            + (
                "Take the driver (extension, layer, installer DaemonSet) out of the image, or choose one without it"
                if has_driver
                else "No driver was seen in it"
            )
        )
    elif not system:
        yield "which system this is: the description names none, so no command removes a package"
    if not host.packages and system != IMAGE:
        seen = "" if uninstaller else "; list them before you trust this plan (dpkg-query -W or rpm -qa), and import the host again"
        yield f"which packages are installed: the description shows none{seen}"
    elif host.packages:
        yield "packages whose names do not show that they have to do with GPUs: a description may leave them out; the package manager's own answer counts"
    if smi and not uninstaller and not any(item.role == "nvidia-smi" for item in remove) and system != IMAGE:
        yield f"where {smi} comes from: no package here brings it, and there is no {_UNINSTALLER}; ask `dpkg -S {smi}` or `rpm -qf {smi}`"
    if (
        NVIDIA in host.installable
        and not uninstaller
        and not any(item.role == "kernel module" for item in remove)
        and system != IMAGE
    ):
        yield "where nvidia.ko comes from: no package here brings it; ask `modinfo -n nvidia` for its path, then dpkg -S or rpm -qf"
    if uninstaller:
        yield "whether the installer's files were changed since: it leaves those, so look for what step 1 says"
    if hidden := [path for path in _autoloading(host) if not path.isprintable()]:
        yield f"how to write these in a command, which name the module to be loaded at boot: {', '.join(map(printable, hidden))}"
    if odd := [name for name in host.packages if not _NAME.match(name)]:
        yield f"what these are, whose names no package can have: {', '.join(odd)}"
    without = [name for name in known if apt.is_there(known[name]) and apt.needs_of(name, known[name]) is None]
    if without and remove:
        yield f"what these need, so whether they would go along: {', '.join(without)}"
    strangers = [item.name for item in keep if item.role == UNKNOWN.name]
    if strangers:
        yield f"what these are, so they stay: {', '.join(strangers)}"
    if any(item.role in {"rdma", "storage"} for item in keep) and remove:
        yield "whether running jobs use nvidia_peermem, gdrdrv or nvidia_fs: those modules go with the driver at the reboot"
    if remove or uninstaller:
        yield "other installed kernels, and whether Secure Boot, a live image or a provisioning tool brings the driver back"
