"""The kernel behind the fake host: loaded modules, PCI bindings, mounts, and what its system calls answer.

State lives in the tree's `/sys` and `/proc`, where the program looks for it; this module changes it the way Linux does.
A description may script answers (`EBUSY` once, then ok); without a script the answer follows from the state.

Source: Linux kernel/module/main.c (delete_module), fs/namespace.c (umount2), drivers/base; facts by experiment.
"""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyfakefs.fake_file import FakeFile

from simulator.gocompat import errno_number
from simulator.host.pci import PciBus, device_specs
from simulator.host.spec import HostSpec, Module, PciFunction
from simulator.host.sysfs import SysfsFile, make_directory
from simulator.host.tree import Tree, failure
from simulator.mounts import covering

PCI_DEVICES: Final = "/sys/bus/pci/devices"
_MODULES: Final = "/sys/module"
_PCI_DRIVERS: Final = {
    "nouveau": ("nouveau",),
    "nvgrace_gpu_vfio_pci": ("nvgrace_gpu_vfio_pci",),
    "nvidia": ("nvidia", "nvidia-nvswitch"),
    "vfio_pci": ("vfio-pci",),
}
"""Modules that matter here -> the PCI drivers they bring. Others bring one of their own name."""
_DRIVER_MODULES: Final = {driver: module for module, drivers in _PCI_DRIVERS.items() for driver in drivers}
_VFIO_DEV_SINCE: Final = (6, 1)
"""The Linux release since which a function bound to a vfio driver has a directory `vfio-dev`."""


@dataclass(slots=True)
class Mount:
    """A mount: where, what it hides, and the mount it is on."""

    path: str
    hidden: FakeFile
    parent: Mount | None


@dataclass(slots=True)
class Answers:
    """Scripted answers of one system call, by argument."""

    script: Mapping[str, Any]
    attempts: dict[str, int] = field(default_factory=dict)

    def next(self, argument: str, pod_exists: Callable[[str], bool]) -> str:
        """The answer to the next attempt: "ok", an errno's name, or "real" for what the state says."""
        answer = self.script.get(argument, "real")
        if isinstance(answer, tuple):
            attempt = self.attempts.get(argument, 0)
            self.attempts[argument] = attempt + 1
            return answer[min(attempt, len(answer) - 1)] if answer else "real"
        if isinstance(answer, Mapping):
            return "EBUSY" if any(pod_exists(pod) for pod in answer["busy_while_pods"]) else "real"
        return str(answer)


