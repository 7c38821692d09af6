"""Inside a running container's namespaces, from outside: sockets and addresses there, and programs.

An agent (`agent`) is a process of ours that lives in the container's mount, network, UTS, IPC, PID and cgroup namespaces,
with the container's root as its own. `Namespaces` is the caller's end of it. Nothing needs to be in the image.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import platform
import re
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from simulator.reading import InputError
from simulator.runners.container import seccomp, syscalls
from simulator.runners.container.agent import LARGEST, MOST_DESCRIPTORS

_IMPORTED_FROM: Final = str(Path(__file__).resolve().parents[3])
_AGENT: Final = (
    "import sys; sys.path.insert(0, sys.argv[1])\nfrom simulator.runners.container.agent import main\nmain(*map(int, sys.argv[2:]))"
)
_OLDEST: Final = (5, 9)
_EVERY_UID: Final = ["0", "0", "4294967295"]
_PATIENCE: Final = 10.0
"""Seconds in which the agent leaves; it waits for nothing but the end of processes that were killed."""


def why_not() -> str:
    """Why this machine cannot trace (not Linux, not root, a kernel without what is needed), in words; "" if it can."""
    if not sys.platform.startswith("linux"):
        return f"this is {platform.system()}, not Linux"
    if platform.machine() not in syscalls.MACHINES:
        return f"the tracer knows no system calls of {platform.machine()}, only those of {' and '.join(syscalls.MACHINES)}"
    if os.geteuid() != 0:
        return "this is not root"
    needed = ("SYS_ADMIN", "SYS_CHROOT", "SYS_PTRACE", "SETPCAP", "NET_ADMIN", "DAC_OVERRIDE")
    permitted = syscalls.permitted_capabilities()
    missing = [name for name in needed if not permitted & syscalls.capability_mask([name])]
    if missing:
        return f"this root lacks the capabilities {', '.join(missing)}"
    if Path("/proc/self/uid_map").read_text(encoding="ascii").split() != _EVERY_UID:
        return "this is root in a user namespace only"
    if not seccomp.supported() or _release() < _OLDEST:
        return f"Linux {platform.release()} lacks what is needed of seccomp's user notification, which 5.9 completed"
    return ""


def _release() -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", platform.release())[:2])


class Namespaces:
    """A running container's namespaces; a context manager. Safe to use from several threads.

    Raises InputError where this machine cannot trace, where the container does not run (any more), and where it has a user
    namespace of its own. An act that fails in the container raises OSError. `close` ends the program that was started
    here, if it still runs.
    """

    def __init__(self, pid: int, container: str = "") -> None:
        """Enter the namespaces of the container whose first process is `pid` (`State.Pid` of `docker inspect`).

        `container` names it in errors.
        """
        self._container = container or f"the container of process {pid}"
        reason = why_not()
        if reason:
            raise InputError("", "the tracer", f"cannot be used: {reason}", "run without it, or as root on a newer Linux")
        self._lock = threading.Lock()
        with contextlib.ExitStack() as stack:
            opened = self._open(pid)
            for descriptor in opened:
                stack.callback(os.close, descriptor)
            self._sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            stack.callback(theirs.close)
            descriptors = (theirs.fileno(), *opened)
            self._agent = subprocess.Popen(  # noqa: S603  # this interpreter, our own code
                [sys.executable, "-I", "-S", "-X", "utf8", "-c", _AGENT, _IMPORTED_FROM]
                + [str(number) for number in (os.getpid(), *descriptors)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=descriptors,
                start_new_session=True,
            )
        try:
            self._answer()
        except BaseException as error:
            self.close()
            if isinstance(error, ProcessLookupError):
                raise self._dead() from None
            if isinstance(error, OSError):
                raise InputError("", self._container, f"cannot be entered: {error.strerror}") from None
            raise

    def _open(self, pid: int) -> tuple[int, int]:
        """Descriptors of the container's first process and of its root. Raises InputError."""
        process = root = -1
        try:
            if pid <= 0:
                raise ProcessLookupError
            process = os.pidfd_open(pid)
            root = os.open(f"/proc/{pid}/root", os.O_PATH)
            ours, theirs = ({name: Path(f"/proc/{of}/ns/{name}").readlink() for name in ("mnt", "user")} for of in ("self", pid))
            if ours["user"] != theirs["user"]:
                raise InputError("", self._container, "has a user namespace of its own", "switch userns-remap off for it")
            if ours["mnt"] == theirs["mnt"]:
                raise InputError("", self._container, "is no container: it has this machine's own mounts")
            if select.select([process], [], [], 0)[0]:
                raise ProcessLookupError
        except BaseException as error:
            for descriptor in (process, root):
                if descriptor >= 0:
                    os.close(descriptor)
            if isinstance(error, OSError):
                raise self._dead() from None
            raise
        return process, root

    def listen(self, host: str = "127.0.0.1", port: int = 6443) -> socket.socket:
        """A TCP socket that listens in the container's network namespace, to be served by this process."""
        with self._lock:
            _, descriptors = self._request("listen", (host, port))
        return socket.socket(fileno=descriptors[0])

    def add_address(self, address: str) -> None:
        """Give the container's `lo` one more IPv4 address (/32), and bring it up. Raises ValueError for what is none."""
        self.ask("add_address", str(ipaddress.IPv4Address(address)))

    def ask(self, act: str, *arguments: Any, descriptors: Sequence[int] = ()) -> Any:
        """Let the agent do something, one act at a time; for the modules of this package. Raises OSError, InputError."""
        with self._lock:
            result, _ = self._request(act, arguments, descriptors)
        return result

    def _request(self, act: str, arguments: Sequence[Any], descriptors: Sequence[int] = ()) -> tuple[Any, list[int]]:
        if self._sock.fileno() < 0:
            raise self.gone()
        request = json.dumps([act, arguments]).encode()
        if len(request) >= LARGEST:
            raise InputError(
                "", self._container, f"cannot be told {len(request)} bytes at once", f"at most {LARGEST}, environment included"
            )
        try:
            socket.send_fds(self._sock, [request], descriptors)
        except (BrokenPipeError, ConnectionResetError):
            raise self.gone() from None
        return self._answer()

    def _answer(self) -> tuple[Any, list[int]]:
        try:
            reply, descriptors, _, _ = socket.recv_fds(self._sock, LARGEST, MOST_DESCRIPTORS)
        except ConnectionResetError:
            reply, descriptors = b"", []
        if not reply:
            raise self.gone()
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)  # noqa: FBT003  # it takes no keyword
        document = json.loads(reply)
        if "errno" in document:
            raise OSError(document["errno"], os.strerror(document["errno"]), document["path"])
        if "bug" in document:
            raise RuntimeError(document["bug"])
        return document.get("result"), descriptors

    def _dead(self) -> InputError:
        return InputError("", self._container, "does not run", "start it first")

    def gone(self) -> InputError:
        """The error that the container, and the agent with it, ended meanwhile."""
        return InputError("", self._container, "ended while it was in use")

    def close(self) -> None:
        """Leave: the program and everything it started is killed and reaped, the agent ends. Can be called twice."""
        with self._lock:
            self._sock.close()
        try:
            self._agent.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._agent.kill()
            self._agent.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
