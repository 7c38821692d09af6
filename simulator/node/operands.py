"""The operands as DaemonSets of programs: what the GPU Operator's charts run on a node.

driver-manager, vfio-manage, the sandbox validator and the sandbox device plugin are the models of the real programs. The
operands of container workloads are stand-ins, as far as driver-manager sees them: a driver container that takes 90
seconds to install, a validator that waits for a driver, operands that wait for the validator.

Source: NVIDIA/gpu-operator assets/state-vfio-manager, state-driver, state-sandbox-validation,
state-sandbox-device-plugin and deployments/gpu-operator/values.yaml at each tag; the environment of vgpu-manager's init
container is taken to be vfio-manager's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from simulator import labels
from simulator.clock import VirtualClock
from simulator.cluster.fake import FakeCluster
from simulator.gocompat import SECOND, GoPanic
from simulator.kube.clientset import Clientset
from simulator.kube.profile import Libraries
from simulator.kube.rest import Connection, RestClient
from simulator.manager.charts import CHARTS, DRIVER_MANAGER_CONTAINER, Chart
from simulator.manager.releases import Flow, ShellFlow, modelled, resolve
from simulator.node.daemonsets import DaemonSet
from simulator.node.kubelet import Container, Containers, Kubelet, PodRef
from simulator.node.machine import Machine
from simulator.node.operator import VFIO_MANAGER as VFIO_MANAGER_LABEL
from simulator.node.operator import VGPU_MANAGER as VGPU_MANAGER_LABEL
from simulator.node.operator import Values
from simulator.node.packages import DRIVER_MODULES
from simulator.node.plugin.releases import PLUGINS, plugin_release
from simulator.node.pods import VALIDATOR, vfio_manager_env
from simulator.node.process import BlockingClock, Program, Wait, blocking, polling
from simulator.node.validator.program import (
    PASSTHROUGH,
    VALIDATIONS,
    VFIO_PCI,
    VFIO_READY,
    VGPU,
    VGPU_DEVICES,
    VGPU_DEVICES_READY,
    VGPU_MANAGER,
    WORKLOAD_TYPE,
)
from simulator.node.validator.releases import validator
from simulator.node.vfio_manager import VfioManager
from simulator.ports import Output, Server, Terminated
from simulator.reading import InputError
from simulator.runners.simulated import run_program
from simulator.runners.vfio import PATH
from simulator.scenario import IN_POD_ENV
from simulator.trace import Outcome
from simulator.world import World

POLLED: Final = 5 * SECOND
VALIDATED: Final = SECOND
"""How long one run of the validator takes, where it does not wait."""
DRIVER_READY: Final = "driver-ready"
"""The operator validator's status file."""
INSTALLED: Final = 90 * SECOND
"""How long the driver's container takes to install its driver."""
_PANIC: Final = 2
_DIGEST: Final = "DRIVER_CONFIG_DIGEST"


class Logs(Protocol):
    """Where containers write, and runs of driver-manager are kept."""

    def output(self, pod: PodRef, container: str) -> Output:
        """The streams of a container that starts now."""

    def driver_manager_starts(self, pod: PodRef) -> None:
        """A run of driver-manager begins."""

    def driver_manager_ran(self, pod: PodRef, outcome: Outcome) -> None:
        """It is over."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The node, as its containers have it."""

    clock: VirtualClock
    cluster: FakeCluster
    machine: Machine
    kubelet: Callable[[], Kubelet]
    logs: Logs
    namespace: str

    def has_status_file(self, name: str) -> bool:
        """Is there a status file of this name?"""
        return self.machine.live.tree.exists(f"{VALIDATIONS}/{name}")

    def workload_type(self) -> str:
        """What the validator's status file says the node is for, "" while there is none."""
        try:
            return self.machine.live.tree.read(f"{VALIDATIONS}/{WORKLOAD_TYPE}").strip()
        except FileNotFoundError:
            return ""

    def remove_status_files(self) -> None:
        """`rm -f /run/nvidia/validations/*`: hidden ones stay."""
        tree = self.machine.live.tree
        for name in tree.names(VALIDATIONS):
            if not name.startswith("."):
                tree.remove_tree(f"{VALIDATIONS}/{name}")


# --- containers ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Base:
    """What most containers have in common."""

    name: str
    around: Surroundings = field(repr=False)
    is_deaf: bool = False

    def pre_stop(self, pod: PodRef) -> None:
        """No hook."""


