"""How long, waiting for what."""

from __future__ import annotations

from dataclasses import replace

from simulator.cluster.objects import Budget, Fault
from simulator.host.spec import PciFunction
from simulator.predicting.answers import Cause
from simulator.predicting.prediction import predict
from simulator.world import PlannedChange

from .nodes import GPU, LOADED, NO_DRAIN, PLUGIN, SMI, gpu_pod, host, watched, world

CARD = PciFunction("0000:19:00.0", "0x15b3", class_="0x020000")
RDMA = {"GPU_DIRECT_RDMA_ENABLED": "true", **NO_DRAIN}
READY = "/run/mellanox/drivers/.driver-ready"


def timing(described, release="v0.10.0"):
    return predict(described, release).timing


def test_operands_are_waited_for():
    """Polled every five seconds, five minutes at most."""
    found = timing(world(pods=[PLUGIN], env=NO_DRAIN))
    longest = found.waits[0]
    assert (longest.what, longest.limit) == ("the pods of nvidia-device-plugin-daemonset to go", 300.0)
    assert 4 < longest.seconds <= 5


def test_at_worst_every_operand_takes_five_minutes():
    """B56: six waits, half an hour."""
    assert 1800 <= timing(world(env=NO_DRAIN)).worst < 1810


def test_gpu_pods_are_waited_for_without_limit():
    """Unless DRAIN_TIMEOUT_SECONDS says otherwise."""
    slow = world(pods=[gpu_pod(termination=40)], env=NO_DRAIN)
    found = timing(slow)
    assert (found.waits[0].what, found.waits[0].limit, found.worst) == ("GPU pods to go", None, None)
    assert found.waits[0].seconds > 39
    limited = timing(world(pods=[gpu_pod(termination=40)], env={"DRAIN_TIMEOUT_SECONDS": "2m", **NO_DRAIN}))
    assert limited.waits[0].limit == 120


def test_a_budget_is_named():
    """With the pod that it protects."""
    found = timing(watched(world(pods=[gpu_pod(budget=Budget(None))], env=NO_DRAIN), 100))
    assert not found.finished
    assert found.waiting_for == "a disruption budget to let a pod go: default/train"
    hot = timing(watched(world(pods=[gpu_pod(budget=Budget(None))], env=NO_DRAIN), 100), "v0.11.0")
    assert hot.waits[0].what == found.waiting_for


def test_a_host_driver_takes_a_minute():
    """Always."""
    found = timing(world(host(programs=(SMI,))))
    assert (found.seconds, found.waits[0].limit) == (60.0, 60.0)


def test_mofed_is_waited_for_without_end():
    """B33, B35: and it is said what is looked for."""
    described = watched(world(host(pci=(GPU, CARD)), env=RDMA), 100)
    prediction = predict(described, "v0.10.0")
    assert prediction.verdict.cause is Cause.STILL_RUNNING
    assert READY in prediction.timing.waiting_for
    assert prediction.verdict.then == "the pod stays in Init:0/1 as long as it waits"
    swapped = timing(watched(world(host(pci=(GPU, CARD)), env={"USE_HOST_MOFED": "true", **RDMA}), 100), "v0.9.0")
    assert READY in swapped.waiting_for
    mended = timing(watched(world(host(pci=(GPU, CARD)), env={"USE_HOST_MOFED": "true", **RDMA}), 100), "v0.9.1")
    assert "mlx5_core" in mended.waiting_for


def test_mofed_that_comes_ends_the_wait():
    """B35: it heals by itself."""
    found = timing(replace(world(host(pci=(GPU, CARD)), env=RDMA), changes=(PlannedChange(30.0, {READY: ""}),)))
    assert found.finished
    assert found.waits[0].what.startswith("MOFED to be ready")
    assert found.worst is None


def test_a_label_patch_that_is_refused_is_waited_for():
    """From v0.11.0 for more than a minute."""
    found = timing(world(env=NO_DRAIN, faults=(Fault("PATCH", "/nodes/", body="paused", status=403),)), "v0.11.0")
    assert "label patch" in found.waits[0].what
    assert found.waits[0].seconds > 60


def test_an_api_server_that_drops_is_waited_for():
    """client-go tries a GET again for ten seconds."""
    found = timing(world(env=NO_DRAIN, faults=(Fault("GET", "/nodes/", status="drop"),)))
    assert "API server" in found.waits[0].what
    assert found.waits[0].seconds >= 9


def test_the_script_waits_for_the_same():
    """In its own words."""
    found = timing(
        world(
            host(modules=LOADED, mounts=("/run/nvidia/driver",)),
            [replace(PLUGIN, termination=10), gpu_pod(termination=20)],
            env={"OPERATOR_NAMESPACE": "gpu-operator", **NO_DRAIN},
        ),
        "v0.8.1",
    )
    assert {"GPU pods to go", "the pods of device-plugin to go"} <= {wait.what for wait in found.waits}
