"""The fake API server: what clients write, and the errors a real one would give them."""

from __future__ import annotations

import datetime

import pytest

from simulator.clock import VirtualClock
from simulator.cluster import patch
from simulator.cluster.fake import FakeCluster
from simulator.cluster.kinds import KINDS
from simulator.cluster.objects import Budget, ClusterSpec, Node, Owner, Pod
from simulator.gocompat import SECOND
from simulator.ports import Request

START = datetime.datetime(2026, 5, 4, 3, 2, 1, tzinfo=datetime.UTC)
PODS = "/api/v1/namespaces/a/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
POLICIES = "/apis/nvidia.com/v1/clusterpolicies"


class Api:
    """A cluster, asked by method and path."""

    def __init__(self, *pods, **fields):
        self.clock = VirtualClock()
        spec = ClusterSpec("c", fields.pop("node", Node("n", {"a": "1"})), tuple(pods), **fields)
        self.cluster = FakeCluster(spec, self.clock, START)

    def ask(self, method, path, body=None, content_type="", **query):
        return self.cluster.request(Request(method, path, query, body, content_type))

    def ok(self, method, path, body=None, content_type="", **query):
        response = self.ask(method, path, body, content_type, **query)
        assert response.status in {200, 201}, response.body
        return response.body

    def error(self, method, path, body=None, content_type="", **query):
        response = self.ask(method, path, body, content_type, **query)
        assert response.body["kind"] == "Status"
        assert response.body["code"] == response.status
        return response.status, response.body["reason"], response.body["message"]

    def names(self, path, **query):
        return [item["metadata"]["name"] for item in self.ok("GET", path, **query)["items"]]


def config_map(name="m", **metadata):
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, **metadata}, "data": {"a": "b"}}


def pod(name="p", **spec):
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
        "status": {"phase": "Running"},
    }


def test_what_is_made_is_there():
    """With what the server adds; resourceVersions grow with every change of anything."""
    api = Api()
    made = api.ok("POST", MAPS, config_map(labels={"l": "1"}, resourceVersion="99", deletionTimestamp="x"))
    assert made["metadata"] == {
        "name": "m",
        "namespace": "default",
        "labels": {"l": "1"},
        "uid": "configmap-2",
        "creationTimestamp": "2026-05-04T03:02:01Z",
        "resourceVersion": "2",
    }
    assert api.ok("GET", f"{MAPS}/m") == made
    api.clock.sleep(5 * SECOND)
    later = api.ok(
        "POST",
        POLICIES,
        {"kind": "ClusterPolicy", "apiVersion": "nvidia.com/v1", "metadata": {"name": "p"}, "status": {"state": "ready"}},
    )
    assert (later["metadata"]["resourceVersion"], later["metadata"]["creationTimestamp"]) == ("3", "2026-05-04T03:02:06Z")
    assert "status" not in later
    assert api.ok("GET", MAPS)["metadata"]["resourceVersion"] == "3"
    assert api.names("/api/v1/configmaps", labelSelector="l=1") == ["m"]
    assert api.names("/api/v1/configmaps", labelSelector="l!=1") == []


def test_a_new_pod():
    """Is pending, whatever it says; it goes at once if no node has it, in its time otherwise."""
    api = Api(node=Node("n"), objects=())
    made = api.ok("POST", "/api/v1/namespaces/default/pods", pod())
    assert made["status"] == {"phase": "Pending"}
    api.ok("DELETE", "/api/v1/namespaces/default/pods/p")
    assert api.names("/api/v1/pods") == []
    api.ok("POST", "/api/v1/namespaces/default/pods", pod("q", nodeName="n"))
    assert api.ok("DELETE", "/api/v1/namespaces/default/pods/q")["metadata"]["deletionTimestamp"] == "2026-05-04T03:02:01Z"
    assert api.names("/api/v1/pods") == ["q"]
    api.clock.sleep(SECOND)
    assert api.names("/api/v1/pods") == []


