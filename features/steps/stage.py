"""The stage: the world a scenario builds up, the runs it made, and what its Then steps have accounted for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from simulator.cluster.objects import ClusterSpec, Node, Pod
from simulator.host.spec import HostSpec
from simulator.report.changes import Difference, differences
from simulator.runners.simulated import simulate
from simulator.scenario import DEFAULT_CLUSTER, load_cluster, load_host, make_world
from simulator.trace import Outcome
from simulator.world import PlannedChange, World, followed_by

NODE = "gpu-1"


@dataclass
class Stage:
    """A scenario's world in the making. Given steps change it, When steps run it, Then steps look at the last run."""

    release: str
    host: HostSpec = field(default_factory=lambda: load_host("clean"))
    cluster: ClusterSpec = field(default_factory=lambda: load_cluster(DEFAULT_CLUSTER, NODE))
    env: dict[str, str] = field(default_factory=lambda: {"NODE_NAME": NODE})
    args: tuple[str, ...] = ()
    what_if: str = ""
    changes: list[PlannedChange] = field(default_factory=list)
    signal: tuple[str, float] | None = None
    stop_after: float | None = None
    seed: int = 0
    runs: list[Outcome] = field(default_factory=list)
    worlds: list[World] = field(default_factory=list)
    accounted: set[Difference] = field(default_factory=set)

    # --- building ---------------------------------------------------------------------------------------------

    def change_host(self, **fields: Any) -> None:
        self.host = replace(self.host, **fields)

    def change_cluster(self, **fields: Any) -> None:
        self.cluster = replace(self.cluster, **fields)

    @property
    def node(self) -> Node:
        assert self.cluster.node is not None, "this cluster has no node"
        return self.cluster.node

    def change_node(self, **fields: Any) -> None:
        self.change_cluster(node=replace(self.node, **fields))

    def change_pod(self, name: str, **fields: Any) -> None:
        full = name if "/" in name else next((pod.full_name for pod in self.cluster.pods if pod.name == name), name)
        assert full in {pod.full_name for pod in self.cluster.pods}, (
            f"there is no pod {name}; there are {[pod.full_name for pod in self.cluster.pods]}"
        )
        self.change_cluster(pods=tuple(replace(pod, **fields) if pod.full_name == full else pod for pod in self.cluster.pods))

    def add_pod(self, pod: Pod) -> None:
        self.change_cluster(pods=(*self.cluster.pods, pod))

    def world(self) -> World:
        world = make_world(self.host, self.cluster, args=self.args, env=self.env)
        return replace(world, changes=tuple(self.changes), signal=self.signal, stop_after=self.stop_after, seed=self.seed)

    # --- running ----------------------------------------------------------------------------------------------

    def run(self) -> None:
        world = self.world()
        self.worlds.append(world)
        self.runs.append(simulate(world, self.release, what_if=self.what_if, note_tree=True))
        self.accounted.clear()

    def go_on(self) -> None:
        """Make the world what the last run left."""
        world = followed_by(self.worlds[-1], self.outcome)
        given = {file.path for file in self.host.container_files}
        files = tuple(file for file in world.host.container_files if file.path in given)
        self.host, self.cluster = replace(world.host, container_files=files), world.cluster
        self.changes, self.signal = [], None

    # --- looking ----------------------------------------------------------------------------------------------

    @property
    def outcome(self) -> Outcome:
        assert self.runs, "driver-manager has not run yet"
        return self.runs[-1]

    def differences(self) -> list[Difference]:
        return differences(self.outcome.before, self.outcome.after)

    def account(self, subject: str, part: str = "") -> None:
        """A Then step has said something about these differences."""
        self.accounted |= {
            difference for difference in self.differences() if difference.subject == subject and part in difference.what
        }

    def log_lines(self) -> list[str]:
        return [f"{line.level}: {line.message.rstrip()}" for line in self.outcome.log]


@pytest.fixture
def stage(release: str) -> Stage:
    return Stage(release)
