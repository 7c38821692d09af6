"""The container runner: an image of driver-manager against a world, run by Docker; its outcome is a simulated run's equal.

The host's tree is laid out on disk and mounted, the cluster is served over HTTP, unmounts are real in the container's own
mount namespace, modules are unloaded as the world says. The program runs as process 1 of a PID namespace, as in a pod. What
cannot be seen from outside is named in `Outcome.unobserved`.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from simulator.cluster.fake import FakeCluster
from simulator.cluster.objects import REFUSE, TIMEOUT
from simulator.cluster.serve import Server
from simulator.gocompat import SECOND
from simulator.host.fake import WATCHED, FakeHost
from simulator.host.kernel import PCI_DEVICES
from simulator.host.spec import SHARED
from simulator.host.tree import HOST
from simulator.ports import Request
from simulator.real.clock import WallClock
from simulator.runners.container import engine, reading, supervisor, tracer
from simulator.runners.container.answers import fixed_answers
from simulator.runners.container.endpoint import ROOT_CA, certificate, endpoint
from simulator.runners.container.image import Image, look_into
from simulator.runners.container.launching import CAPABILITIES, ByDocker, Command, Launch, Stage, Traced
from simulator.runners.container.layout import Drawer, changes, lay_out
from simulator.runners.container.profile import profile
from simulator.runners.container.scripts import HELPER, OURS
from simulator.runners.container.supervisor import Broken, Ended, Supervisor, Written
from simulator.runners.container.unfit import Unfit
from simulator.runners.parallel import in_parallel
from simulator.runners.simulated import state_of
from simulator.trace import ApiRequest, Change, Event, Outcome, Signal, State
from simulator.world import PlannedChange, World

__all__ = ["PARALLEL", "Unfit", "run_image", "run_images"]

PARALLEL: Final = 8
"""Runs at once: they mostly sleep."""
_ADDRESS: Final = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]")
_KERNELS: Final = ("/proc/", "/sys/bus/pci/")
"""Files that show what the kernel knows."""
_MADE: Final = frozenset(f"{HOST}{path}/" for path in SHARED)
"""Where the host's root has what it shares with the container."""
_GLANCE: Final = 0.5
"""Seconds after which a run looks whether it may go on."""
_ALIVE: Final = 10.0
"""Seconds after which it asks the engine whether the container still runs."""


def run_image(
    world: World,
    image: str,
    *,
    release: str = "",
    tracer: bool | None = None,
    note_tree: bool = False,
    cancelled: threading.Event | None = None,
) -> Outcome:
    """Run an image against a world, in real time.

    `release` is what the image claims to be, for the outcome and the reading of its settings. `tracer` None: wherever this
    machine can. Raises Unfit for a world that a container cannot stand for, InputError for an image, an engine or a machine
    that is not fit, KeyboardInterrupt once `cancelled`.
    """
    engine.sweep_once()
    run = _Run(world, look_into(image), release, cancelled or threading.Event())
    return run.run(traced=can_trace() if tracer is None else tracer, note_tree=note_tree)


def can_trace() -> bool:
    """Is this a machine for the tracer?"""
    return not tracer.why_not()


def run_images(
    worlds: Iterable[World],
    image: str,
    *,
    release: str = "",
    tracer: bool | None = None,
    note_tree: bool = False,
    parallel: int = PARALLEL,
) -> Iterator[tuple[int, Outcome | Unfit]]:
    """Run an image against many worlds, several at once: (position, outcome) of each, as they end.

    An interrupt, or a caller that has had enough, ends all runs and leaves nothing.
    """
    cancelled = threading.Event()

    def run(placed: tuple[int, World]) -> Outcome | Unfit:
        try:
            return run_image(placed[1], image, release=release, tracer=tracer, note_tree=note_tree, cancelled=cancelled)
        except Unfit as unfit:
            return unfit

    for (position, _), outcome in in_parallel(run, enumerate(worlds), parallel, cancelled.set):
        yield position, outcome


_WITHOUT_SERVER: Final = (REFUSE, TIMEOUT)
"""What happens to a request before a server is met; ours is there."""