def test_a_pod_that_came_back_under_its_name_stays():
    """What was planned for its predecessor does not befall it."""
    api = Api(Pod("default", "p", termination=5))
    api.ok("DELETE", "/api/v1/namespaces/default/pods/p")
    api.ok("DELETE", "/api/v1/namespaces/default/pods/p", {"gracePeriodSeconds": 0})
    api.ok("POST", "/api/v1/namespaces/default/pods", pod())
    api.clock.sleep(10 * SECOND)
    assert api.names("/api/v1/pods") == ["p"]


def test_generated_names():
    """A prefix, then something of the server's own."""
    api = Api()
    body = config_map("", generateName="x-")
    assert [api.ok("POST", MAPS, body)["metadata"]["name"] for _ in range(2)] == ["x-00002", "x-00003"]


@pytest.mark.parametrize(
    ("path", "body", "status", "reason", "text"),
    [
        (MAPS, config_map("there"), 409, "AlreadyExists", 'configmaps "there" already exists'),
        (
            MAPS,
            config_map("A!"),
            422,
            "Invalid",
            'ConfigMap "A!" is invalid: metadata.name: Invalid value: "A!": a lowercase RFC 1123',
        ),
        (
            MAPS,
            config_map(""),
            422,
            "Invalid",
            'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
        ),
        (
            MAPS,
            config_map(labels={"a": "!"}),
            422,
            "Invalid",
            'is invalid: metadata.labels: Invalid value: "!": a valid label must',
        ),
        (
            MAPS,
            config_map(labels={"a": 1}),
            400,
            "BadRequest",
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            MAPS,
            config_map(labels=[]),
            400,
            "BadRequest",
            "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map",
        ),
        (MAPS, config_map(finalizers="x"), 400, "BadRequest", "ObjectMeta.metadata.finalizers of type []string"),
        (MAPS, config_map(ownerReferences=[{}]), 400, "BadRequest", "metadata.ownerReferences.kind: Required value"),
        (MAPS, config_map(5), 400, "BadRequest", "ObjectMeta.metadata.name of type string"),
        (
            MAPS,
            config_map(namespace="other"),
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent",
        ),
        (
            MAPS,
            {**config_map(), "kind": "Pod"},
            400,
            "BadRequest",
            "kind in the data (Pod) does not match the expected one (ConfigMap)",
        ),
        (
            MAPS,
            {"metadata": "x"},
            400,
            "BadRequest",
            "cannot unmarshal string into Go struct field ConfigMap.metadata of type v1.ObjectMeta",
        ),
        (MAPS, [], 400, "BadRequest", "the object provided is unrecognized"),
        (MAPS, None, 400, "BadRequest", "the object provided is unrecognized"),
        ("/api/v1/namespaces/no/configmaps", config_map(), 404, "NotFound", 'namespaces "no" not found'),
        (
            "/api/v1/namespaces/default/pods",
            {"metadata": {"name": "p"}},
            422,
            "Invalid",
            'Pod "p" is invalid: spec.containers: Required value',
        ),
        (
            "/api/v1/namespaces/default/pods",
            {"metadata": {"name": "p"}, "spec": 1},
            400,
            "BadRequest",
            "Pod.spec of type v1.PodSpec",
        ),
        (
            "/api/v1/namespaces/default/pods",
            {"metadata": {"name": "p"}, "spec": {"containers": [{}]}},
            422,
            "Invalid",
            "[spec.containers[0].name: Required value, spec.containers[0].image: Required value]",
        ),
        ("/api/v1/namespaces/default/pods", pod(initContainers=[1]), 400, "BadRequest", "PodSpec.spec.initContainers of type"),
        (
            "/apis/apps/v1/namespaces/default/daemonsets",
            {"metadata": {"name": "X"}},
            422,
            "Invalid",
            'DaemonSet.apps "X" is invalid',
        ),
        ("/api/v1/pods", pod(), 405, "MethodNotAllowed", "the server does not allow this method on the requested resource"),
    ],
)
def test_what_cannot_be_made(path, body, status, reason, text):
    """In the API server's words."""
    api = Api()
    api.ok("POST", MAPS, config_map("there"))
    found = api.error("POST", path, body)
    assert found[:2] == (status, reason)
    assert text in found[2]