@dataclass(frozen=True, slots=True)
class DriverManager(_Base):
    """The init container that runs driver-manager."""

    flow: Flow | ShellFlow | None = None
    env: Mapping[str, str] = field(default_factory=dict)

    def run(self, pod: PodRef) -> Program:
        """`driver-manager uninstall_driver`."""
        around, resolved = self.around, self.flow
        assert resolved is not None
        machine = around.machine

        def work(clock: BlockingClock) -> int:
            host = machine.live.of_image(resolved.container_path, resolved.release.chroot, resolved.image)
            world = World(machine.spec, around.cluster.spec, env={**IN_POD_ENV, **self.env}, seed=around.clock.now)
            around.logs.driver_manager_starts(pod)
            outcome = run_program(world, resolved, host, around.cluster, clock, around.cluster.reactions.start)
            around.logs.driver_manager_ran(pod, outcome)
            return 137 if outcome.exit_code is None else outcome.exit_code % 256

        return blocking(around.clock, work)


@dataclass(frozen=True, slots=True)
class Binding(_Base):
    """vfio-manager's main container: it binds, then sleeps; process 1 is a shell."""

    vfio: VfioManager | None = None

    def run(self, pod: PodRef) -> Program:
        """`vfio-manage bind --all && while true; do sleep 86400; done`."""
        assert self.vfio is not None
        exit_code = self.vfio.bind(self.around.machine.live, self.around.logs.output(pod, self.name))
        if exit_code:
            return exit_code
        yield Wait()
        return 0

    def pre_stop(self, pod: PodRef) -> None:
        """Unbind, where the chart's hook works."""
        assert self.vfio is not None
        self.vfio.pre_stop(self.around.machine.live, self.around.logs.output(pod, self.name))


@dataclass(frozen=True, slots=True)
class Validation(_Base):
    """An init container of the sandbox validator: one component."""

    component: str = VFIO_PCI
    chart: str = ""
    default_workload: str = ""

    def run(self, pod: PodRef) -> Program:
        """Starting and looking takes a second; some components wait."""
        around = self.around
        output = around.logs.output(pod, self.name)
        env = {
            "WITH_WAIT": "true",
            "COMPONENT": self.component,
            "NODE_NAME": around.cluster.store.node_name,
            "DEFAULT_GPU_WORKLOAD_CONFIG": self.default_workload,
        }

        def work(clock: BlockingClock) -> int:
            connection = Connection(around.cluster, clock, _API_SERVER)
            clientset = Clientset(RestClient(connection, clock, output, Libraries(), str))
            host = around.machine.live.of_image(PATH)
            try:
                return validator(self.chart)(host, clientset, clock, _ValidatorLog(output), env, self.chart).main()
            except GoPanic as panic:
                output.stderr(f"panic: {panic}\n")
                return _PANIC

        yield Wait(VALIDATED)
        return (yield from blocking(around.clock, work))


_API_SERVER: Final = Server("https://10.96.0.1:443", "10.96.0.1:443")


class _ValidatorLog:
    """The validator's log; its fields are left out."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.stdout = output.stdout

    def log(self, level: str, message: str, **_: str) -> None:
        """One log call."""
        self._output.log(level, message)


@dataclass(frozen=True, slots=True)
class Waiting(_Base):
    """A shell loop that looks every five seconds whether it may go on."""

    ready: Callable[[], bool] = bool

    def run(self, pod: PodRef) -> Program:  # the pod has no say
        """Until it is so."""
        yield from polling(self.around.clock, POLLED, self.ready)
        return 0


@dataclass(frozen=True, slots=True)
class Sleeping(_Base):
    """A container that has nothing more to do. `stop` is its preStop hook."""

    stop: Callable[[], None] | None = None

    def run(self, pod: PodRef) -> Program:
        """For ever."""
        yield Wait()
        return 0

    def pre_stop(self, pod: PodRef) -> None:
        """The hook, if it has one."""
        if self.stop is not None:
            self.stop()


@dataclass(frozen=True, slots=True)
class SandboxDevicePlugin(_Base):
    """The sandbox device plugin: it looks once, registers, and serves."""

    release: str = "v1.5.0"

    def run(self, pod: PodRef) -> Program:
        """Until it is stopped; then its resources are gone from what can be allocated."""
        around = self.around
        output = around.logs.output(pod, self.name)
        try:
            registered = PLUGINS[self.release](around.machine.live, _PluginLog(output)).initiate()
        except GoPanic as panic:
            output.stderr(f"panic: {panic}\n")
            return _PANIC
        kubelet = around.kubelet()
        for one in registered:  # of two with one name the last counts
            kubelet.register(one.resource, len(one.devices))
        try:
            yield Wait()
        except Terminated:
            for one in registered:
                kubelet.unregister(one.resource)
            return _PANIC
        return 0


class _PluginLog:
    """The plugin's two loggers, both on standard error."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def log(self, message: str) -> None:
        self._output.stderr(f"{message}\n")

    def klog(self, line: int, message: str) -> None:
        """A line of klog's, of a line of the source."""
        self._output.stderr(f"device_plugin.go:{line}] {message}\n")


