"""The shell releases: tag -> flow, resolved from the named changes up to that tag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from simulator.kube.profile import Libraries
from simulator.manager.shell import v0_6_2, v0_8_1
from simulator.manager.shell.change import ShellChange
from simulator.manager.shell.script import Script

CHANGES: Final[Mapping[str, tuple[ShellChange, ...]]] = {"v0.4.2": (), "v0.6.2": v0_6_2.CHANGES, "v0.8.1": v0_8_1.CHANGES}
"""Tag -> what it changed against the release before, oldest first."""

NEWEST: Final = "v0.8.1"
STANDS_FOR: Final = {"v0.6.10": "v0.8.1", "v0.7.0": "v0.8.1", "v0.8.0": "v0.8.1"}
"""Releases with the same script, byte for byte -> the one that is modelled. Their nvdrain is built with older libraries."""

IMAGE: Final = {
    "kubectl": "/usr/bin",
    "lsmod": "/usr/sbin",
    "nvdrain": "/usr/local/bin",
    "rmmod": "/usr/sbin",
    "sleep": "/usr/bin",
    "umount": "/usr/bin",
}
"""Programs of the image -> where they are."""
PATH: Final = (
    "/usr/local/nvidia/bin",
    "/usr/local/cuda/bin",
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
)
"""The PATH of NVIDIA's CUDA base images."""

_LIBRARIES: Final = Libraries(
    version="v0.27.2",
    in_cluster_line=618,
    fallback_line=623,
    root_ca_line=529,
    throttled_line=624,
    structured_throttling=False,
    unmanaged_fatal="Pods declare no controller (use --force to override)",
    unreadable_pod_counts_as_gone=True,
    deadline_seen_at_poll=True,
)
"""client-go and kubectl as nvdrain of v0.6.2 vendors them."""
_LINES: Final = {"NODE_NAME": 16, "chroot": 467, "vfio-manage": 517, "test": 592}
"""Where bash's own messages point, in v0.4.2."""


class Resolved(NamedTuple):
    """A shell release's named changes, its script, and its nvdrain's libraries."""

    changes: tuple[ShellChange, ...]
    script: type[Script]
    libraries: Libraries


def resolve(tag: str, without: frozenset[str] = frozenset()) -> Resolved:
    """Resolve a shell release. Raises KeyError for another tag."""
    if tag not in CHANGES:
        raise KeyError(tag)
    tags = list(CHANGES)
    until = tags[: tags.index(tag) + 1]
    changes = [change for known in until for change in CHANGES[known] if change.name not in without]
    libraries = _LIBRARIES
    for change in changes:
        libraries = replace(libraries, **change.libraries)  # type: ignore[arg-type]  # field names are checked by a test
    lines: Mapping[str, int] = _LINES
    for change in changes:
        lines = change.lines or lines
    mixins = tuple(change.script for change in reversed(changes) if change.script)
    return Resolved(tuple(changes), type(f"Script {tag}", mixins or (Script,), {"lines": lines}), libraries)
