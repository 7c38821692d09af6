"""The tracer: a program started inside a running container, each of its interesting system calls seen and answered by us.

Docker 20.10 ignores `listenerPath`, so the seccomp user-notification filter is ours, and so is the start:

    with Namespaces(container_pid) as inside:
        api = inside.listen()                                   # 127.0.0.1:6443 in the container
        with trace(inside, Command(argv, env=env), decide=decide, on_event=events.append) as program:
            status = program.wait(timeout=420)

Order of events. `on_event` is called with one event after the other, in the order they happened. What the program wrote
before a system call is delivered before it; whoever sees the program by other means (an API server that got a request) calls
`program.drain()` first and then notes its own event: what was written before the request stands before it.

Safety. `delete_module` is never let through: it is answered by `decide`, and if nobody answers (this process died) the kernel
says ENOSYS. The program has not CAP_SYS_MODULE, whatever was asked for. If this process dies, so does the program with all its
children.

Linux 5.9 or newer, x86_64 or aarch64, root in the initial user namespace. No compiled helper.

Left out: a program that changes its own root directory; the result of an execve.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from simulator.reading import InputError
from simulator.runners.container import seccomp, syscalls
from simulator.runners.container.agent import LARGEST
from simulator.runners.container.namespaces import Namespaces, why_not
from simulator.runners.container.seccomp import Notification
from simulator.runners.container.tracee import Tracee

__all__ = ["CAPABILITIES", "Command", "Decide", "Event", "Execution", "Output", "Program", "SystemCall", "trace", "why_not"]

_DECIDED: Final = ("delete_module", "umount2", "unlink", "unlinkat", "rmdir")
_EXECUTING: Final = ("execve", "execveat")
_OPENING: Final = ("open", "openat", "openat2")

CAPABILITIES: Final = frozenset({
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SYS_ADMIN", "SYS_CHROOT",
})  # fmt: skip
"""What driver-manager and a host's package tools need: a container's usual ones less those that reach the machine or the
network, and SYS_ADMIN for umount."""


@dataclass(frozen=True, slots=True)
class Command:
    """What is started in the container, and as what."""

    argv: Sequence[str]
    """The program (a path in the container, or a name looked up on `env["PATH"]`) and its arguments."""
    env: Mapping[str, str] = field(default_factory=dict)
    """The whole environment."""
    cwd: str = "/"
    pid_1: bool = True
    """Process 1 of a PID namespace of its own, with a /proc to match; else it is process 2 under a minimal init."""
    capabilities: frozenset[str] = CAPABILITIES
    """Docker's names (SYS_ADMIN); as in Docker, the bounding, permitted and effective sets. SYS_MODULE is refused."""
    opened_instead: Mapping[str, Path | None] = field(default_factory=dict)
    """Path in the container -> the file of this machine that opening it for reading opens, afresh each time; None: ENOENT.

    For `/proc/modules`, which cannot be bind-mounted where the kernel has none, nor be absent where it has one.
    """


@dataclass(frozen=True, slots=True)
class Output:
    """The program, or a child that inherited the stream, wrote."""

    at: int
    """When, as `time.monotonic_ns()` has it; so for each event."""
    stream: str
    """stdout or stderr."""
    data: bytes


@dataclass(frozen=True, slots=True)
class SystemCall:
    """A call that was decided: delete_module by whomever; umount and unlink by the program itself, not by its children."""

    at: int
    call: str
    """`delete_module`, `umount` or `unlink`; an `unlink` is one `os.Remove` of Go (unlink, then rmdir if that failed)."""
    argument: str
    flags: int
    result: int
    """0 or the errno. That of an `unlink` is the one Go reports."""
    pid: int
    """The thread that called, as this machine counts."""


@dataclass(frozen=True, slots=True)
class Execution:
    """A child is about to execute a program. One that the caller's PATH look-up did not find makes no event."""

    at: int
    path: str
    """As it was given to execve."""
    argv: tuple[str, ...]
    direct: bool
    """Is it the first program of a child of the traced program itself? Else it is nested: of a child's child, or by a
    direct child a second time (what `chroot` runs)."""
    pid: int


