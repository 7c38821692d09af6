"""kubectl's drain library: which pods go, and how."""

from __future__ import annotations

import contextlib

import pytest

from simulator.clock import VirtualClock
from simulator.cluster.fake import FakeCluster
from simulator.cluster.objects import Budget, ClusterSpec, Container, Fault, Node, Owner, Pod
from simulator.gocompat import SECOND, GoError, GoPanic
from simulator.kube import drain
from simulator.kube.clientset import Clientset
from simulator.kube.drain import Helper, run_cordon_or_uncordon
from simulator.kube.profile import Libraries
from simulator.kube.rest import Connection, RestClient, drive
from simulator.manager.releases import flow, shell_flow
from simulator.ports import Request, Server

GPU = (Container({"nvidia.com/gpu": "1"}),)
REPLICA = Owner("ReplicaSet", "app")
DAEMON = Owner("DaemonSet", "ds")
OLD, NEW = Libraries(), flow("v0.11.0").libraries


class Streams:
    def __init__(self):
        self.out, self.err = "", ""

    def stdout(self, text):
        self.out += text

    def stderr(self, text):
        self.err += text

    def log(self, level, message):
        raise AssertionError((level, message))


class Drain:
    """A node with pods, and a helper for it."""

    def __init__(self, *pods, libraries=OLD, writers=True, cluster=None, **options):
        self.clock, self.streams = VirtualClock(), Streams()
        fields = {"daemonsets": frozenset({("default", "ds")}), **(cluster or {})}
        self.cluster = FakeCluster(ClusterSpec("c", Node("n"), tuple(pods), **fields), self.clock)
        self.asked = []
        connection = Connection(self, self.clock, Server("http://x", "x:80"))
        self.client = Clientset(RestClient(connection, self.clock, self.streams, libraries, str))
        self.helper = Helper(self.client, self.clock, self.streams if writers else None, **options)

    def request(self, request: Request):
        self.asked.append((self.clock.now // SECOND, request.method, request.path, request.query))
        return self.cluster.request(request)

    def judge(self):
        judged, errors = drive(self.clock, self.helper.get_pods_for_deletion("n"))
        going = [pod["metadata"]["name"] for pod in judged.pods()]
        return going, [str(error) for error in errors], judged.warnings()

    def evict(self):
        judged, _ = drive(self.clock, self.helper.get_pods_for_deletion("n"))
        drive(self.clock, self.helper.delete_or_evict_pods(judged.pods()))


LOCAL = "cannot delete Pods with local storage (use --delete-emptydir-data to override): default/p"
UNMANAGED = "cannot delete cannot delete Pods that declare no controller (use --force to override): default/p"


@pytest.mark.parametrize(
    ("pod", "options", "going", "errors", "warnings"),
    [
        (Pod("default", "p", owner=REPLICA), {}, ["p"], [], ""),
        (Pod("default", "p"), {}, [], [UNMANAGED], ""),
        (Pod("default", "p"), {"force": True}, ["p"], [], "deleting Pods that declare no controller: default/p"),
        (Pod("default", "p", phase="Succeeded"), {}, ["p"], [], ""),
        (Pod("default", "p", phase="Failed"), {}, ["p"], [], ""),
        (Pod("default", "p", owner=Owner("ReplicaSet", "app", controller=False)), {}, [], [UNMANAGED], ""),
        (Pod("default", "p", owner=REPLICA, empty_dir=True), {}, [], [LOCAL], ""),
        (Pod("default", "p", empty_dir=True), {}, [], [LOCAL], ""),
        (Pod("default", "p", owner=REPLICA, empty_dir=True), {"delete_emptydir_data": True}, ["p"], [], ""),
        (Pod("default", "p", empty_dir=True), {"delete_emptydir_data": True}, [], [UNMANAGED], ""),
        (Pod("default", "p", empty_dir=True, phase="Succeeded"), {}, ["p"], [], ""),
        (Pod("default", "p", annotations={"kubernetes.io/config.mirror": "x"}), {}, [], [], ""),
        (
            Pod("default", "p", owner=DAEMON),
            {},
            [],
            ["cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): default/p"],
            "",
        ),
        (Pod("default", "p", owner=DAEMON), {"ignore_all_daemonsets": True}, [], [], "ignoring DaemonSet-managed Pods: default/p"),
        (Pod("default", "p", owner=DAEMON, phase="Failed"), {}, ["p"], [], ""),
        (
            Pod("default", "p", owner=Owner("DaemonSet", "gone")),
            {"ignore_all_daemonsets": True},
            [],
            ['cannot delete daemonsets.apps "gone" not found: default/p'],
            "",
        ),
        (Pod("default", "p", owner=Owner("DaemonSet", "gone")), {"force": True}, ["p"], [], ""),
        (Pod("default", "p", owner=REPLICA, node_name="elsewhere"), {}, [], [], ""),
    ],
)
def test_filters(pod, options, going, errors, warnings):
    """DaemonSet, mirror, local storage, no controller: the first that says no decides, the last warning is kept."""
    assert Drain(pod, **options).judge() == (going, errors, warnings)


def test_pods_of_one_error_are_told_together():
    """One error for each reason, pods in the list's order."""
    _, errors, _ = Drain(Pod("default", "p"), Pod("default", "q", empty_dir=True), Pod("apps", "r")).judge()
    assert errors == [
        "cannot delete cannot delete Pods that declare no controller (use --force to override): default/p, apps/r",
        "cannot delete Pods with local storage (use --delete-emptydir-data to override): default/q",
    ]


@pytest.mark.parametrize(("libraries", "going"), [(OLD, []), (NEW, ["p"])])
def test_a_daemonset_of_another_api_group(libraries, going):
    """Counts as a DaemonSet up to v0.10.0."""
    made = Drain(
        Pod("default", "p", owner=Owner("DaemonSet", "ds", api_version="extensions/v1beta1")),
        libraries=libraries,
        ignore_all_daemonsets=True,
    )
    assert made.judge()[0] == going


def test_a_list_in_pages():
    """Followed to its end, every pod once."""
    pods = [Pod("default", f"p{index}", owner=REPLICA) for index in range(5)]
    made = Drain(*pods, chunk_size=2)
    assert len(made.judge()[0]) == 5
    assert [query.get("continue", "") for _, _, _, query in made.asked] == ["", "2", "4"]
    assert made.asked[0][3] == {"fieldSelector": "spec.nodeName=n", "limit": "2"}


def test_a_selector():
    """Parsed here, sent in canonical form."""
    made = Drain(Pod("default", "p", {"app": "x"}, owner=REPLICA), Pod("default", "q", owner=REPLICA), pod_selector="app == x")
    assert made.judge()[0] == ["p"]
    assert made.asked[0][3]["labelSelector"] == "app==x"
    judged, (error,) = drive(made.clock, Drain(pod_selector="a in (b").helper.get_pods_for_deletion("n"))
    assert judged is None
    assert str(error) == "unable to parse requirement: found '', expected: ',' or ')'"


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (500, "injected fault 500"),
        (410, "injected fault 410"),
        (
            400,
            'Unable to find "/v1, Resource=pods" that match label selector "", field selector "spec.nodeName=n": injected fault 400',
        ),
        (
            404,
            'Unable to find "/v1, Resource=pods" that match label selector "", field selector "spec.nodeName=n": injected fault 404',
        ),
    ],
)
def test_a_list_that_fails(status, text):
    """Bad requests and missing resources get more words."""
    judged, (error,) = drive(
        (made := Drain(cluster={"faults": (Fault(path="/pods$", status=status),)})).clock, made.helper.get_pods_for_deletion("n")
    )
    assert judged is None
    assert str(error) == text