def test_replacing():
    """The whole object but what no client may change; the version it carries must be the latest."""
    api = Api()
    made = api.ok("POST", MAPS, config_map())
    replaced = api.ok(
        "PUT", f"{MAPS}/m", {"metadata": {"resourceVersion": "2", "creationTimestamp": "1999-01-01T00:00:00Z"}, "data": {"x": "y"}}
    )
    assert replaced["data"] == {"x": "y"}
    assert replaced["metadata"] == {**made["metadata"], "resourceVersion": "3"}
    assert api.error("PUT", f"{MAPS}/m", made) == (
        409,
        "Conflict",
        (
            'Operation cannot be fulfilled on configmaps "m": the object has been modified; please apply your changes to the latest'
            " version and try again"
        ),
    )
    assert api.ok("PUT", f"{MAPS}/m", {"metadata": {}, "data": {"x": "y"}})["metadata"]["resourceVersion"] == "3"
    assert api.error("PUT", f"{MAPS}/m", config_map("z"))[::2] == (
        400,
        "the name of the object (z) does not match the name on the URL (m)",
    )
    assert api.error("PUT", f"{MAPS}/m", config_map(namespace="z"))[0] == 400
    assert api.error("PUT", f"{MAPS}/m", config_map(uid="z"))[::2] == (
        409,
        'Operation cannot be fulfilled on configmaps "m": Precondition failed: UID in precondition: z, UID in object meta: configmap-2',
    )
    assert api.error("PUT", f"{MAPS}/no", config_map("no"))[0] == 404


def test_a_patch_that_carries_an_old_version():
    """Conflicts."""
    api = Api()
    body = {"metadata": {"resourceVersion": "0"}}
    assert api.error("PATCH", "/api/v1/nodes/n", body, patch.MERGE)[:2] == (409, "Conflict")


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (patch.STRATEGIC, {"metadata": {"labels": {"a": None, "b": "2"}}}),
        (patch.MERGE, {"metadata": {"labels": {"a": None, "b": "2"}}}),
        (patch.JSON, [{"op": "remove", "path": "/metadata/labels/a"}, {"op": "add", "path": "/metadata/labels/b", "value": "2"}]),
    ],
)
def test_patches(content_type, body):
    """Three ways to say the same; a patch of nothing makes no new version."""
    api = Api()
    first = api.ok("PATCH", "/api/v1/nodes/n", body, content_type)
    assert first["metadata"]["labels"] == {"b": "2"}
    assert first["metadata"]["resourceVersion"] == "2"
    empty = [] if content_type == patch.JSON else {}
    assert api.ok("PATCH", "/api/v1/nodes/n", empty, content_type)["metadata"]["resourceVersion"] == "2"


def test_media_types_of_patches():
    """A custom resource takes no strategic merge."""
    api = Api()
    api.ok("POST", POLICIES, {"metadata": {"name": "p"}})
    text = "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, "
    for path, content_type in ((f"{POLICIES}/p", patch.STRATEGIC), ("/api/v1/nodes/n", "application/json")):
        status, reason, message = api.error("PATCH", path, {}, content_type)
        assert (status, reason) == (415, "UnsupportedMediaType")
        assert message.startswith(text)
        assert (patch.STRATEGIC in message) == ("nodes" in path)


def test_server_side_apply():
    """Makes what is not there, merges into what is."""
    api = Api()
    body = {"kind": "ClusterPolicy", "apiVersion": "nvidia.com/v1", "metadata": {"name": "p"}, "spec": {"a": 1}}
    assert api.ask("PATCH", f"{POLICIES}/p", body, patch.APPLY).status == 201
    again = api.ask("PATCH", f"{POLICIES}/p", {**body, "spec": {"b": 2}}, patch.APPLY)
    assert (again.status, again.body["spec"]) == (200, {"a": 1, "b": 2})
    assert api.error("PATCH", f"{POLICIES}/q", body, patch.APPLY)[0] == 400


