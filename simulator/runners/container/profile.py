"""The seccomp profile of a container: `delete_module` gets one fixed answer, and nothing reaches the machine's kernel.

Docker does not hand out its default profile, and a custom one takes its place. So ours forbids by name what Docker's
documentation says its own forbids, less what the container's capabilities forbid anyway and what a mount namespace of
one's own needs.

Source: docs.docker.com, Seccomp security profiles for Docker; man 2 seccomp (an errno of 0 is success without the call).
"""

from __future__ import annotations

import errno
import json
from typing import Final

_FORBIDDEN: Final = (
    "acct",
    "add_key",
    "bpf",
    "clock_adjtime",
    "clock_settime",
    "create_module",
    "fanotify_init",
    "finit_module",
    "get_kernel_syms",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "ioperm",
    "iopl",
    "kcmp",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "lookup_dcookie",
    "move_pages",
    "name_to_handle_at",
    "nfsservctl",
    "open_by_handle_at",
    "perf_event_open",
    "personality",
    "pidfd_getfd",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "query_module",
    "quotactl",
    "reboot",
    "request_key",
    "settimeofday",
    "stime",
    "swapoff",
    "swapon",
    "syslog",
    "userfaultfd",
    "uselib",
    "ustat",
    "vm86",
    "vm86old",
)


def profile(delete_module: int) -> str:
    """The profile as Docker takes it (JSON), in which `delete_module` answers with this errno; 0 is success, without effect."""
    return json.dumps(
        {
            "defaultAction": "SCMP_ACT_ALLOW",
            "syscalls": [
                {"names": ["delete_module"], "action": "SCMP_ACT_ERRNO", "errnoRet": delete_module},
                {"names": list(_FORBIDDEN), "action": "SCMP_ACT_ERRNO", "errnoRet": errno.EPERM},
            ],
        }
    )