def test_eviction_and_the_wait_for_the_end():
    """Side by side, each asked for every second until it is gone."""
    made = Drain(
        Pod("default", "p", owner=REPLICA, termination=2.5),
        Pod("default", "q", owner=REPLICA, termination=1.5),
        grace_period_seconds=-1,
    )
    made.evict()
    assert made.streams.out == "evicting pod default/q\nevicting pod default/p\n"
    assert made.clock.now == 3 * SECOND
    assert made.cluster.pods() == ()


@pytest.mark.parametrize(("libraries", "seconds", "said"), [(OLD, 10, "5s"), (NEW, 0, "0s")])
def test_a_budget_in_the_way(libraries, seconds, said):
    """Tried again after five seconds, or at once from v0.11.0, the pod read again before."""
    made = Drain(Pod("default", "p", owner=REPLICA, budget=Budget(2), termination=0), libraries=libraries)
    made.evict()
    assert (
        made.streams.err
        == (
            f'error when evicting pods/"p" -n "default" (will retry after {said}):'
            " Cannot evict pod as it would violate the pod's disruption budget.\n"
        )
        * 2
    )
    assert made.clock.now // SECOND == seconds
    reads = [path for _, method, path, _ in made.asked if (method, path) == ("GET", "/api/v1/namespaces/default/pods/p")]
    assert len(reads) == (1 if libraries is OLD else 3)


