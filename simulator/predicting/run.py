"""A run that is asked about: the world it ran in, the release, the outcome, and the model's own parts for further questions.

What the release would say of a pod or a module is asked of its own code, on a fresh and undisturbed copy of the world.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from simulator import config, labels
from simulator import messages as m
from simulator.clock import VirtualClock
from simulator.cluster.fake import FakeCluster
from simulator.config import Config
from simulator.gocompat import GoError
from simulator.host.fake import FakeHost
from simulator.kube.clientset import Clientset
from simulator.kube.rest import Connection, RestClient
from simulator.manager.kubernetes import KubeClient
from simulator.manager.log import Log
from simulator.manager.releases import Flow, ShellFlow
from simulator.manager.shell import messages as shell
from simulator.manager.steps import MODULES, DriverManager
from simulator.ports import Server
from simulator.predicting.answers import Path
from simulator.predicting.modes import WORKLOADS, Mode, Workload
from simulator.predicting.reading import says
from simulator.predicting.sight import Sight
from simulator.trace import Outcome
from simulator.urfave import End
from simulator.world import World

CUSTOM_LABEL: Final = "NODE_LABEL_FOR_GPU_POD_EVICTION"
"""The variable that names a label of one's own, to be paused with the operands'."""
EVICTION: Final = "ENABLE_GPU_POD_EVICTION"
SCRIPT_SINCE: Final[Mapping[str, Mapping[str, str]]] = {
    "gpu-pods-evicted": {EVICTION: "true"},
    "custom-operand-label": {CUSTOM_LABEL: ""},
    "mofed-waited-for": {"GPU_DIRECT_RDMA_ENABLED": "false", "USE_HOST_MOFED": "false"},
}
"""Named change of a shell release -> the variables that it brought, with their defaults."""
_SERVER: Final = Server("http://localhost", "localhost:80")


class Quiet:
    """An output that keeps nothing, and chance without jitter."""

    def log(self, level: str, message: str) -> None:
        """Nothing."""

    def stdout(self, text: str) -> None:
        """Nothing."""

    def stderr(self, text: str) -> None:
        """Nothing."""

    def random(self) -> float:
        """No jitter."""
        return 0.0


@dataclass(frozen=True)
class Run:
    """A finished run, and what it ran in."""

    world: World
    resolved: Flow | ShellFlow
    outcome: Outcome
    mode: Mode
    sight: Sight

    @property
    def release(self) -> str:
        """The upstream tag."""
        return self.resolved.release.tag

    @property
    def workload(self) -> Workload:
        """The mode's DaemonSet, labels and settings."""
        return WORKLOADS[self.mode]

    @property
    def node_labels(self) -> Mapping[str, str]:
        """The node's labels before; none without a node."""
        return self.world.cluster.node.labels if self.world.cluster.node else {}

    @property
    def policy(self) -> str | None:
        """The annotation by which the upgrade controller takes eviction and drain over; None: absent."""
        node = self.world.cluster.node
        return node.annotations.get(labels.UPGRADE_ANNOTATION) if node else None

    @cached_property
    def settings(self) -> Config | End | None:
        """The settings as a Go release reads them, or how it ends without; None of a shell release, which reads variables."""
        if isinstance(self.resolved, ShellFlow):
            return None
        return config.read(self.resolved.flags, self.world.args, self.world.env, self.world.version)

    @cached_property
    def unload_list(self) -> tuple[str, ...]:
        """The modules that the release unloads, in its order."""
        if isinstance(self.resolved, ShellFlow):
            return (*(name.replace("-", "_") for name in self.resolved.script.modules), "nvidia")
        return MODULES

    @cached_property
    def path(self) -> Path:
        """The way that it took through the program."""
        if says(self.outcome, m.PRE_INSTALLED, shell.PRE_INSTALLED):
            return Path.HOST_DRIVER
        if says(self.outcome, m.ALREADY_LOADED):
            return Path.KEPT_DRIVER
        if says(self.outcome, m.NO_DRIVER_LOADED):
            return Path.NO_DRIVER
        return Path.FULL if says(self.outcome, m.SHUTTING_DOWN_CLIENTS, shell.SHUTTING_DOWN_REQUIRED) else Path.NONE

    def variable(self, name: str, default: str = "") -> str:
        """A variable of a shell release: an empty one counts as absent."""
        return self.world.env.get(name, "") or default

    @property
    def custom_label(self) -> str:
        """The label that `CUSTOM_LABEL` names, as the release takes it; "" if it names none."""
        if isinstance(self.settings, Config):
            return self.settings.node_label_for_gpu_pod_eviction
        if self.settings is None and hasattr(self.resolved.script, "custom_label"):  # type: ignore[union-attr]  # a shell release
            return self.variable(CUSTOM_LABEL).partition("=")[0]
        return ""

    @property
    def known_labels(self) -> tuple[str, ...]:
        """The labels that the release reads, pauses and restores."""
        fetched = self.resolved.steps.fetched if isinstance(self.resolved, Flow) else self.resolved.script.fetched
        return (*fetched, *((self.custom_label,) if self.custom_label else ()))

    @property
    def pods(self) -> list[str]:
        """namespace/name of the pods that are left and were not told to go."""
        return [name for name in self.outcome.after.pods if name not in self.outcome.after.terminating]

    def fresh_host(self, pods: Collection[str] | None = None) -> FakeHost:
        """The host as before the run. `pods` are those that exist; None: all of the world."""
        existing = {pod.full_name for pod in self.world.cluster.pods} if pods is None else set(pods)
        path = self.world.path or self.resolved.container_path
        return FakeHost(self.world.host, path, existing.__contains__, self.resolved.release.chroot, self.resolved.image)

    @cached_property
    def host(self) -> FakeHost:
        """The host as before the run, only to be looked at."""
        return self.fresh_host()

    @cached_property
    def clientset(self) -> Clientset:
        """A client of the cluster as before the run, with nothing that could go wrong there."""
        calm = replace(self.world.cluster, faults=(), api_down=False, addresses=frozenset())
        clock = VirtualClock()
        connection = Connection(FakeCluster(calm, clock), clock, _SERVER)
        return Clientset(RestClient(connection, clock, Quiet(), self.resolved.libraries, str))

    @property
    def clock(self) -> VirtualClock:
        """The clock of those further questions."""
        clock = self.clientset.rest.clock
        assert isinstance(clock, VirtualClock)
        return clock

    @cached_property
    def kube(self) -> KubeClient | None:
        """The release's own client; None of a shell release."""
        if isinstance(self.resolved, ShellFlow):
            return None
        return self.resolved.client(self.clientset, self.clock, Quiet(), Quiet(), Log(Quiet()))

    @cached_property
    def steps(self) -> DriverManager | None:
        """The release's own steps, labels and annotation read; None of a shell release, or where settings are refused."""
        if self.kube is None or not isinstance(self.settings, Config) or isinstance(self.resolved, ShellFlow):
            return None
        steps = self.resolved.steps(self.settings, self.world.env, self.host, self.clock, Quiet(), self.kube)
        try:
            steps.fetch_current_labels()
            steps.fetch_auto_upgrade_annotation()
        except GoError:  # there is no such node; the run said so
            pass
        return steps

    @property
    def node_name(self) -> str:
        """NODE_NAME, as the release reads it."""
        return self.settings.node_name if isinstance(self.settings, Config) else self.world.env.get("NODE_NAME", "")
