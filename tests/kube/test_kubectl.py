"""kubectl as the shell releases call it."""

from __future__ import annotations

import pytest

from simulator.clock import VirtualClock
from simulator.cluster.fake import FakeCluster
from simulator.cluster.objects import ClusterSpec, Fault, Node, Owner, Pod
from simulator.gocompat import SECOND
from simulator.host.fake import FakeHost
from simulator.host.spec import File, HostSpec
from simulator.kube.kubectl import Kubectl
from simulator.ports import ConnectionRefused, Request
from tests.said import Said

KUBECONFIG = (
    "clusters: [{name: c, cluster: {server: 'http://c:1'}}]\ncontexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n"
)


class Calls:
    """One container's kubectl, the requests that reached the server, what was said."""

    down = False

    def __init__(self, *pods, faults=(), labels=None, env=None, files=(), **cluster):
        spec = ClusterSpec("c", Node("n", labels or {}, {}, unschedulable=False), pods, faults=faults, **cluster)
        self.clock, self.said, self.asked, self.times = VirtualClock(), Said(), [], []
        self.cluster = FakeCluster(spec, self.clock)
        host = FakeHost(HostSpec("h", container_files=(File("/k", KUBECONFIG), *files)), ["/usr/bin"])
        given = {"KUBECONFIG": "/k"} if env is None else env
        self.kubectl = Kubectl(given, host, self, self.clock, self.said, self, lambda: "STAMP")

    def request(self, request: Request):
        if self.down:
            raise ConnectionRefused(request.path)
        self.asked.append((request.method, request.path))
        self.times.append(self.clock.now / SECOND)
        return self.cluster.request(request)

    def deleted(self, request, span):
        listed = self.cluster.listed(request)
        return self.clock.wait(span, lambda: not all(map(self.cluster.pod_exists, listed)))

    def random(self):
        return 0.5

    def run(self, *args):
        return self.kubectl.run(args)


def test_get_prints_a_value_and_nothing_else():
    """Dots in keys are escaped; what is not there is empty."""
    calls = Calls(labels={"a.b/c": "v"})
    assert calls.run("get", "nodes", "n", r"-o=jsonpath={$.metadata.labels.a\.b/c}") == 0
    assert calls.run("get", "nodes", "n", "-o=jsonpath={$.metadata.labels.x}") == 0
    assert calls.run("get", "nodes", "n", "-o=jsonpath={$.metadata.x.y}") == 0
    assert calls.said.out == "v"


@pytest.mark.parametrize(
    ("labels", "said", "method"),
    [
        (["k=w"], "node/n labeled\n", "PATCH"),
        (["k=v"], "node/n not labeled\n", "PATCH"),
        (["k=v", "x="], "node/n labeled\n", "PATCH"),
    ],
)
def test_label(labels, said, method):
    """Only what changes is sent; an empty patch is sent too."""
    calls = Calls(labels={"k": "v"})
    assert calls.run("label", "--overwrite", "node", "n", *labels) == 0
    assert (calls.said.out, calls.asked[-1][0]) == (said, method)
    assert calls.cluster.node().labels["k"] == labels[0].partition("=")[2]


def test_a_label_s_value_is_checked_before_anything_is_asked():
    """By kubectl itself."""
    calls = Calls()
    assert calls.run("label", "--overwrite", "node", "n", "k=_v") == 1
    assert calls.said.err.startswith('error: invalid label value: "k=_v": a valid label must be an empty string or')
    assert calls.run("label", "--overwrite", "node", "n", "k=v=w") == 1
    assert calls.said.err.endswith("error: invalid label spec: k=v=w\n")
    assert calls.asked == []


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault(method="GET", status=403), "Error from server (Forbidden): injected fault 403\n"),
        (Fault(method="GET", status="drop"), "Unable to connect to the server: EOF\n"),
    ],
)
def test_errors_of_the_server(fault, said):
    """In kubectl's words, exit code 1."""
    calls = Calls(faults=(fault,))
    assert calls.run("cordon", "n") == 1
    assert calls.said.err == said


def test_nobody_listens():
    """What kubectl offers is asked first, five times."""
    calls = Calls(api_down=True)
    assert calls.run("cordon", "n") == 1
    lines = calls.said.err.splitlines()
    assert len(lines) == 6
    assert lines[0].startswith('ESTAMP memcache.go:265] "Unhandled Error" err="couldn\'t get current server API group list')
    assert lines[-1] == "The connection to the server c:1 was refused - did you specify the right host or port?"


def test_a_server_that_has_answered_is_not_asked_again_what_it_offers():
    """Even when nobody listens any more."""
    calls = Calls()
    assert calls.run("cordon", "n") == 0
    calls.down = True
    assert calls.run("uncordon", "n") == 1
    assert calls.said.err == "The connection to the server c:1 was refused - did you specify the right host or port?\n"


