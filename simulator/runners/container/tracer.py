"""The tracer: a program started inside a running container, each of its interesting system calls seen and answered by us.

Docker 20.10 ignores `listenerPath`, so the seccomp user-notification filter is ours, and so is the start:

    with Namespaces(container_pid) as inside:
        inside.mount_tmpfs(["/run/nvidia/driver"])
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
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, TypeAlias

from simulator.runners.container.namespaces import Namespaces, why_not

__all__ = ["CAPABILITIES", "Command", "Decide", "Event", "Execution", "Output", "Program", "SystemCall", "trace", "why_not"]

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
    """Docker's names (SYS_ADMIN); the same in all five sets. SYS_MODULE is refused."""
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


class Program:
    """A traced program. A context manager: at its end the program, if it still runs, is killed."""

    pid: int
    """As this machine counts."""
    started: int
    """`time.monotonic_ns()` just before its first instruction."""

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status once it and all it started are gone, and every event was delivered; negative: killed by a signal.

        Raises TimeoutError (and the program goes on), and what `decide` or `on_event` raised.
        """
        raise NotImplementedError

    def drain(self) -> None:
        """Deliver now what the program has written so far. For other threads; not from within `on_event`."""
        raise NotImplementedError

    def signal(self, number: int) -> None:
        """Send it a signal, as kubelet would: process 1 does not get what it has no handler for. No error if it is gone."""
        raise NotImplementedError

    def kill(self) -> None:
        """SIGKILL for it and everything it started. No error if it is gone; `wait` tells when it is."""
        raise NotImplementedError

    def __enter__(self) -> Program:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        raise NotImplementedError


def trace(inside: Namespaces, command: Command, *, decide: Decide, on_event: Callable[[Event], None]) -> Program:
    """Start a program in a container's namespaces under our filter. One at a time in one `Namespaces`.

    `on_event` is called from a thread of the tracer's (or the one that drains), one event at a time; it must not wait for
    that thread, nor call `drain`. Raises InputError if the program cannot be started.
    """
    raise NotImplementedError
