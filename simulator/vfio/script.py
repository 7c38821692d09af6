"""The shell version of vfio-manage, v0.4.2 to v0.9.1, as BusyBox runs it under `set -eu`.

One method per function of the script. Where a command's failure ends the script, `_Exit` is raised; where the shell
passes over it (in a condition, or inside `$(...)`, which does not inherit `set -e`), it is not. Line numbers and words on
standard error are BusyBox's; nothing depends on them.

This is the script as v0.4.2 had it; `v0_8_1` holds what was added. Up to v0.8.1 it was bash that ran it, whose words are not
modelled.

Source: scripts/vfio-manage, v0.4.2 and v0.6.2 (the same), v0.8.1, v0.9.0 and v0.9.1 (the same but for the shell); BusyBox 1.35 ash, getopt, readlink, cat and ls by experiment.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from typing import Final

from simulator.ports import IoFailure, Output, VfioHost
from simulator.vfio import messages as m
from simulator.vfio.files import SYS_DEVICES, SYS_DRIVERS, base, exists
from simulator.vfio.getopt import getopt

_NAME: Final = "/usr/bin/vfio-manage"
_NVIDIA: Final = "0x10de"
_VFIO_PCI: Final = "vfio-pci"
NONE: Final = "NONE"
_WHITE: Final = " \t\n"
_UNSET_VARIABLE: Final = 2
_STRERROR: Final = {
    "EACCES": "Permission denied",
    "EBUSY": "Device or resource busy",
    "EINVAL": "Invalid argument",
    "EIO": "Input/output error",
    "ENODEV": "No such device",
    "ENOENT": "No such file or directory",
    "ENOMEM": "Cannot allocate memory",
    "ENOTDIR": "Not a directory",
    "EPERM": "Operation not permitted",
    "EROFS": "Read-only file system",
}


class _Exit(Exception):
    """The script ends."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def main(kind: type[Script], args: Sequence[str], env: Mapping[str, str], host: VfioHost, output: Output) -> int:
    """Run a release's script; returns its exit code."""
    script = kind(env, host, output)
    try:
        script.run(list(args))
    except _Exit as ended:
        return ended.code
    return 0


def _strerror(error: OSError) -> str:
    name = errno.errorcode.get(error.errno or 0, "")
    return _STRERROR.get(name, name)


