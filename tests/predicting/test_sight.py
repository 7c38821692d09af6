"""How far anybody looked, and what the node shows of earlier tries: a verdict claims no more than that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator import labels
from simulator.cluster.objects import Owner, Pod
from simulator.host.spec import Module
from simulator.manager.charts import DRIVER_MANAGER_CONTAINER
from simulator.predicting.answers import Cause, Outlook
from simulator.predicting.events import Event
from simulator.predicting.prediction import predict
from simulator.predicting.sight import Failing, failing

from .nodes import DIGEST, NO_DRAIN, STATE, gpu_pod, host, world

DRIVER = Pod(
    "gpu-operator", "nvidia-driver-q9z7k", node_selector={labels.DRIVER: "true"}, owner=Owner("DaemonSet", "nvidia-driver")
)
HOST = "the host itself: nobody looked at it"
BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff"}}


def status(**fields):
    """Of driver-manager's container, which is in the back-off."""
    return {"name": DRIVER_MANAGER_CONTAINER, "ready": False, "state": BACK_OFF, **fields}


def ended(code):
    return {"terminated": {"exitCode": code}}


def pod(*statuses):
    return replace(DRIVER, status={"initContainerStatuses": [*statuses]})


CRASHING = pod(status(restartCount=23, lastState=ended(1)))


@pytest.mark.parametrize(
    ("statuses", "found"),
    [
        ([status(restartCount=23, lastState=ended(1))], Failing(DRIVER.full_name, 23, 1)),
        ([status(restartCount=0, state=ended(2))], Failing(DRIVER.full_name, 0, 2)),
        ([status(restartCount=1, state=ended(137), lastState=ended(1))], Failing(DRIVER.full_name, 1, 137)),
        ([status(restartCount=3, state={"running": {}}, lastState=ended(1))], Failing(DRIVER.full_name, 3, 1)),
        ([status(lastState=ended(1))], Failing(DRIVER.full_name, 0, 1)),
        ([status(restartCount=4)], Failing(DRIVER.full_name, 4, None)),
        ([status(restartCount=4, state={"waiting": {"reason": "PodInitializing"}})], None),
        ([status(restartCount=3, ready=True, state=ended(0), lastState=ended(1))], None),
        ([status(restartCount=3, state=ended(0), lastState=ended(1))], None),
        ([status(restartCount=0, state={"running": {}})], None),
        ([status(name="another", restartCount=9, lastState=ended(1))], None),
        ([status(restartCount=2, state="x", lastState="y"), "nonsense"], None),
        ([], None),
    ],
)
def test_a_container_that_fails_is_known_by_its_last_end(statuses, found):
    """And one that is done, or never ended, does not fail."""
    assert failing(pod(*statuses)) == found


def test_a_failing_container_is_told_in_words():
    """How often, and how it ended last if that is known."""
    assert (
        str(Failing("a/b", 1, 137))
        == f"{DRIVER_MANAGER_CONTAINER} of pod a/b fails on the node: 1 restart so far, last exit code 137"
    )
    assert str(Failing("a/b", 0, None)).endswith("fails on the node: 0 restarts so far")


def test_a_crash_loop_speaks_against_success():
    """Neither yes nor no: by what is known it would work, and on the node it does not."""
    verdict = predict(world(pods=[CRASHING], env=NO_DRAIN), "v0.10.0").verdict
    assert (verdict.outlook, verdict.cause, verdict.succeeds) == (Outlook.CANNOT_BE_TOLD, Cause.CONTRADICTED, False)
    for part in ("cannot be told: ", CRASHING.full_name, "23 restarts", "last exit code 1", "the old driver is unloaded"):
        assert part in verdict.sentence
    assert verdict.exit_code == 0
    assert verdict.then.startswith("if it fails as before")
    assert len(verdict.seen) == 1


def test_a_crash_loop_beside_a_failure_is_told():
    """The verdict is no anyway."""
    busy = host(modules=(Module("nvidia", users=1, processes=("jupyter (7)",)),))
    verdict = predict(world(busy, [CRASHING], env=NO_DRAIN), "v0.10.0").verdict
    assert (verdict.outlook, verdict.cause) == (Outlook.WILL_NOT, Cause.MODULES_IN_USE)
    assert "23 restarts" in verdict.seen[0]


def test_a_reboot_may_have_taken_away_what_it_failed_at():
    """So that it says nothing of what comes."""
    verdict = predict(world(pods=[CRASHING], env=NO_DRAIN), "v0.10.0", event=Event.REBOOT).verdict
    assert verdict.outlook is Outlook.WILL
    assert predict(world(pods=[CRASHING]), "v0.10.0", event=Event.IMAGE_BUMP).verdict.outlook is Outlook.CANNOT_BE_TOLD


def test_another_pods_container_is_none_of_this_modes():
    """Of vfio-manager, left on a node for containers."""
    other = replace(CRASHING, node_selector={labels.PREFIX + "vfio-manager": "true"})
    assert predict(world(pods=[other], env=NO_DRAIN), "v0.10.0").verdict.outlook is Outlook.WILL


def test_gpus_of_pods_that_were_not_saved_leave_it_open():
    """Where they matter: a driver that stays does not ask for them."""
    verdict = predict(world(env=NO_DRAIN), "v0.10.0", unsaved_gpus=8).verdict
    assert (verdict.outlook, verdict.cause, verdict.succeeds) == (Outlook.CANNOT_BE_TOLD, Cause.UNSEEN_PODS, False)
    assert verdict.sentence.startswith("cannot be told: 8 GPUs are asked for by pods that were not saved")
    assert "1 GPU is asked" in predict(world(env=NO_DRAIN), "v0.10.0", unsaved_gpus=1).verdict.sentence
    kept = world(host(files=(STATE,)), env={"DRIVER_CONFIG_DIGEST": DIGEST})
    assert predict(kept, "v0.10.0", unsaved_gpus=8).verdict.succeeds
    fails = predict(world(pods=[gpu_pod(owner=None)], env=NO_DRAIN), "v0.10.0", unsaved_gpus=8).verdict
    assert fails.outlook is Outlook.WILL_NOT


@pytest.mark.parametrize(
    ("unseen", "is_host_seen", "end"),
    [
        ((HOST,), False, "; nobody looked at the host"),
        ((HOST, "packages"), False, "; nobody looked at the host, and 1 thing more was not seen"),
        ((HOST, "packages", "pods"), False, "; nobody looked at the host, and 2 things more were not seen"),
        (("packages",), True, "; 1 thing was not seen, named at the end"),
        (("packages", "pods"), True, "; 2 things were not seen, named at the end"),
    ],
)
def test_a_success_is_as_far_as_was_seen(unseen, is_host_seen, end):
    """A yes, but no flat one, with what is missing in the verdict itself."""
    verdict = predict(world(env=NO_DRAIN), "v0.10.0", unseen=unseen, is_host_seen=is_host_seen).verdict
    assert (verdict.outlook, verdict.cause, verdict.succeeds) == (Outlook.AS_FAR_AS_SEEN, Cause.NONE, True)
    assert verdict.sentence.startswith("will succeed as far as was seen: ")
    assert verdict.sentence.endswith(end)


def test_where_all_was_seen_it_is_a_flat_yes():
    """As of a world file."""
    verdict = predict(world(env=NO_DRAIN), "v0.10.0").verdict
    assert (verdict.outlook, verdict.seen) == (Outlook.WILL, ())
