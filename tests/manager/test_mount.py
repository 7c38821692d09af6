"""Recursive unmounting, in what recordings do not show."""

from __future__ import annotations

import errno

import pytest

from simulator.gocompat import GoError
from simulator.manager.mount import recursive_unmount


class Blind:
    """A host without /proc."""

    def unmount(self, path):
        raise OSError(errno.EBUSY, "busy", path)

    def mount_points(self):
        raise FileNotFoundError(errno.ENOENT, "none", "/proc/self/mountinfo")


def test_mount_points_that_cannot_be_listed():
    """Where the quick way fails and the table of mounts cannot be read, that is the error."""
    with pytest.raises(GoError, match=r"^open /proc/self/mountinfo: no such file or directory$"):
        recursive_unmount(Blind(), "/run/nvidia/driver")