class _Run:
    """One run. Raises Unfit."""

    def __init__(self, world: World, image: Image, release: str, cancelled: threading.Event) -> None:
        if world.faults or any(fault.status in _WITHOUT_SERVER for fault in world.cluster.faults):
            raise Unfit("it has a fault at one call, or a request without a server: only the model can be told that")
        self.world = world
        self.image = image
        self.release = release
        self.cancelled = cancelled
        self.env = self._environment()
        self.path = tuple(self.env.get("PATH", "").split(":"))
        self.clock = WallClock(stopped=True)
        self.cluster = FakeCluster(world.cluster, self.clock)
        self.host = FakeHost(world.host, self.path, self.cluster.pod_exists)
        self.changing = threading.RLock()
        self.endpoint = endpoint(world, self.host, self.env, release)
        self.record: list[Event | reading.Chunk] = []
        self._recording = threading.Lock()
        self._stopped = False
        self._failure: Exception | None = None
        self.supervisor: Supervisor
        self.drawer: Drawer
        self.launch: Launch

    def _environment(self) -> dict[str, str]:
        """What the program is started with: the image's own, the world's on top."""
        env = {**self.image.env, **self.world.env}
        if self.world.path is not None and "PATH" not in self.world.env:
            env["PATH"] = ":".join(self.world.path)
            if not env["PATH"]:
                del env["PATH"]
        return env

    # --- from beginning to end ----------------------------------------------------------------------------------------

    def run(self, *, traced: bool, note_tree: bool) -> Outcome:
        """Run it."""
        before = state_of(self.host, self.cluster, note_tree=note_tree)
        with ExitStack() as stack:
            folder = engine.new_folder()
            stack.callback(engine.remove_folder, folder)
            ours, tree = folder / "ours", folder / "tree"
            ours.mkdir()
            tree.mkdir()
            shutil.copyfile(supervisor.busybox(), ours / "busybox")
            (ours / "busybox").chmod(0o755)
            self.drawer = Drawer(ours)
            layout = lay_out(
                self.world.host,
                tree,
                self.drawer,
                ours / "busybox",
                self.path,
                helpers=self.image.helpers,
                replaced=self._replaced(),
            )
            self.supervisor = Supervisor(ours, self._output, layout.controls)
            stack.callback(self.supervisor.close)
            self.launch = self._launch(folder, traced=traced)
            self._continue()
            container = stack.enter_context(self._container(ours, {name: tree / name for name in layout.mounted}))
            if os.getuid():
                stack.callback(self._give_back, container)
            try:
                server = stack.enter_context(self._server(container, stack))
                self.supervisor.do(
                    supervisor.prepare(layout, self.launch.prepare(layout.modules, server.address), self.world.host.mounts)
                )
                self._continue()
                server.call(self._plan)
                self.launch.start(self._command(), stack)
                server.call(self._plan_end)
                exit_code, elapsed = self._watch(container)
                node, pods = server.call(lambda: (self.cluster.node(), self.cluster.pods()))
                self.launch.drain()
                self.launch.check()
                for written in self.supervisor.written():
                    self._bind(written)
                self.supervisor.do(supervisor.note(layout, WATCHED))
            except Broken as error:
                raise Broken(f"{error}\n{engine.said(container)}") from None
            after = self._state(before, ours)
        told = reading.read(self.record)
        return Outcome(
            release=self.release or self.image.reference,
            exit_code=None if self._stopped else exit_code,
            events=told.events,
            elapsed=elapsed,
            before=before,
            after=replace(after, node=node, pods=pods),
            panic=told.panic,
            stopped_after=int(self.world.stop_after) if self._stopped else None,
            unobserved=self.launch.unobserved(),
        )

    def _replaced(self) -> dict[str, str]:
        """The certificate that the pod trusts, in place of what the world says of it."""
        at = self.endpoint
        return {ROOT_CA: certificate(at.host).root} if at is not None and at.in_cluster else {}

    def _launch(self, folder: Path, *, traced: bool) -> Launch:
        stage = Stage(self.world, self.host, self.changing, self.supervisor, self.drawer, self.endpoint, self._record, self._wrote)
        return Traced(stage, folder) if traced else ByDocker(stage)

    def _container(self, ours: Path, mounted: Mapping[str, Path]) -> AbstractContextManager[Any]:
        """The container, its supervisor started."""
        return engine.running(
            self.image.reference,
            {str(ours): OURS, **{str(folder): f"/{name}" for name, folder in mounted.items()}},
            entrypoint=[HELPER, "sh", f"{OURS}/supervise"],
            network_mode=self.launch.network,
            cap_drop=["ALL"],
            cap_add=list(CAPABILITIES),
            security_opt=[
                f"seccomp={profile(fixed_answers(self.world).delete_module)}",
                "apparmor=unconfined",  # Docker's own AppArmor profile forbids mounts
                "label=disable",
                "no-new-privileges",
            ],
            user="0:0",
        )

    @staticmethod
    def _give_back(container: Any) -> None:
        """For one who is not root, and could not remove what root has made."""
        with engine.answering(f"the container {container.name} does not give its files back"):
            container.exec_run([HELPER, "sh", "-c", f". {OURS}/functions; give_back"])

    def _server(self, container: Any, stack: ExitStack) -> Server:
        at = self.endpoint
        return Server(
            self.cluster,
            self.clock,
            tls=certificate(at.host).context if at is not None and at.tls else None,
            observer=self._asked,
            **self.launch.listening(container, stack),
        )

    def _command(self) -> Command:
        argv = (*self.image.command, *self.world.args)
        return Command(argv, self.env, self.image.working_directory, pid_1=self.world.pid_1)

    # --- while it runs ------------------------------------------------------------------------------------------------

    def _watch(self, container: Any) -> tuple[int, int]:
        """Let it run to its end: its exit status (negative: a signal), and the time."""
        glanced = self.clock.now
        while True:
            answer = self.supervisor.next_answer(_GLANCE)
            if isinstance(answer, Written):
                self._bind(answer)
            elif isinstance(answer, Ended):
                return answer.status, self.clock.now
            elif self.clock.now - glanced > _ALIVE * SECOND:
                glanced = self.clock.now
                if not engine.is_running(container):
                    raise Broken("the container ended by itself")
            self._continue()
            self.launch.check()

    def _continue(self) -> None:
        """Raises what stands against going on."""
        if self.cancelled.is_set():
            raise KeyboardInterrupt
        if self._failure is not None:
            raise self._failure

    def _plan(self) -> None:
        """What happens by itself; from now on time passes. On the server's thread."""
        self.clock.restart()
        for change in self.world.changes:
            act = self._happen(change)
            if change.after <= 0:
                act()
            else:
                self.clock.plan(round(change.after * SECOND), act)

    def _plan_end(self) -> None:
        """What befalls the program, now that there is one. On the server's thread."""
        if self.world.signal is not None:
            name, after = self.world.signal
            self.clock.plan(round(after * SECOND), lambda: self._signal(name))
        self.clock.plan(round(self.world.stop_after * SECOND), self._stop)

    def _happen(self, change: PlannedChange) -> Callable[[], None]:
        def happens() -> None:
            self._note(lambda at: Change(at, change.document()))
            with self.changing:
                self.host.change(change.write, change.remove)
            body = "".join(self.launch.change(path, text) for path, text in change.write.items())
            body += "".join(self.launch.change(path, None) for path in change.remove)
            for pod in change.delete_pods:
                self.cluster.delete_pod(pod)
            try:
                self.supervisor.do(body)
            except Broken as error:
                self._failure = error

        return happens

    def _signal(self, name: str) -> None:
        self._note(lambda at: Signal(at, name))
        self.launch.signal(name)

    def _stop(self) -> None:
        self._stopped = True
        self.launch.signal("KILL")

    def _bind(self, written: Written) -> None:
        """A PCI driver's control file was written: what the kernel does."""
        for address in _ADDRESS.findall(written.text):
            with self.changing:
                before = self.host.tree.snapshot()
                try:
                    self.host.write_file(written.path, address)
                except OSError:
                    continue  # the program was not told: it had written already
                after = self.host.tree.snapshot()
            self.supervisor.do(changes(before, after))

    # --- what is seen -------------------------------------------------------------------------------------------------

    def _output(self, stream: str, data: bytes) -> None:
        self.launch.output(stream, data)

    def _wrote(self, stream: str, data: bytes) -> None:
        with self._recording:
            self.record.append(reading.Chunk(self.clock.now, stream, data))

    def _record(self, event: Callable[[int], Event]) -> None:
        with self._recording:
            self.record.append(event(self.clock.now))

    def _note(self, event: Callable[[int], Event]) -> None:
        """Note what happens now, after everything that the program had written before it."""
        self.launch.drain()
        self._record(event)

    def _asked(self, request: Request, status: int | str, _: float) -> None:
        self._note(
            lambda at: ApiRequest(at, request.method, request.path, request.query, request.body, status, request.content_type)
        )

    def _state(self, before: State, ours: Path) -> State:
        """How the host ended: as on disk, where what the model does to the PCI bus is mirrored."""
        start, end = (supervisor.tree_of(ours / f"tree-{when}.tar") for when in ("before", "after"))
        for path, text in end.items():
            if path.endswith("/driver_override") and start.get(path) != text:
                self.host.write_file(path, text)
        existing = (ours / "existing").read_text("utf-8").splitlines()
        mounts = supervisor.new_mounts(*(os.fsdecode((ours / f"mounts-{when}").read_bytes()) for when in ("before", "after")))
        modules = {path.split("/")[3] for path in end if path.startswith("/sys/module/") and path.count("/") > 3}
        return State(
            node=None,
            pods=(),
            mounts=tuple(path for path in mounts if path.startswith("/run")),
            files={path: path in existing for path in WATCHED},
            modules=tuple(sorted(modules)),
            gpu_drivers={
                address: end.get(f"{PCI_DEVICES}/{address}/driver", "").rpartition("/")[2] for address in before.gpu_drivers
            },
            tree=None if before.tree is None else _ended(before.tree, start, end, self.host.tree.snapshot()),
        )


def _ended(tree: Mapping[str, str], start: Mapping[str, str], end: Mapping[str, str], model: Mapping[str, str]) -> dict[str, str]:
    """The tree as it was, and in it what changed on disk or, of the kernel's, in the model.

    Programs are other files on disk than in the model, but neither here nor there do they change.
    """
    kept = {path: text for path, text in tree.items() if path in end or path not in start}
    changed = {path: text for path, text in end.items() if start.get(path) != text and path not in _MADE}
    ended = {path: text for path, text in {**kept, **changed}.items() if not path.startswith(_KERNELS)}
    return ended | {path: text for path, text in model.items() if path.startswith(_KERNELS)}
