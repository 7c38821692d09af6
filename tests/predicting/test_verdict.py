"""The verdict: does it succeed, why not, what comes next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.cluster.objects import ClusterSpec, Pod
from simulator.host.spec import Module
from simulator.predicting.answers import Cause, Path
from simulator.predicting.prediction import predict

from .nodes import LOADED, NO_DRAIN, gpu_pod, host, named, world

MOUNTED = {"mounts": ("/run/nvidia/driver",)}


@pytest.mark.parametrize("release", ["v0.4.2", "v0.6.2", "v0.8.1", "v0.9.0", "v0.10.0", "v0.11.0", "v0.12.0"])
def test_an_idle_driver_goes(release):
    """In every release; what the first script leaves to the driver container counts as success."""
    verdict = predict(world(host(**MOUNTED), env=NO_DRAIN), release).verdict
    assert (verdict.succeeds, verdict.cause, verdict.exit_code) == (True, Cause.NONE, 0)
    assert verdict.sentence.startswith("will succeed: ")
    assert verdict.then == "the pod's own containers start"


def test_a_script_that_finds_nothing_mounted_fails():
    """A host's own driver is unloaded, and the script fails nevertheless."""
    verdict = predict(world(env=NO_DRAIN), "v0.8.1").verdict
    assert verdict.cause is Cause.UNMOUNT
    assert "nothing is mounted" in verdict.sentence


def test_the_next_try_may_end_otherwise():
    """A module that was busy once."""
    once = world(host(delete_module={"nvidia": ("EAGAIN", "ok")}), env=NO_DRAIN)
    verdict = predict(once, "v0.10.0").verdict
    assert verdict.cause is Cause.MODULES_IN_USE
    busy = predict(world(host(modules=(Module("nvidia", users=1),)), env=NO_DRAIN), "v0.10.0").verdict
    assert busy.next_try == busy.ending
    assert "10 s, 20 s, 40 s" in busy.then


@pytest.mark.parametrize(
    ("described", "release", "cause"),
    [
        (world(env={"DRAIN_TIMEOUT_SECONDS": "300"}), "v0.10.0", Cause.SETTINGS),
        (replace(world(), args=("bogus",)), "v0.10.0", Cause.SETTINGS),
        (replace(world(), args=("bogus",)), "v0.8.1", Cause.SETTINGS),
        (world(env={"NODE_NAME": ""}), "v0.8.1", Cause.SETTINGS),
        (world(api_down=True), "v0.10.0", Cause.API),
        (world(api_down=True), "v0.8.1", Cause.API),
        (replace(world(), cluster=ClusterSpec("none", None)), "v0.10.0", Cause.API),
        (world(host(modules=LOADED, **MOUNTED, umount={"/run/nvidia/driver": "EPERM"}), env=NO_DRAIN), "v0.10.0", Cause.UNMOUNT),
        (world(host(container_programs={"vfio-manage": None}), env=NO_DRAIN), "v0.10.0", Cause.VFIO_UNBIND),
        (world(host(container_programs={"vfio-manage": None}, **MOUNTED), env=NO_DRAIN), "v0.8.1", Cause.VFIO_UNBIND),
        (world(host(modules=(Module("nvidia", users=1),), **MOUNTED), env=NO_DRAIN), "v0.8.1", Cause.MODULES_IN_USE),
        (world(pods=[gpu_pod(owner=None)], env=NO_DRAIN), "v0.8.1", Cause.PODS_BLOCK),
        (world(host(modules=(Module("nouveau", users=1),)), env=NO_DRAIN), "v0.8.1", Cause.NOUVEAU),
        (
            world(host(modules=(Module("nvidia", users=1),)), [Pod("default", "web")], env={"DRAIN_USE_FORCE": "true"}),
            "v0.10.0",
            Cause.PANIC,
        ),
        (replace(world(pods=[gpu_pod(termination=90)], env=NO_DRAIN), signal=("TERM", 9.0)), "v0.10.0", Cause.SIGNAL),
        (replace(world(pods=[gpu_pod(termination=90)], env=NO_DRAIN), signal=("KILL", 9.0)), "v0.8.1", Cause.SIGNAL),
        (replace(world(pods=[gpu_pod(termination=90)], env=NO_DRAIN), stop_after=20.0), "v0.10.0", Cause.STILL_RUNNING),
        (named("ubuntu-24.04-driver-580-open"), "v0.8.1", Cause.HOST_DRIVER),
    ],
)
def test_every_cause_is_known(described, release, cause):
    """And told in a sentence."""
    verdict = predict(described, release).verdict
    assert (verdict.succeeds, verdict.cause) == (False, cause)
    assert verdict.sentence.startswith("will not succeed: ")


