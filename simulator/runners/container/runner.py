"""The container runner: an image of driver-manager against a world, run by Docker; its outcome is a simulated run's equal.

The host's tree is laid out on disk and mounted, the cluster is served over HTTP, `delete_module` is answered by a seccomp
profile, unmounts are real in the container's own mount namespace. The program runs as process 1 of a PID namespace, as in a
pod. What cannot be seen from outside is named in `Outcome.unobserved`.
"""

from __future__ import annotations

import concurrent.futures
import os
import re
import shlex
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from simulator.cluster.fake import FakeCluster
from simulator.cluster.serve import Server
from simulator.gocompat import SECOND
from simulator.host.fake import WATCHED, FakeHost
from simulator.host.kernel import PCI_DEVICES
from simulator.ports import Request
from simulator.real.clock import WallClock
from simulator.runners.container import engine, reading, supervisor
from simulator.runners.container.answers import fixed_answers, tries_to_unload
from simulator.runners.container.endpoint import ROOT_CA, certificate, endpoint
from simulator.runners.container.image import Image, look_into
from simulator.runners.container.layout import Drawer, Layout, lay_out
from simulator.runners.container.scripts import HELPER, OURS
from simulator.runners.container.profile import profile
from simulator.runners.container.supervisor import SHARED_WITH_HOST, Broken, Supervisor, Written
from simulator.runners.container.unfit import Unfit
from simulator.runners.simulated import state_of
from simulator.trace import ApiRequest, Change, Event, Outcome, Signal, State
from simulator.world import PlannedChange, World

__all__ = ["PARALLEL", "Unfit", "run_image", "run_images"]

PARALLEL: Final = 8
"""Runs at once: they mostly sleep."""
CAPABILITIES: Final = ("DAC_OVERRIDE", "NET_ADMIN", "NET_BIND_SERVICE", "SYS_ADMIN", "SYS_CHROOT")
"""What is left of root: any file of its own, an address and a port of its own network namespace, mounts, `chroot`."""
_ADDRESS: Final = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]")
_MADE: Final = frozenset(f"/host/{name}/" for name in SHARED_WITH_HOST)
"""Where the host's root has what it shares with the container."""
_ALIVE: Final = 5.0
"""Seconds after which the engine is asked whether the container still runs."""


def run_image(
    world: World, image: str, *, release: str = "", note_tree: bool = False, cancelled: threading.Event | None = None
) -> Outcome:
    """Run an image against a world, in real time.

    `release` is what the image claims to be, for the outcome and the reading of its settings. Raises Unfit for a world that
    a container cannot stand for, InputError for an image or an engine that is not fit, KeyboardInterrupt once `cancelled`.
    """
    engine.sweep_once()
    return _Run(world, look_into(image), release, cancelled or threading.Event()).run(note_tree=note_tree)


def run_images(
    worlds: Iterable[World], image: str, *, release: str = "", parallel: int = PARALLEL, note_tree: bool = False
) -> Iterator[tuple[int, Outcome | Unfit]]:
    """Run an image against many worlds, several at once: (position, outcome) of each, as they end.

    An interrupt, or a caller that has had enough, ends all runs and leaves nothing.
    """
    cancelled = threading.Event()
    pool = concurrent.futures.ThreadPoolExecutor(parallel, thread_name_prefix="dmsim-run")
    try:
        running = {
            pool.submit(run_image, world, image, release=release, note_tree=note_tree, cancelled=cancelled): position
            for position, world in enumerate(worlds)
        }
        for future in concurrent.futures.as_completed(running):
            try:
                yield running[future], future.result()
            except Unfit as unfit:
                yield running[future], unfit
    finally:
        cancelled.set()
        pool.shutdown(cancel_futures=True)


