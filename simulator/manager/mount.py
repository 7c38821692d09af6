"""Recursive unmounting: github.com/moby/sys/mount v0.3.4.

Source: mount_unix.go `RecursiveUnmount`, `Unmount`; mount_errors.go.
"""

from __future__ import annotations

import errno
from typing import Final

from simulator.gocompat import GoError, PathError, errno_of, errno_text
from simulator.ports import Host

_MNT_DETACH: Final = 2
_MOUNTS: Final = "/proc/self/mountinfo"


def recursive_unmount(host: Host, target: str) -> None:
    """Unmount a path and what is mounted below it, deepest first.

    Raises GoError only if the last of them fails, or if none can be listed; the others' failures are swallowed. On a target
    with two mounts stacked only the top one goes.
    """
    try:
        host.unmount(target)
    except OSError:
        pass
    else:
        return
    try:
        points = host.mount_points()
    except OSError as error:
        raise PathError("open", _MOUNTS, errno_of(error)) from None
    below = [point for point in points if (point + "/").startswith(target + "/")]
    below.sort(key=lambda point: -len(point))
    first_failure: GoError | None = None
    for index, point in enumerate(below):
        try:
            unmount(host, point)
        except GoError as failure:
            if index == len(below) - 1:
                if first_failure is None:
                    raise
                raise GoError(f"{failure} (possible cause: {first_failure})") from None
            first_failure = first_failure or failure


def unmount(host: Host, target: str) -> None:
    """Unmount one path lazily; that it is no mount point is no error. Raises GoError."""
    try:
        host.unmount(target)
    except OSError as error:
        number = errno_of(error)
        if number == errno.EINVAL:
            return
        raise GoError(f"umount {target}, flags: {_MNT_DETACH:#x}: {errno_text(number)}") from None