Event: TypeAlias = "Output | SystemCall | Execution"
Decide: TypeAlias = Callable[[str, str, int], int | None]
"""(call, argument, flags) -> the errno it fails with, 0 if it succeeds without anything being done, None to do it really.

Call names are those of SystemCall. For `delete_module` None is an error: it is never done; what a success means for
/sys/module is for the function to do, before it returns. Asked once for each attempt, one at a time, in order of arrival;
no lock is held meanwhile. If it raises, the program is killed and `wait` raises the same error.
"""


@dataclass(frozen=True, slots=True)
class _Descriptors:
    """What a program is watched by."""

    listener: int
    stdout: int
    stderr: int
    status: int

    def close(self) -> None:
        for descriptor in (self.listener, self.stdout, self.stderr, self.status):
            os.close(descriptor)


class Program:
    """A traced program; `trace` makes it. A context manager: at its end the program, if it still runs, is killed."""

    pid: int
    """As this machine counts."""

    def __init__(
        self,
        inside: Namespaces,
        command: Command,
        decide: Decide,
        on_event: Callable[[Event], None],
        pid: int,
        descriptors: _Descriptors,
    ) -> None:
        """Watch a program that waits for the word to begin. Raises OSError if it is gone."""
        self.pid = pid
        self._inside = inside
        self._command = command
        self._capabilities = syscalls.capability_mask(command.capabilities)
        self._decide = decide
        self._on_event = on_event
        self._descriptors = descriptors
        self._root = Tracee(pid).root()
        self._pidfd = os.pidfd_open(pid)
        self._names = {number: name for name in asked(command) if (number := syscalls.number(name)) is not None}
        self._delivering = threading.Lock()
        self._streams = {descriptors.stdout: "stdout", descriptors.stderr: "stderr"}
        """Those that have not ended. With the lock only."""
        self._children: set[tuple[int, int]] = set()
        """The direct children that have executed something."""
        self._removing: dict[str, tuple[int | None, bool]] = {}
        """Path -> how its unlink, which failed, was decided, and whether that made an event: Go calls rmdir next."""
        self._unheard: dict[tuple[int, int, tuple[int, ...]], int] = {}
        """Answers that a call did not hear, since a signal interrupted it: it comes again. Before Linux 5.19 only."""
        self._failure: BaseException | None = None
        self._status = 0
        self._ended = threading.Event()
        threading.Thread(target=self._serve, name=f"tracer of {pid}", daemon=True).start()

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status once it and all it started are gone, and every event was delivered; negative: killed by a signal.

        Raises TimeoutError (and the program goes on), what `decide` or `on_event` raised, InputError if the container ended.
        """
        if not self._ended.wait(timeout):
            raise TimeoutError(f"{self._command.argv[0]} still runs after {timeout} s")
        if self._failure is not None:
            raise self._failure
        return os.waitstatus_to_exitcode(self._status)

    def drain(self) -> None:
        """Deliver now what the program has written so far. For other threads; not from within `on_event`."""
        with self._delivering:
            self._read_streams()

    def signal(self, number: int) -> None:
        """Send it a signal, as kubelet would: process 1 does not get what it has no handler for. No error if it is gone."""
        with self._delivering, contextlib.suppress(ProcessLookupError):
            if not self._ended.is_set():
                signal.pidfd_send_signal(self._pidfd, number)

    def kill(self) -> None:
        """SIGKILL for it and everything it started. No error if it is gone; `wait` tells when it is."""
        with contextlib.suppress(InputError):  # the container is gone, and the program with it
            if not self._ended.is_set():
                self._inside.ask("kill")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill()
        self._ended.wait()

    # --- the thread that serves the program -------------------------------------------------------------------

    def _serve(self) -> None:
        try:
            try:
                self._serve_until_gone()
            except BaseException as error:
                self._failure = error
                self.kill()
            status = os.read(self._descriptors.status, 4)
            if not status:
                raise self._inside.gone()
            (self._status,) = struct.unpack("=i", status)
            self.drain()
        except BaseException as error:  # whatever it is, `wait` raises the first
            self._failure = self._failure or error
        finally:
            with self._delivering:
                self._streams = {}
                self._descriptors.close()
                os.close(self._pidfd)
                self._ended.set()

    def _serve_until_gone(self) -> None:
        """Answer notifications and read the streams until the program and all it started are gone."""
        listener = self._descriptors.listener
        while True:
            poll = select.poll()
            with self._delivering:
                watched = [listener, *self._streams]
            for descriptor in watched:
                poll.register(descriptor, select.POLLIN)
            ready = dict(poll.poll())
            if ready.get(listener, 0) & select.POLLIN:
                notification = seccomp.receive(listener)
                if notification is not None:
                    self._handle(notification)
            elif listener in ready:
                return
            else:
                self.drain()

    def _read_streams(self) -> None:
        for descriptor, stream in list(self._streams.items()):
            with contextlib.suppress(BlockingIOError):
                while data := os.read(descriptor, 1 << 16):
                    self._on_event(Output(time.monotonic_ns(), stream, data))
                del self._streams[descriptor]

    def _deliver(self, event_at: Callable[[int], Event]) -> None:
        """Deliver the event of now, after what was written before it."""
        with self._delivering:
            self._read_streams()
            self._on_event(event_at(time.monotonic_ns()))

    def _handle(self, notification: Notification) -> None:
        """Answer a notification; if the thread is gone meanwhile, there is nobody to answer."""
        name = self._names[notification.number]
        unheard = self._unheard.pop(notification[1:], None)
        act: Callable[[], None]
        try:
            if unheard is not None:
                act = partial(self._answer, notification, unheard)
            else:
                act = self._understood(notification, name, Tracee(notification.thread))
        except OSError:  # gone, or an address that is none: the kernel says so itself, except where it is never asked
            act = (
                partial(self._answer, notification, errno.EFAULT) if name == "delete_module" else partial(self._pass, notification)
            )
        if seccomp.still_waits(self._descriptors.listener, notification):
            act()

    def _understood(self, notification: Notification, name: str, tracee: Tracee) -> Callable[[], None]:
        """What is to be done about a call. Only here the thread is looked at. Raises OSError."""
        arguments = notification.arguments
        match name:
            case "delete_module":
                return partial(self._delete_module, notification, tracee.text(arguments[0]), arguments[1])
            case "execve":
                return self._execution(notification, tracee, arguments[0], arguments[1])
            case "execveat":
                return self._execution(notification, tracee, arguments[1], arguments[2])
            case "open":
                return self._opening(notification, tracee, arguments[0], arguments[1])
            case "openat":
                return self._opening(notification, tracee, arguments[1], arguments[2])
            case "openat2":
                (flags,) = struct.unpack("=Q", tracee.memory(arguments[2], 8))
                return self._opening(notification, tracee, arguments[1], flags)
        if tracee.process != self.pid:
            return partial(self._pass, notification)
        match name:
            case "umount2":
                return partial(self._umount, notification, tracee.text(arguments[0]), arguments[1])
            case "unlinkat":
                directory = (arguments[0] & 0xFFFFFFFF ^ 0x80000000) - 0x80000000
                return partial(self._remove, notification, tracee.text(arguments[1]), arguments[2], directory)
            case _:
                flags = syscalls.AT_REMOVEDIR if name == "rmdir" else 0
                return partial(self._remove, notification, tracee.text(arguments[0]), flags, syscalls.AT_FDCWD)

    def _answer(self, notification: Notification, failure: int) -> None:
        if not seccomp.answer(self._descriptors.listener, notification, failure):
            self._unheard[notification[1:]] = failure

    def _pass(self, notification: Notification) -> None:
        seccomp.let_through(self._descriptors.listener, notification)

    def _decision(self, call: str, argument: str, flags: int) -> int | None:
        self.drain()
        return self._decide(call, argument, flags)

    def _settle(self, notification: Notification, call: str, argument: str, flags: int, failure: int) -> None:
        """The event of a decided call, then its answer."""
        self._deliver(lambda at: SystemCall(at, call, argument, flags, failure, notification.thread))
        self._answer(notification, failure)

    def _delete_module(self, notification: Notification, name: str, flags: int) -> None:
        failure = self._decision("delete_module", name, flags)
        if failure is None:
            raise TypeError(f"it was decided that delete_module of {name} be done really; it never is")
        self._settle(notification, "delete_module", name, flags, failure)

    def _umount(self, notification: Notification, path: str, flags: int) -> None:
        failure = self._decision("umount", path, flags)
        if failure is None:
            failure = self._perform(notification, "umount", path, flags, syscalls.AT_FDCWD)
        self._settle(notification, "umount", path, flags, failure)

    def _remove(self, notification: Notification, path: str, flags: int, directory: int) -> None:
        """unlink, rmdir: the two calls of one `os.Remove`, which is decided once and makes one event."""
        rmdir = bool(flags & syscalls.AT_REMOVEDIR)
        follows = rmdir and path in self._removing
        decided, silent = self._removing.pop(path) if follows else (self._decision("unlink", path, 0), False)
        failure = self._perform(notification, "unlink", path, flags, directory) if decided is None else decided
        if failure and not rmdir:
            silent = decided is None and failure == errno.EISDIR  # then Go reports what rmdir says, else what unlink said
            self._removing[path] = decided, not silent
        if silent:
            self._answer(notification, failure)
        else:
            self._settle(notification, "unlink", path, 0, failure)

    def _perform(self, notification: Notification, call: str, path: str, flags: int, directory: int) -> int:
        """Let the agent do what the program asked for; the errno, 0 for success."""
        try:
            self._inside.ask("perform", call, notification.thread, directory, path, flags, self._capabilities)
        except OSError as error:
            return error.errno or errno.EIO
        return 0

    def _execution(self, notification: Notification, tracee: Tracee, path: int, argv: int) -> Callable[[], None]:
        if tracee.process == self.pid:
            return partial(self._pass, notification)
        child = tracee.process, tracee.birth()
        direct = tracee.parent == self.pid and child not in self._children
        text, texts = tracee.text(path), tracee.texts(argv)
        self._children.add(child)

        def execute() -> None:
            self._deliver(lambda at: Execution(at, text, texts, direct, tracee.process))
            self._pass(notification)

        return execute

    def _opening(self, notification: Notification, tracee: Tracee, path: int, flags: int) -> Callable[[], None]:
        name, instead = tracee.text(path), self._command.opened_instead
        if name not in instead or flags & os.O_ACCMODE != os.O_RDONLY or tracee.root() != self._root:
            return partial(self._pass, notification)
        return partial(self._open, notification, instead[name], flags & os.O_CLOEXEC)

    def _open(self, notification: Notification, instead: Path | None, flags: int) -> None:
        if instead is None:
            self._answer(notification, errno.ENOENT)
            return
        try:
            descriptor = os.open(instead, os.O_RDONLY)
        except OSError as error:
            self._answer(notification, error.errno or errno.EIO)
            return
        try:
            seccomp.answer_descriptor(self._descriptors.listener, notification, descriptor, flags)
        finally:
            os.close(descriptor)


def asked(command: Command) -> tuple[str, ...]:
    """The system calls that a command's filter asks us about."""
    return _DECIDED + _EXECUTING + (_OPENING if command.opened_instead else ())