def test_status_is_a_subresource():
    """Written there, and only there."""
    api = Api(Pod("a", "p"))
    waiting = {"phase": "Pending", "initContainerStatuses": []}
    api.ok("PATCH", f"{PODS}/p/status", {"status": waiting, "metadata": {"labels": {"x": "y"}}}, patch.MERGE)
    api.ok("PATCH", f"{PODS}/p", {"status": {"phase": "Failed"}}, patch.MERGE)
    found = api.ok("GET", f"{PODS}/p/status")
    assert found["status"] | waiting == found["status"]
    assert found["metadata"]["labels"] == {}
    api.ok("PUT", f"{PODS}/p/status", {"status": {"phase": "Running"}})
    assert api.ok("GET", f"{PODS}/p")["status"] == {"phase": "Running"}
    assert api.error("PUT", f"{PODS}/p/status", {"status": []})[0] == 400
    assert api.error("DELETE", f"{PODS}/p/status")[0] == 405
    assert api.error("GET", f"{MAPS}/m/status")[0] == 404


def test_dry_runs_change_nothing():
    """Whatever the verb; a budget that blocks an eviction says so, but has not spent anything."""
    api = Api(Pod("a", "p", termination=0, budget=Budget(1)), node=Node("n"))
    api.ok("POST", MAPS, config_map("m"), dryRun="All")
    api.ok("PATCH", "/api/v1/nodes/n", {"metadata": {"labels": {"x": "y"}}}, patch.MERGE, dryRun="All")
    api.ok("DELETE", f"{PODS}/p", {"dryRun": ["All"]})
    dry_eviction = (f"{PODS}/p/eviction", {"deleteOptions": {"dryRun": ["All"]}})
    assert [api.ask("POST", *dry_eviction).status for _ in range(2)] == [429, 429]
    api.ok("DELETE", "/api/v1/nodes/n", dryRun="All")
    assert (api.names(MAPS), api.names("/api/v1/nodes"), api.names("/api/v1/pods")) == ([], ["n"], ["p"])
    assert [api.ask("POST", f"{PODS}/p/eviction", {}).status, api.ask("POST", *dry_eviction).status] == [429, 201]
    assert api.names("/api/v1/pods") == ["p"]
    assert api.cluster.store.version == 1


def test_how_a_body_travelled_is_no_part_of_an_object():
    """The note that it was protobuf is for the trace."""
    api = Api()
    made = api.ok("POST", MAPS, {**config_map(), "_encoding": "protobuf"})
    replaced = api.ok("PUT", f"{MAPS}/m", {**config_map(), "data": {}, "_encoding": "protobuf"})
    assert "_encoding" not in {**made, **replaced}


def test_deleting():
    """A Status with what is gone; for a pod the pod; preconditions must hold."""
    api = Api(Pod("a", "p", termination=0))
    api.ok("POST", POLICIES, {"metadata": {"name": "x"}})
    for preconditions, word in (({"uid": "y"}, "UID"), ({"resourceVersion": "0"}, "ResourceVersion")):
        status, _, message = api.error("DELETE", f"{POLICIES}/x", {"preconditions": preconditions})
        assert status == 409
        assert f"Precondition failed: {word} in precondition" in message
    gone = api.ok("DELETE", f"{POLICIES}/x", {"preconditions": {"uid": "clusterpolicy-2"}})
    assert gone["details"] == {"name": "x", "group": "nvidia.com", "kind": "clusterpolicies", "uid": "clusterpolicy-2"}
    assert api.error("DELETE", f"{POLICIES}/x")[0] == 404
    assert api.ok("DELETE", f"{PODS}/p", gracePeriodSeconds="0")["kind"] == "Pod"
    assert api.error("DELETE", f"{PODS}/p", gracePeriodSeconds="soon")[0] == 404


def test_finalizers():
    """Keep an object until they are gone."""
    api = Api()
    api.ok("POST", POLICIES, {"metadata": {"name": "x", "finalizers": ["f"]}})
    api.ok("DELETE", f"{POLICIES}/x")
    assert api.ok("GET", f"{POLICIES}/x")["metadata"]["deletionTimestamp"] == "2026-05-04T03:02:01Z"
    api.ok("PATCH", f"{POLICIES}/x", {"metadata": {"finalizers": []}}, patch.MERGE)
    assert api.names(POLICIES) == []


