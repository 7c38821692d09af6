"""The pod that runs driver-manager: which it is, and a world in which the one before it is dead with all its processes.

Kubernetes starts a DaemonSet's next pod when the old one's containers are gone, and a pod's init containers run before its
own: so whatever nv-fabricmanager, nvidia-persistenced and the like held open in the old one is closed when driver-manager
starts. Source: Kubernetes pkg/controller/daemon (an update without surge deletes before it creates), pkg/kubelet/kuberuntime
(computePodActions: a new sandbox begins with the init containers).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from simulator.cluster.objects import Pod
from simulator.host.spec import File, HostSpec, Module
from simulator.predicting.modes import Workload
from simulator.world import World


def runs_driver_manager(pod: Pod, workload: Workload) -> bool:
    """Is it a pod of the DaemonSet, however that is called, that the mode's own label brings to a node?"""
    return pod.owner is not None and pod.owner.kind == "DaemonSet" and pod.node_selector.get(workload.selector) == "true"


def pods_on_node(world: World) -> list[Pod]:
    """The pods on the cluster's own node."""
    node = world.cluster.node
    return [pod for pod in world.cluster.pods if pod.node_name in {None, node.name if node else None}]


def driver_pods(world: World, workload: Workload) -> list[Pod]:
    """The pods on the node that run driver-manager: one, as a rule."""
    return [pod for pod in pods_on_node(world) if runs_driver_manager(pod, workload)]


def without_processes_of(host: HostSpec, pods: Collection[str]) -> tuple[HostSpec, tuple[str, ...]]:
    """The host when these pods (namespace/name) hold no module any more, and the modules that they held."""
    held = tuple(name for name, holders in host.module_holders.items() if set(holders) & set(pods))
    if not held:
        return host, ()
    left = {name: replace(one, pods=_others(one.pods, pods)) for name, one in host.held_by_pods.items()}
    freed = {name: one.handles for name, one in host.held_by_pods.items() if not left[name].pods}
    cleared = replace(
        host,
        modules=tuple(_released(module, pods) for module in host.modules),
        held_by_pods={name: one for name, one in left.items() if one.pods},
        files=tuple(_counted_down(file, freed) for file in host.files),
        delete_module={name: kept for name, answer in host.delete_module.items() if (kept := _answer(answer, pods)) is not None},
    )
    return cleared, held


def _others(holders: tuple[str, ...], pods: Collection[str]) -> tuple[str, ...]:
    return tuple(pod for pod in holders if pod not in pods)


def _released(module: Module, pods: Collection[str]) -> Module:
    """Without these pods. A module whose handles others share keeps its count: nobody told whose are how many."""
    others = _others(module.pods, pods)
    if others or not module.pods:
        return replace(module, pods=others)
    return replace(module, users=0, pods=())


def _counted_down(file: File, freed: Mapping[str, int]) -> File:
    """A module's reference count, without the handles that are closed."""
    parts = file.path.split("/")
    if parts[:3] == ["", "sys", "module"] and parts[4:] == ["refcnt"] and file.text.strip().isdecimal():
        return replace(file, text=f"{int(file.text) - freed.get(parts[3], 0)}\n")
    return file


def _answer(answer: Any, pods: Collection[str]) -> Any:
    """What delete_module answers for a module; None: nothing out of the ordinary any more."""
    if not isinstance(answer, Mapping):
        return answer
    others = _others(tuple(answer["busy_while_pods"]), pods)
    return {"busy_while_pods": others} if others else None