def test_a_busy_module_leads_to_the_full_drain_that_fails():
    """The cause is the module, not the drain."""
    busy = world(host(modules=(Module("nvidia", users=1),)), [], env={"ENABLE_AUTO_DRAIN": "true"})
    daemon = world(host(modules=(Module("nvidia", users=1),)), named("clean").cluster.pods, env={"OPERATOR_NAMESPACE": "elsewhere"})
    assert predict(busy, "v0.10.0").verdict.cause is Cause.MODULES_IN_USE
    assert predict(daemon, "v0.10.0").verdict.cause is Cause.MODULES_IN_USE


@pytest.mark.parametrize(
    ("described", "release", "path"),
    [
        (world(), "v0.10.0", Path.FULL),
        (world(), "v0.8.1", Path.FULL),
        (world(), "v0.4.2", Path.FULL),
        (world(host(modules=())), "v0.12.0", Path.NO_DRIVER),
        (named("ubuntu-24.04-driver-580-open"), "v0.12.0", Path.HOST_DRIVER),
        (world(api_down=True), "v0.12.0", Path.NONE),
    ],
)
def test_the_path_is_named(described, release, path):
    """Which way through the program."""
    assert predict(described, release).verdict.path is path


def test_an_upstream_stranger_is_refused():
    """As by the runner."""
    with pytest.raises(KeyError):
        predict(world(), "v9.9.9")
    with pytest.raises(ValueError, match="bogus"):
        predict(world(), "v0.10.0", event="mode-switch", to="bogus")


def test_a_verdict_names_the_first_few():
    """Of pods that are in the way, or hold a module: it stays one line that can be read."""
    pods = [gpu_pod(f"train-{number}", owner=None) for number in range(12)]
    blocked = predict(world(pods=pods, env=NO_DRAIN), "v0.10.0").verdict.sentence
    assert "default/train-2" in blocked
    assert " and 9 more; " in blocked
    names = tuple(pod.full_name for pod in pods)
    held = world(
        host(modules=(Module("nvidia", users=12, pods=names),)), pods, env={"ENABLE_GPU_POD_EVICTION": "false", **NO_DRAIN}
    )
    holding = predict(held, "v0.10.0").verdict.sentence
    assert "held by pod default/train-0, default/train-1, default/train-2 and 9 more" in holding
    assert len(holding) < 200


def test_a_verdict_gives_each_reason_once():
    """Modules that stay only because of others come last."""
    pod = gpu_pod(containers=())
    held = {"users": 1, "pods": (pod.full_name,)}
    on = host(modules=(Module("nvidia_uvm", **held), Module("nvidia", used_by=("nvidia_uvm",), **held)))
    sentence = predict(world(on, [pod], env=NO_DRAIN), "v0.10.0").verdict.sentence
    assert f"modules stay: nvidia, nvidia_uvm (held by pod {pod.full_name}); exit" in sentence
    used = host(modules=(Module("nvidia_uvm", users=1), Module("nvidia", used_by=("nvidia_uvm",))))
    sentence = predict(world(used, env=NO_DRAIN), "v0.10.0").verdict.sentence
    assert "modules stay: nvidia_uvm (1 open handle of processes that are not named here), nvidia; exit" in sentence
