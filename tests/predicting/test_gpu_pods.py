"""What becomes of the pods that have to do with a GPU, and why."""

from __future__ import annotations

import pytest

from simulator.cluster.objects import Budget, Container, Owner, Pod, ResourceClaim
from simulator.host.spec import Module
from simulator.labels import DRA_DRIVER, UPGRADE_ANNOTATION
from simulator.predicting.answers import Cause, Fate
from simulator.predicting.prediction import predict

from .nodes import DEPLOYED, DIGEST, NO_DRAIN, PLUGIN, STATE, gpu_pod, host, watched, world

CLAIM = {"name": "gpu", "resourceClaimName": "c"}
CLAIMED = (ResourceClaim("default", "c", ("gpu.nvidia.com",)),)


def fate(pod, release="v0.10.0", on=None, env=NO_DRAIN, **fields):
    prediction = predict(watched(world(on, [pod], env=env, **fields), 600), release)
    found = next(one for one in prediction.pods.pods if one.name == pod.full_name)
    return found.fate, found.reason, prediction.verdict


def test_a_gpu_pod_is_evicted():
    """B41, B54."""
    assert fate(gpu_pod())[0] is Fate.EVICTED


def test_a_gpu_pod_is_deleted_where_the_server_cannot_evict():
    """With its own grace period."""
    assert fate(gpu_pod(), eviction=None)[0] is Fate.DELETED


@pytest.mark.parametrize(
    ("pod", "reason", "mends"),
    [
        (gpu_pod(empty_dir=True), "emptyDir", {"DRAIN_DELETE_EMPTYDIR_DATA": "true"}),
        (gpu_pod(owner=None), "no controller", {"DRAIN_USE_FORCE": "true"}),
        (gpu_pod(owner=Owner("DaemonSet", "device-plugin"), namespace="gpu-operator"), "DaemonSet", None),
        (gpu_pod(annotations={"kubernetes.io/config.mirror": "x"}), "mirror", None),
    ],
    ids=["emptyDir", "unmanaged", "DaemonSet", "mirror"],
)
def test_a_pod_that_cannot_go_blocks(pod, reason, mends):
    """B17: which pods block, and which setting frees each."""
    found, why, verdict = fate(pod)
    assert (found, verdict.cause) == (Fate.BLOCKING, Cause.PODS_BLOCK)
    assert reason in why
    assert pod.full_name in verdict.sentence
    if mends:
        assert fate(pod, env={**NO_DRAIN, **mends})[0] is Fate.EVICTED


def test_one_that_blocks_keeps_the_others():
    """All of them or none."""
    prediction = predict(world(pods=[gpu_pod("a"), gpu_pod("b", owner=None)], env=NO_DRAIN), "v0.10.0")
    assert {pod.name: pod.fate for pod in prediction.pods.pods} == {"default/a": Fate.UNTOUCHED, "default/b": Fate.BLOCKING}


def test_a_budget_blocks():
    """For ever, unless there is a time-out."""
    found, why, verdict = fate(gpu_pod(budget=Budget(None)))
    assert (found, verdict.cause) == (Fate.BLOCKING, Cause.STILL_RUNNING)
    assert "disruption budget" in why
    assert fate(gpu_pod(budget=Budget(None)), env={**NO_DRAIN, "DRAIN_TIMEOUT_SECONDS": "20s"})[2].cause is Cause.PODS_BLOCK


def test_a_budget_that_gives_way_is_told_of():
    """The pod goes in the end."""
    found, why, _ = fate(gpu_pod(budget=Budget(2)))
    assert found is Fate.EVICTED
    assert "2 attempts" in why


def test_a_pod_that_never_ends_blocks_without_end():
    """B52: also one that was terminating already."""
    found, why, verdict = fate(gpu_pod(termination=None, terminating=True))
    assert (found, verdict.cause) == (Fate.BLOCKING, Cause.STILL_RUNNING)
    assert "terminating before the run" in why
    assert "never ends" in why


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (gpu_pod(containers=(), init_containers=(Container({"nvidia.com/gpu": "1"}),)), "init container"),
        (gpu_pod(resource="nvidia.com/GA102GL_A10"), "GA102GL_A10"),
        (gpu_pod("virt-launcher-a", owner=None, containers=()), "virtual machine"),
        (gpu_pod(containers=(), resource_claims=(CLAIM,)), "v0.12.0 does"),
    ],
    ids=["init container", "sandbox name", "virtual machine", "claim"],
)
def test_a_pod_can_be_invisible(pod, reason):
    """B28, B63, B67: it uses a GPU, and the release does not see it."""
    found, why, _ = fate(pod, resource_claims=CLAIMED)
    assert found is Fate.INVISIBLE
    assert reason in why


def test_a_claim_of_another_driver_does_not_count():
    """Whatever the release."""
    claims = (ResourceClaim("default", "c", ("other.example.com",)),)
    found, why, _ = fate(gpu_pod(containers=(), resource_claims=(CLAIM,)), "v0.12.0", resource_claims=claims)
    assert found is Fate.INVISIBLE
    assert "other.example.com" in why


def test_a_claim_counts_from_v0_12_0():
    """B45."""
    assert fate(gpu_pod(containers=(), resource_claims=(CLAIM,)), "v0.12.0", resource_claims=CLAIMED)[0] is Fate.EVICTED


