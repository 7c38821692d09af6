"""The simulated runner: the model of a release against a world in memory.

The world is made, the ports are wrapped so that each act leaves its event, the program runs, the end is read off. No
run sleeps, reads a wall clock or touches the machine.
"""

from __future__ import annotations

import datetime
import errno
import random
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from simulator.clock import VirtualClock
from simulator.cluster.fake import FakeCluster
from simulator.gocompat import SECOND, Duration
from simulator.host.fake import FakeHost
from simulator.manager.program import Exit, Ports, main
from simulator.manager.releases import DEFAULT, Flow, ShellFlow, resolve
from simulator.manager.shell.program import ShellPorts, make_script
from simulator.manager.shell.program import main as script_main
from simulator.ports import ConnectionDropped, ProcessResult, Request, Response, ShellHost, Stopped, Terminated, VfioHost
from simulator.reading import InputError
from simulator.runners.moments import Call, ChildsHost, FaultyCluster, FaultyHost, Moments, Requested
from simulator.runners.vfio import as_child
from simulator.trace import (
    ApiRequest,
    Change,
    ChildProcess,
    Event,
    KernelCall,
    LogLine,
    Outcome,
    Signal,
    Sleep,
    State,
    StderrText,
    StdoutText,
)
from simulator.world import PlannedChange, World

START: Final = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
"""The date at which a simulated program starts, unless another is asked for."""

SIGNAL_NUMBERS: Final = {"HUP": 1, "INT": 2, "QUIT": 3, "KILL": 9, "USR1": 10, "USR2": 12, "TERM": 15}
_GO_RUNTIME_EXIT: Final = 2


class WaitingClock(Protocol):
    """The clock of a program: it can also wait for something to be so."""

    @property
    def now(self) -> Duration:
        """The time that has passed."""

    def sleep(self, span: Duration) -> None:
        """Let time pass."""

    def wait(self, span: Duration, ready: Callable[[], bool]) -> bool:
        """Let time pass until something is so, at most this long: is it so?"""


class _Recorder:
    """All ports at once, each act passed on and noted."""

    def __init__(self, host: ShellHost, cluster: Requested, clock: WaitingClock, seed: int, events: list[Event]) -> None:
        self.events = events
        self._host, self._cluster, self._clock = host, cluster, clock
        self._random = random.Random(seed)  # noqa: S311  # jitter, seeded by the scenario
        self.stat = host.stat
        self.read_file = host.read_file
        self.list_directory = host.list_directory
        self.mount_points = host.mount_points
        self.is_file = host.is_file
        self.read_link = host.read_link

    @property
    def now(self) -> Duration:
        return self._clock.now

    def sleep(self, span: Duration) -> None:
        if span > 0:
            self.events.append(Sleep(self._clock.now, span))
        self._clock.sleep(span)

    def random(self) -> float:
        return self._random.random()

    def log(self, level: str, message: str) -> None:
        self.events.append(LogLine(self._clock.now, level, message))

    def stdout(self, text: str) -> None:
        self.events.append(StdoutText(self._clock.now, text))

    def stderr(self, text: str) -> None:
        self.events.append(StderrText(self._clock.now, text))

    def run(self, argv: Sequence[str]) -> ProcessResult:
        result = self._host.run(argv)
        self.events.append(ChildProcess(self._clock.now, tuple(argv), result.exit_code))
        return result

    def spawn(self, argv: Sequence[str], work: Callable[[], ProcessResult]) -> ProcessResult:
        started = len(self.events)

        def begin() -> ProcessResult:
            self.events.append(ChildProcess(self._clock.now, tuple(argv), None))
            return work()

        result = self._host.spawn(argv, begin)
        if len(self.events) == started:  # a stand-in ran in its place
            self.events.append(ChildProcess(self._clock.now, tuple(argv), None))
        event = self.events[started]
        assert isinstance(event, ChildProcess)
        self.events[started] = event._replace(exit_code=result.exit_code)
        return result

    def deleted(self, request: Request, span: Duration) -> bool:
        listed = self._cluster.listed(request)
        return self._clock.wait(span, lambda: not all(map(self._cluster.pod_exists, listed)))

    def request(self, request: Request) -> Response:
        try:
            response = self._cluster.request(request)
        except ConnectionDropped:
            self._note(request, "drop")
            raise
        self._note(request, response.status)
        return response

    def _note(self, request: Request, status: int | str) -> None:
        self.events.append(
            ApiRequest(self._clock.now, request.method, request.path, request.query, request.body, status, request.content_type)
        )

    def delete_module(self, name: str) -> None:
        self._kernel("delete_module", name, self._host.delete_module)

    def unmount(self, path: str) -> None:
        self._kernel("umount", path, self._host.unmount)

    def remove(self, path: str) -> None:
        self._kernel("unlink", path, self._host.remove)

    def _kernel(self, call: str, argument: str, act: Callable[[str], None]) -> None:
        try:
            act(argument)
        except OSError as error:
            name = errno.errorcode.get(error.errno or 0, str(error.errno))
            self.events.append(KernelCall(self._clock.now, call, argument, name))
            raise
        self.events.append(KernelCall(self._clock.now, call, argument, "ok"))