def test_deleting_many():
    """Those that are selected."""
    api = Api(Pod("a", "p", {"l": "1"}, termination=0), Pod("a", "q", termination=0), Pod("b", "r", {"l": "1"}, termination=0))
    gone = api.ok("DELETE", PODS, labelSelector="l=1")
    assert [item["metadata"]["name"] for item in gone["items"]] == ["p"]
    assert api.names("/api/v1/pods") == ["q", "r"]
    assert api.error("DELETE", "/api/v1/pods")[0] == 405


def test_namespaces():
    """There for everything there is; what is in one goes with it."""
    api = Api(Pod("team", "p"))
    assert api.names("/api/v1/namespaces") == ["default", "kube-node-lease", "kube-public", "kube-system", "team"]
    assert api.ok("GET", "/api/v1/namespaces/team/status")["status"] == {"phase": "Active"}
    api.ok("POST", "/api/v1/namespaces/team/configmaps", config_map())
    api.ok("DELETE", "/api/v1/namespaces/team")
    assert (api.names("/api/v1/pods"), api.names("/api/v1/configmaps")) == ([], [])
    assert api.names("/api/v1/namespaces", fieldSelector="metadata.name=team") == []


def test_daemonsets_count_their_pods():
    """As they go."""
    owner = Owner("DaemonSet", "d")
    api = Api(
        Pod("a", "p", {"app": "d"}, owner=owner, node_selector={"a": "1"}, termination=0),
        Pod("a", "q", owner=owner, phase="Pending"),
        daemonsets=frozenset({("a", "d"), ("a", "empty")}),
    )
    found = api.ok("GET", "/apis/apps/v1/namespaces/a/daemonsets/d")
    assert (found["status"]["desiredNumberScheduled"], found["status"]["numberReady"]) == (2, 1)
    assert found["spec"]["template"]["spec"]["nodeSelector"] == {"a": "1"}
    api.ok("PATCH", "/api/v1/nodes/n", {"metadata": {"labels": {"a": "2"}}}, patch.MERGE)
    found = api.ok("GET", "/apis/apps/v1/namespaces/a/daemonsets/d")
    assert (found["status"]["desiredNumberScheduled"], found["status"]["numberReady"]) == (1, 0)
    assert api.ok("GET", "/apis/apps/v1/namespaces/a/daemonsets/empty")["status"]["desiredNumberScheduled"] == 0


def test_further_nodes():
    """Have pods of their own."""
    api = Api(Pod("a", "p", owner=Owner("DaemonSet", "d"), node_selector={"a": "1"}, node_name="m", termination=0))
    api.ok("POST", "/api/v1/nodes", {"metadata": {"name": "m", "labels": {"a": "1"}}, "status": {"conditions": []}})
    api.ok("PATCH", "/api/v1/nodes/n", {"metadata": {"labels": {"a": "2"}}}, patch.MERGE)
    assert api.names("/api/v1/pods") == ["p"]
    api.ok("PATCH", "/api/v1/nodes/m", {"metadata": {"labels": {"a": "2"}}}, patch.MERGE)
    assert api.names("/api/v1/pods") == []


def test_evictions():
    """Refused where the server has none; a budget does not count what is not there."""
    api = Api(Pod("a", "p", budget=Budget(1)), eviction=None)
    assert api.error("POST", f"{PODS}/p/eviction", {})[0] == 404
    api = Api(Pod("a", "p", budget=Budget(1)))
    assert api.error("POST", f"{PODS}/x/eviction", {})[::2] == (404, 'pods "x" not found')
    assert api.error("POST", f"{PODS}/p/eviction", {})[0] == 429
    assert api.error("POST", f"{PODS}/p/eviction", {"deleteOptions": {"preconditions": {"uid": "x"}}})[0] == 409
    assert api.error("GET", f"{PODS}/p/eviction")[0] == 405
    assert api.error("POST", f"{PODS}/p/eviction", {"deleteOptions": []})[0] == 400


