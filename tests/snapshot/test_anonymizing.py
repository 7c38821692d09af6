"""Other names: nothing original is left, and the run is the same but for them."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.cluster.objects import ClusterSpec, Container, Node, Owner, Pod, ResourceClaim
from simulator.manager.releases import DEFAULT, NEWEST
from simulator.runners.simulated import simulate
from simulator.scenario import Scenario, load_cluster, load_host, make_world
from simulator.snapshot.anonymizing import anonymized
from simulator.snapshot.bundle import Bundle, read_bundle
from simulator.writing import world_document, yaml_text
from tests.snapshot.made import manager_daemonset, save

NAMES = st.from_regex(r"[a-z]{3}q[a-z0-9]{3}z(-[a-z0-9]{2}q[a-z0-9]z)?", fullmatch=True)
"""Names that occur in nothing of ours."""
VALUES = st.from_regex(r"[A-Z][a-z]{3}q[a-z0-9]{3}z", fullmatch=True)


def written(bundle):
    """All that is ever written of a bundle."""
    scenario = bundle.scenario
    document = world_document(scenario.world, release=scenario.release, description=scenario.description)
    texts = (*bundle.unseen, *bundle.assumed, *bundle.logs, *bundle.logs.values())
    return "\n".join((yaml_text(document), *texts))


@settings(max_examples=40)
@given(st.lists(NAMES, min_size=9, max_size=9, unique=True), st.lists(VALUES, min_size=4, max_size=4, unique=True))
def test_no_name_is_left(names, values):
    """Of node, host, namespaces, pods, owners, claims, labels, selectors; in objects, settings, sentences, logs."""
    node, namespace, pod, owner, claim, key, daemonset, custom, domain = names
    cluster = ClusterSpec(
        "c",
        Node(
            f"{node}.{domain}.example",
            {
                "kubernetes.io/hostname": f"{node}.{domain}.example",
                f"{domain}.com/{key}": values[0],
                "nvidia.com/gpu.count": "1",
                custom: "true",
            },
            {"nvidia.com/gpu-driver-upgrade-enabled": "true", f"nvidia.com/{key}": values[1]},
        ),
        (
            Pod(
                namespace,
                pod,
                {key: values[2], "app": values[3]},
                owner=Owner("ReplicaSet", owner),
                node_selector={f"{domain}.com/{key}": values[0]},
                containers=(Container({"nvidia.com/gpu": "1"}),),
                resource_claims=({"name": claim, "resourceClaimName": claim},),
            ),
            Pod(
                "gpu-operator",
                "nvidia-driver-daemonset-c6b9x",
                {"app": "nvidia-driver-daemonset"},
                owner=Owner("DaemonSet", "driver"),
            ),
        ),
        daemonsets=frozenset({("gpu-operator", "driver"), (namespace, daemonset)}),
        resource_claims=(ResourceClaim(namespace, claim, ("gpu.nvidia.com",)),),
        objects=(
            {
                "apiVersion": "nvidia.com/v1",
                "kind": "ClusterPolicy",
                "metadata": {"name": domain},
                "spec": {"repository": f"{domain}.example/x"},
            },
        ),
    )
    env = {
        "NODE_NAME": f"{node}.{domain}.example",
        "OPERATOR_NAMESPACE": "gpu-operator",
        "DRAIN_POD_SELECTOR_LABEL": f"{key}={values[2]},{domain}.com/{key} notin ({values[0]},{values[3]})",
        "NODE_LABEL_FOR_GPU_POD_EVICTION": custom,
        "KUBECONFIG": f"/home/{domain}/kubeconfig",
    }
    host = load_host("container-driver-loaded")
    modules = tuple(dataclasses.replace(module, users=1, pods=(f"{namespace}/{pod}",)) for module in host.modules)
    world = make_world(dataclasses.replace(host, name=node, modules=modules), cluster, env=env)
    bundle = Bundle(
        Scenario(world, DEFAULT, description=f"Snapshot of node {node}.{domain}.example."),
        (f"pod {namespace}/{pod} of {node}",),
        (f"claim {claim} of {owner}",),
        {f"{namespace}/{pod}/c": f"on {node} at 10.11.12.13 and fd00:1:2:3:4:5:6:7: {pod} {owner} {claim}"},
    )
    after = anonymized(bundle)
    text = written(after)
    left = [name for name in (*names, *values, "10.11.12.13", "fd00:1:2") if name in text]
    assert not left, text
    assert "0000:18:00.0" in text
    before, changed = simulate(world, NEWEST), simulate(after.scenario.world, NEWEST)
    assert [event[0:1] for event in before.events] == [event[0:1] for event in changed.events]
    assert (before.exit_code, before.after.modules, before.after.files) == (
        changed.exit_code,
        changed.after.modules,
        changed.after.files,
    )


@pytest.mark.parametrize("cluster", ["container-node", "dra-node", "paged", "vm-passthrough-node"])
def test_a_snapshot_runs_the_same(cluster, tmp_path):
    """A whole bundle: the same requests to other names, the same end."""
    env = {"NODE_NAME": "gpu-1", "DRAIN_POD_SELECTOR_LABEL": "team in (a,b)"}
    folder = save(tmp_path / "b", load_cluster(cluster, "gpu-1"), manager=manager_daemonset(env, DEFAULT))
    bundle = read_bundle(folder)
    after = anonymized(bundle)
    before, changed = simulate(bundle.scenario.world, DEFAULT), simulate(after.scenario.world, DEFAULT)
    assert before.exit_code == changed.exit_code
    assert len(before.events) == len(changed.events)
    assert after.scenario.world.cluster.node.name == "node-1"
    assert anonymized(bundle) == after, "the same names each time"


def test_the_operators_own_names_stay(tmp_path):
    """Its namespace, its pods, its labels."""
    folder = save(tmp_path / "b", load_cluster("container-node", "gpu-1"))
    world = anonymized(read_bundle(folder)).scenario.world
    assert {pod.full_name for pod in world.cluster.pods} == {pod.full_name for pod in load_cluster("container-node").pods}
    assert world.cluster.node.labels == load_cluster("container-node").node.labels
