"""The agent: a process of ours inside a container's namespaces that does there what `namespaces.Namespaces` asks for.

It is started as an interpreter of its own (no thread of the caller's is forked), enters, and answers one request after
the other. Two processes: the outer one stays in our PID namespace and waits; the inner one is in the container's, so it
ends with the container. Programs are forked by the inner one into a PID namespace of their own, so all they start ends with
them, and they end with the agent, which ends when the caller's socket or the caller is gone.

Only the standard library, all of it imported before the root changes: the image has no Python. The agent never waits for
a traced program: that may itself wait for an answer that the agent has to help with.
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
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

from simulator.mounts import listed
from simulator.runners.container import seccomp, syscalls

LARGEST: Final = 200_000
"""The largest message, in bytes: a socket's buffer holds it, whatever the machine's settings."""
MOST_DESCRIPTORS: Final = 8
"""The most descriptors that a message carries."""
CANNOT_START: Final = 127

_NAMESPACES: Final = (
    syscalls.CLONE_NEWNS
    | syscalls.CLONE_NEWNET
    | syscalls.CLONE_NEWUTS
    | syscalls.CLONE_NEWIPC
    | syscalls.CLONE_NEWPID
    | syscalls.CLONE_NEWCGROUP
)
_PROC: Final = "/proc"
_STATUS: Final = struct.Struct("=i")

_RTM_NEWLINK: Final = 16
_RTM_NEWADDR: Final = 20
_NLM_F_REQUEST_ACK: Final = 0x1 | 0x4
_NLM_F_CREATE_REPLACE: Final = 0x400 | 0x100
_IFF_UP: Final = 1
_IFA_ADDRESS: Final = 1
_IFA_LOCAL: Final = 2
_LO: Final = 1
"""The interface number of `lo` in each network namespace."""

_Answer: TypeAlias = tuple[Any, list[int]]
"""An act's result, and the descriptors that go with it."""


def main(caller: int, channel: int, container: int, root: int) -> NoReturn:
    """Enter a container and serve. Of the caller its PID; descriptors of the socket to it, the container's first process, its root."""
    sock = socket.socket(fileno=channel)
    sock.set_inheritable(False)
    try:
        caller_lives = os.pidfd_open(caller)
        proc = os.open(_PROC, os.O_RDONLY | os.O_DIRECTORY)
        permitted = syscalls.permitted_capabilities()
        syscalls.setns(container, _NAMESPACES)
        os.fchdir(root)
        os.chroot(".")
        os.chdir("/")
    except OSError as error:
        sock.send(_failure(error))
        os._exit(1)
    os.close(container)
    os.close(root)
    inner = os.fork()
    if inner:
        sock.close()
        os.waitpid(inner, 0)
        os._exit(0)
    try:
        sock.send(b"{}")
        _Agent(sock, caller_lives, proc, permitted).serve()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _failure(error: OSError) -> bytes:
    return json.dumps({"errno": error.errno, "path": error.filename}).encode()


@dataclass(frozen=True, slots=True)
class _Started:
    """A program that runs: the first process of its PID namespace."""

    lives: int
    """pidfd of that process."""
    process: int
    status: int
    """Where the wait status goes when it is gone."""
    relay: int | None
    """Where the wait status of the program itself comes from, if that is not the first process."""
    proc_mounts: int
    """How many mounts there were on /proc before."""


