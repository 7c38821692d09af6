"""Two ways to start the program in its container: by Docker alone, or under the tracer.

By Docker alone the supervisor starts it. It reaches the API server through a relay in the container, its output comes
through named pipes, what it asks the kernel is answered by a seccomp profile or for real, and nobody sees it.

Under the tracer it is started from outside into the container's namespaces. The API server listens in there, each
interesting system call is seen and answered, and what a success of `delete_module` means is done before the program hears of it.
"""

from __future__ import annotations

import os
import shlex
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from simulator.gocompat import errno_name, errno_number
from simulator.host.fake import FakeHost
from simulator.host.kernel import Answers
from simulator.runners.container import supervisor, tracer
from simulator.runners.container.answers import fixed_answers, tries_to_unload
from simulator.runners.container.endpoint import Endpoint
from simulator.runners.container.layout import PROC_MODULES, Drawer, changes
from simulator.runners.container.namespaces import Namespaces
from simulator.runners.container.scripts import OURS
from simulator.runners.container.supervisor import Supervisor
from simulator.runners.container.unfit import Unfit
from simulator.trace import ChildProcess, Event, KernelCall
from simulator.world import World

_EVERYWHERE: Final = "0.0.0.0"  # noqa: S104  # of a network namespace in which there is nothing else
CAPABILITIES: Final = (*sorted(tracer.CAPABILITIES), "NET_ADMIN", "NET_BIND_SERVICE")
"""What is left of root: files, mounts and `chroot` of its own, an address and a port of its own network namespace."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What a launch works with."""

    world: World
    host: FakeHost
    """The host as it should be: what it answers, and what follows from an answer."""
    changing: threading.RLock
    """Held by whoever changes the host."""
    supervisor: Supervisor
    drawer: Drawer
    endpoint: Endpoint | None
    """Where the program looks for its API server; None if nobody is to be there."""
    record: Callable[[Callable[[int], Event]], None]
    """Notes an event of now."""
    wrote: Callable[[str, bytes], None]
    """Notes what the program wrote: stream, bytes."""


@dataclass(frozen=True, slots=True)
class Command:
    """What is started."""

    argv: Sequence[str]
    env: Mapping[str, str]
    directory: str
    pid_1: bool


class Launch(Protocol):
    """One program in one container."""

    network: str
    """Docker's name of the network that the container is in."""

    def output(self, stream: str, data: bytes) -> None:
        """The supervisor has output of a program that it started."""

    def listening(self, container: Any, stack: ExitStack) -> Mapping[str, Any]:
        """Where the API server is to listen, once the container runs: arguments of `Server`."""

    def prepare(self, modules: str | None, address: tuple[str, int]) -> str:
        """Commands that make /proc/modules, and the API server reachable that listens at `address`."""

    def change(self, path: str, text: str | None) -> str:
        """Commands that write a file of the container's, or take away what is there (None)."""

    def start(self, command: Command, stack: ExitStack) -> None:
        """Start it. Its end is told to the supervisor's reader."""

    def drain(self) -> None:
        """Deliver what it has written so far."""

    def signal(self, name: str) -> None:
        """Send it a signal, named without SIG."""

    def check(self) -> None:
        """Raises Unfit once it was seen to need what it cannot have, and what went wrong behind its back."""

    def unobserved(self) -> frozenset[str]:
        """What was not seen, as recordings name it."""


def _change(drawer: Drawer, path: str, text: str | None) -> str:
    return f"drop {shlex.quote(path)}\n" if text is None else drawer.put(text, path)


class ByDocker:
    """By Docker alone. Raises Unfit for a /proc/modules that comes or goes: it is a mount."""

    network = "bridge"

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.answers = fixed_answers(stage.world)
        for change in stage.world.changes:
            if PROC_MODULES in change.remove or (PROC_MODULES in change.write and not stage.host.tree.exists(PROC_MODULES)):
                raise Unfit(f"{PROC_MODULES} comes or goes during the run")
        self._log = bytearray()

    def listening(self, container: Any, stack: ExitStack) -> Mapping[str, Any]:  # noqa: ARG002  # the tracer's needs them
        """On this machine's side of Docker's bridge."""
        return {"host": container.attrs["NetworkSettings"]["Gateway"]}

    def prepare(self, modules: str | None, address: tuple[str, int]) -> str:
        """A bind mount, or a /proc of its own; a relay."""
        lines = "no_modules\n" if modules is None else self.stage.drawer.put(modules, self._modules) + f"modules {self._modules}\n"
        at = self.stage.endpoint
        if at is None:
            return lines
        if not at.is_loopback:
            lines += supervisor.add_address(at.host)
        return lines if self.stage.world.cluster.api_down else lines + supervisor.relay(at.port, *address)

    _modules: Final = f"{OURS}/modules"

    def change(self, path: str, text: str | None) -> str:
        """As anywhere; /proc/modules is a file that is mounted there."""
        return _change(self.stage.drawer, path, text)

    def start(self, command: Command, stack: ExitStack) -> None:  # noqa: ARG002  # the container ends it
        """The supervisor starts it."""
        scripts = supervisor.start(command.argv, command.env, command.directory, pid_1=command.pid_1)
        for name, body in scripts.items():
            self.stage.supervisor.write(name, body)
        self.stage.supervisor.tell("run")

    def output(self, stream: str, data: bytes) -> None:
        """The supervisor's reader has something that it wrote."""
        if stream == "stderr":
            self._log += data
        self.stage.wrote(stream, data)

    def drain(self) -> None:
        """Empty the pipes."""
        self.stage.supervisor.drain()

    def signal(self, name: str) -> None:
        """The supervisor sends it."""
        self.stage.supervisor.tell(f"kill {name}")

    def check(self) -> None:
        """Does the log say that it now gets a wrong answer?"""
        if reason := self.answers.trouble(bytes(self._log)):
            raise Unfit(reason)

    def unobserved(self) -> frozenset[str]:
        """System calls and children; modules too, if the program was told that they are unloaded."""
        unloaded = self.answers.delete_module == 0 and tries_to_unload(bytes(self._log))
        return frozenset({"kernel", "exec", *({"modules_after", "gpu_drivers"} if unloaded else ())})