def test_a_pod_that_cannot_be_read_again_is_tried_as_it_was():
    """From v0.11.0 the pod is read before each new attempt; if that fails, the old one does."""
    fault = Fault(method="GET", path="/pods/p$", status=403, times=2)
    made = Drain(Pod("default", "p", owner=REPLICA, budget=Budget(2), termination=0), libraries=NEW, cluster={"faults": (fault,)})
    made.evict()
    assert made.cluster.pods() == ()
    assert made.clock.now == 0


@pytest.mark.parametrize("change", [{"group": ""}, {"version": ""}, {"kind": "Other"}, {"name": "pods/binding"}])
def test_what_is_no_eviction_resource(monkeypatch, change):
    """`CheckEvictionSupport` goes on to the next resource, and pods are deleted if there is none."""
    made = Drain(Pod("default", "p", owner=REPLICA, termination=0))
    eviction = {"name": "pods/eviction", "kind": "Eviction", "group": "policy", "version": "v1"}
    listed = [{**eviction, **change}]
    monkeypatch.setattr(RestClient, "do", lambda *_: _answer({"resources": listed}))
    assert drive(made.clock, made.client.eviction_version()) == ""
    listed.append(eviction)
    assert drive(made.clock, made.client.eviction_version()) == "policy/v1"


def _answer(document):
    return document
    yield


def test_the_whole_has_a_time_limit():
    """It is noticed after the pause, and told for each pod."""
    made = Drain(Pod("default", "p", owner=REPLICA, budget=Budget(None)), timeout=8 * SECOND)
    with pytest.raises(GoError, match=r'^error when evicting pods/"p" -n "default": global timeout reached: 8s$'):
        made.evict()
    assert made.clock.now == 10 * SECOND


def test_a_pod_that_never_goes():
    """The wait ends with the limit."""
    made = Drain(Pod("default", "p", owner=REPLICA, termination=None), timeout=4 * SECOND, grace_period_seconds=-1)
    with pytest.raises(
        GoError, match=r'^error when waiting for pod "p" in namespace "default" to terminate: context deadline exceeded$'
    ):
        made.evict()
    assert made.clock.now == 4 * SECOND


def test_a_negative_limit_is_over_before_it_begins():
    """It says what it would do, then gives up."""
    made = Drain(Pod("default", "p", owner=REPLICA), timeout=-SECOND)
    with pytest.raises(GoError, match="global timeout reached: -1s"):
        made.evict()
    assert made.streams.out == "evicting pod default/p\n"
    assert made.cluster.pods() == ("default/p",)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (500, 'error when evicting pods/"p" -n "default": injected fault 500'),
        (403, 'error when evicting pods/"p" -n "default": injected fault 403'),
    ],
)
def test_an_eviction_that_fails(status, error):
    """Other errors end it."""
    made = Drain(Pod("default", "p", owner=REPLICA), cluster={"faults": (Fault(method="POST", status=status),)})
    with pytest.raises(GoError) as failure:
        made.evict()
    assert str(failure.value) == error


def test_a_pod_that_is_gone_already():
    """404 is success, without a wait."""
    made = Drain(Pod("default", "p", owner=REPLICA), cluster={"faults": (Fault(method="POST", status=404),)})
    made.evict()
    assert made.asked[-1][1] == "POST"


TERMINATING = ({"reason": "NamespaceTerminating"},)