def test_in_a_pod_whose_certificate_is_none():
    """kubectl says nothing of it: no word of the warning that driver-manager logs there."""
    env = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    account = "/var/run/secrets/kubernetes.io/serviceaccount"
    calls = Calls(env=env, files=(File(f"{account}/token", "t"), File(f"{account}/ca.crt", "none")))
    assert calls.run("cordon", "n") == 0
    assert (calls.said.out, calls.said.err) == ("node/n cordoned\n", "")


def test_without_a_kubeconfig_outside_of_a_pod():
    """kubectl asks this machine."""
    calls = Calls(env={})
    assert calls.run("cordon", "n") == 1
    assert calls.asked == []
    assert "The connection to the server localhost:8080 was refused" in calls.said.err


def test_cordon_and_uncordon():
    """A patch that fails is complained of, and is no failure."""
    calls = Calls(faults=(Fault(method="PATCH", body="null", status=500),))
    assert [calls.run("cordon", "n"), calls.run("cordon", "n"), calls.run("uncordon", "n")] == [0, 0, 0]
    assert calls.said.out == "node/n cordoned\nnode/n already cordoned\n"
    assert calls.said.err == 'error: unable to uncordon node "n": injected fault 500\n'


WAIT = ("wait", "--for=delete", "pod", "--timeout=5m", "--field-selector", "spec.nodeName=n", "-n", "gpu", "-l", "app=x")


def pod(name, termination):
    return Pod("gpu", name, labels={"app": "x"}, termination=termination, terminating=True)


def test_wait_watches_each_pod():
    """It ends the moment the last of them goes."""
    calls = Calls(pod("a", 3.0), pod("b", 8.0))
    assert calls.run(*WAIT) == 0
    assert calls.said.out == "pod/a condition met\npod/b condition met\n"
    assert calls.clock.now == 8 * SECOND


def test_a_pod_that_goes_while_another_is_waited_for():
    """Is gone when it is asked for, and no list is made of it."""
    calls = Calls(pod("a", 8.0), pod("b", 3.0))
    assert calls.run(*WAIT) == 0
    assert calls.said.out == "pod/a condition met\npod/b condition met\n"
    assert calls.clock.now == 8 * SECOND
    assert calls.asked[-1] == ("GET", "/api/v1/namespaces/gpu/pods/b")


def test_wait_has_one_limit_for_all():
    """Five minutes; a pod that is not reached in time is not even asked for."""
    calls = Calls(pod("a", None), pod("b", None))
    assert calls.run(*WAIT) == 1
    assert calls.said.err.splitlines() == [
        "timed out waiting for the condition on pods/a",
        "client rate limiter Wait returned an error: context deadline exceeded",
    ]
    assert 300 * SECOND <= calls.clock.now < 301 * SECOND
    assert not [path for _, path in calls.asked if path.endswith("/b")]


def test_wait_for_nothing():
    """Is no error; a list that fails is one."""
    calls = Calls(faults=(Fault(method="GET", path="/pods", skip=1, status=500),))
    assert calls.run(*WAIT) == 0
    assert calls.run(*WAIT) == 1
    assert calls.said.err == "Error from server (InternalError): injected fault 500\n"


def test_a_watch_that_fails_is_begun_anew():
    """With growing pauses."""
    calls = Calls(pod("a", 20.0), faults=(Fault(method="GET", query="metadata.name", times=3, status=500),))
    assert calls.run(*WAIT) == 0
    assert calls.said.err.count("Failed to watch") == 3
    assert calls.clock.now == 20 * SECOND


def test_a_pod_that_cannot_be_read():
    """Is an error."""
    calls = Calls(pod("a", 20.0), faults=(Fault(method="GET", path="/pods/a", status=403),))
    assert calls.run(*WAIT) == 1
    assert calls.said.err == "Error from server (Forbidden): injected fault 403\n"


def test_a_pod_that_goes_before_it_is_listed():
    """Is gone."""
    later = Fault(method="GET", query="metadata.name", times=1, status=429, retry_after=30)
    calls = Calls(pod("a", 20.0), faults=(later,))
    assert calls.run(*WAIT) == 0
    assert calls.said.out == "pod/a condition met\n"
    assert calls.times == [0.1, 0.1, 0.1, 30.1]


