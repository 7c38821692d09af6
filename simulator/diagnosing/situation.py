"""What a detector may ask about the node: the bundle, and what follows from it.

The host check is really made, by the release's own question on the modelled host. Everything else is looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from simulator import labels
from simulator.clock import VirtualClock
from simulator.cluster.fake import FakeCluster
from simulator.cluster.objects import Node, Pod
from simulator.diagnosing.gpu_operator import (
    CORDONED_IN,
    POLICY_NAME,
    UPGRADE_FAILED,
)
from simulator.gocompat import Duration, GoError, parse_bool
from simulator.host.fake import FakeHost
from simulator.host.spec import HostSpec, PciFunction
from simulator.labels import UPGRADE_STATE
from simulator.manager.releases import ShellFlow, resolve
from simulator.manager.shell.program import ShellPorts, make_script
from simulator.manager.steps import DRIVER_PID_FILE, DRIVER_ROOT, HOST_QUERY
from simulator.manager.v0_10_0 import DRIVER_CONFIG_STATE_FILE
from simulator.ports import CommandNotFound, Request
from simulator.predicting.driver_pod import driver_pods, pods_on_node
from simulator.predicting.events import cluster_policy, policy_owns_eviction
from simulator.predicting.modes import WORKLOADS, Mode, mode_of
from simulator.predicting.run import CUSTOM_LABEL, Quiet
from simulator.predicting.sight import Failing, failing
from simulator.runners.simulated import simulate
from simulator.snapshot.bundle import Bundle
from simulator.trace import Outcome


class _Unwatched(FakeCluster):
    """A cluster as a script wants it; the host check asks it nothing."""

    def deleted(self, _request: Request, _span: Duration) -> bool:
        """Nobody deletes anything meanwhile."""
        return False


@dataclass(frozen=True)
class Situation:
    """A node, its host and its settings, and the release of driver-manager they are judged for."""

    bundle: Bundle
    release: str

    # --- the cluster's side ---------------------------------------------------------------------------------------

    @property
    def env(self) -> Mapping[str, str]:
        """driver-manager's environment."""
        return self.bundle.scenario.world.env

    @property
    def eviction_label(self) -> str:
        """The label that NODE_LABEL_FOR_GPU_POD_EVICTION names, as the release reads it; "" for none. The script cuts off a value."""
        named = self.env.get(CUSTOM_LABEL, "")
        return named.partition("=")[0] if isinstance(resolve(self.release), ShellFlow) else named

    def is_on(self, name: str, *, default: bool = False) -> bool:
        """A boolean variable as the release reads it; one that it would refuse counts as off."""
        value = self.env.get(name)
        if value is None:
            return default
        if isinstance(resolve(self.release), ShellFlow):
            return value == "true"
        try:
            return parse_bool(value)
        except GoError:
            return False

    @property
    def touches_cordon(self) -> bool:
        """May a run cordon the node, and does it then lift any cordon at its end?"""
        settings = ("ENABLE_GPU_POD_EVICTION", "ENABLE_AUTO_DRAIN")
        return not self.is_upgrade_policy_on and any(self.is_on(name, default=True) for name in settings)

    @property
    def node(self) -> Node:
        """The node; one without a name if the cluster has none, for then nothing can be found on it."""
        return self.bundle.scenario.world.cluster.node or Node("")

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods on the node."""
        return tuple(pods_on_node(self.bundle.scenario.world))

    @cached_property
    def holders(self) -> frozenset[str]:
        """The pods (namespace/name) that hold one of the driver's modules, as far as the world tells."""
        names = {pod for pods in self.host.module_holders.values() for pod in pods}
        return frozenset(pod.full_name for pod in self.pods if pod.full_name in names and not is_finished(pod))

    @property
    def mode(self) -> Mode:
        """What the operator treats the node's GPUs as being for."""
        return mode_of(self.node.labels)

    @property
    def bringer(self) -> str:
        """The label of the DaemonSet that is to give the GPUs their driver, and runs driver-manager first."""
        return WORKLOADS[self.mode].selector

    @property
    def is_driver_coming(self) -> bool:
        """Is that DaemonSet placed here, and has its pod not said that it is done?"""
        return self.node.labels.get(self.bringer) == "true" and not any(map(is_ready, self.driver_pods))

    @property
    def paused(self) -> tuple[str, ...]:
        """The labels that driver-manager has paused."""
        return tuple(key for key, value in self.node.labels.items() if labels.PAUSED in value)

    @property
    def is_cordoned_by_manager(self) -> bool:
        """Is the node as a run leaves it that was cut off after it cordoned: paused and cordoned, where it may cordon at all?"""
        is_upgraded = self.node.labels.get(UPGRADE_STATE, "") in {*CORDONED_IN, UPGRADE_FAILED}
        return self.node.unschedulable and bool(self.paused) and self.touches_cordon and not is_upgraded

    @property
    def driver_pods(self) -> tuple[Pod, ...]:
        """The pods of that DaemonSet; in them driver-manager runs."""
        return tuple(driver_pods(self.bundle.scenario.world, WORKLOADS[self.mode]))

    @property
    def running_manager(self) -> str:
        """The pod in which driver-manager runs right now, namespace/name; "" if none is seen to."""
        return next((pod.full_name for pod in self.driver_pods if _is_initializing(pod)), "")

    @property
    def failures(self) -> tuple[Failing, ...]:
        """driver-manager's containers that fail on the node."""
        return tuple(found for pod in self.driver_pods if (found := failing(pod)) is not None)

    def next_run(self, without: tuple[Pod, ...] = ()) -> Outcome:
        """How the next run ends, by what was seen of the node; or would, if some pods had ended."""
        world = self.bundle.scenario.world
        pods = tuple(pod for pod in world.cluster.pods if pod not in without)
        return simulate(replace(world, cluster=replace(world.cluster, pods=pods)), self.release)

    @property
    def is_upgrade_policy_on(self) -> bool:
        """Does the annotation give eviction and drain to the upgrade controller?"""
        return policy_owns_eviction(self.bundle.scenario.world)

    @cached_property
    def policy(self) -> Mapping[str, Any] | None:
        """The ClusterPolicy, if it was seen."""
        return cluster_policy(self.bundle.scenario.world)

    @property
    def policy_name(self) -> str:
        """The ClusterPolicy's name; the chart's own where it was not seen."""
        return str(self.of_policy("metadata", "name") or POLICY_NAME)

    def of_policy(self, *keys: str) -> Any:
        """A value of the ClusterPolicy; None if it is not there."""
        value: Any = self.policy
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    # --- the host's side ------------------------------------------------------------------------------------------

    @property
    def host(self) -> HostSpec:
        """The host as it is described."""
        return self.bundle.scenario.world.host

    def fake_host(self) -> FakeHost:
        """The host as the release's container meets it."""
        flow, world = resolve(self.release), self.bundle.scenario.world
        return FakeHost(world.host, world.path or flow.container_path, chroot=flow.release.chroot, image=flow.image)

    @cached_property
    def modules(self) -> frozenset[str]:
        """The modules that are loaded, before anybody asks nvidia-smi."""
        return frozenset(self.fake_host().modules())

    @cached_property
    def _asked(self) -> tuple[bool, frozenset[str]]:
        """Does the host check see a driver, and which modules are loaded once it was asked?"""
        host, flow = self.fake_host(), resolve(self.release)
        if isinstance(flow, ShellFlow):
            clock = VirtualClock()
            cluster = _Unwatched(self.bundle.scenario.world.cluster, clock)
            ports = ShellPorts(host, cluster, clock, Quiet(), Quiet())
            is_seen = make_script(flow.script, flow.libraries, {}, ports, str, str).host_driver()
            return is_seen, frozenset(host.modules())
        try:
            result = host.run(HOST_QUERY)
        except CommandNotFound:
            return False, self.modules
        return result.exit_code == 0 and bool(result.stdout), frozenset(host.modules())

    @property
    def host_check(self) -> bool:
        """Does the release take it for a host with a driver of its own?"""
        return self._asked[0]

    @property
    def is_answer_empty(self) -> bool:
        """Does something answer as nvidia-smi although there is no driver, not even one that it could load?"""
        return self.host_check and "nvidia" not in self._asked[1] and not self.gpus_on("nvidia")

    @property
    def has_container_traces(self) -> bool:
        """Did a driver container bring the driver: is its root mounted, or a file of it there?

        The state file alone says so only where the host has no driver on its disk: every run leaves it.
        """
        return bool(self.driver_mounts) or self.has_file(DRIVER_PID_FILE) or (self.has_state_file and not self.has_driver_on_disk)

    @property
    def has_state_file(self) -> bool:
        """Is there the digest of the driver that a container loaded last?"""
        return self.has_file(DRIVER_CONFIG_STATE_FILE)

    @property
    def has_driver_on_disk(self) -> bool:
        """Does the host have the module nvidia on its own disk? A container has it on the container's."""
        return "nvidia" in self.host.installable

    @property
    def is_driver_loaded(self) -> bool:
        """Is the module nvidia loaded?"""
        return "nvidia" in self.modules

    @property
    def is_host_driver_unseen(self) -> bool:
        """Is a driver loaded that no container brought, and that the host check does not see?"""
        return self.is_driver_loaded and not self.host_check and not self.has_container_traces

    @property
    def has_host_driver(self) -> bool:
        """Does the host have a driver of its own, seen or not?"""
        return (self.host_check and not self.is_answer_empty) or self.is_host_driver_unseen

    def deployed(self, key: str) -> str:
        """The value with which an operand's label is in order on this node."""
        return labels.PRE_INSTALLED if key == labels.DRIVER and self.has_host_driver else "true"

    @property
    def driver_mounts(self) -> tuple[str, ...]:
        """Mount points at and below the driver container's root, in mount order."""
        return self.mounts_at(DRIVER_ROOT)

    def mounts_at(self, path: str) -> tuple[str, ...]:
        """Mount points at and below a path, in mount order."""
        return tuple(point for point in self.host.mounts if point == path or point.startswith(path + "/"))

    def has_file(self, path: str) -> bool:
        """Does the host have a file?"""
        return any(file.path == path for file in self.host.files)

    @property
    def gpus(self) -> tuple[PciFunction, ...]:
        """NVIDIA's display functions."""
        return tuple(function for function in self.host.pci if function.is_gpu)

    def gpus_on(self, *drivers: str) -> tuple[PciFunction, ...]:
        """Those that are on one of these drivers."""
        return tuple(function for function in self.gpus if function.driver in drivers)