def trace(inside: Namespaces, command: Command, *, decide: Decide, on_event: Callable[[Event], None]) -> Program:
    """Start a program in a container's namespaces under our filter. One at a time in one `Namespaces`.

    `on_event` is called from a thread of the tracer's (or the one that drains), one event at a time; it must not wait for
    that thread, nor call `drain`. Raises InputError if the program cannot be started.
    """
    unknown = sorted(command.capabilities - set(syscalls.CAPABILITIES))
    if unknown or not command.argv:
        problem = f"has no capability {', '.join(unknown)}" if unknown else "has no program to start"
        raise InputError("", "the tracer's command", problem, "write it as Docker does: SYS_ADMIN" if unknown else "")
    if "SYS_MODULE" in command.capabilities:
        raise InputError("", "the tracer's command", "asks for SYS_MODULE", "leave it out: no traced program has it")
    channel, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with channel, contextlib.ExitStack() as unless_it_runs:
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        with far, contextlib.ExitStack() as given_away:
            given = [far.fileno(), os.open(os.devnull, os.O_RDONLY)]
            given_away.callback(os.close, given[1])
            kept = []
            for _ in ("stdout", "stderr", "status"):
                read, write = os.pipe()
                kept.append(read)
                unless_it_runs.callback(os.close, read)
                given.append(write)
                given_away.callback(os.close, write)
            try:
                inside.ask("start", _described(command), descriptors=given)
            except OSError as error:
                raise _cannot_start(command, error.errno, error.filename) from None
        os.set_blocking(kept[0], False)
        os.set_blocking(kept[1], False)
        try:
            pid, listener = _introduction(channel, command)
            unless_it_runs.callback(os.close, listener)
            program = Program(inside, command, decide, on_event, pid, _Descriptors(listener, *kept))
        except (InputError, OSError) as error:
            channel.close()  # it ends, if it has not ended
            os.read(kept[2], 4)  # it has ended, and the next can be started
            raise error if isinstance(error, InputError) else _cannot_start(command, error.errno, error.filename) from None
        unless_it_runs.pop_all()
        with contextlib.suppress(ConnectionError):  # it was killed: `wait` tells
            channel.send(b"!")
        failed = _received(channel)
    if failed:
        program.__exit__(None, None, None)
        raise _cannot_start(command, failed["errno"], failed["path"])
    return program


