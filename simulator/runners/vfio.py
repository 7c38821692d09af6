"""The simulated runner of vfio-manage: the model of a release against a host in memory, by itself or as a child process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from simulator.host.fake import KERNEL, FakeHost, ModprobeAnswer
from simulator.host.pci import BusChange, DeviceSpec, WriteFault
from simulator.host.spec import File, HostSpec
from simulator.ports import ProcessResult, Stopped, VfioHost
from simulator.trace import ChildProcess, LogLine, StderrText, StdoutText
from simulator.vfio.program import main
from simulator.vfio.releases import CHANGES, Flow, flow
from simulator.vfio.trace import Binding, BusState, Modprobe, SysfsWrite, VfioEvent, VfioOutcome

PATH: Final = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/busybox")
"""The container's PATH, unless the environment says otherwise."""


@dataclass(frozen=True, slots=True)
class DriverSpec:
    """A driver directory: its control files, and the ids it takes without an override."""

    files: tuple[str, ...]
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VfioStep:
    """One run: arguments, environment, and what happens before it."""

    args: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    before: tuple[BusChange, ...] = ()


@dataclass(frozen=True, slots=True)
class VfioWorld:
    """A host, what is on its bus beside what the host says, and the runs, one after the other.

    `modprobe` None: what follows from the host.
    """

    host: HostSpec
    steps: tuple[VfioStep, ...]
    devices: Mapping[str, DeviceSpec] = field(default_factory=dict)
    drivers: Mapping[str, DriverSpec] = field(default_factory=dict)
    faults: tuple[WriteFault, ...] = ()
    modprobe: Mapping[str, tuple[ModprobeAnswer, ...]] | None = None
    directories: tuple[str, ...] = ()
    """Further directories of the container."""
    without: tuple[str, ...] = ()
    """Paths that it lacks."""


_ALIAS: Final = "alias vfio_pci:v*d*sv*sd*bc*sc*i* vfio_pci\n"
_GRACE_MODULE: Final = "nvgrace_gpu_vfio_pci"
_GRACE_DEVICES: Final = ("2342", "2345", "2941")


def with_vfio_files(host: HostSpec) -> HostSpec:
    """The host with what the container of the vfio-manager pod has beside it: /lib/modules is the host's.

    A modules.alias that the host does not describe has what its vfio modules put there.
    """
    release = host.os.get("kernel") or KERNEL
    path = f"/lib/modules/{release}/modules.alias"
    described = [file.text for file in (*host.container_files, *host.files) if file.path == path]
    aliases = _ALIAS
    if _GRACE_MODULE in host.installable:
        aliases += "".join(f"alias vfio_pci:v000010DEd0000{device}sv*sd*bc*sc*i* {_GRACE_MODULE}\n" for device in _GRACE_DEVICES)
    files = (File(path, described[0] if described else aliases), File("/busybox/modprobe", "", 0o755))
    return replace(host, container_files=(*host.container_files, *files))


def vfio_env(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of the vfio-manager pod's container, in which /host is the host's root."""
    return {"PATH": ":".join(PATH), "HOME": "/", "HOST_ROOT": "/host", **env}


def host_world(host: HostSpec, args: Sequence[str], env: Mapping[str, str]) -> VfioWorld:
    """vfio-manage once, in the GPU Operator's vfio-manager pod on this host."""
    return VfioWorld(with_vfio_files(host), (VfioStep(tuple(args), vfio_env(env)),))


class _Recorder:
    """The ports of vfio-manage, each act passed on and noted."""

    def __init__(self, host: FakeHost) -> None:
        self.events: list[VfioEvent] = []
        self._host = host
        self.stat = host.stat
        self.is_directory = host.is_directory
        self.read_file = host.read_file
        self.list_directory = host.list_directory
        self.read_link = host.read_link
        self.resolve = host.resolve
        self.write_file = host.write_file
        self.kernel_release = host.kernel_release

    def run(self, argv: Sequence[str]) -> ProcessResult:
        started = len(self.events)
        result = self._host.run(argv)
        self.events.insert(started, ChildProcess(0, tuple(argv), result.exit_code))
        return result

    def log(self, level: str, message: str) -> None:
        self.events.append(LogLine(0, level, message))

    def stdout(self, text: str) -> None:
        self.events.append(StdoutText(0, text))

    def stderr(self, text: str) -> None:
        self.events.append(StderrText(0, text))

    def wrote(self, path: str, text: str | None, result: str) -> None:
        self.events.append(SysfsWrite(path, text, result))

    def probed(self, root: str, argv: Sequence[str], exit_code: int, taken: list[str]) -> None:
        self.events.append(Modprobe(root, tuple(argv), exit_code, tuple(taken)))


class _Heard:
    """An output whose streams are kept. The Go program's log is left out: whoever calls it throws it away."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.err: list[str] = []

    def log(self, level: str, message: str) -> None:
        pass

    def stdout(self, text: str) -> None:
        self.out.append(text)

    def stderr(self, text: str) -> None:
        self.err.append(text)


def vfio_flow(tag: str, *, without: frozenset[str] = frozenset()) -> Flow:
    """vfio-manage of a release; of one that is not modelled, the newest that is."""
    return flow(tag if tag in CHANGES else list(CHANGES)[-1], without=without)


def as_child(
    tag: str, host: VfioHost, env: Mapping[str, str], without: frozenset[str] = frozenset()
) -> Callable[[Sequence[str]], ProcessResult]:
    """vfio-manage as driver-manager calls it: on the same host, with its environment."""

    def run(argv: Sequence[str]) -> ProcessResult:
        heard = _Heard()
        exit_code = main(vfio_flow(tag, without=without), argv[1:], env, host, heard)
        return ProcessResult(exit_code, "".join(heard.out), "".join(heard.err))

    return run


def simulate_vfio(world: VfioWorld, release: str, *, without: frozenset[str] = frozenset()) -> list[VfioOutcome]:
    """Run a release of vfio-manage against a world, once for each step. Raises KeyError for an unknown release.

    `without` leaves named changes of the release out.
    """
    resolved = flow(release, without=without)
    host = make_host(world)
    return [run_step(resolved, host, step) for step in world.steps]


def make_host(world: VfioWorld) -> FakeHost:
    """The host of a world."""
    host = FakeHost(world.host, PATH)
    for path in world.directories:
        host.tree.make_directory(path)
    for path in world.without:
        host.tree.remove_tree(path)
    bus = host.kernel.bus
    for name, driver in world.drivers.items():
        bus.add_driver(name, driver.files, driver.ids)
    for address, device in world.devices.items():
        bus.add_device(address, device)
    bus.faults = world.faults
    host.modprobe_answers = world.modprobe
    return host


def run_step(resolved: Flow, host: FakeHost, step: VfioStep) -> VfioOutcome:
    """One run on a host that is already made."""
    bus = host.kernel.bus
    for change in step.before:
        bus.apply(change)
    host.path = tuple(step.env.get("PATH", "").split(":"))
    recorder = _Recorder(host)
    before = bus_state(host)
    bus.on_write, host.on_modprobe = recorder.wrote, recorder.probed
    exit_code: int | None
    try:
        exit_code = main(resolved, step.args, step.env, recorder, recorder)
    except Stopped:
        exit_code = None
    return VfioOutcome(resolved.tag, step.args, exit_code, recorder.events, before, bus_state(host))


def bus_state(host: FakeHost) -> BusState:
    """The bus as it is."""
    bus = host.kernel.bus
    devices = {address: Binding(bus.bound[address], override) for address, override in bus.overrides().items()}
    return BusState(dict(sorted(devices.items())), tuple(bus.drivers()))
