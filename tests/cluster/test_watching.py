"""Watches: what a watcher is told of, and when."""

from __future__ import annotations

import pytest

from simulator.clock import VirtualClock
from simulator.cluster import patch
from simulator.cluster.fake import FakeCluster
from simulator.cluster.objects import ClusterSpec, Node, Pod
from simulator.cluster.status import Refused
from simulator.cluster.store import target
from simulator.cluster.watching import Watch, is_watch
from simulator.ports import Request


class Watched:
    """A cluster of three pods, and what a watch of them is told."""

    def __init__(self, path="/api/v1/pods", **query):
        pods = (Pod("a", "p", {"l": "1"}, termination=0), Pod("a", "q", termination=0), Pod("b", "r", {"l": "1"}, termination=0))
        self.cluster = FakeCluster(ClusterSpec("c", Node("n"), pods), VirtualClock())
        self.path, self.query = path, query

    def watch(self, **query):
        return Watch(self.cluster.store, target(self.path), {**self.query, **query})

    def label(self, name, value):
        body = {"metadata": {"labels": {"l": value}}}
        self.cluster.request(Request("PATCH", f"/api/v1/namespaces/a/pods/{name}", {}, body, patch.MERGE))

    def told(self, act, **query):
        """What is told at once, and of what an act changes."""
        watch = self.watch(**query)
        first = list(watch.first())
        later = []
        self.cluster.store.watchers.append(lambda change: later.append(watch.of(change)))
        act()
        return seen(first), seen(later)


def seen(events):
    return [(event.type, event.object["metadata"].get("name")) for event in events if event]


def test_everything_there_is_comes_first():
    """Then what changes, as it matters to this watcher."""
    watched = Watched(labelSelector="l=1")

    def act():
        watched.label("p", "2")
        watched.label("q", "1")
        watched.label("q", "1")
        watched.cluster.delete_pod("b/r")
        watched.cluster.request(Request("PATCH", "/api/v1/nodes/n", {}, {"metadata": {"labels": {"x": "y"}}}, patch.MERGE))

    first, later = watched.told(act)
    assert first == [("ADDED", "p"), ("ADDED", "r")]
    assert later == [("DELETED", "p"), ("ADDED", "q"), ("DELETED", "r")]


def test_what_went_has_the_version_of_its_going():
    """So that a watch goes on from there."""
    watched = Watched()
    watched.cluster.delete_pod("a/p")
    (event,) = watched.watch(resourceVersion="1").first()
    assert (event.type, event.object["metadata"]["resourceVersion"]) == ("DELETED", "2")


def test_going_on_from_a_version():
    """Only what changed since then."""
    watched = Watched("/api/v1/namespaces/a/pods")
    watched.label("p", "2")
    version = str(watched.cluster.store.version)
    watched.label("q", "2")
    first, later = watched.told(lambda: watched.label("q", "3"), resourceVersion=version)
    assert (first, later) == ([("MODIFIED", "q")], [("MODIFIED", "q")])


@pytest.mark.parametrize("version", ["", "0"])
def test_one_object(version):
    """By name, in the path."""
    watched = Watched("/api/v1/namespaces/a/pods/q", resourceVersion=version)
    assert watched.told(lambda: watched.label("p", "9")) == ([("ADDED", "q")], [])


def test_initial_events_end_with_a_bookmark():
    """If both are asked for."""
    watched = Watched("/api/v1/namespaces/a/pods", sendInitialEvents="true", resourceVersion="1")
    assert seen(watched.watch().first()) == [("ADDED", "p"), ("ADDED", "q")]
    *_, last = watched.watch(allowWatchBookmarks="true").first()
    assert last.type == "BOOKMARK"
    assert last.object["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert last.object["metadata"]["resourceVersion"] == "1"
    assert last.object["kind"] == "Pod"


def test_a_version_that_is_forgotten():
    """410: the watcher must list again."""
    watched = Watched()
    for value in range(10_002):
        watched.label("p", str(value))
    with pytest.raises(Refused, match=r"too old resource version: 1 \(3\)") as caught:
        watched.watch(resourceVersion="1")
    assert (caught.value.response.status, caught.value.response.body["reason"]) == (410, "Expired")
    assert len(list(watched.watch(resourceVersion="3").first())) == 10_000


@pytest.mark.parametrize("query", [{"resourceVersion": "x"}, {"resourceVersion": "²"}, {"labelSelector": "a in"}])
def test_queries_that_are_none(query):
    """400."""
    with pytest.raises(Refused) as caught:
        Watched().watch(**query)
    assert caught.value.response.status == 400


@pytest.mark.parametrize(
    ("query", "expected"),
    [({"watch": "true"}, True), ({"watch": "1"}, True), ({"watch": ""}, True), ({"watch": "false"}, False), ({}, False)],
)
def test_what_asks_for_a_watch(query, expected):
    """As Go reads a boolean of a query."""
    assert is_watch(query) == expected