class _Agent:
    """The inner process."""

    def __init__(self, sock: socket.socket, caller: int, proc: int, permitted: int) -> None:
        self._sock = sock
        self._caller = caller
        self._proc = proc
        """Our own /proc, which knows all processes, by the numbers that our PID namespace gives them."""
        self._permitted = permitted
        self._program: _Started | None = None

    def serve(self) -> None:
        """Answer requests until the caller is gone; then end the program."""
        acts: Mapping[str, Callable[..., _Answer]] = {
            "add_address": _add_address,
            "kill": self._kill,
            "listen": _listen,
            "perform": self._perform,
            "start": self._start,
        }
        while self._caller_waits():
            request, descriptors, _, _ = socket.recv_fds(self._sock, LARGEST, MOST_DESCRIPTORS)
            if not request:
                break
            name, arguments = json.loads(request)
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)  # noqa: FBT003  # it takes no keyword
            try:
                result, returned = acts[name](*arguments, *descriptors)
                reply = json.dumps({"result": result}).encode()
            except OSError as error:
                reply, returned = _failure(error), []
            except Exception:
                reply, returned = json.dumps({"bug": traceback.format_exc()}).encode(), []
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
            socket.send_fds(self._sock, [reply], returned)
            for descriptor in returned:
                os.close(descriptor)
        if self._program:
            self._kill()
            self._reap(self._program)

    def _caller_waits(self) -> bool:
        """Wait for a request, and reap the program meanwhile. False if the caller is gone."""
        while True:
            poll = select.poll()
            for descriptor in (self._sock.fileno(), self._caller, *([self._program.lives] if self._program else [])):
                poll.register(descriptor, select.POLLIN)
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._program and self._program.lives in ready:
                self._reap(self._program)
            if self._caller in ready:
                return False
            if self._sock.fileno() in ready:
                return True

    def _perform(self, name: str, thread: int, directory: int, path: str, flags: int, capabilities: int) -> _Answer:
        """Do what a thread of the program asked for, as far as its capabilities would let it, seen from where it is."""
        if not path.startswith("/"):
            link = f"{thread}/cwd" if directory == syscalls.AT_FDCWD else f"{thread}/fd/{directory}"
            base = os.open(link, os.O_PATH, dir_fd=self._proc)
            try:
                os.fchdir(base)
            finally:
                os.close(base)
        syscalls.set_capabilities(capabilities & self._permitted, self._permitted)
        try:
            if name == "umount":
                syscalls.unmount(path, flags)
            elif flags & syscalls.AT_REMOVEDIR:
                os.rmdir(path)
            else:
                os.unlink(path)
        finally:
            syscalls.set_capabilities(self._permitted, self._permitted)
            os.chdir("/")
        return None, []

    # --- the program ------------------------------------------------------------------------------------------

    def _start(self, command: Mapping[str, Any], channel: int, stdin: int, stdout: int, stderr: int, status: int) -> _Answer:
        if self._program:
            raise OSError(errno.EBUSY, "", command["argv"][0])
        if command["pid_1"]:
            relay, relayed = None, None
        else:
            relay, relayed = os.pipe()
        before = len(self._proc_mounts())
        ourselves = os.pidfd_open(os.getpid())
        syscalls.setns(ourselves, syscalls.CLONE_NEWPID)  # undoes the unshare of an earlier start
        os.close(ourselves)
        syscalls.unshare(syscalls.CLONE_NEWPID)
        process = os.fork()
        if process == 0:
            told = socket.socket(fileno=channel)
            try:
                syscalls.die_with_parent(signal.SIGKILL)
                self._own_proc()
                if relayed is not None:
                    _fork_under_init(relayed)
                _execute(command, told, (stdin, stdout, stderr))
            except OSError as error:
                told.send(_failure(error))
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(CANNOT_START)
        if relayed is not None:
            os.close(relayed)
        self._program = _Started(os.pidfd_open(process), process, os.dup(status), relay, before)
        return None, []

    def _mount_points(self) -> list[str]:
        descriptor = os.open("self/mountinfo", os.O_RDONLY, dir_fd=self._proc)
        with open(descriptor, "rb") as file:
            return [mount.point for mount in listed(os.fsdecode(file.read()))]

    def _proc_mounts(self) -> list[str]:
        return [point for point in self._mount_points() if point == _PROC]

    def _own_proc(self) -> None:
        """Mount a /proc that fits this PID namespace, with what the container has mounted below (Docker's masks)."""
        below = [point for point in self._mount_points() if point.startswith(f"{_PROC}/")]
        kept = [(syscalls.clone_mount(point), point) for point in below]
        syscalls.mount("proc", _PROC, "proc", syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC)
        for descriptor, point in kept:
            syscalls.attach_mount(descriptor, point)
            os.close(descriptor)

    def _kill(self) -> _Answer:
        if self._program:
            signal.pidfd_send_signal(self._program.lives, signal.SIGKILL)
        return None, []

    def _reap(self, program: _Started) -> None:
        """Wait for the first process, with which all others end, and tell the caller how the program ended."""
        _, status = os.waitpid(program.process, 0)
        if program.relay is not None:
            relayed = os.read(program.relay, _STATUS.size)
            os.close(program.relay)
            if relayed:
                (status,) = _STATUS.unpack(relayed)
        for _ in self._proc_mounts()[program.proc_mounts :]:
            syscalls.unmount(_PROC, syscalls.MNT_DETACH)
        with contextlib.suppress(BrokenPipeError):  # nobody wants to know
            os.write(program.status, _STATUS.pack(status))
        os.close(program.status)
        os.close(program.lives)
        self._program = None


