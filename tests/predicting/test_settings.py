"""The settings in effect, where each comes from, and the traps."""

from __future__ import annotations

import pytest

from simulator.cluster.objects import Owner, Pod, ResourceClaim
from simulator.labels import UPGRADE_ANNOTATION
from simulator.predicting.prediction import predict

from .nodes import DEPLOYED, DIGEST, EVICTS_NOTHING, NO_DRAIN, STATE, gpu_pod, host, world

POLICY = {
    "apiVersion": "nvidia.com/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "cluster-policy"},
    "spec": {"driver": {"enabled": False, "upgradePolicy": {"autoUpgrade": True, "drain": {"enable": False}}}},
}


def settings(release="v0.10.0", on=None, **fields):
    answer = predict(world(on, **fields), release).settings
    return {setting.name: setting for setting in answer.settings}, [trap.name for trap in answer.traps]


def test_each_setting_has_a_source():
    """From the environment, by default."""
    found, _ = settings(env={"DRAIN_TIMEOUT_SECONDS": "90s"})
    assert (found["DRAIN_TIMEOUT_SECONDS"].value, found["DRAIN_TIMEOUT_SECONDS"].source) == ("1m30s", "environment")
    assert (found["ENABLE_AUTO_DRAIN"].value, found["ENABLE_AUTO_DRAIN"].source) == ("true", "default")


def test_a_script_has_its_own_defaults():
    """And fewer settings the older it is."""
    old, _ = settings("v0.4.2")
    new, _ = settings("v0.8.1")
    assert old["OPERATOR_NAMESPACE"].value == "gpu-operator-resources"
    assert set(new) - set(old) == {
        "ENABLE_GPU_POD_EVICTION",
        "NODE_LABEL_FOR_GPU_POD_EVICTION",
        "GPU_DIRECT_RDMA_ENABLED",
        "USE_HOST_MOFED",
    }


def test_the_annotation_outdoes_the_settings():
    """B23: which of my settings count at all?"""
    found, traps = settings(annotations={UPGRADE_ANNOTATION: "true"})
    assert "does not count" in found["ENABLE_GPU_POD_EVICTION"].note
    assert found[UPGRADE_ANNOTATION].source == "node annotation"
    assert "superseded-by-upgrade-policy" in traps


def test_the_digest_is_compared():
    """With the state file of the driver that is loaded."""
    same, _ = settings(on=host(files=(STATE,)), env={"DRIVER_CONFIG_DIGEST": DIGEST})
    other, _ = settings(on=host(files=(STATE,)), env={"DRIVER_CONFIG_DIGEST": "x"})
    assert same["DRIVER_CONFIG_DIGEST"].note == "equal to the stored one"
    assert other["DRIVER_CONFIG_DIGEST"].note == "another than the stored one"
    assert "DRIVER_CONFIG_DIGEST" not in settings("v0.9.1")[0]


def test_a_cluster_policy_is_read():
    """Its upgrade policy, and whether there is a driver at all (B58)."""
    found, traps = settings(annotations={UPGRADE_ANNOTATION: "true"}, objects=(POLICY,))
    assert (found["driver.upgradePolicy.autoUpgrade"].value, found["driver.upgradePolicy.autoUpgrade"].source) == (
        "true",
        "ClusterPolicy",
    )
    assert found["driver.enabled"].value == "false"
    assert "annotation-without-driver" in traps


def test_settings_that_are_refused_are_shown_as_written():
    """The program ends before they count."""
    found, traps = settings(env={"DRAIN_TIMEOUT_SECONDS": "300"})
    assert found["DRAIN_TIMEOUT_SECONDS"].value == "300"
    assert "duration-without-unit" in traps


CLIENTS = {"example.com/app": "true"}


