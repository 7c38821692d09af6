"""Linux system calls that Python 3.11 has no function for, by number; failing ones raise OSError.

One table of numbers for both machines: the same is used to make calls and, in `seccomp`, to filter them.

Source: Linux arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h (aarch64), and the uapi headers.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterable
from typing import Final

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWCGROUP: Final = 0x02000000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

MNT_DETACH: Final = 2
MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_NOEXEC: Final = 8

AT_FDCWD: Final = -100
AT_REMOVEDIR: Final = 0x200
_AT_EMPTY_PATH: Final = 0x1000
_MOVE_MOUNT_F_EMPTY_PATH: Final = 4
_OPEN_TREE_CLONE: Final = 1

_PR_SET_PDEATHSIG: Final = 1
_PR_CAPBSET_DROP: Final = 24
_LINUX_CAPABILITY_VERSION_3: Final = 0x20080522

NUMBERS: Final = {
    # name: (x86_64, aarch64); None where the machine has no such call
    "acct": (163, 89),
    "bpf": (321, 280),
    "capset": (126, 91),
    "delete_module": (176, 106),
    "execve": (59, 221),
    "execveat": (322, 281),
    "exit_group": (231, 94),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open": (2, None),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "openat": (257, 56),
    "openat2": (437, 437),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "prctl": (157, 167),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "rmdir": (84, None),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigtimedwait": (128, 137),
    "seccomp": (317, 277),
    "setns": (308, 268),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "umount2": (166, 39),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "unshare": (272, 97),
    "write": (1, 64),
}

MACHINES: Final = ("x86_64", "aarch64")
"""`platform.machine()` of the machines whose numbers are known, in the table's order."""

CAPABILITIES: Final = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO",
    "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME",
    "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP", "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG",
    "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF", "CHECKPOINT_RESTORE",
)  # fmt: skip
"""Names without CAP_, as Docker's `--cap-add` takes them; a name's place is its number."""


def number(name: str, machine: str = "") -> int | None:
    """A system call's number on a machine (default: this one); None if that machine has no such call."""
    return NUMBERS[name][MACHINES.index(machine or platform.machine())]


_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long


def call(name: str, *arguments: int | bytes | ctypes.Array[ctypes.c_char] | None, path: str | None = None) -> int:
    """Make a system call. Raises OSError, about `path` if that is given."""
    wanted = number(name)
    assert wanted is not None, name
    passed = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    result: int = _syscall(ctypes.c_long(wanted), *passed)
    if result == -1:
        failed = ctypes.get_errno()
        raise OSError(failed, os.strerror(failed), path)
    return result


def default_action(signal_number: int) -> None:
    """Handle a signal in the default way; those, too, that the C library keeps for itself and a parent may have ignored."""
    call("rt_sigaction", signal_number, bytes(32), None, 8)  # struct sigaction, all zero: SIG_DFL


# --- namespaces and mounts ----------------------------------------------------------------------------------------


def setns(descriptor: int, flags: int) -> None:
    """Enter namespaces: those of the process that a pidfd refers to, as far as `flags` (CLONE_NEW*) name them."""
    call("setns", descriptor, flags)


def unshare(flags: int) -> None:
    """Leave namespaces for new ones."""
    call("unshare", flags)


def mount(source: str, target: str, kind: str, flags: int = 0) -> None:
    """Mount a file system."""
    call("mount", os.fsencode(source), os.fsencode(target), kind.encode(), flags, None, path=target)


def unmount(target: str | bytes, flags: int) -> None:
    """`umount2`."""
    call("umount2", os.fsencode(target), flags, path=os.fsdecode(target))


def clone_mount(path: str) -> int:
    """A descriptor of a copy of what is mounted at (or lies under) a path, attached nowhere."""
    return call("open_tree", AT_FDCWD, os.fsencode(path), _OPEN_TREE_CLONE | os.O_CLOEXEC, path=path)


def attach_mount(descriptor: int, path: str) -> None:
    """Mount such a copy on a path."""
    call("move_mount", descriptor, b"", AT_FDCWD, os.fsencode(path), _MOVE_MOUNT_F_EMPTY_PATH, path=path)


# --- processes and their capabilities -----------------------------------------------------------------------------


def die_with_parent(signal_number: int) -> None:
    """Get a signal when the thread that forked this process ends."""
    call("prctl", _PR_SET_PDEATHSIG, signal_number, 0, 0, 0)


def capability_mask(names: Iterable[str]) -> int:
    """The set of capabilities as the kernel writes it. Raises ValueError for a name that is none."""
    return sum(1 << CAPABILITIES.index(name) for name in set(names))


def limit_capabilities(mask: int) -> None:
    """Take all other capabilities out of the bounding set: no execve gives them back."""
    for capability in range(len(CAPABILITIES)):
        if not mask & 1 << capability:
            call("prctl", _PR_CAPBSET_DROP, capability, 0, 0, 0)


def set_capabilities(effective: int, permitted: int) -> None:
    """Set this thread's effective and permitted sets; the inheritable one, and with it the ambient one, is emptied."""
    header = struct.pack("=Ii", _LINUX_CAPABILITY_VERSION_3, 0)
    low, high = (struct.pack("=III", effective >> bits & 0xFFFFFFFF, permitted >> bits & 0xFFFFFFFF, 0) for bits in (0, 32))
    call("capset", header, low + high)


def permitted_capabilities() -> int:
    """This process's permitted set."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        return next(int(line.split()[1], 16) for line in file if line.startswith("CapPrm:"))
