"""The calls of a run, counted: what a world says goes wrong at one of them, and who wants to hear of each.

`FaultyHost` and `FaultyCluster` stand between the recorder and a world. A run without faults does not meet them.
Leaves out a request's own faults: those are the cluster's, and counted there the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from simulator.gocompat import PathError, errno_number
from simulator.host.fake import FakeHost
from simulator.host.tree import failure
from simulator.ports import CommandNotFound, IoFailure, ProcessResult, Request, Response
from simulator.world import CallFault

_MOUNTS: Final = "/proc/self/mountinfo"
_OF_OPENING: Final = ("EACCES", "ENFILE", "ENOENT", "EPERM", "EROFS")
"""Errnos with which a file cannot even be opened for writing."""


class Call(NamedTuple):
    """One call of a run: its kind (`world.CALLS`), its argument, and the how manyth of these it is."""

    call: str
    argument: str
    nth: int


class Moments:
    """The calls so far. `signal` lets a signal come; `hear` is told of each call just before it."""

    def __init__(
        self, faults: Sequence[CallFault], signal: Callable[[str], None], hear: Callable[[Call], None] | None = None
    ) -> None:
        self._faults = {(fault.call, fault.argument, fault.nth): fault for fault in faults}
        self._signal = signal
        self._hear = hear
        self._counts: dict[tuple[str, str], int] = {}

    def meet(self, call: str, argument: str) -> CallFault | None:
        """The next call; what goes wrong with it, if something does. Raises what the signal raises."""
        nth = self._counts.get((call, argument), 0) + 1
        self._counts[call, argument] = nth
        if self._hear is not None:
            self._hear(Call(call, argument, nth))
        fault = self._faults.get((call, argument, nth))
        if fault is None or not fault.signal:
            return fault
        self._signal(fault.signal)
        return None

    def answer(self, call: str, argument: str) -> None:
        """The next call, one of the kernel's. Raises OSError."""
        fault = self.meet(call, argument)
        if fault is not None:
            raise failure(_number(fault), argument)


def _number(fault: CallFault) -> int:
    number = errno_number(fault.error)
    assert number is not None, fault
    return number


class FaultyHost:
    """The host as a program meets it, call by call."""

    def __init__(self, host: FakeHost, moments: Moments) -> None:
        self._host = host
        self._moments = moments

    def run(self, argv: Sequence[str]) -> ProcessResult:
        """Run a program of the container. Raises CommandNotFound; another GoError if it could not be started."""
        return self._started(argv, lambda: self._host.run(argv))

    def spawn(self, argv: Sequence[str], work: Callable[[], ProcessResult]) -> ProcessResult:
        """Start a program whose work the model does itself. Raises as `run` does."""
        return self._started(argv, lambda: self._host.spawn(argv, work))

    def _started(self, argv: Sequence[str], start: Callable[[], ProcessResult]) -> ProcessResult:
        fault = self._moments.meet("execve", " ".join(argv))
        if fault is None:
            return start()
        path = self._host.program_path(argv[0])
        if fault.error == "ENOENT" or path is None:
            raise CommandNotFound(argv[0])
        if fault.error:
            raise PathError("fork/exec", path, _number(fault))
        assert fault.exit_code is not None, fault
        return start()._replace(exit_code=fault.exit_code) if fault.late else ProcessResult(fault.exit_code)

    def stat(self, path: str) -> None:
        """Does the path exist, links followed? Raises OSError."""
        self._moments.answer("stat", path)
        self._host.stat(path)

    def is_file(self, path: str) -> bool:
        """Is it a regular file, links followed? One that cannot be asked about is none."""
        return self._moments.meet("stat", path) is None and self._host.is_file(path)

    def read_link(self, path: str) -> str:
        """Where a link points. Raises OSError."""
        self._moments.answer("readlink", path)
        return self._host.read_link(path)

    def read_file(self, path: str) -> str:
        """A file's text. Raises OSError."""
        self._moments.answer("open", path)
        return self._host.read_file(path)

    def list_directory(self, path: str) -> list[str]:
        """The names in a directory, sorted. Raises OSError."""
        self._moments.answer("open", path)
        return self._host.list_directory(path)

    def mount_points(self) -> list[str]:
        """The mount points, in mount order. Raises OSError."""
        self._moments.answer("open", _MOUNTS)
        return self._host.mount_points()

    def remove(self, path: str) -> None:
        """`os.Remove`. Raises OSError."""
        self._moments.answer("unlink", path)
        self._host.remove(path)

    def unmount(self, path: str) -> None:
        """`umount2(path, MNT_DETACH)`. Raises OSError."""
        self._moments.answer("umount", path)
        self._host.unmount(path)

    def delete_module(self, name: str) -> None:
        """`delete_module(name, 0)`. Raises OSError."""
        self._moments.answer("delete_module", name)
        self._host.delete_module(name)


class ChildsHost:
    """The host as vfio-manage meets it, a child: only what it writes to sysfs is a moment."""

    def __init__(self, host: FakeHost, moments: Moments) -> None:
        self._host = host
        self._moments = moments
        self.run = host.run
        self.stat = host.stat
        self.is_directory = host.is_directory
        self.read_file = host.read_file
        self.list_directory = host.list_directory
        self.read_link = host.read_link
        self.resolve = host.resolve
        self.kernel_release = host.kernel_release

    def write_file(self, path: str, text: str) -> None:
        """Open a file of sysfs for writing and write to it. Raises OSError; IoFailure if it could be opened."""
        fault = self._moments.meet("write", path)
        if fault is not None:
            raise failure(_number(fault), path) if fault.error in _OF_OPENING else IoFailure(_number(fault), fault.error)
        self._host.write_file(path, text)


class Requested(Protocol):
    """What the recorder asks of a cluster."""

    def request(self, request: Request) -> Response:
        """Answer a request."""

    def listed(self, request: Request) -> frozenset[str]:
        """namespace/name of the pods that a list or a watch has at this moment."""

    def pod_exists(self, full_name: str) -> bool:
        """Is there a pod of this namespace/name?"""


class FaultyCluster:
    """The API server as a program meets it, request by request."""

    def __init__(self, cluster: Requested, moments: Moments) -> None:
        self._cluster = cluster
        self._moments = moments
        self.listed = cluster.listed
        self.pod_exists = cluster.pod_exists

    def request(self, request: Request) -> Response:
        """Answer a request. Raises as the cluster does."""
        self._moments.meet("request", f"{request.method} {request.path}")
        return self._cluster.request(request)