def test_a_claim_holder_blocks_where_nothing_evicts():
    """On a DRA node the run fails as long as a pod holds a claim."""
    pod = gpu_pod(containers=(), resource_claims=(CLAIM,))
    found, why, verdict = fate(
        pod,
        "v0.12.0",
        annotations={UPGRADE_ANNOTATION: "true"},
        resource_claims=CLAIMED,
        node_labels={**DEPLOYED, DRA_DRIVER: "true"},
    )
    assert (found, verdict.cause) == (Fate.BLOCKING, Cause.CLAIMS_HELD)
    assert "claim" in why
    assert pod.full_name in verdict.sentence


def test_a_holder_without_a_request_is_named():
    """B28: the pod holds the module, eviction does not see it, unloading fails."""
    pod = gpu_pod(containers=())
    on = host(modules=(Module("nvidia"),), delete_module={"nvidia": {"busy_while_pods": (pod.full_name,)}})
    found, why, verdict = fate(pod, on=on)
    assert (found, verdict.cause) == (Fate.INVISIBLE, Cause.MODULES_IN_USE)
    assert "unloading fails" in why
    assert f"held by pod {pod.full_name}" in verdict.sentence


def test_the_upgrade_policy_leaves_pods_to_the_controller():
    """B23, B25: the holder blocks, and driver-manager evicts nothing."""
    pod = gpu_pod()
    on = host(modules=(Module("nvidia"),), delete_module={"nvidia": {"busy_while_pods": (pod.full_name,)}})
    for release in ("v0.6.2", "v0.10.0"):
        found, why, verdict = fate(pod, release, on, annotations={UPGRADE_ANNOTATION: "true"})
        assert (found, verdict.cause) == (Fate.BLOCKING, Cause.MODULES_IN_USE)
        assert "upgrade policy" in why


def test_eviction_that_is_off_leaves_pods():
    """And says what would be in the way."""
    found, why, _ = fate(gpu_pod(owner=None), env={**NO_DRAIN, "ENABLE_GPU_POD_EVICTION": "false"})
    assert found is Fate.UNTOUCHED
    assert "ENABLE_GPU_POD_EVICTION is false" in why
    assert "no controller" in why


def test_a_driver_that_stays_leaves_pods():
    """B40: the fast path."""
    prediction = predict(world(host(files=(STATE,)), [gpu_pod()], env={"DRIVER_CONFIG_DIGEST": DIGEST}), "v0.10.0")
    assert prediction.pods.of(Fate.UNTOUCHED) == ["default/train"]
    assert prediction.verdict.path == "kept-driver"


def test_without_a_driver_v0_12_0_leaves_pods():
    """B45, B52: v0.11.0 evicts them."""
    on = host(modules=(), pci=())
    assert fate(gpu_pod(), "v0.12.0", on)[0] is Fate.UNTOUCHED
    assert fate(gpu_pod(), "v0.11.0", on)[0] is Fate.EVICTED


def test_an_operand_is_paused():
    """It goes because of its label."""
    assert fate(PLUGIN)[0] is Fate.PAUSED


def test_an_operand_that_stays_is_waited_for_in_vain():
    """Five minutes, then the run fails."""
    pod = Pod("gpu-operator", "other", labels={"app": "nvidia-device-plugin-daemonset"})
    found, why, verdict = fate(pod)
    assert (found, verdict.cause) == (Fate.BLOCKING, Cause.OPERANDS_STAY)
    assert "app=nvidia-device-plugin-daemonset" in why


def test_the_full_drain_says_where_it_stops():
    """T1, T3 of the field reports: any DaemonSet's pod; a selector leaves pods out."""
    pods = [PLUGIN, gpu_pod(owner=None)]
    prediction = predict(world(pods=pods, node_labels={}, env={"ENABLE_AUTO_DRAIN": "true"}), "v0.10.0")
    assert "gpu-operator/device-plugin" in [pod.name for pod in prediction.pods.drain_blockers]
    selected = predict(world(pods=pods, env={"ENABLE_AUTO_DRAIN": "true", "DRAIN_POD_SELECTOR_LABEL": "app=x"}), "v0.10.0")
    assert ("default/train", Fate.INVISIBLE) in [(pod.name, pod.fate) for pod in selected.pods.drain_blockers]


def test_the_first_script_evicts_nothing():
    """v0.4.2 has no such step."""
    found, why, _ = fate(gpu_pod(), "v0.4.2")
    assert found is Fate.INVISIBLE
    assert "v0.4.2 evicts no GPU pods" in why


@pytest.mark.parametrize("release", ["v0.6.2", "v0.8.1"])
def test_nvdrain_judges_as_the_program_does(release):
    """The script's eviction has the same filters."""
    assert fate(gpu_pod(), release)[0] is Fate.EVICTED
    assert fate(gpu_pod(empty_dir=True), release)[0] is Fate.BLOCKING


def test_a_pod_without_a_gpu_is_only_counted():
    """Nor one on another node."""
    pods = [Pod("default", "web"), gpu_pod("far", node_name="other")]
    answer = predict(world(pods=pods), "v0.10.0").pods
    assert (answer.pods, answer.others) == ((), 1)
