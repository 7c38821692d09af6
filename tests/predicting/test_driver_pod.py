"""The pod that runs driver-manager: the one before it is dead, with all that it held open."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator import labels
from simulator.cluster.objects import Owner, Pod
from simulator.host.spec import File, HeldByPods, Module
from simulator.predicting.answers import Cause, Fate
from simulator.predicting.driver_pod import driver_pods, without_processes_of
from simulator.predicting.events import Event, happen
from simulator.predicting.modes import WORKLOADS, Mode
from simulator.predicting.prediction import predict

from .nodes import DEPLOYED, DIGEST, LOADED, NO_DRAIN, STATE, gpu_pod, host, world

DRIVER = Pod(
    "gpu-operator", "nvidia-driver-q9z7k", node_selector={labels.DRIVER: "true"}, owner=Owner("DaemonSet", "nvidia-driver")
)
TRAIN = gpu_pod()
REFCNT = "/sys/module/nvidia/refcnt"
FILES = (File(REFCNT, "4\n"), File("/etc/hostname", "7\n"))


def modules(*pods):
    """The driver's, a handle of which processes of these pods have open."""
    return (Module("nvidia", users=3, pods=tuple(pod.full_name for pod in pods)),)


HELD = {
    "modules": {"modules": modules(DRIVER)},
    "delete_module": {"modules": LOADED, "delete_module": {"nvidia": {"busy_while_pods": (DRIVER.full_name,)}}},
    "files": {"modules": (), "files": FILES, "held_by_pods": {"nvidia": HeldByPods((DRIVER.full_name,), 4)}},
}


@pytest.mark.parametrize("release", ["v0.8.1", "v0.10.0", "v0.12.0"])
@pytest.mark.parametrize("event", [Event.POD_RESTART, Event.IMAGE_BUMP, Event.CONFIG_CHANGE])
@pytest.mark.parametrize("held", HELD.values(), ids=HELD)
def test_the_old_driver_pods_processes_are_gone(held, event, release):
    """nv-fabricmanager and nvidia-persistenced run in it: whatever says so, they hold nothing when driver-manager starts."""
    described = world(host(mounts=("/run/nvidia/driver",), **held), [DRIVER], env={"DRIVER_CONFIG_DIGEST": DIGEST, **NO_DRAIN})
    prediction = predict(described, release, event=event)
    assert (prediction.verdict.succeeds, prediction.modules.can_unload) == (True, True)
    assert prediction.pods.of(Fate.UNTOUCHED) == [DRIVER.full_name]
    assert any(DRIVER.full_name in text and "nvidia" in text for text in prediction.changed)


def test_what_another_pod_holds_stays_held():
    """Whose are how many of the handles nobody told, so they count until it is gone too."""
    pinned = replace(TRAIN, owner=None)
    on = host(modules=modules(DRIVER, pinned))
    happened = happen(world(on, [DRIVER, pinned]), "v0.10.0", Event.POD_RESTART).world.host
    assert happened.modules == modules(pinned)
    assert predict(world(on, [DRIVER, pinned], env=NO_DRAIN), "v0.10.0").verdict.cause is Cause.PODS_BLOCK
    assert predict(world(on, [DRIVER, TRAIN], env=NO_DRAIN), "v0.10.0").verdict.succeeds


def test_shared_answers_and_counts_keep_the_other_pod():
    """In each of the ways in which a world says who holds a module."""
    names = (DRIVER.full_name, TRAIN.full_name)
    on = host(
        modules=(),
        files=FILES,
        held_by_pods={"nvidia": HeldByPods(names, 4)},
        delete_module={"nvidia": {"busy_while_pods": names}, "nvidia_uvm": ("EAGAIN", "ok")},
    )
    left, held = without_processes_of(on, [DRIVER.full_name])
    assert held == ("nvidia",)
    assert left.held_by_pods == {"nvidia": HeldByPods((TRAIN.full_name,), 4)}
    assert left.delete_module == {"nvidia": {"busy_while_pods": (TRAIN.full_name,)}, "nvidia_uvm": ("EAGAIN", "ok")}
    assert left.files == FILES


def test_closed_handles_are_counted_down():
    """Those that the old pod had, and no more."""
    on = host(modules=(), files=FILES, held_by_pods={"nvidia": HeldByPods((DRIVER.full_name,), 3)})
    left, _ = without_processes_of(on, [DRIVER.full_name])
    assert (left.held_by_pods, left.files) == ({}, (File(REFCNT, "1\n"), FILES[1]))


def test_a_host_that_the_pod_does_not_hold_is_left_alone():
    """The very same."""
    on = host(modules=modules(TRAIN))
    assert without_processes_of(on, [DRIVER.full_name]) == (on, ())


@pytest.mark.parametrize("event", [Event.POD_RESTART, Event.IMAGE_BUMP])
def test_handles_that_nobody_names_may_be_the_old_pods(event):
    """Which is said, where there is such a pod."""
    on = host(modules=(Module("nvidia", users=2),))
    said = "nvidia-persistenced"
    assert any(said in text for text in predict(world(on, [DRIVER]), "v0.10.0", event=event).assumed)
    assert not any(said in text for text in predict(world(on), "v0.10.0", event=event).assumed)
    assert not any(said in text for text in predict(world(pods=[DRIVER]), "v0.10.0", event=event).assumed)


def test_the_pod_is_known_by_what_brings_it():
    """Its mode's label in the node selector of a DaemonSet's pod, on this node."""
    manager = replace(DRIVER, name="vfio", node_selector={labels.PREFIX + "vfio-manager": "true"})
    strangers = (replace(DRIVER, name="far", node_name="other"), replace(DRIVER, name="alone", owner=None), TRAIN)
    described = world(pods=[DRIVER, manager, *strangers])
    assert driver_pods(described, WORKLOADS[Mode.CONTAINER]) == [DRIVER]
    assert driver_pods(described, WORKLOADS[Mode.VM_PASSTHROUGH]) == [manager]


def test_a_kept_driver_does_not_care():
    """The fast path, with the old pod's processes named."""
    described = world(
        host(modules=modules(DRIVER), files=(STATE,)), [DRIVER], node_labels=DEPLOYED, env={"DRIVER_CONFIG_DIGEST": DIGEST}
    )
    assert predict(described, "v0.10.0").verdict.path == "kept-driver"