def simulate(
    world: World,
    release: str = DEFAULT,
    *,
    what_if: str = "",
    without: frozenset[str] = frozenset(),
    start: datetime.datetime = START,
    note_tree: bool = False,
) -> Outcome:
    """Run a release against a world. Raises KeyError for an unknown release or what-if.

    `without` leaves named changes of the release out; `start` dates klog's lines; `note_tree` keeps every file's text in
    the states before and after.
    """
    return run(world, resolve(release, without=without, what_if=what_if), start, note_tree=note_tree)


def run(
    world: World,
    resolved: Flow | ShellFlow,
    start: datetime.datetime = START,
    *,
    note_tree: bool = False,
    events: list[Event] | None = None,
    hear: Callable[[Call], None] | None = None,
) -> Outcome:
    """Run a resolved flow against a world. A caller that gives the list of events may watch it, and stop the run by raising.

    `hear` is told of each call just before it. Raises InputError for a fault that the release's model cannot bear.
    """
    clock = VirtualClock()
    cluster = FakeCluster(world.cluster, clock)
    host = FakeHost(world.host, world.path or resolved.container_path, cluster.pod_exists, resolved.release.chroot, resolved.image)
    return execute(world, resolved, host, cluster, clock, start, note_tree=note_tree, events=events, hear=hear)


def execute(
    world: World,
    resolved: Flow | ShellFlow,
    host: FakeHost,
    cluster: FakeCluster,
    clock: VirtualClock,
    start: datetime.datetime = START,
    *,
    note_tree: bool = False,
    events: list[Event] | None = None,
    hear: Callable[[Call], None] | None = None,
) -> Outcome:
    """Run a resolved flow against a host and a cluster that are already made, with what the world says happens meanwhile."""
    noted: list[Event] = [] if events is None else events

    def signalled(name: str) -> None:
        """As process 1 a shell is deaf: the kernel keeps signals from it that it does not handle."""
        noted.append(Signal(clock.now, name))
        if not (resolved.deaf and world.pid_1) or name == "KILL":
            raise Terminated(name)

    _plan(world, noted, host, cluster, clock, signalled)
    moments = None
    if world.faults or hear is not None:
        _check_faults(world, resolved)
        moments = Moments(world.faults, signalled, hear)
    return run_program(world, resolved, host, cluster, clock, start, note_tree=note_tree, events=noted, moments=moments)


def _check_faults(world: World, resolved: Flow | ShellFlow) -> None:
    """The model of the script says nothing of files that cannot be opened, nor of programs that bash cannot start."""
    for fault in world.faults:
        if isinstance(resolved, ShellFlow) and fault.error and fault.call in {"open", "execve"}:
            raise InputError(
                "",
                "faults",
                f"{fault.call} {fault.argument}: {fault.error} is not modelled for {resolved.release.tag}, which is a script",
                "leave it out, or name a Go release",
            )


