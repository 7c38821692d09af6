"""`findmnt` and `umount -l -R` of util-linux.

Unlike the Go releases' recursive unmounting, umount starts from a mount point: where the path itself is none, nothing is
unmounted, and of what is mounted below a failure ends it, so that the mounts above stay.

Source: util-linux v2.38 sys-utils/umount.c (`umount_recursive`), libmount/src/tab.c.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from simulator.gocompat import errno_of, strerror
from simulator.mounts import covering
from simulator.ports import Host, Output

_NOT_A_MOUNT_POINT: Final = 1
_FAILED: Final = 32
_WORDS: Final = {
    errno.EBUSY: "target is busy.",
    errno.EPERM: "must be superuser to unmount.",
    errno.EINVAL: "not mounted.",
    errno.ENOENT: "no mount point specified.",
}


@dataclass(frozen=True, slots=True, eq=False)
class Mount:
    """A line of mountinfo: where the mount is, and the one it is on (None: the root's)."""

    path: str
    parent: Mount | None


class Umount:
    """The command `umount`."""

    def __init__(self, host: Host, output: Output) -> None:
        self.host = host
        self.output = output

    def run(self, args: Sequence[str], _stdout: Callable[[str], None] | None = None) -> int:
        """`umount -l -R TARGET`."""
        target = args[-1]
        table = mount_table(self.host.mount_points())
        found = [mount for mount in table if mount.path == target]
        if found:
            return self.unmount(table, found[-1])
        try:
            self.host.stat(target)
        except OSError:
            self.output.stderr(f"umount: {target}: not found\n")
        else:
            self.output.stderr(f"umount: {target}: not mounted\n")
        return _NOT_A_MOUNT_POINT

    def unmount(self, table: Sequence[Mount], mount: Mount) -> int:
        """`umount_do_recurse`: what is mounted on it first, in mount order; the first failure ends it."""
        for child in table:
            if child.parent is mount and (code := self.unmount(table, child)):
                return code
        try:
            self.host.unmount(mount.path)
        except OSError as error:
            number = errno_of(error)
            words = _WORDS.get(number, f"umount failed: {strerror(number)}.")
            self.output.stderr(f"umount: {mount.path}: {words}\n")
            return _FAILED
        return 0


def mount_table(points: Sequence[str]) -> list[Mount]:
    """The mounts with their parents, from mount points in mount order."""
    table: list[Mount] = []
    for point in points:
        table.append(Mount(point, covering(table, point)))
    return table
