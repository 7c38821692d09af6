"""The filter, interpreted, and the protocol of its notifications where the kernel interrupts it."""

from __future__ import annotations

import errno
import fcntl
import struct

import pytest

from simulator.runners.container import seccomp, syscalls
from simulator.runners.container.seccomp import Notification


@pytest.mark.parametrize("machine", syscalls.MACHINES)
def test_the_filter_of_each_machine(machine):
    """What the BPF program says, interpreted here: ask, EPERM, go ahead, ENOSYS."""
    audit = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
    filtered = seccomp.program(["delete_module", "unlink"], machine=machine)

    def says(number, arch=audit[machine]):
        instructions = list(struct.iter_unpack("=HBBI", filtered))
        at = loaded = 0
        while True:
            code, if_true, if_false, value = instructions[at]
            at += 1
            match code:
                case 0x20:
                    loaded = {0: number, 4: arch}[value]
                case 0x15:
                    at += if_true if loaded == value else if_false
                case 0x35:
                    at += if_true if loaded >= value else if_false
                case 0x06:
                    return value

    ask, refuse, allow, unknown = 0x7FC00000, 0x50000 | errno.EPERM, 0x7FFF0000, 0x50000 | errno.ENOSYS
    assert says(syscalls.number("delete_module", machine)) == ask
    assert [says(n) for name in seccomp.REFUSED if (n := syscalls.number(name, machine)) is not None] == [refuse] * len(
        seccomp.REFUSED
    )
    assert says(syscalls.number("execve", machine)) == allow
    assert says(syscalls.number("delete_module", machine), arch=0x40000003) == unknown
    assert says(syscalls.number("delete_module", machine) | 0x40000000) == unknown
    assert sum(says(n) == ask for n in range(1024)) == (2 if machine == "x86_64" else 1)


@pytest.mark.parametrize(
    ("failures", "heard"),
    [([], True), ([errno.EINTR, errno.EINTR], True), ([errno.ENOENT], False), ([errno.EINTR, errno.ENOTCONN], False)],
)
def test_an_answer_that_is_interrupted_is_given_again(monkeypatch, failures, heard):
    """EINTR: again; ENOENT and ENOTCONN: nobody waits for it any more."""
    given, left = [], list(failures)

    def ioctl(descriptor, request, argument, mutate):
        given.append((descriptor, request, bytes(argument)))
        if left:
            raise OSError(left.pop(0), "planned")
        return 0

    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    assert seccomp.answer(7, Notification(99, 1, 2, ()), errno.EBUSY) is heard
    response = (7, 0xC0182101, struct.pack("=QqiI", 99, 0, -errno.EBUSY, 0))
    assert given == [response] * (sum(failure == errno.EINTR for failure in failures) + 1)


def test_any_other_failure_is_one(monkeypatch):
    def ioctl(*_):
        raise OSError(errno.EBADF, "planned")

    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    with pytest.raises(OSError, match="planned"):
        seccomp.receive(7)