def _fork_under_init(relayed: int) -> None:
    """Return in a child. This process becomes its init: reaps what there is to reap, and ends with it."""
    child = os.fork()
    if child == 0:
        return
    os.dup2(relayed, 0, inheritable=False)
    os.closerange(1, os.sysconf("SC_OPEN_MAX"))
    while True:
        process, status = os.wait()
        if process == child:
            os.write(0, _STATUS.pack(status))
            os._exit(0)


def _execute(command: Mapping[str, Any], channel: socket.socket, streams: tuple[int, int, int]) -> None:
    """Become the program: streams, session, signals, capabilities, filter; then wait for the word. Raises OSError."""
    os.setsid()
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    os.chdir(command["cwd"])
    os.umask(0o022)
    for number in set(range(1, 65)) - {signal.SIGKILL, signal.SIGSTOP}:
        syscalls.default_action(number)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    syscalls.limit_capabilities(command["capabilities"])
    listener = seccomp.install(seccomp.program(command["asked"]))
    socket.send_fds(channel, [b"{}"], [listener])
    os.close(listener)
    if not channel.recv(1):
        return
    syscalls.set_capabilities(command["capabilities"], command["capabilities"])
    argv, env = command["argv"], command["env"]
    directories = [""] if "/" in argv[0] else [f"{directory}/" for directory in env.get("PATH", "").split(":")]
    failed = FileNotFoundError(2, "", argv[0])
    for directory in directories:
        try:
            os.execve(directory + argv[0], argv, env)
        except FileNotFoundError:
            continue
        except OSError as error:
            error.filename = directory + argv[0]
            raise
    raise failed


# --- acts that need no more than to be in the container -----------------------------------------------------------


def _listen(host: str, port: int) -> _Answer:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
            sock.listen()
        except OSError as error:
            error.filename = f"{host}:{port}"
            raise
        return None, [sock.detach()]


def _add_address(address: str) -> _Answer:
    packed = socket.inet_aton(address)
    attributes = b"".join(struct.pack("=HH4s", 8, kind, packed) for kind in (_IFA_LOCAL, _IFA_ADDRESS))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as route:
        route.bind((0, 0))
        _tell(route, _RTM_NEWLINK, struct.pack("=BxHiII", socket.AF_UNSPEC, 0, _LO, _IFF_UP, _IFF_UP))
        ifaddrmsg = struct.pack("=BBBBI", socket.AF_INET, 32, 0, 0, _LO)
        _tell(route, _RTM_NEWADDR, ifaddrmsg + attributes, _NLM_F_CREATE_REPLACE)
    return None, []


def _tell(route: socket.socket, kind: int, body: bytes, flags: int = 0) -> None:
    """Send a request to rtnetlink, and wait for its acknowledgement. Raises OSError."""
    route.send(struct.pack("=IHHII", 16 + len(body), kind, _NLM_F_REQUEST_ACK | flags, 1, 0) + body)
    (failed,) = struct.unpack_from("=i", route.recv(4096), 16)
    if failed:
        raise OSError(-failed, "", "lo")