class Kernel:
    """Modules, PCI functions and mounts of one host."""

    def __init__(self, spec: HostSpec, tree: Tree, pod_exists: Callable[[str], bool]) -> None:
        self.tree = tree
        self.pod_exists = pod_exists
        self.modules: dict[str, Module] = {module.name: module for module in spec.modules}
        self.functions: dict[str, PciFunction] = {function.address: function for function in spec.pci}
        self.bus = PciBus(tree)
        self.bound = self.bus.bound
        """Address of each PCI function -> its driver, "" for none."""
        self.mounts: list[Mount] = []
        self._uses = dict(spec.module_uses)
        self._held = dict(spec.held_by_pods)
        self._delete_module = Answers(spec.delete_module)
        self._umount = Answers(spec.umount)
        self._unlink = Answers(spec.unlink)
        self._write_sysfs(spec)
        if spec.modules or spec.proc_modules is None:
            if spec.modules:
                self._write_proc_modules()
        else:
            tree.write("/proc/modules", spec.proc_modules)
        for path in spec.mounts:
            self.mount(path)

    # --- modules ----------------------------------------------------------------------------------------------

    def _write_sysfs(self, spec: HostSpec) -> None:
        for module in self.modules.values():
            count = SysfsFile("refcnt", f"{len(module.used_by) + module.users}\n")
            make_directory(self.tree, f"{_MODULES}/{module.name}").add_entry(count)
            for user in module.used_by:
                self._hold(user, module.name)
            for driver in _PCI_DRIVERS.get(module.name, ()):
                self.bus.add_driver(driver)
        for user, used in spec.module_uses.items():
            for name in used:
                self._hold(user, name)
        if "vfio-manage" not in spec.container_programs:
            make_directory(self.tree, PCI_DEVICES)  # a node has a PCI bus; a world whose vfio-manage is a stand-in need not
        new_enough = _release(spec.os.get("kernel", "")) >= _VFIO_DEV_SINCE
        for address, device in device_specs(spec.pci, shows_vfio_dev=new_enough):
            self.bus.add_device(address, device)
        for function in spec.pci:
            if function.driver:
                self.bind(function.address, function.driver)

    def _hold(self, user: str, name: str) -> None:
        """/sys/module/NAME/holders shows the modules that use it."""
        if self.tree.exists(f"{_MODULES}/{name}") and not self.tree.exists(f"{_MODULES}/{name}/holders/{user}", follow=False):
            self.tree.link(f"{_MODULES}/{name}/holders/{user}", f"../../{user}")

    def settle(self) -> None:
        """Pods that went have closed what they held open."""
        for name, module in list(self.modules.items()):
            if module.pods and not any(self.pod_exists(pod) for pod in module.pods):
                self.modules[name] = replace(module, users=0, pods=())
                self._write_counts()
        for name, held in list(self._held.items()):
            if not any(self.pod_exists(pod) for pod in held.pods):
                del self._held[name]
                self._count(name, -held.handles)

    def _count(self, name: str, change: int) -> None:
        path = f"{_MODULES}/{name}/refcnt"
        if (text := self._text(path)).strip().isdecimal():  # what is no count stays as it is
            self.tree.write(path, f"{int(text) + change}\n")

    def _text(self, path: str) -> str:
        try:
            return self.tree.read(path)
        except OSError:
            return ""

    def _write_counts(self) -> None:
        for name, module in self.modules.items():
            self.tree.write(f"{_MODULES}/{name}/refcnt", f"{len(module.used_by) + module.users}\n")
        self._write_proc_modules()

    def _write_proc_modules(self) -> None:
        lines = [
            f"{module.name} {module.size} {len(module.used_by) + module.users}"
            f" {''.join(holder + ',' for holder in module.used_by) or '-'} Live 0x0000000000000000 {module.taint}\n"
            for module in self.modules.values()
        ]
        self.tree.write("/proc/modules", "".join(lines))

    def loaded(self) -> list[str]:
        """The names in /sys/module, sorted."""
        directory = self.tree.directory(_MODULES)
        return sorted(directory.entries) if directory else []

    def load(self, name: str) -> None:
        """What a successful `modprobe name` does."""
        if name not in self.modules:
            self.modules[name] = Module(name)
            self.tree.write(f"{_MODULES}/{name}/refcnt", "0\n")
            self._write_proc_modules()
            for driver in _PCI_DRIVERS.get(name, ()):
                self.bus.add_driver(driver)

    def delete_module(self, name: str) -> None:
        """`delete_module(name, 0)`. Raises OSError."""
        self.settle()
        answer = self._delete_module.next(name, self.pod_exists)
        if answer not in {"ok", "real"}:
            raise failure(_number(answer), name)
        if answer == "real":
            if not self.tree.exists(f"{_MODULES}/{name}"):
                raise failure(errno.ENOENT, name)
            module = self.modules.get(name)
            if module is not None and (module.used_by or module.users):
                raise failure(errno.EAGAIN, name)
        self._unload(name)

    def _unload(self, name: str) -> None:
        for driver in self.bus.drivers():
            if _DRIVER_MODULES.get(driver, driver.replace("-", "_")) == name:
                self.bus.remove_driver(driver)
        self.tree.remove_tree(f"{_MODULES}/{name}")
        for used in self._uses.pop(name, ()):
            self._count(used, -1)
        for other in self.loaded():
            self.tree.remove_tree(f"{_MODULES}/{other}/holders/{name}")
        if self.modules.pop(name, None) is not None:
            self.modules = {
                key: replace(module, used_by=tuple(user for user in module.used_by if user != name))
                for key, module in self.modules.items()
            }
            self._write_counts()
        elif self.tree.exists("/proc/modules"):
            text = self.tree.read("/proc/modules")
            kept = [line for line in text.splitlines(keepends=True) if line.split(" ", 1)[0] != name]
            self.tree.write("/proc/modules", "".join(kept))

    # --- PCI --------------------------------------------------------------------------------------------------

    def bind(self, address: str, driver: str) -> None:
        """Bind a function to a driver, which is there from now on."""
        self.bus.add_driver(driver)
        self.bus.bind(address, driver)

    def unbind(self, address: str) -> None:
        """Take a function from its driver, if it has one."""
        self.bus.unbind(address)

    def gpu_drivers(self) -> dict[str, str]:
        """Address of each NVIDIA display function -> its driver."""
        return {address: self.bound[address] for address, function in self.functions.items() if function.is_gpu}

    # --- mounts and files -------------------------------------------------------------------------------------

    def mount(self, path: str) -> None:
        """Mount an empty file system. What lies there is hidden until it is unmounted."""
        self.tree.make_directory(path)
        parent = covering(self.mounts, path)
        self.mounts.append(Mount(path, self.tree.swap(path, None), parent))

    def unmount(self, path: str) -> None:
        """`umount2(path, MNT_DETACH)`: the top mount there, with what is mounted on it. Raises OSError."""
        answer = self._umount.next(path, self.pod_exists)
        if answer not in {"ok", "real"}:
            raise failure(_number(answer), path)
        if answer == "ok":
            return
        self.tree.find(path)
        top = covering(self.mounts, path)
        if top is None or top.path != path:
            raise failure(errno.EINVAL, path)
        self.tree.restore(path, top.hidden)
        gone = [top]
        for mount in self.mounts:
            if mount.parent in gone:
                gone.append(mount)
        self.mounts = [mount for mount in self.mounts if mount not in gone]

    def mount_points(self) -> list[str]:
        """The mount points, in mount order."""
        return [mount.path for mount in self.mounts]

    def remove(self, path: str) -> None:
        """`os.Remove`. Raises OSError."""
        answer = self._unlink.next(path, self.pod_exists)
        if answer not in {"ok", "real"}:
            raise failure(_number(answer), path)
        if answer == "real":
            top = covering(self.mounts, path)
            if top is not None and top.path == path:
                raise failure(errno.EBUSY, path)
            self.tree.remove(path)


def _number(name: str) -> int:
    number = errno_number(name)
    assert number is not None, name
    return number


def _release(text: str) -> tuple[int, int]:
    """The first two numbers of a kernel's release; a release that is not told counts as the newest."""
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (sys.maxsize, 0)
