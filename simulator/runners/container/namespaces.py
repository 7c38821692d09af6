"""Inside a running container's namespaces, from outside: mounts, sockets, addresses there.

An agent (`agent`) is a process of ours that lives in the container's mount, network, UTS, IPC, PID and cgroup namespaces,
with the container's root as its own. `Namespaces` is the caller's end of it. Nothing needs to be in the image.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from types import TracebackType


def why_not() -> str:
    """Why this machine cannot trace (not Linux, not root, a kernel without what is needed), in words; "" if it can."""
    raise NotImplementedError


class Namespaces:
    """A running container's namespaces; a context manager. Safe to use from several threads.

    Raises InputError where this machine cannot trace, where the container does not run (any more), and where it has a user
    namespace of its own. An act that fails in the container raises OSError with the path there. What was mounted stays
    until the container is gone; `close` ends the program that was started here, if it still runs.
    """

    def __init__(self, pid: int, container: str = "") -> None:
        """Enter the namespaces of the container whose first process is `pid` (`State.Pid` of `docker inspect`).

        `container` names it in errors.
        """
        raise NotImplementedError

    def mount_tmpfs(self, paths: Iterable[str]) -> None:
        """Mount an empty tmpfs on each path, in this order; the directory is made first. Twice the same path stacks."""
        raise NotImplementedError

    def mount_points(self, under: str = "/run") -> list[str]:
        """The mount points below a directory (itself included), in mount order: those of Docker's own binds too."""
        raise NotImplementedError

    def listen(self, host: str = "127.0.0.1", port: int = 6443) -> socket.socket:
        """A TCP socket that listens in the container's network namespace, to be served by this process."""
        raise NotImplementedError

    def add_address(self, address: str) -> None:
        """Give the container's `lo` one more IPv4 address (/32), and bring it up."""
        raise NotImplementedError

    def close(self) -> None:
        """Leave: the program and everything it started is killed and reaped, the agent ends. Can be called twice."""
        raise NotImplementedError

    def __enter__(self) -> Namespaces:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
