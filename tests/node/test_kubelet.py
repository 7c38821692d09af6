"""Pods on the node: what `kubectl get pods` shows as time passes, restarts, stopping, rebooting."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from simulator.clock import VirtualClock
from simulator.cluster import patch
from simulator.cluster.fake import FakeCluster
from simulator.cluster.kinds import DAEMON_SET, EVENT, POD
from simulator.cluster.objects import ClusterSpec, Node
from simulator.cluster.tables import pod_status
from simulator.gocompat import SECOND
from simulator.node.daemonsets import DaemonSet, DaemonSets
from simulator.node.kubelet import Containers, Kubelet, Pace
from simulator.node.process import Processes, Wait
from simulator.ports import Request

LABEL = "deploy"


@dataclass
class Script:
    """A container that runs so many seconds (None: for ever) and exits so; the last of several codes is repeated."""

    name: str
    seconds: float | None = None
    codes: tuple[int, ...] = (0,)
    is_deaf: bool = False
    starts: list = field(default_factory=list)
    stopped: list = field(default_factory=list)
    clock: VirtualClock = None

    def run(self, pod):
        self.starts.append(self.clock.now / SECOND)
        code = self.codes[min(len(self.starts), len(self.codes)) - 1]
        yield Wait(None if self.seconds is None else round(self.seconds * SECOND))
        return code

    def pre_stop(self, pod):
        self.stopped.append(self.clock.now / SECOND)


def bench(init=(), main=(), grace=30.0, labels=None, pace=None):
    """A kubelet with one DaemonSet of these containers; the node has its label unless it is said otherwise."""
    clock = VirtualClock()
    cluster = FakeCluster(ClusterSpec("test", Node("gpu-1", {LABEL: "true"} if labels is None else labels)), clock)
    for container in (*init, *main):
        container.clock = clock
    processes = Processes(clock)
    date = lambda: cluster.reactions.now  # noqa: E731  # shorter than a function, and as clear
    daemonsets = DaemonSets(cluster.store, clock, date, "ns")
    kubelet = Kubelet(cluster.store, clock, processes, date, daemonsets.containers_of, pace)
    daemonsets.apply([DaemonSet("app", LABEL, Containers(tuple(init), tuple(main), grace))])
    return SimpleNamespace(clock=clock, cluster=cluster, store=cluster.store, kubelet=kubelet, daemonsets=daemonsets)


def until(stage, at):
    stage.clock.sleep(round(at * SECOND) - stage.clock.now)


def statuses(stage, *times):
    """STATUS and RESTARTS at these seconds, just after what happens then."""
    out = []
    for at in times:
        until(stage, at)
        out += [pod_status(pod) for pod in stage.store.pods.values()]
    return out


def pod_name(stage):
    return next(iter(stage.store.pods.values()))["metadata"]["name"]


def set_label(stage, value):
    body = {"metadata": {"labels": {LABEL: value}}}
    stage.cluster.request(Request("PATCH", "/api/v1/nodes/gpu-1", body=body, content_type=patch.MERGE))


def test_a_pod_starts_its_init_containers_one_after_the_other():
    """Then its main container, and it is Running and ready."""
    first, second, main = Script("one", 5), Script("two", 5), Script("main")
    stage = bench([first, second], [main])
    assert statuses(stage, 0, 5, 10) == [("Init:0/2", 0), ("Init:1/2", 0), ("Running", 0)]
    assert (first.starts, second.starts, main.starts) == ([0], [5], [10])
    pod = next(iter(stage.store.pods.values()))
    assert pod["status"]["phase"] == "Running"
    assert {one["type"]: one["status"] for one in pod["status"]["conditions"]}["Ready"] == "True"
    assert stage.daemonsets.unavailable() == []


def test_an_init_container_that_fails_shows_error_then_back_off():
    """The first restart is at once; the kubelet looks again after ten seconds, and only then says CrashLoopBackOff."""
    init = Script("init", 60, (1,))
    stage = bench([init], [Script("main")])
    assert statuses(stage, 30, 60, 119, 120, 129, 130, 191, 199, 200, 209, 210) == [
        ("Init:0/1", 0),
        ("Init:0/1", 1),
        ("Init:0/1", 1),
        ("Init:Error", 1),
        ("Init:Error", 1),
        ("Init:0/1", 2),
        ("Init:Error", 2),
        ("Init:Error", 2),
        ("Init:CrashLoopBackOff", 2),
        ("Init:CrashLoopBackOff", 2),
        ("Init:0/1", 3),
    ]
    until(stage, 1100)
    assert init.starts == [0, 60, 130, 210, 310, 450, 670, 1030]
    status = next(iter(stage.store.pods.values()))["status"]
    assert status["phase"] == "Pending"
    state = status["initContainerStatuses"][0]
    assert state["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert state["state"]["waiting"]["message"].startswith("back-off 5m0s restarting failed container=init pod=app-")
    assert state["lastState"]["terminated"] == {
        "exitCode": 1,
        "reason": "Error",
        "startedAt": "2026-01-01T00:17:10Z",
        "finishedAt": "2026-01-01T00:18:10Z",
    }
    assert stage.daemonsets.unavailable() == ["app"]


def test_a_kubelet_that_hears_late_restarts_late():
    """A second after the end, but the back-off counts from the end; so do the timestamps."""
    init = Script("init", 60, (1,))
    stage = bench([init], [Script("main")], pace=Pace(relist=SECOND))
    assert statuses(stage, 60.5, 61) == [("Init:0/1", 0), ("Init:0/1", 1)]
    until(stage, 193)
    state = next(iter(stage.store.pods.values()))["status"]["initContainerStatuses"][0]["state"]
    assert state["terminated"]["finishedAt"] == "2026-01-01T00:03:11Z"
    until(stage, 300)
    assert init.starts == [0, 61, 131, 211]


def test_an_older_kubelet_looks_every_ten_to_fifteen_seconds():
    """And so is late by up to that; never early."""
    init = Script("init", 60, (1,))
    stage = bench([init], [Script("main")], pace=Pace(looks_on_time=False, seed=1))
    until(stage, 3600)
    waits = [later - earlier - 60 for earlier, later in itertools.pairwise(init.starts)]
    wanted = [0, 10, 20, 40, 80, 160, *[300] * 20]
    assert len(waits) > 8
    assert all(0 <= wait - least <= 15 for wait, least in zip(waits, wanted, strict=False)), waits
    assert any(wait > least for wait, least in zip(waits[1:], wanted[1:], strict=False))


def test_a_container_that_ended_unheard_does_not_outlive_its_pod():
    """Deleted, or cut off, before the kubelet heard of the end."""
    for stop in ("delete", "reboot"):
        init = Script("init", 60, (1,))
        stage = bench([init], [Script("main")], pace=Pace(relist=10 * SECOND))
        until(stage, 65)
        if stop == "delete":
            stage.cluster.request(Request("DELETE", f"/api/v1/namespaces/ns/pods/{pod_name(stage)}"))
        else:
            stage.kubelet.cut_off()
            stage.kubelet.boot()
        until(stage, 75)
        assert init.starts == [0, 65]
        assert statuses(stage, 75)[0][0] == "Init:0/1"


def test_events_are_counted_up():
    """Three starts, two waits."""
    stage = bench([Script("init", 60, (1,))], [Script("main")])
    until(stage, 200)
    events = {event["reason"]: event for event in stage.store.objects(EVENT).values()}
    counts = {reason: event["count"] for reason, event in events.items()}
    assert counts == {"Created": 3, "Started": 3, "BackOff": 2}
    assert events["BackOff"]["type"] == "Warning"
    uid = next(iter(stage.store.pods.values()))["metadata"]["uid"]
    assert events["BackOff"]["message"] == (f"Back-off restarting failed container init in pod {pod_name(stage)}_ns({uid})")
    assert events["Started"]["involvedObject"]["fieldPath"] == "spec.initContainers{init}"
    assert (events["Started"]["firstTimestamp"], events["Started"]["lastTimestamp"]) == (
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:02:10Z",
    )


def test_deleting_the_pod_resets_the_back_off():
    """Another pod, another UID, no restarts."""
    init = Script("init", 60, (1,))
    stage = bench([init], [Script("main")])
    until(stage, 800)
    name = pod_name(stage)
    stage.cluster.request(Request("DELETE", f"/api/v1/namespaces/ns/pods/{name}"))
    until(stage, 930)
    assert init.starts == [0, 60, 130, 210, 310, 450, 670, 800, 860, 930]
    assert pod_name(stage) != name
    assert statuses(stage, 930) == [("Init:0/1", 2)]


@pytest.mark.parametrize(("is_deaf", "gone"), [(False, 100), (True, 130)])
def test_a_pod_that_must_go_is_stopped_in_its_time(is_deaf, gone):
    """preStop, SIGTERM, and after the grace period SIGKILL; another pod comes when the first is gone."""
    main = Script("main", is_deaf=is_deaf)
    stage = bench([], [main])
    until(stage, 100)
    name = pod_name(stage)
    stage.cluster.request(Request("DELETE", f"/api/v1/namespaces/ns/pods/{name}"))
    until(stage, gone - 0.001)
    if is_deaf:
        assert statuses(stage, gone - 0.001) == [("Terminating", 0)]
    until(stage, gone)
    assert pod_name(stage) != name
    assert (main.stopped, main.starts) == ([100], [0, gone])


def test_a_pod_whose_selector_no_longer_matches_goes_and_comes_back():
    """And while the label is away there is none."""
    main = Script("main")
    stage = bench([], [main])
    until(stage, 10)
    set_label(stage, "paused")
    until(stage, 20)
    assert not stage.store.pods
    assert next(iter(stage.store.objects(DAEMON_SET).values()))["status"]["desiredNumberScheduled"] == 0
    assert stage.daemonsets.unavailable() == []
    set_label(stage, "true")
    until(stage, 30)
    assert main.starts == [0, 20]


def test_a_pod_deleted_without_grace_is_stopped_too():
    """Its containers get SIGTERM though the object is gone at once."""
    main = Script("main")
    stage = bench([], [main])
    until(stage, 10)
    path = f"/api/v1/namespaces/ns/pods/{pod_name(stage)}"
    stage.cluster.request(Request("DELETE", path, body={"gracePeriodSeconds": 0}))
    until(stage, 11)
    assert (main.stopped, main.starts) == ([10], [0, 10])
    assert len(stage.kubelet._workers) == 1


def test_a_main_container_that_ends_is_restarted_alone():
    """Its init containers do not run again; an exit with 0 counts as an end too."""
    init, main = Script("init", 1), Script("main", 700, (0,))
    stage = bench([init], [main])
    until(stage, 1500)
    assert (init.starts, main.starts) == ([1 - 1], [1, 701, 1401])
    assert statuses(stage, 1500) == [("Running", 2)]


def test_main_containers_that_crash_show_it():
    """CrashLoopBackOff without Init; the pod's phase is Running."""
    stage = bench([], [Script("main", 1, (3,))])
    assert statuses(stage, 0, 1, 2, 12, 13, 24) == [
        ("Running", 0),
        ("Running", 1),
        ("Error", 1),
        ("Running", 2),
        ("Error", 2),
        ("CrashLoopBackOff", 2),
    ]


