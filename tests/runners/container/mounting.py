"""Mounts in a container, from outside: of whatever its first process is."""

from __future__ import annotations

import subprocess
from pathlib import Path

from simulator.mounts import listed

_MOUNT = 'for path; do busybox mkdir -p "$path" && busybox mount -t tmpfs tmpfs "$path" || exit 1; done'


def mount_tmpfs(pid, *paths):
    """Mount an empty tmpfs on each path, in this order; the directory is made first. Twice the same path stacks."""
    command = ["nsenter", f"--target={pid}", "--mount", "--root", "/bin/busybox", "sh", "-c", _MOUNT, "sh", *paths]
    subprocess.run(command, check=True, env={"PATH": "/bin:/usr/bin"})


def mount_points(pid, under="/run"):
    """The mount points below a directory, itself included, in mount order: those of Docker's own binds too."""
    points = [mount.point for mount in listed(Path(f"/proc/{pid}/mountinfo").read_text())]
    return [point for point in points if f"{point}/".startswith(f"{under}/")]