def is_finished(pod: Pod) -> bool:
    """Has it ended, and let go of everything?"""
    return pod.phase in {"Succeeded", "Failed"}


def _statuses(pod: Pod, key: str) -> Iterator[Mapping[str, Any]]:
    found = pod.status.get(key)
    return (item for item in found if isinstance(item, Mapping)) if isinstance(found, list | tuple) else iter(())


def is_ready(pod: Pod) -> bool:
    """Does its status say that its containers are ready? A status that was not seen does not."""
    statuses = list(_statuses(pod, "containerStatuses"))
    return bool(statuses) and all(status.get("ready") is True for status in statuses)


def is_starting(pod: Pod) -> bool:
    """Does its status say that a container runs and is not ready yet?"""
    return any(_is_running(status) and status.get("ready") is not True for status in _statuses(pod, "containerStatuses"))


def _is_initializing(pod: Pod) -> bool:
    return any(map(_is_running, _statuses(pod, "initContainerStatuses")))


def _is_running(status: Mapping[str, Any]) -> bool:
    state = status.get("state")
    return isinstance(state, Mapping) and isinstance(state.get("running"), Mapping)


def places(drivers: Mapping[str, str]) -> str:
    """Addresses and their drivers, for a sentence."""
    return ", ".join(f"{address} on {driver or 'no driver'}" for address, driver in drivers.items())
