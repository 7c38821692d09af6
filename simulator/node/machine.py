"""The host over time: what its administrator does to it, and what is left of that after a reboot.

Its disk is a description (`HostSpec`) that each act changes; what runs is a fake host made from it at each boot. Removing a
package takes files and modules from the disk at once, and nothing from memory; a reboot loads what the disk and modprobe's
configuration say, for each device that is found. NVIDIA's rule for udev then loads the driver's other modules, blacklisted
or not.

Each kernel has an initramfs: modules and modprobe's configuration as they were when it was built. It is looked at first. The
driver's modules are in one if the hook of Ubuntu's packages put them there, or /etc/initramfs-tools/modules names them; what is
named there is loaded explicitly. A kernel that was not there before gets its modules and its initramfs when it is installed.

Leaves out drivers that are bound by `vfio-pci.ids=`, and modules of RDMA's packages. Source: udev, kmod and initramfs-tools by
experiment; nvidia-installer's uninstall.c; debian/ of the driver's packages.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

from simulator.host import modprobe
from simulator.host.fake import KERNEL, FakeHost
from simulator.host.spec import NVIDIA as GPU_VENDOR
from simulator.host.spec import File, HostSpec, Module
from simulator.host.tree import container_path
from simulator.node import apt
from simulator.node import packages as parts
from simulator.node.pci_ids import bundled
from simulator.node.plugin.names import PCI_IDS
from simulator.node.validator.program import VALIDATIONS
from simulator.reading import InputError, nearest
from simulator.runners.vfio import PATH, with_vfio_files
from simulator.scenario import IN_POD_FILES

NOUVEAU: Final = "nouveau"
NVIDIA: Final = "nvidia"
_NOT_AT_BOOT: Final = frozenset({NOUVEAU, "vfio_pci", "vfio_pci_core", "vfio", "vfio_iommu_type1", "nvgrace_gpu_vfio_pci"})
"""Modules that are not there again after a boot just because they were before."""
_VOLATILE: Final = ("/run/", "/sys/", "/proc/")
_KERNELS_OWN: Final = ("/proc/", "/sys/")
_KERNEL_S: Final = ("/proc/cmdline", "/proc/sys/")
"""What the bootloader and sysctl bring back."""
_INITRD: Final = "/boot/initrd.img-"
_FORCED: Final = "/etc/initramfs-tools/modules"


@dataclass(frozen=True, slots=True)
class Initramfs:
    """What a kernel starts with: the driver's modules that are in it, those it loads by name, and modprobe's configuration."""

    modules: tuple[str, ...]
    forced: tuple[str, ...]
    configuration: tuple[File, ...]


class Machine:
    """One host. `pod_exists` tells which pods hold modules open."""

    def __init__(self, spec: HostSpec, pod_exists: Callable[[str], bool] = lambda _: False) -> None:
        if any(module.name == NOUVEAU for module in spec.modules):
            spec = replace(spec, installable=(*spec.installable, NOUVEAU))
        self.spec = spec
        """What is on the disk, and what is in the machine."""
        self._described = {module.name: module for module in spec.modules}
        self._driver_s = {user for module in spec.modules if module.name in parts.DRIVER_MODULES for user in module.used_by}
        self._driver_s |= set(parts.DRIVER_MODULES)
        """Modules that are there only with the driver: its own, and those that use them."""
        self._built_by_dkms = tuple(module for module in spec.installable if module in parts.DRIVER_MODULES) or parts.DRIVER_MODULES
        self._pod_exists = pod_exists
        self.live = self._start(spec)
        """The running host. Each boot makes another one."""
        kernels = {file.path.removeprefix(_INITRD) for file in spec.files if file.path.startswith(_INITRD)}
        self._installable = dict.fromkeys({*kernels, self.kernel}, spec.installable)
        """Kernel -> the modules that are on the disk for it."""
        self._initramfs = {kernel: self._built(kernel) for kernel in self._installable}

    def _start(self, spec: HostSpec) -> FakeHost:
        host = with_vfio_files(spec)
        files = (*host.container_files, *IN_POD_FILES, File(PCI_IDS, bundled()))
        live = FakeHost(replace(host, container_files=files), PATH, self._pod_exists)
        live.tree.make_directory(VALIDATIONS)  # a volume of the operands' pods
        return live

    @property
    def kernel(self) -> str:
        """`uname -r`."""
        return self.spec.os.get("kernel") or KERNEL

    # --- the administrator -----------------------------------------------------------------------------------

    def write(self, path: str, text: str) -> None:
        """A file of the host's gets this text. Raises InputError where a shell could not write it either."""
        if f"{path}/".startswith(_KERNELS_OWN):
            raise InputError("", "", f'"{path}" is the kernel\'s, which takes no file', "write a file of the disk, or of /run")
        if self.live.tree.directory(container_path(path)) is not None:
            raise InputError("", "", f'"{path}" is a directory', "name a file in it")
        kept = tuple(file for file in self.spec.files if file.path != path)
        self.spec = replace(self.spec, files=(*kept, File(path, text)))
        self.live.tree.write(container_path(path), text)

    def remove(self, paths: Iterable[str]) -> None:
        """Files, programs, links or whole directories of the host's are gone, if they were there. Raises InputError for the kernel's."""
        for path in paths:
            if path == "/" or f"{path}/".startswith(_KERNELS_OWN):
                raise InputError("", "", f'"{path}" cannot be removed', "name files of the disk, or of /run")

            def stays(other: str, path: str = path) -> bool:
                return other != path and not other.startswith(f"{path}/")

            spec = self.spec
            self.spec = replace(
                spec,
                files=tuple(file for file in spec.files if stays(file.path)),
                programs=tuple(program for program in spec.programs if stays(program.path)),
                links={link: target for link, target in spec.links.items() if stays(link)},
                directories=tuple(directory for directory in spec.directories if stays(directory)),
            )
            self.live.tree.remove_tree(container_path(path))

    def purge(self, patterns: Iterable[str]) -> apt.Transaction:
        """`apt purge` of the installed packages that match. Raises InputError for a pattern that matches none."""
        before = self.spec.packages
        for pattern in (wanted := tuple(patterns)):
            if not parts.matching(before, (pattern,)):
                raise InputError("", "", f'no package "{pattern}" is installed on {self.spec.name}', nearest(pattern, before))
        done = apt.removal(before, parts.matching(before, wanted))
        self._carry_out(done, purge=True)
        return done

    def autoremove(self) -> apt.Transaction:
        """`apt autoremove`."""
        done = apt.Transaction((), apt.autoremovable(self.spec.packages))
        self._carry_out(done, purge=False)
        return done

    def mark_manual(self, names: Iterable[str]) -> None:
        """`apt-mark manual`: these were asked for. Raises InputError for one that is not installed."""
        packages = dict(self.spec.packages)
        for name in names:
            if name not in packages or not apt.is_there(packages[name]):
                raise InputError("", "", f'no package "{name}" is installed on {self.spec.name}', nearest(name, packages))
            packages[name] = replace(packages[name], auto=False)
        self.spec = replace(self.spec, packages=packages)

    def _carry_out(self, done: apt.Transaction, *, purge: bool) -> None:
        before = self.spec.packages
        self.spec = replace(self.spec, packages=apt.carried_out(before, done, purge=purge))
        lost = [part for part in parts.PARTS if parts.brings(before, part) and not parts.brings(self.spec.packages, part)]
        if parts.NVIDIA_SMI in lost:
            self.remove(self._programs_named("nvidia-smi"))
        if parts.MODULES in lost:
            self._remove_modules()
            self.remove([parts.DKMS_TREE])
        if parts.CONFIGURATION in lost:
            self.remove(parts.CONFIGURATION_FILES)
            self.update_initramfs(every=False)  # what the package's postrm does

    def update_initramfs(self, *, every: bool = True) -> tuple[str, ...]:
        """`update-initramfs -u -k all`; without `every`, `-u`, which renews the newest kernel's: whose were renewed."""
        kernels = sorted(self._initramfs, key=_version)
        renewed = tuple(kernels if every else kernels[-1:])
        self._initramfs.update({kernel: self._built(kernel) for kernel in renewed})
        return renewed

    def _built(self, kernel: str) -> Initramfs:
        files = self.spec.files
        named = {word.replace("-", "_") for file in files if file.path == _FORCED for word in file.text.split()}
        has_hook = parts.brings(self.spec.packages, parts.INITRAMFS_HOOK)
        mine = [name for name in self._installable[kernel] if name in parts.DRIVER_MODULES]
        forced = tuple(name for name in mine if name in named)
        configuration = tuple(file for file in files if posixpath.dirname(file.path) in modprobe.DIRECTORIES)
        return Initramfs(tuple(mine) if has_hook else forced, forced, configuration)

    def nvidia_uninstall(self) -> tuple[str, ...]:
        """`nvidia-uninstall -s`: the .run installer's files, and the modules, those in memory too: which it could unload.

        Raises InputError on a host that lacks the program.
        """
        if not self._programs_named("nvidia-uninstall"):
            raise InputError("", "", f"{self.spec.name} has no nvidia-uninstall", "purge the packages instead")
        for name in parts.INSTALLER_PROGRAMS:
            self.remove(self._programs_named(name))
        self.remove((*parts.INSTALLER_FILES, parts.DKMS_TREE))
        self._remove_modules()
        unloaded = []
        for module in parts.DRIVER_MODULES:
            if module in self.live.modules():
                try:
                    self.live.delete_module(module)
                except OSError:  # in use; the installer goes on with the next
                    continue
                unloaded.append(module)
        return tuple(unloaded)

    def _programs_named(self, name: str) -> list[str]:
        places = (*(program.path for program in self.spec.programs), *self.spec.links)
        return [path for path in places if posixpath.basename(path) == name]

    def _remove_modules(self) -> None:
        self._keep_modules(tuple(module for module in self.spec.installable if module not in parts.DRIVER_MODULES))

    def _keep_modules(self, installable: tuple[str, ...]) -> None:
        self.spec = replace(self.spec, installable=installable)
        self.live.commands.installable.intersection_update(installable)
        for kernel, modules in self._installable.items():
            self._installable[kernel] = tuple(module for module in modules if module in installable)

    # --- booting ---------------------------------------------------------------------------------------------

    def reboot(self, kernel: str = "") -> None:
        """Down and up again, into another kernel if one is named; one that is not there is installed first."""
        kernel = kernel or self.kernel
        if kernel not in self._installable:
            modules = tuple(module for module in self.spec.installable if module not in parts.DRIVER_MODULES)
            self._installable[kernel] = (*modules, *(self._built_by_dkms if parts.builds_modules(self.spec) else ()))
            self._initramfs[kernel] = self._built(kernel)
        os = self.spec.os if kernel == self.kernel else {**self.spec.os, "kernel": kernel}
        spec = self.spec = replace(self.spec, os=os, installable=self._installable[kernel])
        kept = {module.name for module in spec.modules} - self._driver_s - _NOT_AT_BOOT
        self.spec = replace(
            spec,
            modules=_held_by(kept, spec.modules),
            pci=tuple(replace(function, driver="" if function.vendor == GPU_VENDOR else function.driver) for function in spec.pci),
            mounts=(),
            files=tuple(file for file in spec.files if not file.path.startswith(_VOLATILE) or file.path.startswith(_KERNEL_S)),
        )
        self.live = self._start(self.spec)
        early = self._initramfs[kernel]
        first = self._start(replace(self.spec, installable=early.modules, files=self._early_files(early)))
        for host, forced in ((first, early.forced), (self.live, ())):
            module = self._found_by_udev(host, forced)
            if module:
                self.spec = self._with_driver(module, {host, self.live})
                self.live = self._start(self.spec)
                return

    def _early_files(self, early: Initramfs) -> tuple[File, ...]:
        return (*early.configuration, *(file for file in self.spec.files if file.path.startswith(_KERNEL_S)))

    def _found_by_udev(self, host: FakeHost, forced: Collection[str] = ()) -> str:
        """The module that is loaded for the GPUs, "" for none. Nouveau comes first; NVIDIA's driver leaves alone what is taken."""
        commands = host.commands
        if not any(function.is_gpu for function in self.spec.pci):
            return ""
        if forced and commands.can_load(NVIDIA):  # each of the others needs it
            return NVIDIA
        loads = (
            module for module in (NOUVEAU, NVIDIA) if commands.can_load(module) and not modprobe.is_blacklisted(host.tree, module)
        )
        return next(loads, "")

    def _with_driver(self, module: str, hosts: Collection[FakeHost]) -> HostSpec:
        """The host with the module that took its GPUs; NVIDIA's with those that udev and services load then from these roots."""
        loaded = {module}
        if module == NVIDIA:
            loaded |= {
                name for name in self._described if name in self._driver_s and any(host.commands.can_load(name) for host in hosts)
            }
        known = [
            replace(self._described.get(name, Module(name)), version="") for name in (*self._described, module) if name in loaded
        ]
        pci = tuple(replace(function, driver=module if function.is_gpu else function.driver) for function in self.spec.pci)
        names = loaded | {other.name for other in self.spec.modules}
        return replace(self.spec, modules=_held_by(names, (*dict.fromkeys(known), *self.spec.modules)), pci=pci)


def _version(kernel: str) -> list[tuple[int, str]]:
    """To sort by, numbers as numbers."""
    return [(int(number or 0), rest) for number, rest in re.findall(r"(\d*)(\D*)", kernel)]


def _held_by(names: Collection[str], modules: Iterable[Module]) -> tuple[Module, ...]:
    """Of the modules those of these names, held by one another only."""
    return tuple(
        replace(module, used_by=tuple(user for user in module.used_by if user in names))
        for module in modules
        if module.name in names
    )
