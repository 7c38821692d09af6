"""The seccomp filter of a traced program, and the protocol of its notifications.

The filter knows three answers: ask us (`SECCOMP_RET_USER_NOTIF`), EPERM, and go ahead. A call that is made by another
machine's convention (32-bit, x32) is unknown to it, so it gets ENOSYS: none goes round the filter.

Source: Linux include/uapi/linux/seccomp.h, Documentation/userspace-api/seccomp_filter.rst; seccomp_unotify(2).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import platform
import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from simulator.runners.container.syscalls import call, number

REFUSED: Final = (
    # What changes the kernel. No capability for it is ever given; this is the second lock.
    "init_module", "finit_module", "kexec_load", "kexec_file_load", "reboot",
    # What SYS_ADMIN, which umount needs, allows beside umount and reaches the machine from a container.
    "mount", "move_mount", "open_tree", "open_tree_attr", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
    "pivot_root", "setns", "unshare", "open_by_handle_at", "bpf", "perf_event_open", "swapon", "swapoff", "acct",
    "quotactl", "quotactl_fd",
)  # fmt: skip
"""Calls that fail with EPERM."""

_AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32: Final = 0x40000000
"""The bit that marks x32 calls on x86_64; aarch64 has no number that high."""

_SET_MODE_FILTER: Final = 1
_GET_ACTION_AVAIL: Final = 2
_GET_NOTIF_SIZES: Final = 3
_FLAG_NEW_LISTENER: Final = 1 << 3
_FLAG_WAIT_KILLABLE_RECV: Final = 1 << 5
"""Since 5.19: a signal does not interrupt a call that we have taken, so it does not come again."""
_RET_USER_NOTIF: Final = 0x7FC00000
_RET_ALLOW: Final = 0x7FFF0000
_RET_ERRNO: Final = 0x00050000

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K

_NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")  # struct seccomp_notif
_RESPONSE: Final = struct.Struct("=QqiI")  # struct seccomp_notif_resp
_ADDFD: Final = struct.Struct("=QIIII")  # struct seccomp_notif_addfd
_RECV: Final = 0xC0502100
_SEND: Final = 0xC0182101
_ID_VALID: Final = 0x40082102
_ADD_FD: Final = 0x40182103
_FLAG_CONTINUE: Final = 1


class Notification(NamedTuple):
    """A thread made a system call and waits for our answer."""

    id: int
    thread: int
    number: int
    arguments: tuple[int, ...]


def supported() -> bool:
    """Has this kernel user notification, in the sizes that are known here?"""
    sizes = ctypes.create_string_buffer(6)
    try:
        call("seccomp", _GET_ACTION_AVAIL, 0, struct.pack("=I", _RET_USER_NOTIF))
        call("seccomp", _GET_NOTIF_SIZES, 0, sizes)
    except OSError:
        return False
    return struct.unpack("=3H", sizes.raw) == (_NOTIFICATION.size, _RESPONSE.size, 64)


def program(asked: Iterable[str], refused: Iterable[str] = REFUSED, machine: str = "") -> bytes:
    """The filter's BPF program: calls to ask about, and calls that fail with EPERM."""
    machine = machine or platform.machine()

    def instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("=HBBI", code, if_true, if_false, value)

    unknown = instruction(_RETURN, _RET_ERRNO | errno.ENOSYS)
    filtered = instruction(_LOAD, 4) + instruction(_JUMP_EQUAL, _AUDIT_ARCH[machine], 1) + unknown
    filtered += instruction(_LOAD, 0) + instruction(_JUMP_AT_LEAST, _X32, 0, 1) + unknown
    for names, answer in ((asked, _RET_USER_NOTIF), (refused, _RET_ERRNO | errno.EPERM)):
        for name in names:
            wanted = number(name, machine)
            if wanted is not None:
                filtered += instruction(_JUMP_EQUAL, wanted, 0, 1) + instruction(_RETURN, answer)
    return filtered + instruction(_RETURN, _RET_ALLOW)


def install(filtered: bytes) -> int:
    """Put this thread, and what it executes, under a filter; the descriptor on which its notifications come.

    Needs CAP_SYS_ADMIN (or no_new_privs). Raises OSError.
    """
    code = ctypes.create_string_buffer(filtered, len(filtered))
    header = struct.pack("@HP", len(filtered) // 8, ctypes.addressof(code))
    try:
        return call("seccomp", _SET_MODE_FILTER, _FLAG_NEW_LISTENER | _FLAG_WAIT_KILLABLE_RECV, header)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    return call("seccomp", _SET_MODE_FILTER, _FLAG_NEW_LISTENER, header)


def receive(listener: int) -> Notification | None:
    """The next notification. None if it is void: its thread was killed or interrupted meanwhile."""
    buffer = bytearray(_NOTIFICATION.size)
    if _ioctl(listener, _RECV, buffer) is None:
        return None
    identity, thread, _, call_number, _, _, *arguments = _NOTIFICATION.unpack(buffer)
    return Notification(identity, thread, call_number, tuple(arguments))


def still_waits(listener: int, notification: Notification) -> bool:
    """Does the thread still wait? Then what was read of it by its number was its own."""
    return _ioctl(listener, _ID_VALID, bytearray(struct.pack("=Q", notification.id))) is not None


def let_through(listener: int, notification: Notification) -> bool:
    """Let the kernel do the call. False if nobody waits for the answer any more; so for each answer."""
    return _send(listener, notification, flags=_FLAG_CONTINUE)


def answer(listener: int, notification: Notification, failure: int) -> bool:
    """Let the call return 0, or fail with an errno."""
    return _send(listener, notification, failure=failure)


def answer_descriptor(listener: int, notification: Notification, descriptor: int, flags: int) -> bool:
    """Let the call return a copy of one of our descriptors; `flags` is O_CLOEXEC or 0."""
    added = _ioctl(listener, _ADD_FD, bytearray(_ADDFD.pack(notification.id, 0, descriptor, 0, flags)))
    return added is not None and _send(listener, notification, value=added)


def _send(listener: int, notification: Notification, value: int = 0, failure: int = 0, flags: int = 0) -> bool:
    return _ioctl(listener, _SEND, bytearray(_RESPONSE.pack(notification.id, value, -failure, flags))) is not None


def _ioctl(listener: int, request: int, argument: bytearray) -> int | None:
    """Ask the kernel; its answer, None if the thread that is meant does not wait any more."""
    while True:
        try:
            result: int = fcntl.ioctl(listener, request, argument, True)  # noqa: FBT003  # the call's result, not its bytes
            return result
        except InterruptedError:
            continue
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.ENOTCONN}:
                return None
            raise