def _described(command: Command) -> Mapping[str, object]:
    return {
        "argv": list(command.argv),
        "env": dict(command.env),
        "cwd": command.cwd,
        "pid_1": command.pid_1,
        "capabilities": syscalls.capability_mask(command.capabilities),
        "asked": asked(command),
    }


def _introduction(channel: socket.socket, command: Command) -> tuple[int, int]:
    """What the program says of itself before it begins: its process, as we count, and the descriptor of its filter's listener."""
    credentials = struct.Struct("=iII")
    data, ancillary, _, _ = channel.recvmsg(LARGEST, socket.CMSG_SPACE(4) + socket.CMSG_SPACE(credentials.size))
    told = {kind: content for level, kind, content in ancillary if level == socket.SOL_SOCKET}
    failed: Mapping[str, Any] = json.loads(data) if data else {"errno": errno.ESRCH, "path": None}
    if failed:
        raise _cannot_start(command, failed["errno"], failed["path"])
    (listener,) = struct.unpack("=i", told[socket.SCM_RIGHTS])
    os.set_inheritable(listener, False)  # noqa: FBT003  # it takes no keyword
    return credentials.unpack(told[socket.SCM_CREDENTIALS])[0], listener


def _received(channel: socket.socket) -> Mapping[str, Any]:
    """Why the program could not be executed; empty if it was."""
    try:
        data = channel.recv(LARGEST)
    except ConnectionResetError:
        return {}
    failed: Mapping[str, Any] = json.loads(data) if data else {}
    return failed


def _cannot_start(command: Command, number: int | None, path: str | None) -> InputError:
    where = f" ({path})" if path and path != command.argv[0] else ""
    return InputError("", command.argv[0], f"cannot be started in the container: {os.strerror(number or 0)}{where}")
