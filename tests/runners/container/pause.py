"""For tests: a program that holds a container's namespaces while nothing runs in it, for images that have no shell.

An ELF file of one segment, assembled here: an image of `FROM scratch` has nothing to wait with, and nobody should need a
compiler. On both machines it does this:

    rt_sigaction(SIGCHLD, {SIG_IGN})              // orphans leave no zombie
    rt_sigprocmask(SIG_BLOCK, {SIGINT, SIGTERM})  // a blocked signal reaches even process 1
    do r = rt_sigtimedwait({SIGINT, SIGTERM}, NULL, NULL); while (r < 0)
    exit_group(0)

Source: System V ABI (ELF); Linux's system-call conventions, syscall(2); Intel SDM and Arm ARM for the instructions.
"""

from __future__ import annotations

import struct
from typing import Final

from simulator.reading import InputError
from simulator.runners.container.syscalls import MACHINES, number

_ADDRESS: Final = 0x400000
_ELF_HEADER: Final = 64
_PROGRAM_HEADER: Final = 56
DATA_AT: Final = _ADDRESS + _ELF_HEADER + _PROGRAM_HEADER
_ELF_MACHINES: Final = {"x86_64": 62, "aarch64": 183}

_SIGSET: Final = (1 << (2 - 1)) | (1 << (15 - 1))
"""SIGINT and SIGTERM."""
_DATA: Final = struct.pack("=5Q", _SIGSET, 1, 0, 0, 0)
"""The sigset, then a kernel's `struct sigaction`: SIG_IGN, no flags, no restorer, no mask."""
_SIGCHLD: Final = 17
_SIG_BLOCK: Final = 0
_SIGSET_SIZE: Final = 8


def pause_program(machine: str) -> bytes:
    """A static executable for `platform.machine()`: waits for SIGTERM or SIGINT (also as PID 1), then exits with 0.

    Its children are reaped by the kernel. Raises InputError for a machine it was not written for.
    """
    if machine not in MACHINES:
        raise InputError("", "the pause program", f"is not written for {machine}", f"known: {', '.join(MACHINES)}")
    wait = call(machine, "rt_sigtimedwait", DATA_AT, 0, 0, _SIGSET_SIZE)
    code = (
        call(machine, "rt_sigaction", _SIGCHLD, DATA_AT + _SIGSET_SIZE, 0, _SIGSET_SIZE)
        + call(machine, "rt_sigprocmask", _SIG_BLOCK, DATA_AT, 0, _SIGSET_SIZE)
        + wait
        + _REPEATS[machine](len(wait))
        + call(machine, "exit_group", 0)
    )
    return executable(machine, _DATA, code)


def executable(machine: str, data: bytes, code: bytes) -> bytes:
    """An ELF file: the data, which begins at DATA_AT, a multiple of 4 bytes, and the code, which runs from its start."""
    start = _ELF_HEADER + _PROGRAM_HEADER + len(data)
    size = start + len(code)
    identity = b"\x7fELF" + bytes([2, 1, 1])  # 64 bits, little-endian, version 1
    header = struct.pack(
        "=16sHHIQQQIHHHHHH",
        *(identity, 2, _ELF_MACHINES[machine], 1, _ADDRESS + start, _ELF_HEADER, 0),  # an executable; its entry
        *(0, _ELF_HEADER, _PROGRAM_HEADER, 1, 0, 0, 0),  # one program header, no section
    )
    segment = struct.pack("=IIQQQQQQ", 1, 5, 0, _ADDRESS, _ADDRESS, size, size, 0x10000)  # PT_LOAD, readable and executable
    return header + segment + data + code


def call(machine: str, name: str, *arguments: int) -> bytes:
    """The code of a system call with up to four arguments of 32 bits."""
    wanted = number(name, machine)
    assert wanted is not None, name
    return _CALLS[machine](wanted, arguments)


def _x86_64(wanted: int, arguments: tuple[int, ...]) -> bytes:
    moves = (b"\xbf", b"\xbe", b"\xba", b"\x41\xba")  # mov edi / esi / edx / r10d, imm32
    code = b"\xb8" + struct.pack("=I", wanted)  # mov eax, imm32
    for move, argument in zip(moves, arguments, strict=False):
        code += move + struct.pack("=I", argument)
    return code + b"\x0f\x05"  # syscall


def _x86_64_repeat(back: int) -> bytes:
    return b"\x85\xc0\x78" + struct.pack("=b", -(back + 4))  # test eax, eax; js -(back + 4)


def _aarch64(wanted: int, arguments: tuple[int, ...]) -> bytes:
    code = b""
    for register, value in ((8, wanted), *enumerate(arguments)):
        code += struct.pack("=I", 0x52800000 | (value & 0xFFFF) << 5 | register)  # movz w<register>, #low
        code += struct.pack("=I", 0x72A00000 | (value >> 16) << 5 | register)  # movk w<register>, #high, lsl #16
    return code + struct.pack("=I", 0xD4000001)  # svc #0


def _aarch64_repeat(back: int) -> bytes:
    return struct.pack("=I", 0x37F80000 | (-back // 4 & 0x3FFF) << 5)  # tbnz w0, #31, -back


_CALLS: Final = {"x86_64": _x86_64, "aarch64": _aarch64}
_REPEATS: Final = {"x86_64": _x86_64_repeat, "aarch64": _aarch64_repeat}
"""Go so many bytes back if the call before failed."""