@dataclass(frozen=True, slots=True)
class DevicePlugin(_Base):
    """The device plugin of container workloads: a GPU that the driver has is one `nvidia.com/gpu`."""

    def run(self, pod: PodRef) -> Program:
        """Until it is stopped."""
        kubelet = self.around.kubelet()
        count = sum(driver == "nvidia" for driver in self.around.machine.live.gpu_drivers().values())
        if count:
            kubelet.register("nvidia.com/gpu", count)
        try:
            yield Wait()
        except Terminated:
            if count:
                kubelet.unregister("nvidia.com/gpu")
            return 0
        return 0


@dataclass(frozen=True, slots=True)
class DriverInstaller(_Base):
    """The driver's container: it installs its driver, loads it, and unloads it when it is stopped."""

    def run(self, pod: PodRef) -> Program:
        """`nvidia-driver init`."""
        kernel, tree = self.around.machine.live.kernel, self.around.machine.live.tree
        yield Wait(INSTALLED)
        for module in ("nvidia", "nvidia_modeset", "nvidia_uvm"):
            kernel.load(module)
        for address, driver in kernel.gpu_drivers().items():
            if not driver:
                kernel.bind(address, "nvidia")
        kernel.mount("/run/nvidia/driver")
        tree.write("/run/nvidia/nvidia-driver.pid", "1\n")
        try:
            yield Wait()
        except Terminated:
            try:
                for module in DRIVER_MODULES:
                    if module in kernel.loaded():
                        kernel.delete_module(module)
                kernel.unmount("/run/nvidia/driver")
            except OSError:  # "Could not unload NVIDIA driver kernel modules, driver is in use"
                return 1
            tree.remove_tree("/run/nvidia/nvidia-driver.pid")
        return 0


@dataclass(frozen=True, slots=True)
class DriverValidation(_Base):
    """The operator validator's init container driver-validation: it waits for a driver, the host's or a container's."""

    def run(self, pod: PodRef) -> Program:
        """Until there is one."""
        around = self.around

        def has_driver() -> bool:
            live = around.machine.live
            return "nvidia" in live.modules() and "nvidia" in live.gpu_drivers().values()

        yield from polling(around.clock, POLLED, has_driver)
        around.machine.live.create_file(f"{VALIDATIONS}/{DRIVER_READY}", "")
        return 0


# --- DaemonSets ----------------------------------------------------------------------------------------------------


def driver_manager_env(chart: str, daemonset: str, values: Values, node_name: str, namespace: str) -> dict[str, str]:
    """The environment of the init container k8s-driver-manager, by chart and DaemonSet, as asset and values make it."""
    if daemonset != "driver":
        return vfio_manager_env(chart, node_name, {"OPERATOR_NAMESPACE": namespace, **values.driver_manager_env})
    version = CHARTS[chart].number
    first = version == (22, 9) and chart != "v22.9.2"
    return {
        "NODE_NAME": node_name,
        "NVIDIA_VISIBLE_DEVICES": "void",
        "OPERATOR_NAMESPACE": namespace,
        **({} if first else {"ENABLE_GPU_POD_EVICTION": "true"}),
        "ENABLE_AUTO_DRAIN": "true" if first else "false",
        "DRAIN_USE_FORCE": "false",
        "DRAIN_POD_SELECTOR_LABEL": "",
        "DRAIN_TIMEOUT_SECONDS": "0s",
        "DRAIN_DELETE_EMPTYDIR_DATA": "false",
        **({_DIGEST: "1"} if version >= (26, 3) else {}),
        **values.driver_manager_env,
    }


def _modelled_since(daemonset: str) -> str:
    """The first chart from which on driver-manager is modelled in this DaemonSet."""
    since = ""
    for chart in CHARTS.values():
        since = "" if modelled(chart.releases[daemonset]) is None else since or chart.version
    return since


