"""rmmod and lsmod of kmod.

rmmod looks before it asks the kernel: at who uses a module, then at its reference count. It goes on after a module that
stays. The words are kmod's own; Debian's build adds file and line, which are left out.

Source: kmod v30 tools/rmmod.c, tools/lsmod.c, libkmod/libkmod-module.c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from simulator.gocompat import GoError, atoi, errno_of, fields, strerror
from simulator.ports import Host, Output

_MODULES: Final = "/sys/module"


class Kmod:
    """The commands `rmmod` and `lsmod`."""

    def __init__(self, host: Host, output: Output) -> None:
        self.host = host
        self.output = output

    def rmmod(self, args: Sequence[str], _stdout: Callable[[str], None] | None = None) -> int:
        """Unload modules one after the other; 1 if one of them stays."""
        stay = 0
        for arg in args:
            name = arg.replace("-", "_")
            if not self.may_go(name):
                stay += 1
                continue
            try:
                self.host.delete_module(name)
            except OSError as error:
                problem = strerror(errno_of(error))
                self.error(f"could not remove '{name}': {problem}")  # the library's
                self.error(f"could not remove module {arg}: {problem}")  # the command's
                stay += 1
        return 1 if stay else 0

    def may_go(self, name: str) -> bool:
        """`check_module_inuse`, turned round."""
        try:
            self.host.stat(f"{_MODULES}/{name}")
        except OSError:
            self.error(f"Module {name} is not currently loaded")
            return False
        if holders := self.holders(name):
            self.error(f"Module {name} is in use by: {' '.join(holders)}")
            return False
        if self.references(name) > 0:
            self.error(f"Module {name} is in use")
            return False
        return True

    def holders(self, name: str) -> list[str]:
        """The modules that use it, last of the table first, as sysfs lists them."""
        try:
            found = set(self.host.list_directory(f"{_MODULES}/{name}/holders"))
        except OSError:
            return []
        order = [row[0] for row in self.table()]
        return [*(row for row in reversed(order) if row in found), *sorted(found.difference(order))]

    def table(self) -> list[list[str]]:
        """The rows of /proc/modules; none if it cannot be read."""
        try:
            return [words for line in self.host.read_file("/proc/modules").splitlines() if (words := fields(line))]
        except OSError:
            return []

    def references(self, name: str) -> int:
        """Its reference count; what cannot be read is 0 here."""
        try:
            return atoi(self.host.read_file(f"{_MODULES}/{name}/refcnt").strip())
        except (OSError, GoError):
            return 0

    def lsmod(self, _args: Sequence[str], stdout: Callable[[str], None] | None = None) -> int:
        """The table of modules: names and sizes of /proc/modules, counts and users of /sys/module."""
        write = stdout or self.output.stdout
        try:
            self.host.stat("/proc/modules")
        except OSError as error:
            problem = strerror(errno_of(error))
            self.output.stderr(f"libkmod: ERROR could not open /proc/modules: {problem}\n")
            self.output.stderr(f"Error: could not get list of modules: {problem}\n")
            return 1
        write(f"{'Module':<19} {'Size':>8}  Used by\n")
        for name, *rest in self.table():
            users = ",".join(self.holders(name))
            write(f"{name:<19} {rest[0] if rest else '-1':>8}  {self.references(name)}{users and f' {users}'}\n")
        return 0

    def error(self, text: str) -> None:
        """Rmmod's own errors."""
        self.output.stderr(f"rmmod: ERROR: {text}\n")
