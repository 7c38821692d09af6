"""nvidia-validator's components of the sandbox: vfio-pci, vgpu-manager, vgpu-devices, cc-manager.

Each of the first three writes what the node is for into a status file, and leaves it at that where the node is for
something else. vfio-pci then looks once, whatever WITH_WAIT says: the first GPU that no vfio driver has ends it with exit
code 1, and the kubelet tries again. The others wait, in steps of five seconds, for as long as it takes.

As of the GPU Operator v24.9.0; what other charts have is in `releases`. Leaves out the pod's own configuration for the API
server, the wait for virtual functions (v26.3.0) or parent devices (v26.7.0) of a vGPU manager that answers, and the
contents of mediated devices.

Source: NVIDIA/gpu-operator cmd/nvidia-validator/main.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from simulator.gocompat import SECOND, GoError, PathError, errno_of, exit_status, wrapping
from simulator.kube.clientset import Clientset
from simulator.kube.rest import drive
from simulator.node.validator import messages as m
from simulator.ports import Clock, CommandNotFound, VfioHost
from simulator.vfio.files import read_dir
from simulator.vfio.nvpci import NvPci

VALIDATIONS: Final = "/run/nvidia/validations"
WORKLOAD_TYPE: Final = "workload-type"
VFIO_READY: Final = "vfio-pci-ready"
VGPU_MANAGER_READY: Final = "vgpu-manager-ready"
HOST_VGPU_MANAGER_READY: Final = "host-vgpu-manager-ready"
VGPU_DEVICES_READY: Final = "vgpu-devices-ready"
CC_MANAGER_READY: Final = "cc-manager-ready"
CC_CONTAINER_READY: Final = ".cc-manager-ctr-ready"

WORKLOAD_LABEL: Final = "nvidia.com/gpu.workload.config"
CC_LABEL: Final = "nvidia.com/cc.capable"
CONTAINER: Final = "container"
PASSTHROUGH: Final = "vm-passthrough"
VGPU: Final = "vm-vgpu"
WORKLOADS: Final = (CONTAINER, PASSTHROUGH, VGPU)

VFIO_PCI: Final = "vfio-pci"
VGPU_MANAGER: Final = "vgpu-manager"
VGPU_DEVICES: Final = "vgpu-devices"
CC_MANAGER: Final = "cc-manager"
COMPONENTS: Final = (CC_MANAGER, VFIO_PCI, VGPU_MANAGER, VGPU_DEVICES)
"""The sandbox's components, in the order of the DaemonSet's init containers."""

_SLEEP: Final = 5
_MDEV_DEVICES: Final = "/sys/bus/mdev/devices"
_FAILURE: Final = 1


class StatusHost(VfioHost, Protocol):
    """The node as the validator sees it: it also writes and removes status files."""

    def create_file(self, path: str, text: str) -> None:
        """A file with this text, in place of any that is there. Raises OSError."""

    def remove(self, path: str) -> None:
        """Remove a file. Raises OSError."""


class ValidatorLog(Protocol):
    """Where the validator writes: logrus, its fields beside the message, and standard output."""

    def log(self, level: str, message: str, **fields: str) -> None:
        """One log call."""

    def stdout(self, text: str) -> None:
        """Raw text on standard output."""


class Validator:
    """The program of one chart."""

    chart = "v24.9.0"
    drivers: frozenset[str] = frozenset({"vfio-pci"})
    """The drivers that count as vfio."""
    logs_version = True
    capital_errors = False
    """Do the errors of reading the label and of writing its file begin with a capital?"""
    nvpci: type[NvPci] = NvPci

    def __init__(
        self, host: StatusHost, clientset: Clientset, clock: Clock, out: ValidatorLog, env: Mapping[str, str], version: str
    ) -> None:
        self.host = host
        self.clientset = clientset
        self.clock = clock
        self.out = out
        self.env = env
        self.version = version

    def main(self) -> int:
        """`main`: the exit code."""
        if self.logs_version:
            self.out.log("info", m.VERSION % self.version)
        try:
            self.validate()
        except GoError as error:
            self.out.log("info", m.ERROR % error)  # logrus' Printf is an info
            return _FAILURE
        return 0

    def validate(self) -> None:
        """`validateFlags`, `validateComponent`. Raises GoError."""
        component = self.env.get("COMPONENT", "")
        if not component:
            raise GoError(m.NO_COMPONENT)
        if component not in COMPONENTS:
            raise GoError(m.UNKNOWN_COMPONENT % component)
        if component != CC_MANAGER and not self.env.get("NODE_NAME"):
            raise GoError(m.NO_NODE_NAME % component)
        match component:
            case "vfio-pci":
                with wrapping(m.INVALID_VFIO):
                    self.validate_vfio_pci()
            case "vgpu-manager":
                with wrapping(m.INVALID_VGPU_MANAGER):
                    self.validate_vgpu_manager()
            case "vgpu-devices":
                with wrapping(m.INVALID_VGPU_DEVICES):
                    self.validate_vgpu_devices()
            case _:
                with wrapping(m.INVALID_CC_MANAGER):
                    self.validate_cc_manager()

    # --- what the node is for -----------------------------------------------------------------------------------

    def required_for(self, workload: str, skipped: str) -> bool:
        """How each component but cc-manager begins: is the node for this workload? Raises GoError."""
        with wrapping(self.spelled(m.WORKLOAD_CONFIG_FAILED)):
            configured = self.get_workload_config()
        self.out.log("info", m.WORKLOAD_CONFIG % configured)
        with wrapping(self.spelled(m.STATUS_FILE_FAILED % WORKLOAD_TYPE)):
            self.create_status_file_with_content(WORKLOAD_TYPE, f"{configured}\n")
        if configured == workload:
            return True
        self.out.log("info", skipped, gpuWorkloadConfig=configured)
        return False

    def get_workload_config(self) -> str:
        """`getWorkloadConfig`: the node's label, or the default of the flag, or of the program. Raises GoError."""
        given = self.env.get("DEFAULT_GPU_WORKLOAD_CONFIG", "")
        default = given if given in WORKLOADS else PASSTHROUGH
        try:
            value = self.get_labels().get(WORKLOAD_LABEL)
        except GoError as error:
            raise GoError(self.spelled(m.NODE_LABELS_FAILED % error)) from None
        if value is None:
            self.out.log("info", m.NO_LABEL % (WORKLOAD_LABEL, default))
            return default
        if value not in WORKLOADS:
            self.out.log("warning", m.INVALID_LABEL % (value, default))
            return default
        return value

    def get_labels(self) -> Mapping[str, str]:
        """The node's labels. Raises GoError."""
        name = self.env.get("NODE_NAME", "")
        try:
            node = drive(self.clock, self.clientset.get_node(name))
        except GoError as error:
            self.out.log("error", m.NO_NODE % (name, error))
            raise
        labels: Mapping[str, str] = node["metadata"].get("labels") or {}
        return labels

    def spelled(self, text: str) -> str:
        """An error's text with the first letter of this chart."""
        return text[:1].upper() + text[1:] if self.capital_errors else text

    # --- status files -------------------------------------------------------------------------------------------

    def create_status_file_with_content(self, name: str, text: str) -> None:
        """`createStatusFileWithContent`: by way of a temporary file. Raises GoError."""
        with wrapping(m.NO_TEMPORARY_FILE):
            self.create(name, text)

    def create_status_file(self, name: str) -> None:
        """`createStatusFile`: an empty file. Raises GoError."""
        try:
            self.create(name, "")
        except GoError as error:
            raise GoError(m.NO_STATUS_FILE % (_path(name), error)) from None

    def create(self, name: str, text: str) -> None:
        """A file in the directory of status files. Raises PathError."""
        try:
            self.host.create_file(_path(name), text)
        except OSError as error:
            raise PathError("open", _path(name), errno_of(error)) from None

    def delete_status_file(self, name: str) -> None:
        """`deleteStatusFile`: one that is not there is no error. Raises GoError."""
        try:
            self.host.remove(_path(name))
        except FileNotFoundError:
            return
        except OSError as error:
            with wrapping(m.NOT_REMOVED % _path(name)):
                raise PathError("remove", _path(name), errno_of(error)) from None

    # --- components ---------------------------------------------------------------------------------------------

    def validate_vfio_pci(self) -> None:
        """`VfioPCI.validate`: every GPU has a vfio driver, or it is an error that names the first that has none."""
        if not self.required_for(PASSTHROUGH, m.VFIO_SKIPPED):
            return
        self.delete_status_file(VFIO_READY)
        self.check_vfio_pci()
        self.out.log("info", m.VFIO_VALID)
        self.create_status_file(VFIO_READY)

    def check_vfio_pci(self) -> None:
        """`VfioPCI.runValidation`. No GPU at all is fine; audio and USB functions are not looked at."""
        with wrapping(m.NO_PCI_DEVICES):
            devices = self.nvpci(self.host, _NvPciLog(self.out)).get_gpus()
        for device in devices:
            if device.driver not in self.drivers:
                raise GoError(m.NOT_BOUND % (device.address, device.driver))

    def validate_vgpu_manager(self) -> None:
        """`VGPUManager.validate`: wait until nvidia-smi of the host, or of the vGPU manager's root, answers."""
        if not self.required_for(VGPU, m.VGPU_MANAGER_SKIPPED):
            return
        self.delete_status_file(VGPU_MANAGER_READY)
        self.delete_status_file(HOST_VGPU_MANAGER_READY)
        on_host = self.exists("/host/usr/bin/nvidia-smi")
        self.run_with_wait("chroot", "/host" if on_host else "/run/nvidia/driver", "nvidia-smi")
        self.create_status_file(HOST_VGPU_MANAGER_READY if on_host else VGPU_MANAGER_READY)

    def exists(self, path: str) -> bool:
        """`os.Lstat` without an error."""
        try:
            self.host.stat(path)
        except OSError:
            try:
                self.host.read_link(path)
            except OSError:
                return False
        return True

    def run_with_wait(self, *argv: str) -> None:
        """`runCommandWithWait`: until it succeeds."""
        while True:
            self.out.stdout(m.RUNNING % (argv[0], " ".join(argv[1:])))
            try:
                result = self.host.run(argv)
            except CommandNotFound as error:
                problem = error.text
            else:
                self.out.stdout(result.stdout)
                if result.exit_code == 0:
                    return
                problem = exit_status(result.exit_code)
            self.out.log("warning", m.COMMAND_FAILED % problem)
            self.out.stdout(m.COMMAND_RETRIED % _SLEEP)
            self.clock.sleep(_SLEEP * SECOND)

    def validate_vgpu_devices(self) -> None:
        """`VGPUDevices.validate`: wait until there is a mediated device."""
        if not self.required_for(VGPU, m.VGPU_DEVICES_SKIPPED):
            return
        self.delete_status_file(VGPU_DEVICES_READY)
        while not (count := self.count_vgpu_devices()):
            self.out.log("info", m.NO_VGPU_DEVICES % _SLEEP)
            self.clock.sleep(_SLEEP * SECOND)
        self.out.log("info", m.VGPU_DEVICES_FOUND % count)
        self.out.log("info", m.VGPU_DEVICES_VALID)
        self.create_status_file(VGPU_DEVICES_READY)

    def count_vgpu_devices(self) -> int:
        """`nvmdev.GetAllDevices`. Raises GoError where the kernel knows no mediated devices."""
        with wrapping(self.spelled(m.VGPU_DEVICES_UNKNOWN)):
            try:
                return len(read_dir(self.host, _MDEV_DEVICES))
            except PathError as error:
                raise GoError(m.MDEV_UNREADABLE % error) from None

    def validate_cc_manager(self) -> None:
        """`CCManager.validate`: on a node that can do confidential computing, wait for cc-manager's container."""
        self.delete_status_file(CC_MANAGER_READY)
        try:
            with wrapping(m.CC_UNKNOWN % (self.env.get("NODE_NAME", ""), CC_LABEL)):
                labels = self.get_labels()
        except GoError:
            self.out.stdout(m.CC_NOT_READY)
            raise
        if labels.get(CC_LABEL) != "true":
            self.out.log("info", m.CC_SKIPPED)
        else:
            self.wait_for_cc_container()
        self.create_status_file(CC_MANAGER_READY)

    def wait_for_cc_container(self) -> None:
        """`assertCCManagerContainerReady`: `stat` of its file, by a shell, until it is there."""
        while True:
            self.out.stdout(m.RUNNING % ("sh", f"-c stat {_path(CC_CONTAINER_READY)}"))
            try:
                self.host.stat(_path(CC_CONTAINER_READY))
            except OSError:
                self.out.log("warning", m.COMMAND_FAILED % exit_status(1))
                self.out.stdout(m.COMMAND_RETRIED % _SLEEP)
                self.clock.sleep(_SLEEP * SECOND)
            else:
                return


class _NvPciLog:
    """go-nvlib's warnings, in the validator's log."""

    def __init__(self, out: ValidatorLog) -> None:
        self._out = out

    def log(self, level: str, message: str) -> None:
        """One log call."""
        self._out.log(level, message)

    def stdout(self, text: str) -> None:
        """Not used."""

    def stderr(self, text: str) -> None:
        """Not used."""


def _path(name: str) -> str:
    return f"{VALIDATIONS}/{name}"