@pytest.mark.parametrize("name", ["log", "exec", "attach", "portforward"])
def test_what_needs_a_container(name):
    """Is refused with a reason."""
    api = Api(Pod("a", "p"))
    status, reason, text = api.error("GET", f"{PODS}/p/{name}")
    assert (status, reason) == (400, "BadRequest")
    assert text.startswith("no container runs in this cluster (dmsim serve), so there is nothing to ")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/namespaces/a/nodes", 404),
        ("GET", "/api/v1/namespaces/a/nodes/n", 404),
        ("GET", "/api/v1/pods/p", 404),
        ("GET", "/api/v1/namespaces/a/pods/p/status/x", 404),
        ("GET", "/api/v1/namespaces//pods", 404),
        ("GET", "/apis/apps/v2/daemonsets", 404),
        ("GET", "/api/v1/nodes/n/bogus", 404),
        ("POST", "/api/v1", 405),
        ("HEAD", "/api/v1/nodes", 405),
        ("POST", "/api/v1/nodes/n", 405),
        ("DELETE", "/version", 405),
    ],
)
def test_paths_and_methods(method, path, status):
    """404 for what nothing serves, 405 for what is done otherwise."""
    assert Api().error(method, path)[0] == status


@pytest.mark.parametrize(
    ("query", "text"),
    [({"limit": "x"}, 'limit: Invalid value: "x"'), ({"limit": "1", "continue": "²"}, 'continue: Invalid value: "²"')],
)
def test_paging_that_is_none(query, text):
    """400."""
    status, _, message = Api().error("GET", "/api/v1/pods", **query)
    assert status == 400
    assert text in message


def test_objects_that_the_cluster_begins_with():
    """Of any kind."""
    objects = (
        {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "metadata": {"name": "v", "namespace": "x"},
            "status": {"phase": "Running"},
        },
        {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "a"}, "involvedObject": {"kind": "Pod"}},
    )
    api = Api(objects=objects)
    assert api.names("/apis/kubevirt.io/v1/virtualmachineinstances") == ["v"]
    assert (
        api.ok("GET", "/apis/kubevirt.io/v1/namespaces/x/virtualmachineinstances/v")["metadata"]["creationTimestamp"]
        == "2026-05-04T03:02:01Z"
    )
    assert api.names("/api/v1/events", fieldSelector="involvedObject.kind=Pod") == ["e"]
    assert "x" in api.names("/api/v1/namespaces")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.plural)
def test_every_kind_is_served(kind):
    """Listed, made, read and deleted."""
    api = Api()
    root = f"/apis/{kind.api_version}" if kind.group else "/api/v1"
    path = f"{root}/namespaces/default/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"
    body = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {"name": "new"}}
    if kind.kind == "Pod":
        body = {**pod("new"), **body, "metadata": {"name": "new"}}
    assert api.ok("POST", path, body)["kind"] == kind.kind
    listed = api.ok("GET", f"{root}/{kind.plural}")
    assert listed["kind"] == f"{kind.kind}List"
    assert "new" in [item["metadata"]["name"] for item in listed["items"]]
    api.ok("DELETE", f"{path}/new")
    assert api.error("GET", f"{path}/new")[2] == f'{kind.resource} "new" not found'


def test_what_is_first_asked_for_late_is_as_it_began():
    """Namespaces and DaemonSets' templates are what was described; only the pods are counted as they are now."""
    owner = Owner("DaemonSet", "ds")

    def clusters():
        for early in (True, False):
            api = Api(Pod("a", "p", {"app": "x"}, owner=owner, node_selector={"k": "v"}), Pod("a", "q", {"app": "y"}, owner=owner),
                      Pod("b", "r"), daemonsets=frozenset({("a", "ds")}))  # fmt: skip
            if early:
                api.names("/api/v1/namespaces")
                api.names("/apis/apps/v1/daemonsets")
            api.ok("DELETE", f"{PODS}/p", gracePeriodSeconds="0")
            api.ok("DELETE", "/api/v1/namespaces/b/pods/r", gracePeriodSeconds="0")
            yield api.names("/api/v1/namespaces"), api.ok("GET", "/apis/apps/v1/namespaces/a/daemonsets/ds")

    (early_names, early), (late_names, late) = clusters()
    assert "b" in late_names
    assert late_names == early_names
    assert (late["spec"], late["status"]) == (early["spec"], early["status"])
    assert late["spec"]["template"]["spec"] == {
        "containers": [{"name": "main-0", "resources": {}}],
        "nodeSelector": {"k": "v"},
    }
    assert late["status"]["desiredNumberScheduled"] == 1