def test_a_namespace_that_is_being_deleted():
    """A pod that is not marked yet is tried again; one that is marked is only waited for."""
    fault = Fault(method="POST", status=403, times=1, causes=TERMINATING)
    made = Drain(Pod("default", "p", owner=REPLICA), cluster={"faults": (fault,)})
    made.evict()
    assert (
        made.streams.err
        == 'error when evicting pod "p" from terminating namespace "default" (will retry after 5s): injected fault 403\n'
    )
    made = Drain(
        Pod("default", "p", owner=REPLICA, terminating=True, termination=3),
        cluster={"faults": (Fault(method="POST", status=403, causes=TERMINATING),)},
    )
    made.evict()
    assert made.streams.err == ""
    assert made.cluster.pods() == ()


def test_several_failures_are_told_together():
    """In brackets."""
    made = Drain(
        Pod("default", "p", owner=REPLICA),
        Pod("default", "q", owner=REPLICA),
        cluster={"faults": (Fault(method="POST", status=500),)},
    )
    with pytest.raises(GoError, match=r"^\[error when evicting pods/\"q\".*, error when evicting pods/\"p\".*\]$"):
        made.evict()


def test_without_the_eviction_subresource_pods_are_deleted():
    """One after the other, then waited for together."""
    made = Drain(
        Pod("default", "p", owner=REPLICA, termination=2),
        Pod("default", "q", owner=REPLICA),
        cluster={"eviction": None},
        grace_period_seconds=-1,
    )
    made.evict()
    assert [(method, path[-1]) for _, method, path, _ in made.asked if method == "DELETE"] == [("DELETE", "p"), ("DELETE", "q")]
    assert made.streams.out == ""


@pytest.mark.parametrize(("status", "fails"), [(404, False), (403, True)])
def test_a_deletion_that_fails(status, fails):
    """404 is no failure; anything else is, as it is."""
    made = Drain(
        Pod("default", "p", owner=REPLICA, termination=None),
        cluster={"eviction": None, "faults": (Fault(method="DELETE", status=status),)},
        timeout=SECOND,
        grace_period_seconds=-1,
    )
    with pytest.raises(GoError) as failure:
        made.evict()
    assert str(failure.value) == ("injected fault 403" if fails else "context deadline exceeded")


@pytest.mark.parametrize(("status", "deletes"), [(403, False), (404, True), (500, False)])
def test_discovery_that_fails(status, deletes):
    """404 counts as a server without eviction."""
    made = Drain(Pod("default", "p", owner=REPLICA, termination=0), cluster={"faults": (Fault(path="^/api/v1$", status=status),)})
    if deletes:
        made.evict()
        assert made.cluster.pods() == ()
    else:
        with pytest.raises(GoError, match=f"injected fault {status}"):
            made.evict()


def test_a_pod_of_the_same_name_is_another_pod():
    """By its uid: the wait is over."""
    made = Drain(Pod("default", "p", owner=REPLICA, termination=None))
    judged, _ = drive(made.clock, made.helper.get_pods_for_deletion("n"))
    pod = {**judged.pods()[0], "metadata": {**judged.pods()[0]["metadata"], "uid": "older"}}
    drive(made.clock, made.helper._wait_for_delete([pod], SECOND, None, evicted=True))
    assert made.clock.now == 0


def test_a_wait_that_cannot_ask_fails():
    """With the request's own error."""
    made = Drain(Pod("default", "p", owner=REPLICA), cluster={"faults": (Fault(method="GET", path="/pods/p$", status=500),)})
    with pytest.raises(GoError, match=r"to terminate: injected fault 500$"):
        made.evict()


@pytest.mark.parametrize("pods", [[Pod("default", "p", owner=REPLICA)], [Pod("default", "p", phase="Running")]])
def test_a_helper_without_writers_panics_at_its_first_output(pods):
    """Nothing is sent: no eviction, whatever was to be said."""
    made = Drain(*pods, writers=False, force=True)
    with pytest.raises(GoPanic, match="nil pointer"):
        drive(made.clock, made.helper.run_node_drain("n"))
    assert not [method for _, method, _, _ in made.asked if method == "POST"]


def test_a_drain_of_nothing_needs_no_writers():
    """It is done at once."""
    made = Drain(writers=False)
    drive(made.clock, made.helper.run_node_drain("n"))
    assert len(made.asked) == 1


def test_a_drain_with_errors_does_not_begin():
    """All errors in one."""
    made = Drain(Pod("default", "p"), Pod("default", "q", owner=DAEMON), writers=False)
    with pytest.raises(GoError, match=r"^\[cannot delete cannot delete Pods.*, cannot delete DaemonSet-managed Pods.*\]$"):
        drive(made.clock, made.helper.run_node_drain("n"))


