"""Clusters as people write them: statuses, and objects of further kinds."""

from __future__ import annotations

import pytest

from simulator.clock import VirtualClock
from simulator.cluster.fake import FakeCluster
from simulator.cluster.objects import read_cluster
from simulator.ports import Request
from simulator.reading import InputError, parse_document


def cluster(text):
    return read_cluster(parse_document(text, "c.yaml"), "c", "gpu-1")


def get(text, path):
    return FakeCluster(cluster(text), VirtualClock()).request(Request("GET", path)).body


def test_a_status_takes_the_place_of_what_is_made_up():
    """Field by field."""
    node = get("node: {status: {nodeInfo: {osImage: Talos}}}", "/api/v1/nodes/gpu-1")
    assert node["status"]["nodeInfo"] == {"osImage": "Talos"}
    assert node["status"]["conditions"][-1]["type"] == "Ready"
    pod = get("pods: [{name: p, phase: Failed, status: {reason: Evicted}}]", "/api/v1/namespaces/default/pods/p")
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "Evicted")
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 1


@pytest.mark.parametrize(("phase", "ready"), [("Running", [True]), ("Succeeded", [False]), ("Pending", None)])
def test_containers_are_as_the_phase_says(phase, ready):
    """A pod whose containers are not described has one."""
    pod = get(f"pods: [{{name: p, phase: {phase}}}]", "/api/v1/namespaces/default/pods/p")
    statuses = pod["status"].get("containerStatuses")
    assert (statuses and [status["ready"] for status in statuses]) == ready
    assert [container["name"] for container in pod["spec"]["containers"]] == ["main-0"]


def test_objects():
    """In their namespace, "default" if they name none."""
    text = "objects: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: v, labels: {a: b}}}]"
    found = get(text, "/apis/kubevirt.io/v1/namespaces/default/virtualmachines/v")
    assert found["metadata"]["labels"] == {"a": "b"}
    cluster_wide = "objects: [{apiVersion: cozystack.io/v1alpha1, kind: Package, metadata: {name: p}, spec: {variant: x}}]"
    assert get(cluster_wide, "/apis/cozystack.io/v1alpha1/packages/p")["spec"] == {"variant": "x"}


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ("{kind: KubeVirt, metadata: {name: k}}", 'objects[0] lacks the key "apiVersion"; write apiVersion: nvidia.com/v1'),
        ("{apiVersion: v1, kind: Secret, metadata: {name: s}}", 'objects[0] "v1 Secret" is no kind that is known; known: v1 Namespace,'),
        ("{apiVersion: v1, kind: Pod, metadata: {name: s}}", "objects[0] is a Pod; write it under pods"),
        ("{apiVersion: v1, kind: ConfigMap}", 'objects[0] lacks the key "metadata"'),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: A!}}", 'objects[0].metadata.name "A!" is no name'),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {b: '!'}}}", 'objects[0].metadata.labels.b "!" is an impossible'),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: x}}", "objects[0] is not as the API has it: json: cannot unmarshal string into Go struct field ObjectMeta.metadata.finalizers"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, spec: 1}", "objects[0] is not as the API has it: json: cannot unmarshal number into Go struct field ConfigMap.spec"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "objects[1] is the second"),
        ("7", "objects[0] is"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, x: [.nan]}", "objects[0].x[0] is nan, which is nothing that JSON can say"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, x: !!binary aGk=}", "objects[0].x is b'hi', which is nothing that JSON"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, x: {1: 2}}", "objects[0].x has the key 1"),
    ],
)  # fmt: skip
def test_objects_that_are_none(item, text):
    """One error with its place and its mend."""
    with pytest.raises(InputError) as caught:
        cluster(f"objects: [{item}]")
    assert text in str(caught.value)


@pytest.mark.parametrize("text", ["node: {status: []}", "pods: [{name: p, status: x}]"])
def test_a_status_that_is_no_mapping(text):
    """Is refused."""
    with pytest.raises(InputError, match="not a mapping"):
        cluster(text)


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("pods: [{name: p, status: {phase: [x]}}]", "pods[0].status", "array into Go struct field PodStatus.phase of type string"),
        (
            "pods: [{name: p, status: {resourceClaimStatuses: x}}]",
            "pods[0].status",
            "string into Go struct field PodStatus.resourceC",
        ),
        (
            "pods: [{name: p, resource_claims: [{name: 1}]}]",
            "pods[0].resource_claims[0]",
            "field PodResourceClaim.name of type string",
        ),
        (
            "pods: [{name: p, resource_claim_statuses: [{name: []}]}]",
            "pods[0].resource_claim_statuses[0]",
            "field PodResourceClaimStatus.name of type string",
        ),
    ],
)
def test_a_part_of_another_type(text, place, problem):
    """Is refused with its place, before a release reads it."""
    with pytest.raises(InputError) as caught:
        cluster(text)
    assert str(caught.value).startswith(f"c.yaml: {place} is not as the API has it: json: cannot unmarshal ")
    assert problem.replace("field PodResourceClaimStatus.name of type string", "PodResourceClaimStatus.name") in str(caught.value)
