"""A world: the host, the cluster, what the program is started with, and what happens meanwhile.

Frozen. One world and one release make one run. How people write it down is `scenario`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from simulator.cluster.objects import ClusterSpec, Pod
from simulator.config import UNINSTALL_DRIVER
from simulator.host.spec import File, HostSpec, Module
from simulator.trace import Outcome

LONGEST: Final = 3600.0
"""How long a run is watched, in seconds, where nothing else is said."""


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


CALLS: Final = ("request", "execve", "stat", "open", "readlink", "delete_module", "umount", "unlink", "write")
"""What can be the moment of a `CallFault`, by the system call's name. A file, a directory and the list of mounts are opened;
`write` is one to sysfs, of vfio-manage as driver-manager's child."""


@dataclass(frozen=True, slots=True)
class CallFault:
    """One call goes wrong, or a signal comes just before it: the `nth` of this kind with this argument."""

    call: str
    argument: str
    """A path, a module's name, a command line joined by blanks, or a request's method and path."""
    nth: int = 1
    error: str = ""
    """An errno's name."""
    exit_code: int | None = None
    """A started program ends so without having done anything; below zero a signal ended it."""
    late: bool = False
    """It does its work first."""
    signal: str = ""
    """A signal's name without SIG."""


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
    stop_after: float = LONGEST
    """The runner stops watching after so many seconds: upstream can wait for ever."""
    pid_1: bool = True
    """Is the program process 1, as in a pod? Then Go turns a fatal signal into exit code 2."""
    seed: int = 0
    """Decides upstream's jitter."""
    version: str = "unknown"
    """What `--version` prints: upstream's build sets it."""
    faults: tuple[CallFault, ...] = ()
    """What goes wrong at one call each. A request's own faults are the cluster's."""


def followed_by(world: World, outcome: Outcome) -> World:
    """The world as a run left it, for the next run.

    Between runs the DaemonSet controller works: a DaemonSet's pod that went is back if the node's labels match its
    selector again. Other pods that went stay away. What was planned to happen meanwhile has happened.
    """
    after = outcome.after
    node = world.cluster.node
    if node is not None and after.node is not None:
        node = replace(node, labels=after.node.labels, annotations=after.node.annotations, unschedulable=after.node.unschedulable)
    labels = node.labels if node else {}
    pods = tuple(pod for pod in world.cluster.pods if pod.full_name in after.pods or comes_back(pod, labels))
    modules = [
        replace(module, used_by=tuple(user for user in module.used_by if user in after.modules))
        for module in world.host.modules
        if module.name in after.modules
    ]
    described = {module.name for module in world.host.modules} | {name for file in world.host.files if (name := _module_of(file))}
    modules += (Module(name) for name in after.modules if name not in described)
    gone = {path for path, exists in after.files.items() if not exists}
    host = replace(
        world.host,
        modules=tuple(modules),
        pci=tuple(
            replace(function, driver=after.gpu_drivers.get(function.address, function.driver)) for function in world.host.pci
        ),
        directories=(*world.host.directories, *(path for path in world.host.mounts if path.startswith("/run"))),
        mounts=(*(path for path in world.host.mounts if not path.startswith("/run")), *after.mounts),
        files=tuple(file for file in world.host.files if file.path not in gone and _module_of(file) in {"", *after.modules}),
    )
    return replace(world, host=host, cluster=replace(world.cluster, node=node, pods=pods), changes=(), signal=None, faults=())


def _module_of(file: File) -> str:
    """The module that a file of sysfs belongs to, "" if it is no such file."""
    parts = file.path.split("/")
    return parts[3] if parts[:3] == ["", "sys", "module"] and len(parts) > 4 else ""


def comes_back(pod: Pod, labels: Mapping[str, str]) -> bool:
    """Is it a DaemonSet's pod that fits a node of these labels?"""
    owned = pod.owner is not None and pod.owner.kind == "DaemonSet"
    return owned and all(labels.get(key) == value for key, value in pod.node_selector.items())
