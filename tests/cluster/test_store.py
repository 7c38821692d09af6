"""The fake API server: requests, selectors, paging, validation, deletion, faults."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.clock import VirtualClock
from simulator.cluster.fake import FakeCluster
from simulator.cluster.objects import DROP, Budget, ClusterSpec, Fault, Node, Owner, Pod, ResourceClaim, read_cluster
from simulator.gocompat import SECOND
from simulator.ports import ConnectionDropped, ConnectionRefused, Request
from simulator.reading import InputError, parse_document

PATCH = "application/strategic-merge-patch+json"


def cluster(*pods, **fields):
    clock = VirtualClock()
    node = fields.pop("node", Node("n", {"a": "1"}))
    return FakeCluster(ClusterSpec("c", node, tuple(pods), **fields), clock), clock


def ask(made, method, path, body=None, content_type="", **query):
    return made.request(Request(method, path, query, body, content_type))


def label(made, **labels):
    return ask(made, "PATCH", "/api/v1/nodes/n", {"metadata": {"labels": labels}}, PATCH)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/api/v1/nodes/x", 'nodes "x" not found'),
        ("/api/v1/namespaces/a/pods/x", 'pods "x" not found'),
        ("/apis/apps/v1/namespaces/a/daemonsets/x", 'daemonsets.apps "x" not found'),
        ("/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/x", 'resourceclaims.resource.k8s.io "x" not found'),
        ("/api/v1/bogus", "the server could not find the requested resource"),
    ],
)
def test_what_is_not_there(path, text):
    """404, in the API server's words."""
    made, _ = cluster()
    response = ask(made, "GET", path)
    assert (response.status, response.body["reason"], response.body["message"]) == (404, "NotFound", text)


def test_lists_are_selected_by_labels_fields_and_namespace():
    """All conditions together, in input order."""
    made, _ = cluster(
        Pod("a", "one", {"app": "x"}),
        Pod("a", "two", {"app": "y"}),
        Pod("b", "three", {"app": "x"}, phase="Pending"),
        Pod("b", "four", {"app": "x"}, node_name="elsewhere"),
    )

    def names(path="/api/v1/pods", **query):
        return [item["metadata"]["name"] for item in ask(made, "GET", path, **query).body["items"]]

    assert names() == ["one", "two", "three", "four"]
    assert names(labelSelector="app=x") == ["one", "three", "four"]
    assert names(labelSelector="app notin (x)") == ["two"]
    assert names(fieldSelector="spec.nodeName=n") == ["one", "two", "three"]
    assert names(fieldSelector="spec.nodeName!=n") == ["four"]
    assert names(fieldSelector="status.phase=Pending,spec.nodeName=n") == ["three"]
    assert names("/api/v1/namespaces/b/pods", labelSelector="app=x", fieldSelector="metadata.name=four") == ["four"]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"labelSelector": "a in (b"}, "unable to parse requirement"),
        ({"fieldSelector": "spec.x=1"}, "field label not supported: spec.x"),
    ],
)
def test_bad_selectors(query, text):
    """400."""
    made, _ = cluster()
    response = ask(made, "GET", "/api/v1/pods", **query)
    assert response.status == 400
    assert text in response.body["message"]


@given(st.integers(0, 12), st.integers(1, 5), st.none() | st.integers(1, 4))
def test_pages_together_are_the_list(count, limit, page_size):
    """Whatever the page size, following `continue` gives every pod once."""
    made, _ = cluster(*(Pod("a", f"p{index}") for index in range(count)), page_size=page_size)
    seen, token = [], ""
    while True:
        page = ask(made, "GET", "/api/v1/pods", limit=str(limit), **{"continue": token})
        assert len(page.body["items"]) <= min(limit, page_size or limit)
        seen += [item["metadata"]["name"] for item in page.body["items"]]
        token = page.body["metadata"].get("continue", "")
        if not token:
            break
    assert seen == [f"p{index}" for index in range(count)]


def test_a_label_patch():
    """Merged; null removes; an empty value stays."""
    made, _ = cluster()
    label(made, a=None, b="", c="x")
    assert made.node().labels == {"b": "", "c": "x"}


@pytest.mark.parametrize("value", ["x" * 64, "_a", "a b"])
def test_an_impossible_label_value_is_refused(value):
    """422, and nothing is changed."""
    made, _ = cluster()
    response = label(made, a=value)
    assert response.status == 422
    assert response.body["message"].startswith(f'Node "n" is invalid: metadata.labels: Invalid value: "{value}": ')
    assert made.node().labels == {"a": "1"}


def test_a_recordings_server_takes_any_label():
    """It did not validate."""
    made, _ = cluster(validates=False)
    assert label(made, a="_").status == 200


def daemonset_pod(name, seconds, **selector):
    return Pod("a", name, owner=Owner("DaemonSet", "ds"), node_selector=selector, termination=seconds)