class Script:
    """The script, v0.4.2."""

    def __init__(self, env: Mapping[str, str], host: VfioHost, output: Output) -> None:
        self.env = env
        self.host = host
        self.output = output
        self.device_id = ""
        self.all_devices = env.get("ALL_DEVICES")

    # --- the script's last lines: arguments, then a command -----------------------------------------------------

    def run(self, args: list[str]) -> None:
        """Everything after the functions."""
        if not args:
            self.usage()
        command = args.pop(0)
        if command in {"bind", "unbind"}:
            parsed = getopt(args, posixly_correct="POSIXLY_CORRECT" in self.env)
            if parsed.complaints:
                self.complain("".join(f"getopt: {complaint}\n" for complaint in parsed.complaints))
                raise _Exit(1)
            parameters = [word.text for word in parsed.words]
            self.read_options(_fields(parsed.text), parameters)
        elif command != "help":
            self.usage()
        if command == "help":
            self.usage()
        elif command == "bind":
            self.handle_bind()
        else:
            self.handle_unbind()

    def read_options(self, words: list[str], parameters: list[str]) -> None:
        """`for opt in ${options}`: over the words of getopt's text, which need not be its arguments."""
        for word in words:
            if word in {"-a", "--all"}:
                self.all_devices = "true"
                self.shift(parameters, 1)
            elif word in {"-d", "--device-id"}:
                if len(parameters) < 2:
                    self.complain(f"{_NAME}: line 206: 2: parameter not set\n")
                    raise _Exit(_UNSET_VARIABLE)
                self.device_id = parameters[1]
                self.shift(parameters, 2)
            elif word in {"-h", "--help"}:
                self.shift(parameters, 1)
            elif word == "--":
                self.shift(parameters, 1)
                break
        if parameters:
            self.usage()

    def shift(self, parameters: list[str], count: int) -> None:
        """`shift`: too few arguments are a failure like any other."""
        if count > len(parameters):
            raise _Exit(1)
        del parameters[:count]

    def handle_bind(self) -> None:
        """`handle_bind`."""
        if self.device_id:
            self.bind_device(self.device_id)
        elif self.wants_all(168):
            self.bind_all()
        else:
            self.usage()

    def handle_unbind(self) -> None:
        """`handle_unbind`."""
        if self.device_id:
            self.unbind_device(self.device_id)
        elif self.wants_all(178):
            self.unbind_all()
        else:
            self.usage()

    def wants_all(self, line: int) -> bool:
        """`[ "$ALL_DEVICES" = "true" ]`, of a variable that only --all sets, or the environment."""
        if self.all_devices is None:
            self.complain(f"{_NAME}: line {line}: ALL_DEVICES: parameter not set\n")
            raise _Exit(_UNSET_VARIABLE)
        return self.all_devices == "true"

    def usage(self) -> None:
        """`usage`: exit code 0, also after a mistake."""
        self.complain(m.SCRIPT_USAGE)
        raise _Exit(0)

    # --- the functions ------------------------------------------------------------------------------------------

    def unbind_from_driver(self, gpu: str) -> None:
        """`unbind_from_driver`: the override is only cleared if there was a driver."""
        if exists(self.host, f"{SYS_DEVICES}/{gpu}/driver"):
            self.take_from_driver(gpu, self.readlink_f(f"{SYS_DEVICES}/{gpu}/driver"), 27)

    def unbind_from_other_driver(self, gpu: str) -> None:
        """`unbind_from_other_driver`."""
        if not exists(self.host, f"{SYS_DEVICES}/{gpu}/driver"):
            return
        driver = self.readlink_f(f"{SYS_DEVICES}/{gpu}/driver")
        if base(driver) != _VFIO_PCI:
            self.take_from_driver(gpu, driver, 43)

    def take_from_driver(self, gpu: str, driver: str, line: int) -> None:
        """The last lines of both functions above."""
        self.echo(m.SCRIPT_UNBINDING_FROM % (gpu, base(driver)))
        self.write(f"{driver}/unbind", gpu + "\n", line)
        self.write(f"{SYS_DEVICES}/{gpu}/driver_override", "\n", line + 1)

    def is_nvidia_gpu_device(self, _gpu: str) -> bool:
        """Is it more than a function of NVIDIA's? Not asked, in this release: audio and USB functions count too."""
        return True

    def is_bound_to_vfio(self, gpu: str) -> bool:
        """`is_bound_to_vfio`."""
        if not exists(self.host, f"{SYS_DEVICES}/{gpu}/driver"):
            return False
        driver = base(self.readlink_f(f"{SYS_DEVICES}/{gpu}/driver"))
        self.echo(m.SCRIPT_EXISTING_DRIVER % driver)
        return driver == _VFIO_PCI

    def unbind_device(self, gpu: str) -> None:
        """`unbind_device`."""
        if not self.is_nvidia_gpu_device(gpu):
            return
        self.echo(m.SCRIPT_UNBINDING % gpu)
        self.unbind_from_driver(gpu)
        auxiliary = self.get_graphics_aux_dev(gpu)
        if auxiliary != NONE:
            self.echo(m.SCRIPT_GRAPHICS_MODE % (gpu, auxiliary))
            self.unbind_from_driver(auxiliary)

    def unbind_all(self) -> None:
        """`unbind_all`."""
        for device in self.devices():
            if self.read_vendor(device, 92) == _NVIDIA:
                self.unbind_device(base(device))

    def bind_pci_device(self, gpu: str) -> None:
        """`bind_pci_device`: whether the module is loaded is not asked."""
        if self.is_bound_to_vfio(gpu):
            self.echo(m.SCRIPT_ALREADY_BOUND % gpu)
            return
        self.unbind_from_other_driver(gpu)
        self.echo(m.SCRIPT_BINDING % gpu)
        self.write(f"{SYS_DEVICES}/{gpu}/driver_override", "vfio-pci\n", 106)
        self.write(f"{SYS_DRIVERS}/{_VFIO_PCI}/bind", gpu + "\n", 107)

    def get_graphics_aux_dev(self, _gpu: str) -> str:
        """The function that a GPU in graphics mode brings: not looked for, in this release."""
        return NONE

    def bind_device(self, gpu: str) -> None:
        """`bind_device`."""
        if not self.is_nvidia_gpu_device(gpu):
            self.echo(m.SCRIPT_NOT_A_GPU % gpu)
            return
        self.bind_pci_device(gpu)
        auxiliary = self.get_graphics_aux_dev(gpu)
        if auxiliary != NONE:
            self.echo(m.SCRIPT_GRAPHICS_MODE % (gpu, auxiliary))
            self.bind_pci_device(auxiliary)

    def bind_all(self) -> None:
        """`bind_all`."""
        for device in self.devices():
            if self.read_vendor(device, 157) == _NVIDIA:
                self.bind_device(base(device))

    # --- what the shell does ------------------------------------------------------------------------------------

    def echo(self, text: str) -> None:
        """`echo` on standard output."""
        self.output.stdout(text + "\n")

    def complain(self, text: str) -> None:
        """Standard error."""
        self.output.stderr(text)

    def devices(self) -> list[str]:
        """The pattern /sys/bus/pci/devices/*, which stands for itself if nothing matches."""
        return [f"{SYS_DEVICES}/{name}" for name in self.visible(SYS_DEVICES) or ["*"]]

    def visible(self, path: str) -> list[str]:
        """The names in a directory but for hidden ones; none if it cannot be read."""
        try:
            return [name for name in self.host.list_directory(path) if not name.startswith(".")]
        except OSError:
            return []

    def read_vendor(self, device: str, line: int) -> str:
        """`read -r vendor < "$dev/vendor"`: fails without a file, and without a newline in it."""
        path = f"{device}/vendor"
        try:
            text = self.host.read_file(path)
        except IoFailure:
            raise _Exit(1) from None
        except OSError as error:
            problem = "no such file" if error.errno == errno.ENOENT else _strerror(error)
            self.complain(f"{_NAME}: line {line}: can't open {path}: {problem}\n")
            raise _Exit(1) from None
        first, newline, _ = text.partition("\n")
        if not newline:
            raise _Exit(1)
        return first.replace("\0", "").strip(_WHITE)

    def readlink_f(self, path: str) -> str:
        """`$(readlink -f path)`: only the last name may be missing; "" if another is."""
        try:
            return self.host.resolve(path)
        except OSError:
            head, _, name = path.rpartition("/")
        try:
            return f"{self.host.resolve(head)}/{name}"
        except OSError:
            return ""

    def cat(self, path: str) -> str:
        """`$(cat path)`: the text without newlines at its end; what could not be read is missing."""
        try:
            if path:
                return self.host.read_file(path).replace("\0", "").rstrip("\n")
        except IoFailure as error:
            self.complain(f"cat: read error: {_strerror(error)}\n")
        except OSError as error:
            self.complain(f"cat: can't open '{path}': {_strerror(error)}\n")
        else:
            self.complain("cat: can't open '': No such file or directory\n")
        return ""

    def ls(self, path: str) -> list[str]:
        """`ls path`: the visible names, sorted."""
        try:
            self.host.list_directory(path)
        except OSError as error:
            self.complain(f"ls: {path}: {_strerror(error)}\n")
        return self.visible(path)

    def is_listable(self, path: str) -> bool:
        """`ls path/` without an error."""
        try:
            self.host.list_directory(path)
        except OSError:
            return False
        return True

    def write(self, path: str, text: str, line: int) -> None:
        """`echo text > path`; a failure ends the script."""
        try:
            self.host.write_file(path, text)
        except IoFailure as error:
            self.complain(f"sh: write error: {_strerror(error)}\n")
            raise _Exit(1) from None
        except OSError as error:
            problem = "nonexistent directory" if error.errno == errno.ENOENT else _strerror(error)
            self.complain(f"{_NAME}: line {line}: can't create {path}: {problem}\n")
            raise _Exit(1) from None


def _fields(text: str) -> list[str]:
    """Word splitting of an unquoted expansion."""
    for char in _WHITE:
        text = text.replace(char, " ")
    return [word for word in text.split(" ") if word]