def test_a_reboot_starts_every_container_anew_and_forgets_the_back_off():
    """The start after the boot counts as a restart, so the next one waits ten seconds."""
    init = Script("init", 60, (1,))
    stage = bench([init], [Script("main")])
    until(stage, 800)
    stage.kubelet.cut_off()
    until(stage, 900)
    assert init.starts == [0, 60, 130, 210, 310, 450, 670]
    stage.kubelet.boot()
    until(stage, 1200)
    assert init.starts[7:] == [900, 970, 1050, 1150]
    assert statuses(stage, 1200) == [("Init:0/1", 10)]


def test_a_reboot_cuts_off_what_runs():
    """Exit code 255, as containerd tells it; init containers that were done run again."""
    init, main = Script("init", 1), Script("main")
    stage = bench([init], [main])
    until(stage, 10)
    stage.kubelet.cut_off()
    until(stage, 50)
    stage.kubelet.boot()
    until(stage, 60)
    assert (init.starts, main.starts, main.stopped) == ([0, 50], [1, 51], [])
    last = next(iter(stage.store.pods.values()))["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (255, "Unknown")
    assert statuses(stage, 60) == [("Running", 1)]
    assert "SandboxChanged" in {event["reason"] for event in stage.store.objects(EVENT).values()}


def test_a_pod_deleted_while_the_machine_is_down_goes_at_boot():
    """And another one comes."""
    main = Script("main")
    stage = bench([], [main])
    until(stage, 10)
    stage.kubelet.cut_off()
    name = pod_name(stage)
    stage.cluster.request(Request("DELETE", f"/api/v1/namespaces/ns/pods/{name}"))
    until(stage, 50)
    assert pod_name(stage) == name
    stage.kubelet.boot()
    until(stage, 60)
    assert pod_name(stage) != name
    assert main.starts == [0, 50]


def test_a_pod_of_nobody_known_is_left_alone():
    """No container runs in it here."""
    stage = bench([], [Script("main")])
    pod = {"metadata": {"name": "alone"}, "spec": {"nodeName": "gpu-1", "containers": [{"name": "main", "image": "main"}]}}
    response = stage.cluster.request(Request("POST", "/api/v1/namespaces/ns/pods", body=pod))
    assert response.status == 201, response.body
    until(stage, 10)
    pod_is_known = {full: stage.daemonsets.containers_of(pod) is not None for full, pod in stage.store.pods.items()}
    assert sorted(pod_is_known.values()) == [False, True]
    assert stage.store.pods["ns/alone"]["status"] == {"phase": "Pending"}
    assert len(stage.store.objects(POD)) == 2


def test_extended_resources_follow_the_device_plugin():
    """Allocatable is 0 at once when the plugin goes; the capacity is kept for five minutes."""
    stage = bench([], [Script("main")])
    stage.kubelet.register("nvidia.com/A10", 2)

    def amounts():
        status = stage.store.node["status"]
        return status["capacity"].get("nvidia.com/A10"), status["allocatable"].get("nvidia.com/A10")

    assert amounts() == ("2", "2")
    stage.kubelet.unregister("nvidia.com/A10")
    assert amounts() == ("2", "0")
    until(stage, 299)
    assert amounts() == ("2", "0")
    until(stage, 301)
    assert amounts() == ("0", "0")
    assert stage.store.node["status"]["allocatable"]["cpu"] == "64"
