"""How long things take: `make bench`. Figures, not assertions.

Asked of the project: a run of the package-installed host at most 2 ms, the longest clean run at most 10 ms on one core,
rendering of the tree apart; importing `simulator` under 150 ms.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.clock import VirtualClock
from simulator.cluster.fake import FakeCluster
from simulator.cluster.objects import Container, Owner, Pod
from simulator.host.fake import FakeHost
from simulator.host.tree import render
from simulator.manager.releases import flow
from simulator.node.story import play, read_story
from simulator.reading import parse_document
from simulator.runners.simulated import execute
from simulator.scenario import load_cluster, load_host, make_world, names

FLOW = flow("v0.10.0")


def prepared(world):
    """Everything a run needs but the run itself: the tree is rendered here."""
    clock = VirtualClock()
    cluster = FakeCluster(world.cluster, clock)
    host = FakeHost(world.host, FLOW.container_path, cluster.pod_exists)
    return (world, FLOW, host, cluster, clock), {}


def measure(benchmark, world, code):
    outcome = execute(*prepared(world)[0])
    assert outcome.exit_code == code
    benchmark.extra_info["events"] = len(outcome.events)
    benchmark.pedantic(execute, setup=lambda: prepared(world), rounds=200)


def test_run_package_installed_host(benchmark):
    """The host check says yes: one patch, a minute."""
    measure(benchmark, make_world(load_host("ubuntu-24.04-driver-580-open"), env={"NODE_NAME": "gpu-1"}), 1)


def test_run_longest_clean(benchmark):
    """Every operand takes almost five minutes to go, three GPU pods are evicted, modules unloaded, all put back."""
    base = load_cluster("container-node", "gpu-1")
    slow = tuple(dataclasses.replace(pod, termination=290.0) for pod in base.pods)
    gpus = tuple(
        Pod(
            "default",
            f"train-{index}",
            owner=Owner("ReplicaSet", "train"),
            containers=(Container({"nvidia.com/gpu": "1"}),),
            termination=30.0,
        )
        for index in range(3)
    )
    cluster = dataclasses.replace(base, pods=slow + gpus)
    measure(benchmark, make_world(load_host("container-driver-loaded"), cluster, env={"NODE_NAME": "gpu-1"}), 0)


@pytest.mark.parametrize("name", names("hosts"))
def test_render(benchmark, name):
    """The tree of each named host."""
    host = load_host(name)
    benchmark(render, host)


def test_import(benchmark):
    """A new interpreter that imports `simulator`, less one that imports nothing."""
    benchmark.pedantic(lambda: subprocess.run([sys.executable, "-c", "import simulator"], check=True), rounds=10)


def test_interpreter_alone(benchmark):
    """The same without the import."""
    benchmark.pedantic(lambda: subprocess.run([sys.executable, "-c", ""], check=True), rounds=10)


def test_a_day_of_a_crash_looping_node(benchmark):
    """driver-manager and the validator fail all day, the old operator looks every five seconds. Asked for: under a second."""
    story = read_story(parse_document("host: ubuntu-24.04-driver-580-open\nuntil: 24h\n", "day"), Path())
    played = benchmark.pedantic(play, args=(story,), rounds=5)
    assert len(played.timeline.runs) > 200
