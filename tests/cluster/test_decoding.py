"""Objects as an API server decodes them: whatever a client sends, whoever reads the store finds the types it expects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.clock import VirtualClock
from simulator.cluster import patch
from simulator.cluster.fake import FakeCluster
from simulator.cluster.objects import ClusterSpec, Container, Node, Owner, Pod, ResourceClaim
from simulator.host.fake import FakeHost
from simulator.manager.releases import resolve
from simulator.ports import Request
from simulator.runners.simulated import execute
from simulator.scenario import load_host, make_world

NODE = "/api/v1/nodes/gpu-1"
POD = "/api/v1/namespaces/a/pods/p"
DAEMON_SET = "/apis/apps/v1/namespaces/a/daemonsets/ds"
CLAIM = "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/c"


def cluster(clock=None):
    spec = ClusterSpec(
        "c",
        Node("gpu-1", {"nvidia.com/gpu.deploy.driver": "true"}),
        (
            Pod(
                "a",
                "p",
                {"app": "x"},
                owner=Owner("DaemonSet", "ds"),
                node_selector={"nvidia.com/gpu.deploy.driver": "true"},
                containers=(Container({"nvidia.com/gpu": "1"}),),
                empty_dir=True,
                resource_claims=({"name": "r", "resourceClaimName": "c"},),
            ),
        ),
        frozenset({("a", "ds")}),
        (ResourceClaim("a", "c", ("gpu.nvidia.com",)),),
    )
    return FakeCluster(spec, clock or VirtualClock())


def ask(made, method, path, body=None, content_type=""):
    return made.request(Request(method, path, {}, body, content_type))


@pytest.mark.parametrize("path", [NODE, POD, DAEMON_SET])
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_spec_is_always_there(path, method):
    """As Go's structs are, though a client takes them away; status is the server's."""
    made = cluster()
    before = ask(made, "GET", path).body
    body = {"spec": None, "status": None} if method == "PATCH" else {"metadata": {"name": before["metadata"]["name"]}}
    found = ask(made, method, path, body, patch.MERGE)
    assert found.status == 200, found.body
    assert (found.body["spec"], found.body["status"]) == ({}, before["status"])
    assert ask(made, "PATCH", f"{path}/status", {"status": None}, patch.MERGE).body["status"] == {}


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        (NODE, {"spec": {"unschedulable": "yes"}}, "string into Go struct field NodeSpec.spec.unschedulable of type bool"),
        (NODE, {"metadata": 1}, "number into Go struct field Node.metadata of type v1.ObjectMeta"),
        (POD, {"spec": {"nodeName": 1}}, "number into Go struct field PodSpec.spec.nodeName of type string"),
        (POD, {"spec": {"nodeSelector": {"a": 1}}}, "number into Go struct field PodSpec.spec.nodeSelector of type string"),
        (POD, {"spec": {"containers": [1]}}, "number into Go struct field PodSpec.spec.containers of type v1.Container"),
        (
            POD,
            {"spec": {"containers": [{"resources": {"limits": []}}]}},
            "array into Go struct field ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList",
        ),
        (POD, {"metadata": {"ownerReferences": [{"name": "x"}]}}, "metadata.ownerReferences.kind: Required value"),
    ],
)
def test_another_type_is_refused(path, body, text):
    """Go's decoder names the innermost struct and the whole path."""
    made = cluster()
    found = ask(made, "PATCH", path, body, patch.MERGE)
    assert (found.status, text in found.body["message"]) == (400, True), found.body["message"]


def test_null_is_as_if_it_were_not_there():
    """In a part; in a list it is Go's zero value."""
    made = cluster()
    current = ask(made, "GET", POD).body
    body = {**current, "spec": {**current["spec"], "nodeSelector": None, "volumes": [None], "other": None}}
    found = ask(made, "PUT", POD, body).body["spec"]
    assert ("nodeSelector" in found, found["volumes"], found["other"]) == (False, [{}], None)


names = st.sampled_from(
    [
        "metadata",
        "spec",
        "status",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "name",
        "kind",
        "nodeName",
        "nodeSelector",
        "containers",
        "resources",
        "limits",
        "volumes",
        "emptyDir",
        "resourceClaims",
        "resourceClaimName",
        "unschedulable",
        "phase",
        "resourceClaimStatuses",
        "template",
        "selector",
        "allocation",
        "devices",
        "results",
        "driver",
        "controller",
        "nvidia.com/gpu",
        "deletionTimestamp",
    ]
)
scalars = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a", "gpu-1", "DaemonSet", "Failed"])
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=3), max_leaves=8)
patches = st.fixed_dictionaries(
    {},
    optional={
        "metadata": values | st.dictionaries(names, values, max_size=3),
        "spec": values | st.dictionaries(names, values, max_size=3),
        "status": values | st.dictionaries(names, values, max_size=3),
    },
)
writes = st.tuples(
    st.sampled_from(["PATCH", "PATCH", "PUT"]),
    st.sampled_from([NODE, POD, DAEMON_SET, CLAIM]),
    st.sampled_from(["", "", "/status"]),
    patches,
    st.sampled_from([patch.MERGE, patch.STRATEGIC]),
)
HOST = load_host("container-driver-loaded")
RELEASE = st.sampled_from(["v0.8.1", "v0.9.0", "v0.12.0"])


@given(st.lists(writes, min_size=1, max_size=4), RELEASE)
def test_whatever_is_written_a_release_reads_it(requests, release):
    """Neither the server nor a run of the program after it ends in an exception."""
    clock = VirtualClock()
    made = cluster(clock)
    for method, path, part, body, content_type in requests:
        assert ask(made, method, path + part, body, content_type).status in {200, 400, 409, 422, 404}
    world = make_world(HOST, env={"NODE_NAME": "gpu-1", "ENABLE_GPU_POD_EVICTION": "true", "DRAIN_USE_FORCE": "true"})
    resolved = resolve(release)
    host = FakeHost(world.host, resolved.container_path, made.pod_exists, resolved.release.chroot, resolved.image)
    assert execute(world, resolved, host, made, clock).exit_code in {0, 1, 2}
