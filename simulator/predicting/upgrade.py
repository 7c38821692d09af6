"""The operator's upgrade controller, where it owns eviction: what it does to a node before it deletes the driver's pod.

Source: NVIDIA/k8s-operator-libs pkg/upgrade (cordon, wait for jobs, pod deletion, drain, then the pod's restart) with
gpu-operator controllers/upgrade_controller.go (gpuPodSpecFilter: pods that request nvidia.com/gpu or nvidia.com/mig-).
"""

from __future__ import annotations

from dataclasses import replace

from simulator.cluster.objects import Pod, pod_document
from simulator.manager.kubernetes import requests_gpu
from simulator.predicting.driver_pod import pods_on_node
from simulator.predicting.events import is_of_driver
from simulator.world import World

_FINISHED = ("Succeeded", "Failed")


def evicted_first(world: World) -> tuple[list[str], World]:
    """The pods that the controller's pod deletion is for, and the world when they are gone."""
    gone = [pod for pod in pods_on_node(world) if _is_evicted(pod)]
    kept = tuple(pod for pod in world.cluster.pods if pod not in gone)
    return [pod.full_name for pod in gone], replace(world, cluster=replace(world.cluster, pods=kept))


def _is_evicted(pod: Pod) -> bool:
    owned = pod.owner is not None and pod.owner.kind == "DaemonSet"
    return pod.phase not in _FINISHED and not owned and requests_gpu(pod_document(pod, "", ""))


def without_nameless_holders(world: World) -> World:
    """The world where the processes have ended that hold the driver's modules and that nobody named."""
    modules = tuple(
        replace(module, users=0) if is_of_driver(module.name) and not (module.pods or module.processes) else module
        for module in world.host.modules
    )
    return replace(world, host=replace(world.host, modules=modules))
