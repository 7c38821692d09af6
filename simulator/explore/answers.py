"""What a made-up world may answer: for each question of the ports a small domain, its most common answer first.

A subclass narrows it: `explaining` to what a log allows. Error texts are what stands after the wrappers of the model's own.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from simulator.kube.clientset import Object

POD_NAMESPACE: Final = "default"


class Failure(NamedTuple):
    """A request that the API server answers with an error."""

    text: str = "internal error"
    status: int = 500
    reason: str = "InternalError"
    causes: tuple[str, ...] = ()


class Stay(NamedTuple):
    """Pods that stay for as long as anybody looks."""

    pods: tuple[Object, ...]


class Answers:
    """The domain of each question."""

    def setting(self, _name: str) -> Sequence[Any]:
        """A field of `Config`."""
        return (True, False)

    def variable(self, _name: str) -> Sequence[str | None]:
        """An environment variable that is read late."""
        return ("digest", None)

    def host_driver(self) -> Sequence[str | None]:
        """What nvidia-smi of the host prints; None: it does not run, or fails."""
        return (None, "580.82.07\n")

    def unbind(self) -> Sequence[str]:
        """Vfio-manage's failure, "" for none."""
        return ("", "exit status 1")

    def exists(self, _path: str) -> Sequence[bool]:
        """Is there something at the path?"""
        return (True, False)

    def file(self, _path: str) -> Sequence[str | int]:
        """A file's text, or the errno of its failure."""
        return ("", errno.ENOENT)

    def directory(self, _path: str) -> Sequence[Sequence[str] | int]:
        """A directory's names, or the errno of its failure."""
        return ((), errno.ENOENT)

    def remove(self, _path: str) -> Sequence[int]:
        """The errno of a removal, 0 for none."""
        return (0, errno.EPERM)

    def unload(self, _module: str) -> Sequence[int]:
        """The errno of `delete_module`, 0 for none."""
        return (0, errno.EBUSY)

    def unmount(self, _path: str) -> Sequence[int]:
        """The errno of `umount2`, 0 for none."""
        return (0, errno.EBUSY)

    def mount_points(self) -> Sequence[Sequence[str] | int]:
        """The mount points, or the errno of the failure to list them."""
        return ((),)

    def label(self, _key: str) -> Sequence[str]:
        """The node's label, "" for none."""
        return ("true", "")

    def blank(self, _key: str) -> Sequence[bool]:
        """Is a label without a value there at all?"""
        return (False,)

    def annotation(self, _key: str) -> Sequence[str]:
        """The node's annotation, "" for none."""
        return ("", "true")

    def cordoned(self) -> Sequence[bool]:
        """Was the node unschedulable before the run?"""
        return (False,)

    def node(self, _method: str) -> Sequence[Failure | None]:
        """A request for the node; None: it succeeds."""
        return (None, Failure())

    def operand_pods(self, app: str) -> Sequence[Sequence[Object] | Stay | Failure]:
        """The pods of an operand."""
        return ((), Stay((pod("gpu-operator", f"{app}-x"),)), Failure())

    def pods(self, _asker: str) -> Sequence[Sequence[Object] | Stay | Failure]:
        """The node's pods, as the step `asker` wants them."""
        return ((), (gpu_pod(POD_NAMESPACE, "gpu-pod"),), Failure())

    def eviction(self, _pod: str) -> Sequence[Failure | None]:
        """An eviction, or a deletion; None: the pod goes."""
        return (None, Failure())

    def discovery(self) -> Sequence[Failure | None]:
        """Is it said what the server offers?"""
        return (None,)

    def daemonset(self, _name: str) -> Sequence[Failure | None]:
        """A request for a DaemonSet."""
        return (None, Failure(f'daemonsets.apps "{_name}" not found', 404, "NotFound"))

    def claim(self, _name: str) -> Sequence[bool | Failure]:
        """Is a claim allocated by NVIDIA's DRA driver?"""
        return (True, False, Failure())


def pod(namespace: str, name: str, *, owner: str = "ReplicaSet", **spec: Any) -> Object:
    """A running pod. `owner` is its controller's kind, "" for none."""
    metadata: dict[str, Any] = {"namespace": namespace, "name": name, "uid": f"{namespace}/{name}"}
    if owner:
        version = "apps/v1"
        metadata["ownerReferences"] = [{"kind": owner, "name": name, "controller": True, "apiVersion": version}]
    return {"metadata": metadata, "spec": {"containers": (), **spec}, "status": {"phase": "Running"}}


def gpu_pod(namespace: str, name: str, *, owner: str = "ReplicaSet", empty_dir: bool = False) -> Object:
    """A pod that has a GPU."""
    containers = ({"resources": {"limits": {"nvidia.com/gpu": "1"}}},)
    volumes: tuple[Mapping[str, Any], ...] = ({"emptyDir": {}},) if empty_dir else ()
    return pod(namespace, name, owner=owner, containers=containers, volumes=volumes)
