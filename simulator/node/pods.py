"""The sandbox's pods on a node, one start at a time: which containers run, what they print, how the world is afterwards.

Three DaemonSets: vfio-manager (driver-manager, then vfio-manage), the sandbox validator, the sandbox device plugin. A pod's
containers run one after the other until one fails; when it is started anew is the kubelet's business. Worlds are frozen:
each start takes one and gives the next.

Source: NVIDIA/gpu-operator assets/state-vfio-manager, assets/state-sandbox-validation, assets/state-sandbox-device-plugin
(0500_daemonset.yaml, 0400_configmap.yaml); controllers/object_controls.go TransformVFIOManager, TransformSandboxValidator.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from simulator import logrus
from simulator.clock import VirtualClock
from simulator.cluster.fake import FakeCluster
from simulator.gocompat import SECOND, GoPanic
from simulator.host.fake import FakeHost
from simulator.host.spec import File, HostSpec, Module
from simulator.kube.clientset import Clientset
from simulator.kube.profile import Libraries
from simulator.kube.rest import Connection, RestClient
from simulator.manager.charts import CHARTS, DRIVER_MANAGER_CONTAINER
from simulator.manager.releases import modelled
from simulator.node import pod_messages as m
from simulator.node.pci_ids import bundled
from simulator.node.plugin.names import PCI_IDS
from simulator.node.plugin.releases import PLUGINS, plugin_release
from simulator.node.plugin.v1_4_0 import DevicePlugin
from simulator.node.validator.program import (
    CC_MANAGER,
    COMPONENTS,
    CONTAINER,
    PASSTHROUGH,
    VALIDATIONS,
    VFIO_READY,
    VGPU,
    VGPU_DEVICES_READY,
    WORKLOAD_TYPE,
)
from simulator.node.validator.releases import validator
from simulator.node.vfio_manager import VfioManager
from simulator.ports import Server, Stopped
from simulator.reading import InputError
from simulator.runners.simulated import START, simulate
from simulator.runners.vfio import PATH, host_world, make_host
from simulator.trace import LogLine, Outcome, StderrText, StdoutText
from simulator.world import PlannedChange, World, followed_by

VFIO_MANAGER: Final = "nvidia-vfio-manager"
VALIDATOR: Final = "nvidia-sandbox-validator"
PLUGIN: Final = "nvidia-sandbox-device-plugin-ctr"
_BELOW: Final = f"{VALIDATIONS}/"
_WAIT: Final = 5 * SECOND
_WATCHED: Final = 60.0
"""How long a container that waits is watched, in seconds, where nothing else is said."""
_DIED: Final = 2


@dataclass(frozen=True, slots=True)
class ContainerRun:
    """One container: what `kubectl logs` shows of it, and its exit code; None while it runs, or waits."""

    name: str
    log: str
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class PodRun:
    """One start of a pod, and the world afterwards. `is_running`: did it get as far as its main container?"""

    containers: tuple[ContainerRun, ...]
    world: World
    is_running: bool
    plugin: DevicePlugin | None = field(default=None, compare=False)
    """The device plugin, where this is its pod and it runs: what it registered, and who could be given what."""

    @property
    def log(self) -> str:
        """All containers' logs, in their order."""
        return "".join(run.log for run in self.containers)


def _order(chart: str) -> int:
    if chart not in CHARTS:
        raise KeyError(chart)
    return list(CHARTS).index(chart)


def _since(chart: str, first: str) -> bool:
    """Is a chart this one or a later one?"""
    return _order(chart) >= _order(first)


# --- nvidia-vfio-manager -----------------------------------------------------------------------------------------


