"""The effects of a run: the common view of script and program."""

from __future__ import annotations

import pytest

from simulator.report.effects import effects, end_of
from simulator.runners.simulated import simulate
from simulator.scenario import load_cluster, load_host, make_world

ENV = {"NODE_NAME": "gpu-1", "OPERATOR_NAMESPACE": "gpu-operator"}


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


def test_what_changes_nothing_is_no_effect():
    """A label that has its value already, a call that fails."""
    host = load_host("container-driver-loaded")
    outcome = simulate(make_world(host, load_cluster("bare-node", "gpu-1"), env=ENV | {"ENABLE_AUTO_DRAIN": "false"}), "v0.9.0")
    names = [effect.what for effect in effects(outcome) if effect.what.startswith("label ")]
    assert names
    assert not [name for name in names if '"" -> ""' in name]


def test_a_minute_is_waited_for_a_host_driver():
    """By both."""
    for release in ("v0.8.1", "v0.9.0"):
        found = told(release, "ubuntu-24.04-driver-580-open")
        assert found[-2:] == ["a minute is waited", "exit code 1"]


def test_pods_that_are_about_to_go_do_not_count():
    """How long they take is the cluster's business."""
    world = make_world(load_host("container-driver-loaded"), env=ENV)
    script, program = simulate(world, "v0.8.1"), simulate(world, "v0.9.0")
    assert end_of(script) == end_of(program)