def test_a_daemonsets_pod_goes_when_its_selector_no_longer_matches():
    """After its own delay, counted from the first mismatch; it stays listed meanwhile."""
    made, clock = cluster(daemonset_pod("p", 3, a="1"), daemonset_pod("q", 3, b="1"), Pod("a", "r", node_selector={"a": "1"}))
    label(made, z="1")
    assert made.pods() == ("a/p", "a/q", "a/r")
    clock.sleep(3 * SECOND)
    assert made.pods() == ("a/p", "a/r")
    label(made, a="2")
    clock.sleep(2 * SECOND)
    label(made, a="1")
    assert "deletionTimestamp" in ask(made, "GET", "/api/v1/namespaces/a/pods/p").body["metadata"]
    clock.sleep(SECOND)
    assert made.pods() == ("a/r",)


def test_some_pods_never_go_and_some_at_once():
    """None is never, zero is now."""
    made, clock = cluster(daemonset_pod("never", None, a="1"), daemonset_pod("now", 0, a="1"))
    label(made, a="2")
    assert made.pods() == ("a/never",)
    clock.sleep(10**6 * SECOND)
    assert made.pods() == ("a/never",)


def test_deletion_and_eviction():
    """A grace period of 0 removes at once; else the pod's own delay counts."""
    made, clock = cluster(Pod("a", "p", termination=5), Pod("a", "q", termination=5), Pod("a", "r", termination=5))
    assert ask(made, "DELETE", "/api/v1/namespaces/a/pods/p", {"gracePeriodSeconds": 0}).status == 200
    assert ask(made, "POST", "/api/v1/namespaces/a/pods/q/eviction", {"deleteOptions": {}}).status == 201
    assert ask(made, "POST", "/api/v1/namespaces/a/pods/r/eviction", {"deleteOptions": {"gracePeriodSeconds": 0}}).status == 201
    assert made.pods() == ("a/q",)
    clock.sleep(5 * SECOND)
    assert made.pods() == ()
    assert ask(made, "POST", "/api/v1/namespaces/a/pods/q/eviction", {}).status == 404


def test_a_budget_blocks_evictions_not_deletions():
    """429 for so many attempts."""
    made, _ = cluster(Pod("a", "p", budget=Budget(2, 7)))
    path = "/api/v1/namespaces/a/pods/p/eviction"
    first = ask(made, "POST", path, {})
    assert (first.status, first.retry_after, first.body["reason"]) == (429, 7, "TooManyRequests")
    assert first.body["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert [ask(made, "POST", path, {}).status for _ in range(2)] == [429, 201]


@pytest.mark.parametrize("version", ["policy/v1", "policy/v1beta1", None])
def test_discovery_tells_of_eviction(version):
    """Or does not."""
    made, _ = cluster(eviction=version)
    found = [item for item in ask(made, "GET", "/api/v1").body["resources"] if item["name"] == "pods/eviction"]
    assert [f"{item['group']}/{item['version']}" for item in found] == ([version] if version else [])


def test_claims_and_daemonsets():
    """Allocated devices by driver; DaemonSets by existence."""
    made, _ = cluster(
        resource_claims=(ResourceClaim("a", "c", ("gpu.nvidia.com",)), ResourceClaim("a", "u", None)),
        daemonsets=frozenset({("a", "ds")}),
    )
    claim = ask(made, "GET", "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/c").body
    assert claim["status"]["allocation"]["devices"]["results"] == [{"driver": "gpu.nvidia.com"}]
    assert "allocation" not in ask(made, "GET", "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/u").body["status"]
    assert ask(made, "GET", "/apis/apps/v1/namespaces/a/daemonsets/ds").status == 200


def test_faults_are_tried_in_order_and_used_up():
    """What one lets pass goes on to the next; a fault changes nothing."""
    made, _ = cluster(
        faults=(
            Fault(method="PATCH", path="^/api/v1/nodes/n$", skip=1, times=1, status=500, retry_after=3),
            Fault(method="PATCH", body='"a":"2"', times=1, status=403),
            Fault(query="labelSelector=app%3Dx", status=DROP),
        )
    )
    assert [label(made, a=value).status for value in ("2", "3", "3", "2")] == [403, 500, 200, 200]
    with pytest.raises(ConnectionDropped):
        ask(made, "GET", "/api/v1/pods", labelSelector="app=x")
    assert ask(made, "GET", "/api/v1/pods", labelSelector="app=y").status == 200


def test_nothing_listens():
    """The connection is refused."""
    made, _ = cluster(api_down=True)
    with pytest.raises(ConnectionRefused):
        ask(made, "GET", "/api/v1")


@given(
    st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]),
    st.lists(
        st.sampled_from(["api", "v1", "nodes", "n", "pods", "namespaces", "a", "p", "eviction", "apis", "apps", ""]), max_size=7
    ),
    st.none()
    | st.dictionaries(
        st.sampled_from(["metadata", "spec", "deleteOptions"]), st.dictionaries(st.text(max_size=3), st.text(max_size=3))
    ),
)
def test_any_request_has_an_answer(method, parts, body):
    """A status between 200 and 599, never an exception."""
    made, _ = cluster(Pod("a", "p"))
    response = ask(made, method, "/" + "/".join(parts), body, PATCH)
    assert 200 <= response.status <= 599


@pytest.mark.parametrize("text", ["127.0.0.1", "http://a:1", "a:b", "a b:1", ":1"])
def test_an_address_that_is_none(text):
    """Is refused with its place."""
    with pytest.raises(InputError, match=r"addresses\[0\].*is no address"):
        read_cluster(parse_document(f"addresses: ['{text}']", "f"), "c", "n")
