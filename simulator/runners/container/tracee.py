"""Looking at a thread that waits in a system call: its memory, whose thread it is.

All of it is only true as long as the thread waits (`seccomp.still_waits`): afterwards its number may be another's.
Every failure is an OSError: the thread is gone, or an address it gave is none.
"""

from __future__ import annotations

import errno
import os
import struct
from typing import Final

_PAGE: Final = 4096
"""No larger than a page of any machine: a read that stays in it succeeds or fails as a whole."""
_LONGEST_TEXT: Final = 1 << 17
_MOST_TEXTS: Final = 1 << 15


class Tracee:
    """A thread, by its number."""

    def __init__(self, thread: int) -> None:
        """Raises OSError if it is gone."""
        self.thread = thread
        with open(f"/proc/{thread}/status", encoding="utf-8", errors="replace") as file:
            fields = dict(line.split(":", 1) for line in file)
        self.process = int(fields["Tgid"])
        self.parent = int(fields["PPid"])
        """The parent of its process."""

    def birth(self) -> int:
        """When its process started: with the process' number, this tells it from all others."""
        with open(f"/proc/{self.process}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[19])

    def root(self) -> tuple[int, int]:
        """Device and inode of its root directory."""
        status = os.stat(f"/proc/{self.thread}/root")
        return status.st_dev, status.st_ino

    def memory(self, address: int, size: int) -> bytes:
        """Its memory."""
        descriptor = os.open(f"/proc/{self.thread}/mem", os.O_RDONLY)
        try:
            data = os.pread(descriptor, size, address) if address < 1 << 63 else b""
        finally:
            os.close(descriptor)
        if len(data) < size:
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
        return data

    def text(self, address: int) -> str:
        """The C string at an address."""
        data = b""
        while len(data) < _LONGEST_TEXT:
            here = address + len(data)
            part, end, _ = self.memory(here, _PAGE - here % _PAGE).partition(b"\0")
            data += part
            if end:
                return os.fsdecode(data)
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))

    def texts(self, address: int) -> tuple[str, ...]:
        """The C strings that an array of pointers at an address points to, NULL ends it; NULL itself is an empty array."""
        found: list[str] = []
        while address and len(found) < _MOST_TEXTS:
            (pointer,) = struct.unpack("=Q", self.memory(address + 8 * len(found), 8))
            if not pointer:
                break
            found.append(self.text(pointer))
        return tuple(found)