class Operands:
    """What a chart deploys, on this node."""

    def __init__(self, chart: str, around: Surroundings) -> None:
        self.chart: Chart = CHARTS[chart]
        self.around = around

    def render(self, values: Values) -> list[DaemonSet]:
        """The DaemonSets for these values (`isStateEnabled`). Raises InputError for one whose driver-manager is not modelled."""
        return [*self._sandbox(values), *self._containers(values)]

    def _driver_manager(self, daemonset: str, values: Values) -> tuple[DriverManager, dict[str, str]]:
        around = self.around
        release = self.chart.releases[daemonset]
        tag = modelled(release)
        if tag is None:
            raise InputError(
                "",
                "",
                f"chart {self.chart.version} brings driver-manager {release} for {daemonset}, which is not modelled",
                f"use {_modelled_since(daemonset)} or newer",
            )
        env = driver_manager_env(self.chart.version, daemonset, values, around.cluster.store.node_name, around.namespace)
        flow = resolve(tag)
        return DriverManager(DRIVER_MANAGER_CONTAINER, around, is_deaf=flow.deaf, flow=flow, env=env), env

    def _sandbox(self, values: Values) -> Iterator[DaemonSet]:
        if not values.sandbox_workloads:
            return
        around = self.around
        if values.vfio_manager:
            init, env = self._driver_manager("vfio-manager", values)
            vfio = VfioManager.of_chart(self.chart)
            main = Binding("nvidia-vfio-manager", around, is_deaf=True, vfio=vfio)
            yield DaemonSet(
                "nvidia-vfio-manager", VFIO_MANAGER_LABEL, Containers((init,), (main,)), {DRIVER_MANAGER_CONTAINER: env}
            )
        if values.vgpu_manager:
            init, env = self._driver_manager("vgpu-manager", values)
            main_of_vgpu = Sleeping("nvidia-vgpu-manager-ctr", around)
            yield DaemonSet(
                "nvidia-vgpu-manager-daemonset",
                VGPU_MANAGER_LABEL,
                Containers((init,), (main_of_vgpu,)),
                {DRIVER_MANAGER_CONTAINER: env},
            )
        yield DaemonSet(VALIDATOR, labels.SANDBOX_VALIDATOR, self._validator(values))
        if values.sandbox_device_plugin:
            plugin = plugin_release(self.chart.version)
            release = plugin if plugin in PLUGINS else next(iter(PLUGINS))  # the oldest that is modelled
            yield DaemonSet(
                "nvidia-sandbox-device-plugin-daemonset",
                labels.SANDBOX_DEVICE_PLUGIN,
                Containers(
                    (
                        Waiting("vfio-pci-validation", around, is_deaf=True, ready=self._vfio_is_ready),
                        Waiting("vgpu-devices-validation", around, is_deaf=True, ready=self._vgpus_are_ready),
                    ),
                    (SandboxDevicePlugin("nvidia-sandbox-device-plugin-ctr", around, release=release),),
                ),
            )

    def _validator(self, values: Values) -> Containers:
        around = self.around
        init = tuple(
            Validation(
                f"{component}-validation",
                around,
                component=component,
                chart=self.chart.version,
                default_workload=values.default_workload,
            )
            for component in (VFIO_PCI, VGPU_MANAGER, VGPU_DEVICES)
        )
        return Containers(init, (Sleeping(VALIDATOR, around, is_deaf=True, stop=around.remove_status_files),))

    def _vfio_is_ready(self) -> bool:
        """The device plugin's first wait: for the workload type, and on a passthrough node for the validator's file."""
        workload = self.around.workload_type()
        return bool(workload) and (workload != PASSTHROUGH or self.around.has_status_file(VFIO_READY))

    def _vgpus_are_ready(self) -> bool:
        """Its second: the same of vGPUs."""
        workload = self.around.workload_type()
        return bool(workload) and (workload != VGPU or self.around.has_status_file(VGPU_DEVICES_READY))

    def _containers(self, values: Values) -> Iterator[DaemonSet]:
        around = self.around
        if values.driver:
            init, env = self._driver_manager("driver", values)
            main = DriverInstaller("nvidia-driver-ctr", around)
            yield DaemonSet("nvidia-driver-daemonset", labels.DRIVER, Containers((init,), (main,)), {DRIVER_MANAGER_CONTAINER: env})

        validation = DriverValidation("driver-validation", around)
        main_of_validator = Sleeping("nvidia-operator-validator", around, is_deaf=True, stop=around.remove_status_files)
        yield DaemonSet("nvidia-operator-validator", labels.OPERATOR_VALIDATOR, Containers((validation,), (main_of_validator,)))
        for name, label, enabled in (
            ("nvidia-container-toolkit-daemonset", labels.CONTAINER_TOOLKIT, values.toolkit),
            ("nvidia-device-plugin-daemonset", labels.DEVICE_PLUGIN, values.device_plugin),
            ("gpu-feature-discovery", labels.GPU_FEATURE_DISCOVERY, values.device_plugin),
            ("nvidia-dcgm-exporter", labels.DCGM_EXPORTER, values.device_plugin),
        ):
            if enabled:
                wait = Waiting("driver-validation", around, ready=lambda: around.has_status_file(DRIVER_READY))
                runs: Container = Sleeping(name.removesuffix("-daemonset"), around)
                if label == labels.DEVICE_PLUGIN:
                    runs = DevicePlugin("nvidia-device-plugin", around)
                yield DaemonSet(name, label, Containers((wait,), (runs,)))


__all__ = ["PATH", "Operands", "Surroundings"]