class _Run:
    """One run."""

    def __init__(self, world: World, image: Image, release: str, cancelled: threading.Event) -> None:
        self.world = world
        self.image = image
        self.release = release
        self.cancelled = cancelled
        self.answers = fixed_answers(world)
        self.env = self._environment()
        self.path = tuple(self.env.get("PATH", "").split(":"))
        self.clock = WallClock()
        self.cluster = FakeCluster(world.cluster, self.clock)
        self.host = FakeHost(world.host, self.path, self.cluster.pod_exists)
        """The host as it should be; what the program did to it on disk is not known here, but for its PCI bindings."""
        self.endpoint = endpoint(world, self.host, self.env, release)
        self.record: list[Event | reading.Chunk] = []
        self._recording = threading.RLock()
        self._stopped = False
        self._log = bytearray()
        self._unfit = ""
        self._failure: Exception | None = None
        self.supervisor: Supervisor
        self.layout: Layout

    def _environment(self) -> dict[str, str]:
        """What the program is started with: the image's own, the world's on top."""
        env = {**self.image.env, **self.world.env}
        if self.world.path is not None and "PATH" not in self.world.env:
            env["PATH"] = ":".join(self.world.path)
            if not env["PATH"]:
                del env["PATH"]
        return env

    # --- from beginning to end ----------------------------------------------------------------------------------------

    def run(self, *, note_tree: bool) -> Outcome:
        """Run it."""
        before = state_of(self.host, self.cluster, note_tree=note_tree)
        with ExitStack() as stack:
            folder = engine.new_folder()
            stack.callback(shutil.rmtree, folder)
            server = stack.enter_context(self._serve())
            self._lay_out(folder, server)
            stack.callback(self.supervisor.close)
            container = stack.enter_context(self._container(folder))
            try:
                self.supervisor.await_script("prepare")
                exit_code, elapsed, node, pods = self._watch(container, server)
            except Broken as error:
                raise Broken(f"{error}\n{container.logs().decode('utf-8', 'replace')}") from None
            after = self._state(before, folder)
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
            unobserved=self._unobserved(),
        )

    def _serve(self) -> Server:
        tls = None
        if self.endpoint is not None and self.endpoint.tls:
            tls = certificate(self.endpoint.host).context
        return Server(self.cluster, self.clock, host=engine.gateway(), tls=tls, observer=self._asked)

    def _lay_out(self, folder: Path, server: Server) -> None:
        ours, tree = folder / "ours", folder / "tree"
        ours.mkdir()
        tree.mkdir()
        shutil.copyfile(supervisor.busybox(), ours / "busybox")
        (ours / "busybox").chmod(0o755)
        replaced = {}
        if self.endpoint is not None and self.endpoint.in_cluster:
            replaced[ROOT_CA] = certificate(self.endpoint.host).root
        self.drawer = Drawer(ours)
        self.layout = lay_out(self.world.host, tree, self.drawer, ours / "busybox", self.path, replaced)
        self.supervisor = Supervisor(ours, self._wrote, self.layout.controls)
        network = ""
        if self.endpoint is not None and not self.world.cluster.api_down:
            at = self.endpoint
            network = supervisor.relay(at.host, at.port, *server.address, is_loopback=at.is_loopback)
        self.supervisor.expect("prepare")
        self.supervisor.expect("note")
        self.supervisor.write("prepare", supervisor.prepare(self.layout, network, self.world.host.mounts))
        self.supervisor.write("note", supervisor.note(self.layout, WATCHED))
        argv = (*self.image.command, *self.world.args)
        scripts = supervisor.start(argv, self.env, self.image.working_directory, pid_1=self.world.pid_1)
        for name, body in scripts.items():
            self.supervisor.write(name, body)

    def _container(self, folder: Path) -> AbstractContextManager[Any]:
        """The container, its supervisor started."""
        volumes = {str(self.layout.tree / name): f"/{name}" for name in self.layout.mounted}
        return engine.running(
            self.image.reference,
            {str(folder / "ours"): OURS, **volumes},
            entrypoint=[HELPER, "sh", f"{OURS}/supervise"],
            cap_drop=["ALL"],
            cap_add=[*CAPABILITIES, *(["CHOWN"] if os.getuid() else [])],
            security_opt=[
                f"seccomp={profile(self.answers.delete_module)}",
                "apparmor=unconfined",  # Docker's own AppArmor profile forbids mounts
                "label=disable",
                "no-new-privileges",
            ],
            user="0:0",
        )

    # --- while it runs ------------------------------------------------------------------------------------------------

    def _watch(self, container: Any, server: Server) -> tuple[int, int, Any, tuple[str, ...]]:
        """Let it run to its end: exit code, nanoseconds, and the cluster's node and pods at that moment."""
        self._ready()
        server.call(self._plan)
        self.supervisor.tell("run")
        while True:
            answer = self.supervisor.next_answer(_ALIVE)
            if isinstance(answer, Written):
                self._bind(answer)
            elif answer.startswith("exit "):
                break
            elif not answer:
                self._check_alive(container)
            if self._failure is not None:
                raise self._failure
            if self._unfit:
                raise Unfit(self._unfit)
        elapsed = self.clock.now
        node, pods = server.call(lambda: (self.cluster.node(), self.cluster.pods()))
        self.supervisor.drain()
        self.supervisor.await_script("note")
        status = int(answer.partition(" ")[2])
        return -(status - 128) if status > 128 else status, elapsed, node, pods

    def _ready(self) -> None:
        if self.cancelled.is_set():
            raise KeyboardInterrupt

    def _check_alive(self, container: Any) -> None:
        self._ready()
        container.reload()
        if container.status != "running":
            raise Broken(f"the container ended by itself: {container.logs().decode('utf-8', 'replace')}")

    def _plan(self) -> None:
        """Everything that happens by itself. On the server's thread."""
        self.clock.restart()
        for change in self.world.changes:
            act = self._happen(change)
            if change.after <= 0:
                act()
            else:
                self.clock.plan(round(change.after * SECOND), act)
        if self.world.signal is not None:
            name, after = self.world.signal
            self.clock.plan(round(after * SECOND), lambda: self._signal(name))
        self.clock.plan(round(self.world.stop_after * SECOND), self._stop)

    def _happen(self, change: PlannedChange) -> Callable[[], None]:
        def happens() -> None:
            self._note(lambda at: Change(at, change.document()))
            self.host.change(change.write, change.remove)
            body = "".join(self.drawer.put(text, path) for path, text in change.write.items())
            body += "".join(f"drop {shlex.quote(path)}\n" for path in change.remove)
            for pod in change.delete_pods:
                self.cluster.delete_pod(pod)
            try:
                self.supervisor.do(body)
            except Broken as error:
                self._failure = error

        return happens

    def _signal(self, name: str) -> None:
        self._note(lambda at: Signal(at, name))
        self.supervisor.tell(f"kill {name}")

    def _stop(self) -> None:
        self._stopped = True
        self.supervisor.tell("kill KILL")

    def _bind(self, written: Written) -> None:
        """A PCI driver's control file was written: what the kernel does."""
        for address in _ADDRESS.findall(written.text):
            before = self.host.tree.snapshot()
            try:
                self.host.write_file(written.path, address)
            except OSError:
                continue  # the program was not told: it had written already
            self.supervisor.do(_commands(before, self.host.tree.snapshot()))

    # --- what is seen -------------------------------------------------------------------------------------------------

    def _wrote(self, stream: str, data: bytes) -> None:
        with self._recording:
            self.record.append(reading.Chunk(self.clock.now, stream, data))
            if stream == "stderr":
                self._log += data
                self._unfit = self._unfit or self.answers.trouble(bytes(self._log))

    def _note(self, event: Callable[[int], Event]) -> None:
        """Note what happens now, after everything that the program had written before it."""
        self.supervisor.drain()
        with self._recording:
            self.record.append(event(self.clock.now))

    def _asked(self, request: Request, status: int | str, _: float) -> None:
        self._note(
            lambda at: ApiRequest(at, request.method, request.path, request.query, request.body, status, request.content_type)
        )

    def _unobserved(self) -> frozenset[str]:
        """What was not seen, by the names that recordings use."""
        unloaded = self.answers.delete_module == 0 and tries_to_unload(bytes(self._log))
        return frozenset({"kernel", "exec", *({"modules_after", "gpu_drivers"} if unloaded else ())})

    def _state(self, before: State, folder: Path) -> State:
        """How the host ended."""
        ours = folder / "ours"
        tree = supervisor.tree_of(ours / "tree-after.tar")
        existing = (ours / "existing").read_text("utf-8").splitlines()
        mounts = supervisor.new_mounts((ours / "mounts-before").read_text(), (ours / "mounts-after").read_text())
        modules = {path.split("/")[3] for path in tree if path.startswith("/sys/module/") and path.count("/") > 3}
        return State(
            node=None,
            pods=(),
            mounts=tuple(path for path in mounts if path.startswith("/run")),
            files={path: path in existing for path in WATCHED},
            modules=tuple(sorted(modules)),
            gpu_drivers={
                address: tree.get(f"{PCI_DEVICES}/{address}/driver", "").rpartition("/")[2] for address in before.gpu_drivers
            },
            tree=None if before.tree is None else _changed(before.tree, supervisor.tree_of(ours / "tree-before.tar"), tree),
        )


def _changed(tree: Mapping[str, str], before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """The model's tree, and in it what changed on disk: programs there are not what they are here, but they stay the same."""
    out = {path: text for path, text in tree.items() if path in after or path not in before}
    return out | {path: text for path, text in after.items() if before.get(path) != text and path not in _MADE}


def _commands(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """What makes one tree of sysfs from another: links and directories that come and go."""
    lines = [f"drop {shlex.quote(path)}\n" for path in sorted(before.keys() - after.keys(), reverse=True)]
    for path in sorted(after.keys() - before.keys()):
        if path.endswith("/"):
            lines.append(f"$b mkdir -p {shlex.quote(path)}\n")
        elif after[path].startswith("-> "):
            lines.append(f"$b ln -sfn {shlex.quote(after[path][3:])} {shlex.quote(path)}\n")
    return "".join(lines)