@pytest.mark.parametrize(
    ("trap", "release", "fields"),
    [
        ("duration-without-unit", "v0.12.0", {"env": {"DRAIN_TIMEOUT_SECONDS": "300"}}),
        ("duration-without-unit", "v0.8.1", {"env": {"DRAIN_TIMEOUT_SECONDS": "300"}}),
        ("no-drain-timeout", "v0.10.0", {"pods": [gpu_pod()]}),
        ("custom-label-with-value", "v0.10.0", {"env": {"NODE_LABEL_FOR_GPU_POD_EVICTION": "example.com/app=true"}}),
        ("custom-label-absent", "v0.10.0", {"env": {"NODE_LABEL_FOR_GPU_POD_EVICTION": "example.com/app"}}),
        ("custom-label-absent", "v0.8.1", {"env": {"NODE_LABEL_FOR_GPU_POD_EVICTION": "example.com/app=true"}}),
        (
            "custom-label-goes-first",
            "v0.12.0",
            {
                "env": {"NODE_LABEL_FOR_GPU_POD_EVICTION": "example.com/app"},
                "node_labels": {**DEPLOYED, **CLIENTS},
                "pods": [Pod("dra", "plugin", node_selector=CLIENTS, owner=Owner("DaemonSet", "plugin"))],
                "resource_claims": (ResourceClaim("default", "c", ("gpu.nvidia.com",)),),
            },
        ),
        ("selector-ignored-by-eviction", "v0.10.0", {"env": {"DRAIN_POD_SELECTOR_LABEL": "app=x"}}),
        ("full-drain-cannot-succeed", "v0.10.0", {"env": {"ENABLE_AUTO_DRAIN": "true"}}),
        ("empty-boolean-means-false", "v0.10.0", {"env": {"ENABLE_AUTO_DRAIN": ""}}),
        ("only-true-means-true", "v0.8.1", {"env": {"ENABLE_AUTO_DRAIN": "True"}}),
        ("unknown-to-this-release", "v0.9.1", {"env": {"FORCE_REINSTALL": "true"}}),
        ("unknown-to-this-release", "v0.6.2", {"env": {"GPU_DIRECT_RDMA_ENABLED": "true"}}),
        ("no-release-reads-it", "v0.12.0", {"env": {"FORCE_HOST_DRIVER_UNBIND": "true"}}),
        ("force-reinstall-evicts", "v0.10.0", {"env": {"FORCE_REINSTALL": "true"}}),
        ("superseded-by-upgrade-policy", "v0.6.2", {"annotations": {UPGRADE_ANNOTATION: "true"}}),
        ("nobody-evicts", "v0.10.0", {"env": EVICTS_NOTHING}),
        ("no-digest", "v0.10.0", {}),
        ("mofed-checks-swapped", "v0.9.0", {"env": {"GPU_DIRECT_RDMA_ENABLED": "true"}}),
        ("rdma-without-card", "v0.8.1", {"env": {"GPU_DIRECT_RDMA_ENABLED": "true"}}),
        ("host-mofed-without-rdma", "v0.10.0", {"env": {"USE_HOST_MOFED": "true"}}),
        ("operands-elsewhere", "v0.10.0", {"pods": [Pod("nvidia", "v", labels={"app": "nvidia-operator-validator"})]}),
        ("another-node", "v0.10.0", {"env": {"NODE_NAME": "gpu-2"}}),
    ],
)
def test_a_trap_is_named(trap, release, fields):
    """T8, T10, B49 and others."""
    _, traps = settings(release, **fields)
    assert trap in traps


@pytest.mark.parametrize(
    ("trap", "release", "fields"),
    [
        ("duration-without-unit", "v0.12.0", {"env": {"DRAIN_TIMEOUT_SECONDS": "300s"}}),
        ("no-drain-timeout", "v0.10.0", {"pods": [gpu_pod()], "env": {"DRAIN_TIMEOUT_SECONDS": "1m"}}),
        ("no-drain-timeout", "v0.10.0", {}),
        ("custom-label-with-value", "v0.8.1", {"env": {"NODE_LABEL_FOR_GPU_POD_EVICTION": "example.com/app=true"}}),
        (
            "custom-label-absent",
            "v0.8.1",
            {"env": {"NODE_LABEL_FOR_GPU_POD_EVICTION": "example.com/app=true"}, "node_labels": {**DEPLOYED, **CLIENTS}},
        ),
        ("full-drain-cannot-succeed", "v0.8.1", {"env": {"ENABLE_AUTO_DRAIN": "true"}}),
        ("full-drain-cannot-succeed", "v0.10.0", {"env": NO_DRAIN}),
        ("unknown-to-this-release", "v0.10.0", {"env": {"FORCE_REINSTALL": "true"}}),
        ("superseded-by-upgrade-policy", "v0.4.2", {"annotations": {UPGRADE_ANNOTATION: "true"}}),
        ("superseded-by-upgrade-policy", "v0.10.0", {"annotations": {UPGRADE_ANNOTATION: "false"}}),
        ("no-digest", "v0.9.1", {}),
        ("mofed-checks-swapped", "v0.9.1", {"env": {"GPU_DIRECT_RDMA_ENABLED": "true"}}),
    ],
)
def test_what_is_no_trap_is_not_named(trap, release, fields):
    """The same setting, where it does what it seems to."""
    _, traps = settings(release, **fields)
    assert trap not in traps