def vfio_manager_env(chart: str, node_name: str, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The init container's variables. `extra` is `vfioManager.driverManager.env`.

    Up to v24.9.2 the chart's own values had what the DaemonSet has since; of them v22.9.0 lacked the one on eviction.
    """
    env = {"NODE_NAME": node_name, "NVIDIA_VISIBLE_DEVICES": "void", "ENABLE_AUTO_DRAIN": "false"}
    if _since(chart, "v22.9.2"):
        env["ENABLE_GPU_POD_EVICTION"] = "false"
    return {**env, "OPERATOR_NAMESPACE": "gpu-operator", **(extra or {})}


def start_vfio_manager(world: World, chart: str, extra: Mapping[str, str] | None = None) -> PodRun:
    """Start the pod: driver-manager takes the driver away and every GPU from any driver, then vfio-manage binds them.

    Raises KeyError for an unknown chart, InputError for one whose parts are not modelled.
    """
    release = modelled(CHARTS[chart].releases["vfio-manager"])
    if release is None or not _since(chart, "v24.6.0"):
        raise InputError("", "", f"vfio-manager of chart {chart} is not modelled", "use v24.6.0 or newer")
    outcome = simulate(replace(world, env={**world.env, **vfio_manager_env(chart, _node_name(world), extra)}), release)
    init = ContainerRun(DRIVER_MANAGER_CONTAINER, "".join(_lines(outcome)), outcome.exit_code)
    after = followed_by(world, outcome)
    if outcome.exit_code != 0:
        return PodRun((init,), after, is_running=False)
    main, after = _bind(after, chart)
    return PodRun((init, main), after, is_running=main.exit_code is None)


def stop_vfio_manager(world: World, chart: str) -> PodRun:
    """The pod is deleted: its preStop hook runs. In v26.3.x it is one word, which is no program, and nothing is unbound."""
    if modelled(CHARTS[chart].releases["vfio-manager"]) is None or not _since(chart, "v24.6.0"):
        raise InputError("", "", f"vfio-manager of chart {chart} is not modelled", "use v24.6.0 or newer")
    vfio = VfioManager.of_chart(CHARTS[chart])
    if not vfio.unbinds:
        return PodRun((), world, is_running=False)
    host, out = make_host(host_world(world.host, (), {})), _VfioLog(VirtualClock())
    exit_code = vfio.pre_stop(host, out)
    run = ContainerRun(VFIO_MANAGER, out.text(), exit_code)
    return PodRun((run,), replace(world, host=_host_after(world.host, host)), is_running=False)


def _bind(world: World, chart: str) -> tuple[ContainerRun, World]:
    """The main container: bind, then sleep."""
    host, out = make_host(host_world(world.host, (), {})), _VfioLog(VirtualClock())
    exit_code = VfioManager.of_chart(CHARTS[chart]).bind(host, out)
    return ContainerRun(VFIO_MANAGER, out.text(), exit_code or None), replace(world, host=_host_after(world.host, host))


# --- nvidia-sandbox-validator ------------------------------------------------------------------------------------


def start_sandbox_validator(
    world: World, chart: str, *, default_workload: str = CONTAINER, cc_manager: bool = False, stop_after: float = _WATCHED
) -> PodRun:
    """Start the pod: each component once, in order, until one fails; the pod is watched for `stop_after` seconds.

    `default_workload` and `cc_manager` are the ClusterPolicy's. Raises KeyError for an unknown chart.
    """
    program = validator(chart)
    clock, cluster, host = _started(world, stop_after)
    runs: list[ContainerRun] = []
    for component in COMPONENTS:
        if component == CC_MANAGER and not (cc_manager and _since(chart, "v23.6.0")):
            continue
        env = {"WITH_WAIT": "true", "COMPONENT": component, "NODE_NAME": _node_name(world)}
        if component != CC_MANAGER:
            env["DEFAULT_GPU_WORKLOAD_CONFIG"] = default_workload
        out = _Log(clock)
        connection = Connection(cluster, clock, Server("https://10.96.0.1:443", "10.96.0.1:443"))
        clientset = Clientset(RestClient(connection, clock, out, Libraries(), lambda: ""))
        try:
            exit_code: int | None = program(host, clientset, clock, out, env, chart).main()
        except Stopped:
            exit_code = None
        runs.append(ContainerRun(f"{component}-validation", out.text(), exit_code))
        if exit_code != 0:
            break
    else:
        runs.append(ContainerRun(VALIDATOR, m.ALL_SUCCESSFUL))
    after = replace(world, host=_with_status_files(world.host, host), changes=())
    return PodRun(tuple(runs), after, is_running=runs[-1].name == VALIDATOR)


def stop_sandbox_validator(world: World) -> World:
    """The pod is deleted: its preStop hook removes the status files, but for hidden ones."""
    kept = tuple(file for file in world.host.files if not file.path.startswith(_BELOW) or file.path.startswith(f"{_BELOW}."))
    return replace(world, host=replace(world.host, files=kept))


# --- nvidia-sandbox-device-plugin-daemonset ----------------------------------------------------------------------


def start_sandbox_device_plugin(world: World, chart: str, *, pci_ids: str | None = None, stop_after: float = _WATCHED) -> PodRun:
    """Start the pod: wait for the validator's files, look once, register. `pci_ids` is another text of the image's file.

    Raises KeyError for an unknown chart, InputError for one whose plugin is not modelled.
    """
    release = plugin_release(chart)
    if release not in PLUGINS:
        raise InputError("", "", f"chart {chart} brings the device plugin {release}, which is not modelled", "use v25.3.3 or newer")
    listing = bundled() if pci_ids is None else pci_ids
    files = (*world.host.container_files, File(PCI_IDS, listing))
    clock, _, host = _started(replace(world, host=replace(world.host, container_files=files)), stop_after)
    runs: list[ContainerRun] = []
    for name, workload, ready, skipped, waiting in _WAITS:
        out = _Log(clock)
        try:
            _wait(host, clock, out, workload, ready, skipped, waiting)
        except Stopped:
            return PodRun((*runs, ContainerRun(name, out.text())), replace(world, changes=()), is_running=False)
        runs.append(ContainerRun(name, out.text(), 0))
    heard = _PluginLog(clock)
    plugin = PLUGINS[release](host, heard)
    try:
        plugin.initiate()
    except GoPanic as panic:
        heard.lines.append(f"panic: {panic}\n[stack trace left out]\n")
        runs.append(ContainerRun(PLUGIN, "".join(heard.lines), _DIED))
        return PodRun(tuple(runs), replace(world, changes=()), is_running=False)
    runs.append(ContainerRun(PLUGIN, "".join(heard.lines)))
    return PodRun(tuple(runs), replace(world, changes=()), is_running=True, plugin=plugin)


_WAITS: Final = (
    (
        "vfio-pci-validation",
        PASSTHROUGH,
        VFIO_READY,
        m.VFIO_PCI_NOT_NEEDED,
        m.WAITING_FOR_VFIO_PCI,
    ),
    (
        "vgpu-devices-validation",
        VGPU,
        VGPU_DEVICES_READY,
        m.VGPU_DEVICES_NOT_NEEDED,
        m.WAITING_FOR_VGPU_DEVICES,
    ),
)
"""The init containers: name, the workload they are for, the file they wait for, what they print."""


def _wait(host: FakeHost, clock: VirtualClock, out: _Log, workload: str, ready: str, skipped: str, waiting: str) -> None:
    """One init container's script."""
    while not host.is_file(f"{VALIDATIONS}/{WORKLOAD_TYPE}"):
        out.stdout(m.WAITING_FOR_WORKLOAD_TYPE)
        clock.sleep(_WAIT)
    if host.read_file(f"{VALIDATIONS}/{WORKLOAD_TYPE}").rstrip("\n") != workload:
        out.stdout(skipped)
        return
    while not host.is_file(f"{VALIDATIONS}/{ready}"):
        out.stdout(waiting)
        clock.sleep(_WAIT)


# --- what they share ---------------------------------------------------------------------------------------------


def _node_name(world: World) -> str:
    return world.cluster.node.name if world.cluster.node is not None else ""


def _started(world: World, stop_after: float) -> tuple[VirtualClock, FakeCluster, FakeHost]:
    """A clock with what is to happen meanwhile, the cluster, and the host with the directory that the pods mount."""
    clock = VirtualClock()
    cluster = FakeCluster(world.cluster, clock)
    host = FakeHost(world.host, PATH, cluster.pod_exists)
    host.tree.make_directory(VALIDATIONS)

    def happen(change: PlannedChange) -> Callable[[], None]:
        return lambda: host.change(change.write, change.remove)

    def stop() -> None:
        raise Stopped

    for change in world.changes:
        clock.plan(round(change.after * SECOND), happen(change))
    clock.plan(round(stop_after * SECOND), stop)
    return clock, cluster, host


def _host_after(spec: HostSpec, host: FakeHost) -> HostSpec:
    """The description of a host whose functions and modules another program has changed."""
    overrides = host.kernel.bus.overrides()

    def attributes(address: str, before: Mapping[str, str]) -> dict[str, str]:
        kept = {name: text for name, text in before.items() if name != "driver_override"}
        override = overrides[address]
        return {**kept, "driver_override": f"{override}\n"} if override else kept

    pci = tuple(
        replace(
            function,
            driver=host.kernel.bound[function.address],
            attributes=attributes(function.address, function.attributes),
        )
        for function in spec.pci
    )
    known = {module.name for module in spec.modules}
    modules = (*spec.modules, *(Module(name) for name in host.modules() if name not in known))
    return replace(spec, pci=pci, modules=modules)


def _with_status_files(spec: HostSpec, host: FakeHost) -> HostSpec:
    """The description with the status files that there are now."""
    others = tuple(file for file in spec.files if not file.path.startswith(_BELOW))
    return replace(
        spec, files=(*others, *(File(_BELOW + name, host.tree.read(_BELOW + name)) for name in host.tree.names(VALIDATIONS)))
    )


def _moment(at: int) -> datetime.datetime:
    return START + datetime.timedelta(microseconds=at // 1000)


def _lines(outcome: Outcome) -> Iterator[str]:
    """What driver-manager printed."""
    for event in outcome.events:
        match event:
            case LogLine():
                yield logrus.line(_moment(event.at), event.level, event.message)
            case StdoutText() | StderrText():
                yield event.text
            case _:
                pass


class _Log:
    """A container's output, as `kubectl logs` shows it."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._parts: list[str] = []

    def text(self) -> str:
        """All of it."""
        return "".join(self._parts)

    def log(self, level: str, message: str, **fields: str) -> None:
        """A call of logrus."""
        self._parts.append(logrus.quoted_line(_moment(self._clock.now), level, message, fields))

    def stdout(self, text: str) -> None:
        """Raw text."""
        self._parts.append(text)

    def stderr(self, text: str) -> None:
        """Raw text."""
        self._parts.append(text)


class _VfioLog(_Log):
    """vfio-manage's: its formatter's quotes are off."""

    def log(self, level: str, message: str, **_: str) -> None:
        """A call of logrus."""
        self._parts.append(logrus.line(_moment(self._clock.now), level, message))


class _PluginLog:
    """The plugin's output: Go's log, and klog."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.lines: list[str] = []

    def log(self, message: str) -> None:
        """A line of Go's log."""
        self.lines.append(f"{_moment(self._clock.now):%Y/%m/%d %H:%M:%S} {message}\n")

    def klog(self, line: int, message: str) -> None:
        """A line of klog's."""
        self.lines.append(f"E{_moment(self._clock.now):%m%d %H:%M:%S.%f}       1 device_plugin.go:{line}] {message}\n")
