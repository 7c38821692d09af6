"""How a release is put together from its named changes, and steps at edges that no recording reaches."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

from simulator import labels
from simulator import messages as m
from simulator.clock import VirtualClock
from simulator.cluster.objects import ClusterSpec, Node, Owner, Pod, ResourceClaim
from simulator.gocompat import SECOND, GoError
from simulator.kube.profile import Libraries
from simulator.manager.kubernetes import KubeClient
from simulator.manager.quirks import Quirk
from simulator.manager.releases import GO_RELEASES, RELEASES, flow, modelled, resolve
from simulator.manager.shell.releases import STANDS_FOR
from simulator.manager.steps import DriverManager
from simulator.manager.whatif import WHAT_IFS
from simulator.runners.simulated import simulate
from simulator.scenario import load_cluster, load_host, make_world

TABLES = ("fetched", "always", "restored", "if_deployed", "waited_for")


@pytest.mark.parametrize("release", GO_RELEASES)
@pytest.mark.parametrize("table", TABLES)
def test_a_table_grows_by_what_each_change_adds(release, table):
    """In order, on top of v0.9.0's."""
    resolved = flow(release)
    added = tuple(entry for change in resolved.changes for entry in getattr(change, table))
    assert getattr(resolved.steps, table) == getattr(DriverManager, table) + added
    assert all(entry in getattr(resolved.steps, table) for entry in added)


@pytest.mark.parametrize("release", GO_RELEASES)
def test_the_newest_override_comes_first(release):
    """Of steps and client; both are named for the release; the libraries' profile has every field that a change names."""
    resolved = flow(release)
    own = [change.steps for change in resolved.changes if change.steps]
    assert [cls for cls in inspect.getmro(resolved.steps) if cls in own] == own[::-1]
    assert resolved.steps.__name__ == f"DriverManager {release}"
    asked = [change.client for change in resolved.changes if change.client]
    assert [cls for cls in inspect.getmro(resolved.client) if cls in asked] == asked[::-1]
    assert resolved.client.__name__ == f"KubeClient {release}"
    assert issubclass(resolved.client, KubeClient)
    named = {key: value for change in resolved.changes for key, value in change.libraries.items()}
    assert dataclasses.asdict(resolved.libraries) == {**dataclasses.asdict(Libraries()), **named}


def test_leaving_out_and_putting_on_top():
    """A change that is left out is in no table; a what-if comes last; an unknown one is an error."""
    whole, less = flow("v0.12.0"), flow("v0.12.0", without=frozenset({"dra-dcgm-labels"}))
    assert [change.name for change in whole.changes if change not in less.changes] == ["dra-dcgm-labels"]
    assert labels.DRA_DCGM in whole.steps.fetched
    assert labels.DRA_DCGM not in less.steps.fetched
    assert less.without == {"dra-dcgm-labels"}
    assert whole.container_path[-1] == "/busybox"
    assert flow("v0.11.0").container_path == ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
    over = flow("v0.10.0", what_if="force-host-driver-unbind")
    assert over.changes[-1] is WHAT_IFS["force-host-driver-unbind"]
    assert over.flags[:-1] == flow("v0.10.0").flags
    for wrong in ({"tag": "v0.1.0"}, {"tag": "v0.10.0", "what_if": "x"}):
        with pytest.raises(KeyError):
            flow(**wrong)
    with pytest.raises(KeyError):
        resolve("v0.8.1", what_if="force-host-driver-unbind")


def test_which_release_of_the_model_stands_for_a_tag():
    """A modelled one for itself, a shell release for those with the same script, none for the rest."""
    assert {modelled(tag) for tag in RELEASES} == set(RELEASES)
    assert STANDS_FOR
    assert {tag: modelled(tag) for tag in STANDS_FOR} == STANDS_FOR
    assert modelled("v0.1.0") is None


def test_a_quirk_holds_from_its_first_to_its_last_release():
    """Both included; without a last one to the newest."""
    tags = list(GO_RELEASES)
    assert [Quirk("n", "u", "s", tags[1], tags[2]).holds_for(tag) for tag in tags] == [False, True, True, False, False]
    assert [Quirk("n", "u", "s", tags[3]).holds_for(tag) for tag in tags] == [False, False, False, True, True]
    with pytest.raises(ValueError, match="v9"):
        Quirk("n", "u", "s").holds_for("v9")


