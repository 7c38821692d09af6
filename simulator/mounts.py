"""Mounts: what the kernel says of a mount namespace, and in which mount a path is looked up.

Source: Linux fs/proc_namespace.c (show_mountinfo), fs/namei.c (a walk from the root enters each mount it meets).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, Self, TypeVar

_ESCAPED: Final = re.compile(r"\\([0-7]{3})")


class Listed(NamedTuple):
    """A line of mountinfo: the mount's number, and where it is."""

    id: str
    point: str


def listed(mountinfo: str) -> list[Listed]:
    """The mounts of a `/proc/PID/mountinfo`, in mount order. White space and backslashes of a path are octal there."""
    fields = (line.split(" ") for line in mountinfo.split("\n") if line)
    return [Listed(field[0], _ESCAPED.sub(lambda match: chr(int(match[1], 8)), field[4])) for field in fields]


class Mounted(Protocol):
    """A mount, and the one it is on."""

    @property
    def path(self) -> str:
        """Where."""

    @property
    def parent(self) -> Self | None:
        """None: the root's."""


MountT = TypeVar("MountT", bound=Mounted)


def covering(mounts: Sequence[MountT], path: str) -> MountT | None:
    """The mount that a path is looked up in, None for the root's. The first one that the walk meets may hide others."""
    current: MountT | None = None
    while True:
        met = [mount for mount in mounts if mount.parent is current and f"{path}/".startswith(f"{mount.path}/")]
        if not met:
            return current
        current = min(met, key=lambda mount: len(mount.path))