def test_pauses_begin_anew_after_a_long_one():
    """They double; two minutes without a failure are enough for the first one again."""
    named = {"method": "GET", "query": "metadata.name"}
    often, again = Fault(**named, times=3, status=500), Fault(**named, times=1, status=500)
    calls = Calls(pod("a", 200.0), faults=(often, Fault(**named, times=1, status=429, retry_after=130), again))
    assert calls.run(*WAIT) == 0
    assert calls.said.err.count("Failed to watch") == 4
    assert calls.times == pytest.approx([0.1, 0.1, 0.1, 1.3, 3.7, 8.5, 138.5, 139.7, 139.7])


DRAIN = (
    "drain",
    "n",
    "--ignore-daemonsets=true",
    "--force=false",
    "--pod-selector=",
    "--delete-emptydir-data=false",
    "--timeout=0s",
)


def test_drain():
    """Cordon, evict, wait, say so."""
    calls = Calls(Pod("d", "p", owner=Owner("ReplicaSet", "r"), termination=2.0))
    assert calls.run(*DRAIN) == 0
    assert calls.said.out == "node/n cordoned\nevicting pod d/p\npod/p evicted\nnode/n drained\n"


def test_a_drain_that_is_refused():
    """The reasons are said twice, and the exit code is 1."""
    calls = Calls(Pod("d", "p", termination=2.0))
    assert calls.run(*DRAIN) == 1
    reason = "cannot delete cannot delete Pods that declare no controller (use --force to override): d/p"
    assert calls.said.err == (
        f'error: unable to drain node "n" due to error: {reason}, continuing command...\n'
        f"There are pending nodes to be drained:\n n\n{reason}\n"
    )


OWNED = Pod("d", "p", owner=Owner("ReplicaSet", "r"), termination=2.0)
NOT_EVICTED = Fault(method="POST", path="/eviction", status=500)
REFUSED = 'error when evicting pods/"p" -n "d": injected fault 500'
PENDING = 'There are pending pods in node "n" when an error occurred: '


def refused(reason):
    return f'error: unable to drain node "n" due to error: {reason}, continuing command...\nThere are pending nodes to be drained:\n n\n'


@pytest.mark.parametrize(
    ("faults", "cluster", "out", "err"),
    [
        ((NOT_EVICTED,), {}, "evicting pod d/p\n", f"{PENDING}{REFUSED}\npod/p\n{refused(REFUSED)}{REFUSED}\n"),
        (
            (NOT_EVICTED, Fault(method="GET", path="/pods", skip=1, status=500)),
            {},
            "evicting pod d/p\n",
            f"Following errors occurred while getting the list of pods to delete:\ninjected fault 500{refused(REFUSED)}{REFUSED}\n",
        ),
        (
            (Fault(method="DELETE", status=500),),
            {"eviction": None},
            "",
            f"{PENDING}injected fault 500\npod/p\n{refused('injected fault 500')}Error from server (InternalError): injected fault 500\n",
        ),
    ],
)
def test_a_pod_that_cannot_be_evicted(faults, cluster, out, err):
    """It is named as pending if the server still says so; what fails then is said too."""
    calls = Calls(OWNED, faults=faults, **cluster)
    assert calls.run(*DRAIN) == 1
    assert (calls.said.out, calls.said.err) == (f"node/n cordoned\n{out}", err)


@pytest.mark.parametrize(("eviction", "word"), [("policy/v1", "eviction"), (None, "deletion")])
def test_a_pod_that_cannot_be_waited_for(eviction, word):
    """What it was told to do has failed, kubectl says."""
    calls = Calls(OWNED, faults=(Fault(method="GET", path="/pods/p$", status=403),), eviction=eviction)
    assert calls.run(*DRAIN) == 1
    assert calls.said.out.splitlines()[-1] == f"pod/p {word} failed"


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("--force", "maybe", 'strconv.ParseBool: parsing "maybe": invalid syntax'),
        ("--timeout", "300", 'time: missing unit in duration "300"'),
    ],
)
def test_a_malformed_flag(flag, value, said):
    """Nothing is asked."""
    calls = Calls()
    assert calls.run(*(f"{flag}={value}" if word.startswith(flag + "=") else word for word in DRAIN)) == 1
    assert (
        calls.said.err == f'error: invalid argument "{value}" for "{flag}" flag: {said}\nSee \'kubectl drain --help\' for usage.\n'
    )
    assert calls.asked == []


def test_a_malformed_pod_selector_and_a_node_with_a_slash():
    """Are errors of kubectl's own."""
    calls = Calls()
    assert calls.run(*(f"{word}a in (b" if word == "--pod-selector=" else word for word in DRAIN)) == 1
    assert calls.run("cordon", "a/b") == 1
    first, second = calls.said.err.splitlines()
    assert first == "error: --pod-selector=<pod_selector> must be a valid label selector"
    assert second.startswith("error: there is no need to specify a resource type as a separate argument")
