"""A world: the host, the cluster, what the program is started with, and what happens meanwhile.

Frozen. One world and one release make one run. How people write it down is `scenario`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simulator.cluster.objects import ClusterSpec
from simulator.config import UNINSTALL_DRIVER
from simulator.host.spec import HostSpec


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """Something that happens by itself, so many seconds after the program's start. Paths are the container's."""

    after: float
    write: Mapping[str, str] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    delete_pods: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """As recordings write it."""
        out: dict[str, Any] = {"after_s": self.after}
        if self.write:
            out["write"] = dict(self.write)
        if self.remove:
            out["remove"] = list(self.remove)
        if self.delete_pods:
            out["delete_pods"] = list(self.delete_pods)
        return out


@dataclass(frozen=True, slots=True)
class World:
    """Everything a run depends on beside the release."""

    host: HostSpec
    cluster: ClusterSpec
    args: tuple[str, ...] = (UNINSTALL_DRIVER,)
    env: Mapping[str, str] = field(default_factory=dict)
    path: tuple[str, ...] | None = None
    """The container's PATH; None: that of the release's image."""
    changes: tuple[PlannedChange, ...] = ()
    signal: tuple[str, float] | None = None
    """A signal's name without SIG, and the second at which it comes."""
    stop_after: float | None = None
    """The runner stops watching after so many seconds."""
    pid_1: bool = True
    """Is the program process 1, as in a pod? Then Go turns a fatal signal into exit code 2."""
    seed: int = 0
    """Decides upstream's jitter."""
    version: str = "unknown"
    """What `--version` prints: upstream's build sets it."""
