"""What can go wrong at a call: a table, each entry with its reason.

An entry is there because the call can end so while everything else is as it was. So what only another state answers is not:
ENOENT of a path that is there, EINVAL of what is no mount point, ENODEV of a function that is not bound; nor what cannot happen at
this place, as EBUSY of a lazy unmount.
Source: man-pages 6, section 2; Linux kernel/module/main.c,
fs/namespace.c, drivers/base/bus.c, fs/kernfs/file.c; Kubernetes API conventions, k8s.io/apiserver; Go's os and os/exec.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from simulator.cluster.objects import DROP, LOST, REFUSE, TIMEOUT


class CallEnd(NamedTuple):
    """How a call can end that is no request, and why it can."""

    name: str
    """For people: an errno, or what becomes of a program."""
    why: str
    error: str = ""
    exit_code: int | None = None
    late: bool = False


class RequestEnd(NamedTuple):
    """How a request can end, and why it can."""

    name: str
    why: str
    status: int | str
    retry_after: int | None = None


def _errnos(**reasons: str) -> tuple[CallEnd, ...]:
    return tuple(CallEnd(name, why, error=name) for name, why in reasons.items())


_FAILS: Final = CallEnd("exit 1", "it fails before it has done anything", exit_code=1)
_FAILS_LATE: Final = CallEnd("exit 1 after its work", "it fails after it has done its work", exit_code=1, late=True)
_KILLED: Final = CallEnd("killed", "the kernel's OOM killer ends it at once", exit_code=-9)
_KILLED_BELOW_SHELL: Final = _KILLED._replace(exit_code=128 + 9)

CALLS: Final[Mapping[str, tuple[CallEnd, ...]]] = {
    "delete_module": _errnos(
        EAGAIN="something uses the module (EWOULDBLOCK): a process with an open file, another module",
        EBUSY="the module is just being loaded or unloaded, or has no exit function",
        EPERM="CAP_SYS_MODULE is missing, or kernel.modules_disabled is set",
        EINTR="a signal came while the kernel waited for its list of modules",
    ),
    "umount": _errnos(
        EINVAL="the mount is locked: it came with a mount namespace of another user namespace's",
        EPERM="CAP_SYS_ADMIN is missing",
        ENOMEM="the kernel could not copy the path",
    ),
    "unlink": _errnos(
        EBUSY="it is a mount point, in this mount namespace or another",
        EPERM="the file is immutable or append-only",
        EROFS="the host's file system is read-only",
        EIO="the disk fails",
    ),
    "stat": _errnos(
        EACCES="a security module forbids it",
        ENOMEM="the kernel is out of memory",
    ),
    "open": _errnos(
        EACCES="a security module forbids it",
        ENFILE="the system has as many open files as it may have",
        ENOMEM="the kernel is out of memory",
    ),
    "readlink": _errnos(
        EACCES="a security module forbids it",
        ENOMEM="the kernel is out of memory",
    ),
    "write": _errnos(
        EACCES="a security module forbids it",
        ENOMEM="the kernel could not copy what is written",
    ),
    "execve": (
        *_errnos(
            EACCES="a security module forbids it, or the file system is mounted noexec",
            EAGAIN="fork: the pod's limit of processes is reached",
            ENOMEM="fork: the memory cannot be had",
        ),
        _FAILS,
        _FAILS_LATE,
        _KILLED,
    ),
}
"""Call -> how it can end but well."""

SHELL_CALLS: Final[Mapping[str, tuple[CallEnd, ...]]] = {
    **{call: ends for call, ends in CALLS.items() if call != "open"},
    "execve": (_FAILS, _FAILS_LATE, _KILLED_BELOW_SHELL),
}
"""The same for the script: what bash says where it cannot open a file or start a process is not modelled."""

_ANY: Final = (
    RequestEnd("401", "the service account's token has expired or is revoked", 401),
    RequestEnd("403", "RBAC or an admission webhook forbids it", 403),
    RequestEnd("404", "a server that does not know the object yet, or any more: it was made anew", 404),
    RequestEnd("409", "the object changed meanwhile, more often than the server tries", 409),
    RequestEnd("410", "the list's next page: its snapshot has expired", 410),
    RequestEnd("429", "a proxy's limit; of an eviction: the disruption budget", 429),
    RequestEnd("429 with Retry-After", "priority and fairness: the server is busy", 429, 1),
    RequestEnd("500", "etcd has timed out or lost its leader, or a webhook cannot be called", 500),
    RequestEnd("503", "a load balancer without a server behind it", 503),
    RequestEnd("503 with Retry-After", "the server is shutting down", 503, 5),
    RequestEnd("504", "the server gave up after its own time-out", 504),
    RequestEnd("dropped", "the connection breaks before the server has done anything", DROP),
    RequestEnd("answer lost", "the connection breaks after the server has done it", LOST),
    RequestEnd("refused", "nothing listens: the server restarts", REFUSE),
    RequestEnd("timed out", "packets are lost: client-go gives up dialling after 30 s", TIMEOUT),
)


def request_ends(method: str, path: str, query: Mapping[str, str]) -> Iterator[RequestEnd]:
    """How a request can end but well: 404 of one object only, 409 of a write, 410 of a further page, a lost answer of a write."""
    is_write = method != "GET"
    for end in _ANY:
        match end.status:
            case 404 if not is_write and is_list(path):
                continue
            case 409 if not is_write:
                continue
            case 410 if "continue" not in query:
                continue
            case status if status == LOST and not is_write:
                continue
        yield end


def is_list(path: str) -> bool:
    """Does the path name all objects of a kind? Of what driver-manager asks for, that is pods and claims."""
    return path.endswith(("/pods", "/resourceclaims"))


REQUESTS: Final[Sequence[RequestEnd]] = _ANY
"""Every way in which a request can end; `request_ends` says which of them one can."""
