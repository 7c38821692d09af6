"""What counts as damage: one end held against another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.cluster.objects import Owner, Pod
from simulator.faults.damage import damages
from simulator.labels import DEVICE_PLUGIN, PAUSED
from simulator.scenario import load_cluster, load_host, make_world
from simulator.trace import NodeState, Outcome, State

JOB = Pod("ml", "train", owner=Owner("Job", "train"))
OPERAND = Pod("gpu-operator", "plugin", owner=Owner("DaemonSet", "plugin"))
CLUSTER = replace(load_cluster("container-node", "gpu-1"), pods=(JOB, OPERAND))
WORLD = make_world(load_host("container-driver-loaded"), CLUSTER)
ROOT = "/run/nvidia/driver"
PID = "/run/nvidia/nvidia-driver.pid"


def node(*, unschedulable=False, **labels):
    return NodeState({DEVICE_PLUGIN: "true", **labels}, {}, unschedulable)


BEFORE = State(
    node=node(),
    pods=("ml/train", "gpu-operator/plugin"),
    mounts=(ROOT,),
    files={PID: True},
    modules=("nvidia", "nvidia_uvm", "sunrpc"),
    gpu_drivers={"0000:3b:00.0": "vfio-pci"},
)
AFTER = replace(BEFORE, pods=("gpu-operator/plugin",), mounts=(), files={PID: False}, modules=("sunrpc",))


def ended(after=AFTER, exit_code=0, before=BEFORE, **changes):
    return replace(Outcome("v0.11.0", exit_code, [], 0, before, after), **changes)


def kinds(outcome, base=None):
    return [damage.kind for damage in damages(WORLD, base or ended(), outcome)]


def test_the_same_end_is_no_damage():
    """Nor is one that only took longer, or in which an operand's pod is gone."""
    assert kinds(ended()) == []
    assert kinds(ended(replace(AFTER, pods=()), elapsed=10**12)) == []


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (ended(replace(AFTER, node=node(unschedulable=True))), ["cordoned", "silent"]),
        (ended(replace(AFTER, node=node(**{DEVICE_PLUGIN: PAUSED})), 1), ["operands-paused", "fails"]),
        (ended(replace(AFTER, modules=BEFORE.modules), 1), ["evicted-in-vain", "fails"]),
        (ended(replace(BEFORE, terminating=("ml/train",)), 1), ["evicted-in-vain", "fails"]),
        (ended(replace(AFTER, files={PID: True})), ["silent"]),
        (ended(replace(AFTER, modules=("nvidia_uvm", "sunrpc")), 1), ["half-unloaded", "fails"]),
        (ended(replace(AFTER, gpu_drivers={"0000:3b:00.0": ""}), 1), ["gpus-without-driver", "fails"]),
        (ended(replace(AFTER, mounts=(ROOT,)), 1), ["mount-left", "fails"]),
        (ended(AFTER, 2, panic="nil"), ["panic"]),
        (ended(AFTER, None, stopped_after=3600), ["never-ends"]),
        (ended(BEFORE, 1), ["fails"]),
        (ended(BEFORE, -9), ["fails"]),
    ],
)
def test_each_kind(outcome, expected):
    """The worst first, with what comes along."""
    assert kinds(outcome) == expected


def test_a_cordon_of_somebody_else():
    """That it is lifted is the fault's damage only where it stays otherwise."""
    before = replace(BEFORE, node=node(unschedulable=True))
    kept = ended(replace(AFTER, node=node(unschedulable=True)), before=before)
    lifted = ended(before=before)
    assert kinds(lifted, kept) == ["foreign-cordon-lifted", "silent"]
    assert kinds(lifted, lifted) == []
    assert kinds(kept, kept) == []


def test_a_driver_that_the_run_leaves_alone():
    """A host's driver: the run ends with exit code 1 and touches no module."""
    base = ended(BEFORE, 1)
    assert kinds(ended(), base) == ["host-driver-unloaded", "silent"]
    assert kinds(ended(replace(BEFORE, node=node(driver="pre-installed")), 1), base) == ["other"]