def test_the_custom_filter_comes_last():
    """It can only leave pods out."""

    def nothing(pod):
        yield from ()
        return drain.SKIP

    made = Drain(Pod("default", "p", owner=REPLICA), Pod("default", "q"), additional_filters=(nothing,))
    assert made.judge()[:2] == ([], [UNMANAGED.replace("/p", "/q")])


@pytest.mark.parametrize(
    ("was", "desired", "patched"), [(False, True, True), (True, False, None), (True, True, "none"), (False, False, "none")]
)
def test_cordon_and_uncordon(was, desired, patched):
    """A patch only where there is something to change; uncordoning removes the field."""
    made = Drain(cluster={})
    made.cluster.store.node["spec"] = {"unschedulable": True} if was else {}
    node = made.cluster.store.node
    drive(made.clock, run_cordon_or_uncordon(made.client, node, desired=desired))
    assert len(made.asked) == (0 if patched == "none" else 1)
    assert made.cluster.node().unschedulable == desired


def test_a_cordon_that_fails():
    """Wrapped once."""
    made = Drain(cluster={"faults": (Fault(method="PATCH", status=500),)})
    with pytest.raises(GoError, match=r"^cordon error: injected fault 500$"):
        drive(made.clock, run_cordon_or_uncordon(made.client, made.cluster.store.node, desired=True))


def test_warnings_that_are_alike_are_said_once():
    """The pods of one after a comma, the next after a semicolon."""

    def judged(name, reason, text):
        return drain.Judged(
            {"metadata": {"namespace": "ns", "name": name}}, drain.PodStatus(delete=True, reason=reason, message=text)
        )

    listed = drain.PodList(
        [judged("a", "Warning", "one"), judged("b", "Warning", "two"), judged("c", "Warning", "one"), judged("d", "Error", "three")]
    )
    assert listed.warnings() == "one: ns/a, ns/c; two: ns/b"
    assert [str(error) for error in listed.errors()] == ["cannot delete three: ns/d"]


# --- nvdrain of v0.6.2, kubectl -------------------------------------------------------------------------------------

OLDEST = shell_flow("v0.6.2").libraries


def test_an_unreadable_pod_was_taken_for_gone():
    """Up to v0.27; from then on it is an error."""
    unreadable = {"faults": (Fault(method="GET", path="/pods/p$", status=500),)}
    Drain(Pod("default", "p", owner=REPLICA), libraries=OLDEST, cluster=unreadable).evict()
    with pytest.raises(GoError, match="injected fault 500"):
        Drain(Pod("default", "p", owner=REPLICA), cluster=unreadable).evict()


@pytest.mark.parametrize(
    ("libraries", "eviction", "words", "second"),
    [
        (OLDEST, "policy/v1", "global timeout reached: 2.5s", 3),
        (OLD, "policy/v1", "context deadline exceeded", 2.5),
        (OLDEST, None, "timed out waiting for the condition", 2.5),
        (OLD, None, "context deadline exceeded", 2.5),
    ],
)
def test_the_end_of_the_time(libraries, eviction, words, second):
    """The oldest library notices it at the next poll, and says it in words of its own."""
    made = Drain(
        Pod("default", "p", owner=REPLICA, termination=None),
        libraries=libraries,
        cluster={"eviction": eviction},
        timeout=5 * SECOND // 2,
        grace_period_seconds=-1,
    )
    with pytest.raises(GoError, match=words):
        made.evict()
    assert made.clock.now == second * SECOND


def test_a_helper_tells_of_each_pod():
    """That is gone, or that could not be waited for; whether it was evicted or deleted."""
    for cluster, told in (
        ({}, ("p", True, "None")),
        ({"eviction": None}, ("p", False, "None")),
        ({"faults": (Fault(method="GET", path="/pods/p$", status=500),)}, ("p", True, "injected fault 500")),
    ):
        heard = []
        made = Drain(
            Pod("default", "p", owner=REPLICA, termination=0.0),
            cluster=cluster,
            on_finished=lambda pod, evicted, failure, heard=heard: heard.append((pod["metadata"]["name"], evicted, str(failure))),
        )
        with contextlib.suppress(GoError):
            made.evict()
        assert heard == [told]