def run_program(
    world: World,
    resolved: Flow | ShellFlow,
    host: FakeHost,
    cluster: FakeCluster,
    clock: WaitingClock,
    start: datetime.datetime = START,
    *,
    note_tree: bool = False,
    events: list[Event] | None = None,
    moments: Moments | None = None,
) -> Outcome:
    """The program alone, on a host, a cluster and a clock that others use too: nothing is planned, no signal comes.

    Of the world its settings count. Events have the clock's times, `start` is the date of its zero. `moments` hears of each call.
    """
    asked_host: ShellHost = host
    asked_cluster: Requested = cluster
    childs_host: VfioHost = host
    if moments is not None:
        asked_host, asked_cluster = FaultyHost(host, moments), FaultyCluster(cluster, moments)
        childs_host = ChildsHost(host, moments)
    host.own_programs["vfio-manage"] = as_child(resolved.release.tag, childs_host, world.env, resolved.without)
    recorder = _Recorder(asked_host, asked_cluster, clock, world.seed, [] if events is None else events)
    began = clock.now
    before = state_of(host, cluster, note_tree=note_tree)

    def stamp() -> str:
        moment = start + datetime.timedelta(microseconds=clock.now // 1000)
        return f"{moment:%m%d %H:%M:%S.%f} {1 if world.pid_1 else 4242:7d}"

    def now() -> str:
        return f"{start + datetime.timedelta(microseconds=clock.now // 1000):%Y-%m-%dT%H:%M:%SZ}"

    exit_code: int | None
    panic, stopped = "", None
    try:
        clock.sleep(0)
        if isinstance(resolved, ShellFlow):
            shell_ports = ShellPorts(recorder, recorder, recorder, recorder, recorder)
            script = make_script(resolved.script, resolved.libraries, world.env, shell_ports, stamp, now)
            exit_code = script_main(script, world.args)
        else:
            ports = Ports(recorder, recorder, recorder, recorder, recorder)
            ended: Exit = main(resolved, world.args, world.env, ports, stamp, world.version)
            exit_code, panic = ended.code, ended.panic
    except Terminated as signal:
        exit_code = _signal_exit(signal.signal, pid_1=world.pid_1)
    except Stopped:
        exit_code, stopped = None, int(world.stop_after)
    after = state_of(host, cluster, note_tree=note_tree)
    return Outcome(resolved.release.tag, exit_code, recorder.events, clock.now - began, before, after, panic, stopped)


def state_of(host: FakeHost, cluster: FakeCluster, *, note_tree: bool) -> State:
    """The node and its host as they are."""
    return State(
        node=cluster.node(),
        pods=cluster.pods(),
        mounts=host.mounts(),
        files=host.files(),
        modules=host.modules(),
        gpu_drivers=host.gpu_drivers(),
        terminating=cluster.terminating(),
        tree=host.tree.snapshot() if note_tree else None,
    )


def _signal_exit(name: str, *, pid_1: bool) -> int:
    """Process 1 cannot be killed by a signal it does not handle; Go's runtime then exits by itself."""
    return _GO_RUNTIME_EXIT if pid_1 and name != "KILL" else -SIGNAL_NUMBERS.get(name, 15)


def _plan(
    world: World, events: list[Event], host: FakeHost, cluster: FakeCluster, clock: VirtualClock, signalled: Callable[[str], None]
) -> None:
    """What happens meanwhile."""

    def happen(change: PlannedChange) -> Callable[[], None]:
        def happens() -> None:
            events.append(Change(clock.now, change.document()))
            host.change(change.write, change.remove)
            for pod in change.delete_pods:
                cluster.delete_pod(pod)

        return happens

    def stop() -> None:
        raise Stopped

    for change in world.changes:
        clock.plan(round(change.after * SECOND), happen(change))
    if world.signal is not None:
        name, after = world.signal
        clock.plan(round(after * SECOND), lambda: signalled(name))
    clock.plan(round(world.stop_after * SECOND), stop)