class Traced:
    """Under the tracer."""

    network = "none"

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage = stage
        self._modules = folder / "modules"
        """On this machine; the program never sees where it lies."""
        self._scripts = {"umount": Answers(stage.world.host.umount), "unlink": Answers(stage.world.host.unlink)}
        self._inside: Namespaces
        self._program: tracer.Program
        self._failure: BaseException | None = None

    def listening(self, container: Any, stack: ExitStack) -> Mapping[str, Any]:
        """Inside the container's network namespace, at the very address that the program knows; if it is down nobody listens there."""
        self._inside = stack.enter_context(Namespaces(container.attrs["State"]["Pid"], container.name))
        at = self.stage.endpoint
        if at is None:
            return {}
        if not at.is_loopback:
            self._inside.add_address(at.host)
        return {} if self.stage.world.cluster.api_down else {"sock": self._inside.listen(_EVERYWHERE, at.port)}

    def prepare(self, modules: str | None, address: tuple[str, int]) -> str:  # noqa: ARG002  # it is there already
        """Nothing in the container: /proc/modules is what the tracer opens instead."""
        self.change(PROC_MODULES, modules)
        return ""

    def change(self, path: str, text: str | None) -> str:
        """As anywhere, but for /proc/modules."""
        if path != PROC_MODULES:
            return _change(self.stage.drawer, path, text)
        if text is None:
            self._modules.unlink(missing_ok=True)
        else:  # at once, for whoever opens it meanwhile
            fresh = self._modules.with_suffix(".new")
            fresh.write_bytes(os.fsencode(text))
            fresh.replace(self._modules)
        return ""

    def start(self, command: Command, stack: ExitStack) -> None:
        """The tracer starts it."""
        traced = tracer.Command(
            command.argv, command.env, command.directory, pid_1=command.pid_1, opened_instead={PROC_MODULES: self._modules}
        )
        self._program = stack.enter_context(tracer.trace(self._inside, traced, decide=self._decide, on_event=self._happened))
        threading.Thread(target=self._wait, name="dmsim-wait", daemon=True).start()

    def _wait(self) -> None:
        status = 0
        try:
            status = self._program.wait()
        except BaseException as error:  # `check` raises it where somebody listens
            self._failure = error
        self.stage.supervisor.ended(status)

    def output(self, stream: str, data: bytes) -> None:
        """Not that way."""
        raise AssertionError(stream, data)

    def drain(self) -> None:
        """Have the tracer deliver it."""
        if hasattr(self, "_program"):
            self._program.drain()

    def signal(self, name: str) -> None:
        """As kubelet would."""
        self._program.signal(signal.Signals[f"SIG{name}"])

    def check(self) -> None:
        """What the tracer's threads met."""
        if self._failure is not None:
            raise self._failure

    def unobserved(self) -> frozenset[str]:
        """Nothing."""
        return frozenset()

    # --- called by the tracer -----------------------------------------------------------------------------------------

    def _happened(self, event: tracer.Event) -> None:
        match event:
            case tracer.Output():
                self.stage.wrote(event.stream, event.data)
            case tracer.SystemCall():
                result = errno_name(event.result) if event.result else "ok"
                self.stage.record(lambda at: KernelCall(at, event.call, event.argument, result))
            case tracer.Execution(direct=True):
                self.stage.record(lambda at: ChildProcess(at, event.argv, None))
                with self.stage.changing:
                    self._mirror(event.argv)
            case _:
                pass

    def _mirror(self, argv: Sequence[str]) -> None:
        """What asking a program of the host's does to the host: its script does it on disk."""
        if argv[0] == "chroot":
            self.stage.host.commands.chroot(argv, self.stage.host.path)

    def _decide(self, call: str, argument: str, _flags: int) -> int | None:
        if call == "delete_module":
            return self._delete_module(argument)
        answer = self._scripts[call].next(argument, self.stage.host.kernel.pod_exists)
        return None if answer == "real" else 0 if answer == "ok" else errno_number(answer)

    def _delete_module(self, name: str) -> int:
        with self.stage.changing:
            host = self.stage.host
            before = host.tree.snapshot()
            try:
                host.delete_module(name)
            except OSError as error:
                return error.errno or 0
            after = host.tree.snapshot()
        if after.get(PROC_MODULES) != before.get(PROC_MODULES):
            self.change(PROC_MODULES, after.get(PROC_MODULES))
        self.stage.supervisor.do(changes(before, after))
        return 0