@pytest.mark.parametrize(("value", "code"), [("true", 0), ("false", 1), ("", 1)])
def test_the_override_of_issue_191(value, code):
    """With its variable true it warns and goes on; else nothing is different."""
    packaged = load_host("ubuntu-24.04-driver-580-open")
    headless = [
        dataclasses.replace(module, used_by=tuple(user for user in module.used_by if user != "nvidia_drm"))
        for module in packaged.modules
        if module.name != "nvidia_drm"
    ]
    host = dataclasses.replace(packaged, modules=tuple(headless))
    world = make_world(host, env={"NODE_NAME": "gpu-1", "FORCE_HOST_DRIVER_UNBIND": value})
    outcome = simulate(world, "v0.10.0", what_if="force-host-driver-unbind")
    warned = [line.message for line in outcome.log if line.level == "warning" and "FORCE_HOST_DRIVER_UNBIND" in line.message]
    assert outcome.exit_code == code, outcome.log[-1]
    assert len(warned) == (value == "true")


# --- v0.12.0 ----------------------------------------------------------------------------------------------------------


def dra_world(pods=(), claims=(), env=None, **node_labels):
    base = load_cluster("container-node", "gpu-1")
    node = Node("gpu-1", {**base.node.labels, **node_labels})
    cluster = ClusterSpec("dra", node, tuple(pods), base.daemonsets, tuple(claims))
    return make_world(load_host("container-driver-loaded"), cluster, env={"NODE_NAME": "gpu-1", **(env or {})})


def holder(name):
    return Pod(
        "ml",
        name,
        owner=Owner("Node", "gpu-1"),
        resource_claims=({"name": "g", "resourceClaimName": f"{name}-claim"},),
        termination=None,
    )


def test_pods_that_hold_claims_are_named_in_a_list():
    """All that are left, separated by a comma."""
    world = dra_world(
        [holder("a"), holder("b")],
        [ResourceClaim("ml", f"{name}-claim", ("gpu.nvidia.com",)) for name in "ab"],
        env={"ENABLE_GPU_POD_EVICTION": "false", "ENABLE_AUTO_DRAIN": "false"},
        **{labels.DRA_DRIVER: "true"},
    )
    outcome = simulate(world, "v0.12.0")
    assert outcome.exit_code == 1
    assert "ml/a, ml/b" in outcome.log[-1].message


def test_a_claim_that_cannot_be_read_fails_with_the_pods_name():
    """While GPU pods are counted."""
    kube = object.__new__(flow("v0.12.0").client)
    kube.clock, kube.clientset = VirtualClock(), Forbidden()
    pod = {"metadata": {"namespace": "ml", "name": "a"}, "spec": {"containers": [], "resourceClaims": [{"resourceClaimName": "c"}]}}
    with pytest.raises(GoError) as failure:
        kube.uses_gpu_or_fail(pod)
    assert str(failure.value) == m.FAILED_TO_CHECK_GPU_USAGE % "ml/a" + ": " + m.FAILED_TO_GET_CLAIM % ("ml", "c") + ": no"


class Forbidden:
    """A clientset that may read no claim."""

    def get_resource_claim(self, namespace, name):
        raise GoError("no")
        yield


def test_waiting_for_the_label_of_gpu_clients_ends_after_five_minutes():
    """The wait has a deadline, and asks for the pods of all namespaces."""
    client = Pod("apps", "client", node_selector={labels.CLIENT: "true"}, owner=Owner("DaemonSet", "client"), termination=None)
    world = dra_world([client], **{labels.CLIENT: "true"})
    outcome = simulate(world, "v0.12.0")
    asked = [request for request in outcome.requests if request.path == "/api/v1/pods"]
    waited = [line for line in outcome.log if "pod" in line.message and labels.CLIENT in line.message]
    assert outcome.exit_code == 1
    assert asked
    assert 295 * SECOND <= waited[-1].at <= 300 * SECOND, waited[-1]
    assert "context deadline exceeded" in outcome.log[-1].message
