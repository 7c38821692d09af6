"""The effects of a run: the common view of script and program."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from simulator.cluster.objects import Fault
from simulator.report.effects import effects, end_of
from simulator.runners.simulated import simulate
from simulator.scenario import load_cluster, load_host, make_world
from simulator.trace import ApiRequest, KernelCall

HOST = load_host("container-driver-loaded")
LABEL = re.compile(r'label \S+: (?P<before>absent|"[^"]*") -> (?P<after>absent|"[^"]*")')
ENV = {"NODE_NAME": "gpu-1", "OPERATOR_NAMESPACE": "gpu-operator"}


def is_label_patch(event):
    return isinstance(event, ApiRequest) and event.method == "PATCH" and "labels" in event.body.get("metadata", {})


def told(release, host="container-driver-loaded", **changes):
    return [effect.what for effect in effects(simulate(make_world(load_host(host), env=ENV | changes), release))]


@pytest.mark.parametrize("release", ["v0.8.1", "v0.9.0", "v0.12.0"])
def test_script_and_program_have_the_same_effects(release):
    """Thirty programs or one: labels, cordon, modules, mount, PID file, vfio-manage, labels back."""
    found = told(release)
    assert found[0] == 'label nvidia.com/gpu.deploy.container-toolkit: "true" -> "paused-for-driver-upgrade"'
    done = [what for what in found if not what.startswith("label ")]
    assert done[0] == "the node is cordoned"
    assert sorted(done[1:4]) == [f"module {name} is unloaded" for name in ("nvidia", "nvidia_modeset", "nvidia_uvm")]
    assert done[4:] == [
        "/run/nvidia/driver is unmounted",
        "/run/nvidia/nvidia-driver.pid is removed",
        "vfio-manage unbind --all ends with exit code 0",
        "the node is uncordoned",
        "exit code 0",
    ]


def test_a_label_that_has_its_value_already_is_no_effect():
    """v0.9.0 writes labels back that are as they were; each one that is told of differs."""
    world = make_world(HOST, load_cluster("bare-node", "gpu-1"), env=ENV | {"ENABLE_AUTO_DRAIN": "false"})
    outcome = simulate(world, "v0.9.0")
    told_of = [LABEL.fullmatch(effect.what) for effect in effects(outcome) if effect.what.startswith("label ")]
    assert told_of
    assert all(match and match["before"] != match["after"] for match in told_of)
    patches = sum(len(event.body["metadata"]["labels"]) for event in outcome.events if is_label_patch(event))
    assert len(told_of) < patches


def test_a_patch_that_fails_is_no_effect():
    """The label stays; the one that is tried again is told of once."""
    faulty = replace(load_cluster("container-node"), faults=(Fault("PATCH", body="paused-for", times=1),))
    failed = simulate(make_world(HOST, faulty, env=ENV), "v0.9.0")
    assert any(is_label_patch(event) and event.status == 500 for event in failed.events)
    assert "paused-for" not in "".join(effect.what for effect in effects(failed))
    assert 'label nvidia.com/gpu.deploy.container-toolkit: "true" -> "paused-for-driver-upgrade"' in told("v0.9.0")


def test_an_unmount_that_fails_is_no_effect():
    """Nor is what the kernel would not do."""
    busy = simulate(make_world(replace(HOST, umount={"/run/nvidia/driver": "EBUSY"}), env=ENV), "v0.9.0")
    assert any(isinstance(event, KernelCall) and event.result == "EBUSY" for event in busy.events)
    unmounted = "/run/nvidia/driver is unmounted"
    assert unmounted not in [effect.what for effect in effects(busy)]
    assert unmounted in told("v0.9.0")


def test_a_minute_is_waited_for_a_host_driver():
    """By both."""
    for release in ("v0.8.1", "v0.9.0"):
        found = told(release, "ubuntu-24.04-driver-580-open")
        assert found[-2:] == ["a minute is waited", "exit code 1"]


def test_pods_that_are_about_to_go_do_not_count():
    """How long they take is the cluster's business."""
    outcome = simulate(make_world(HOST, env=ENV), "v0.9.0")
    left = replace(outcome.after, pods=(*outcome.after.pods, "a/late"))
    leaving = replace(left, terminating=(*left.terminating, "a/late"))
    assert end_of(replace(outcome, after=leaving)) == end_of(outcome)
    assert end_of(replace(outcome, after=left)) != end_of(outcome)
