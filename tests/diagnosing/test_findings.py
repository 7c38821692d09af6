"""Each kind of finding is found, mended by its own commands, and not found where nothing is wrong."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator import labels
from simulator.cluster.objects import Container, Owner, Pod
from simulator.diagnosing import gpu_operator as op
from simulator.diagnosing.finding import KINDS
from simulator.diagnosing.findings import diagnose, judged_for
from simulator.host.spec import HeldByPods
from simulator.runners.simulated import simulate
from simulator.scenario import Scenario, load_cluster, load_host, make_world, names
from simulator.snapshot.bundle import Bundle
from simulator.snapshot.node import HOST_UNSEEN
from simulator.world import followed_by
from tests.diagnosing.ailing import (
    AILING,
    CLEAN_PAIRS,
    NODE,
    TOLD_ONLY,
    WITHOUT_COMMANDS,
    bundle,
    driver_pod_that_fails,
    training,
)
from tests.diagnosing.mending import mended


def kinds(found):
    return tuple(finding.kind for finding in found)


@pytest.mark.parametrize("name", [*AILING, *WITHOUT_COMMANDS])
def test_what_is_left_over_is_found_and_nothing_else(name):
    """The kinds, in the order of their table; each says what, why, what it may cost and what shows it."""
    ailing = {**AILING, **WITHOUT_COMMANDS}[name]
    found = diagnose(ailing.bundle, ailing.release)
    assert kinds(found) == ailing.kinds
    for finding in found:
        assert finding.what.endswith(".")
        assert finding.why.endswith(".")
        assert finding.risk.endswith(".")
        assert finding.evidence
        assert all(finding.evidence)
        assert bool(finding.commands) == (name in AILING and finding.kind not in TOLD_ONLY and not finding.mended_with)
        assert finding.mended_with in {"", *kinds(found)}


@pytest.mark.parametrize("name", AILING)
def test_its_commands_mend_it_and_leave_nothing_new(name):
    """Finding by finding, each on the node as it was."""
    ailing = AILING[name]
    found = diagnose(ailing.bundle, ailing.release)
    for finding in found:
        if finding.kind in TOLD_ONLY or finding.mended_with:
            continue
        after = kinds(diagnose(mended(ailing.bundle, finding.commands, ailing.release), ailing.release))
        assert finding.kind not in after
        assert set(after) <= set(kinds(found)), after


def test_every_kind_has_a_node():
    """A kind that nothing shows would be a word only."""
    shown = {kind for ailing in (AILING | WITHOUT_COMMANDS).values() for kind in ailing.kinds}
    assert shown == set(KINDS)


@pytest.mark.parametrize("release", ["v0.4.2", "v0.8.1", "v0.10.0", "v0.12.0"])
@pytest.mark.parametrize(("host", "cluster"), CLEAN_PAIRS, ids=" on ".join)
def test_nothing_is_found_on_a_node_in_order(host, cluster, release):
    """Named hosts and clusters that fit each other, in old and new releases."""
    world = make_world(load_host(host), load_cluster(cluster, NODE), env={"NODE_NAME": NODE})
    assert diagnose(Bundle(Scenario(world)), release) == ()


SEEN = [name for name in names("hosts") if (verdict := load_host(name).verdict) and verdict.host_check and verdict.driver]


@pytest.mark.parametrize("name", SEEN)
def test_nothing_is_found_where_the_label_says_what_the_host_is(name):
    """Every host whose driver the host check sees, on a node that is labelled so; GPUs that are split stay a finding."""
    labelled = bundle(name, labels={labels.DRIVER: "pre-installed"})
    assert kinds(diagnose(labelled)) == (("gpus-split",) if name == "vfio-bound-partly" else ())


def test_a_cluster_without_the_node_has_no_findings():
    """Nothing can be left over there."""
    world = make_world(load_host("runfile-580"), load_cluster("unknown-node"))
    assert diagnose(Bundle(Scenario(world))) == ()


def test_a_kind_is_looked_for_in_its_releases_only():
    """v0.12.0 evicts nobody where no driver is loaded, so nothing waits."""
    claims = AILING["claims"].bundle
    assert kinds(diagnose(claims, "v0.11.0")) == ("claims-wait-for-driver",)
    assert diagnose(claims, "v0.12.0") == ()


@pytest.mark.parametrize(("said", "judged"), [("", "v0.10.0"), ("v0.12.0", "v0.12.0"), ("v0.8.0", "v0.8.1"), ("v9", "v0.10.0")])
def test_the_release_is_the_worlds_own(said, judged):
    """A tag that is not modelled is judged as the one that stands for it, or as the default."""
    world = AILING["claims"].bundle.scenario.world
    assert judged_for(Bundle(Scenario(world, said))) == judged


def test_a_driver_that_is_on_its_way_is_not_missed():
    """The driver container runs and is not ready yet: its root is mounted before the module is loaded."""
    starting = {"containerStatuses": [{"name": "nvidia-driver-ctr", "ready": False, "state": {"running": {"startedAt": "x"}}}]}
    stale = AILING["root-without-module"].bundle
    world = stale.scenario.world
    pods = tuple(replace(pod, status=starting) if "driver" in pod.name else pod for pod in world.cluster.pods)
    started = replace(stale, scenario=replace(stale.scenario, world=replace(world, cluster=replace(world.cluster, pods=pods))))
    assert kinds(diagnose(stale)) == ("stale-driver-root",)
    assert diagnose(started) == ()


@pytest.mark.parametrize(
    ("cluster", "release"),
    [*itertools.product(["container-node", "mig-node"], ["v0.8.1", "v0.10.0", "v0.12.0"]), ("dra-node", "v0.12.0")],
)
def test_nothing_is_found_after_a_run_that_succeeded(cluster, release):
    """What driver-manager itself leaves in order is no finding: labels created empty, the state file, GPUs without a driver."""
    world = make_world(load_host("container-driver-loaded"), load_cluster(cluster, NODE), env={"NODE_NAME": NODE})
    outcome = simulate(world, release)
    assert outcome.exit_code == 0
    assert diagnose(Bundle(Scenario(followed_by(world, outcome))), release) == ()


def test_what_rests_on_the_host_is_not_looked_for_where_nobody_looked_at_it():
    """The host is then made up of what the cluster says: a finding about it would be about a guess."""
    told = set()
    for ailing in AILING.values():
        found = kinds(diagnose(replace(ailing.bundle, unseen=(HOST_UNSEEN,)), ailing.release))
        assert set(found) == {kind for kind in ailing.kinds if not KINDS[kind].of_host}
        told.update(found)
    assert {"operands-paused", "cordon-of-another", "pod-stuck-terminating", "setting-refused"} <= told


def test_who_is_told_to_go_is_not_invisible():
    """Pods that ask for a GPU, hold a claim (from v0.12.0 on), or are placed by a label that is paused."""

    def holding(**fields):
        pod = Pod("ml", "wl", **fields)
        held = {"nvidia": HeldByPods(("ml/wl",), 1)}
        return bundle(
            "container-driver-loaded", "dra-node", pods=(pod,), host_fields={"held_by_pods": held}, env=CUSTOM, labels=SITE
        )

    daemon = Owner("DaemonSet", "own")
    claim = {"resource_claims": ({"name": "gpu", "resourceClaimName": "wl-claim"},)}
    asking = {"containers": (Container({"nvidia.com/mig-1g.5gb": "1"}),)}
    assert kinds(diagnose(holding(), "v0.10.0")) == ("gpu-user-invisible",)
    assert kinds(diagnose(holding(phase="Succeeded"), "v0.10.0")) == ()
    assert kinds(diagnose(holding(**asking), "v0.10.0")) == ()
    assert kinds(diagnose(holding(**claim), "v0.11.0")) == ("gpu-user-invisible",)
    assert kinds(diagnose(holding(**claim), "v0.12.0")) == ()
    assert kinds(diagnose(holding(owner=daemon, node_selector=SITE), "v0.10.0")) == ()
    assert kinds(diagnose(holding(node_selector=SITE), "v0.10.0")) == ("gpu-user-invisible",)
    assert kinds(diagnose(holding(owner=daemon, node_selector={labels.DCGM: "true"}), "v0.10.0")) == ()
    assert kinds(diagnose(holding(owner=daemon, node_selector={"other": "true"}), "v0.10.0")) == ("gpu-user-invisible",)


def test_the_cordon_is_lifted_in_one_finding():
    """Who pauses and cordons is told twice; one of them has what mends both."""
    for ailing in AILING.values():
        told = [command for finding in diagnose(ailing.bundle, ailing.release) for command in finding.commands]
        assert sum("uncordon" in command.argv for command in told) <= 1


def test_a_pod_that_a_finalizer_keeps_is_not_to_be_forced():
    """It is named; a pod beside it that none keeps is told as before."""
    kept = training("kept", terminating=True, termination=None, finalizers=("example.com/block",))
    stuck = training("stuck", terminating=True, termination=None)
    (finding,) = diagnose(bundle(pods=(kept, stuck)))
    assert [command.argv[5] for command in finding.commands] == ["stuck"]
    assert "example.com/block" in finding.why
    assert "waits until it is gone" in finding.why
    (finding,) = diagnose(bundle(pods=(kept,), annotations={labels.UPGRADE_ANNOTATION: "true"}))
    assert "evicts nobody" in finding.why
    assert "waits until it is gone" not in finding.why


def held_by(*pods, **fields):
    """A node on which driver-manager fails, since pods hold the modules, and nobody evicts them."""
    names = tuple(pod.full_name for pod in pods)
    users = {"modules": lambda host: tuple(replace(module, users=len(names), pods=names) for module in host.modules)}
    return bundle(
        "container-driver-loaded",
        "bare",
        annotations={labels.UPGRADE_ANNOTATION: "true"},
        host_fields=users,
        pods=(driver_pod_that_fails(), *pods),
        **fields,
    )


def test_what_makes_everything_else_heal_is_told_first():
    """The pod that holds the driver; where it was told to go already without a command."""
    leaving = training("nb", terminating=True, termination=None, finalizers=("example.com/block",))
    failed = {labels.UPGRADE_STATE: "upgrade-failed", labels.DCGM: labels.PAUSED}
    found = diagnose(held_by(training("train"), leaving, labels=failed, unschedulable=True))
    assert kinds(found) == (
        "driver-held",
        "init-container-fails",
        "operands-paused",
        "upgrade-failed",
        "cordon-of-upgrade-controller",
        "pod-stuck-terminating",
    )
    first, fails, paused, given_up, cordon, _ = found
    assert [command.argv[5] for command in first.commands] == ["train"]
    assert "exit code 1" in fails.what
    assert "11 restarts" in fails.what
    assert "fails, and restores them in its clean-up" in paused.why
    assert "Ready" in given_up.why
    assert "Ready" in cordon.why


def test_a_holder_without_which_the_run_fails_as_well_is_not_told():
    """A process of the host's holds the driver, too."""
    pod = training("train")
    node = held_by(pod)
    world = node.scenario.world
    modules = tuple(replace(module, pods=()) if module.name == "nvidia_uvm" else module for module in world.host.modules)
    held = replace(node, scenario=replace(node.scenario, world=replace(world, host=replace(world.host, modules=modules))))
    assert kinds(diagnose(node)) == ("driver-held", "init-container-fails")
    assert kinds(diagnose(held)) == ("init-container-fails",)


def test_a_container_that_fails_where_the_model_succeeds_is_told_so():
    """What makes it fail was not seen; a pod whose container has ended well since fails no more."""
    node = bundle("clean", "bare", pods=(driver_pod_that_fails(),))
    (finding,) = diagnose(node)
    assert "would succeed" in finding.why
    assert "was not seen" in finding.why
    assert "kubectl logs" in finding.why
    (told,) = diagnose(replace(node, logs={"gpu-operator/driver-x/k8s-driver-manager": "x"}))
    assert "told above" in told.why
    assert diagnose(bundle("clean", "bare", pods=(driver_pod_that_fails(ready=True),))) == ()


def test_an_image_without_chroot_asks_nobody():
    """Which counts as: no host driver."""
    found = bundle("runfile-580", host_fields={"container_programs": {"chroot": None}})
    assert kinds(diagnose(found)) == ("host-driver-unseen",)


SITE = {"site/gpu": "true"}
CUSTOM = {"NODE_LABEL_FOR_GPU_POD_EVICTION": "site/gpu"}
VALUES = (
    "true",
    "false",
    "",
    "yes",
    labels.PAUSED,
    f"x_{labels.PAUSED}",
    "paused-for-mig-change",
    f"paused-for-vgpu-change_{labels.PAUSED}",
    None,
)


@given(st.data())
@settings(max_examples=30)
def test_following_the_advice_leads_to_a_node_in_order(data):
    """Whatever is left over at once: mend the first finding that has commands, look again, and so on. It ends, and soon."""
    cluster = data.draw(st.sampled_from(["container", "passthrough", "vgpu", "dra-node"]))
    deployed = sorted(
        key
        for key in load_cluster(
            {"container": "container-node", "passthrough": "vm-passthrough-node", "vgpu": "vm-vgpu-node"}.get(cluster, cluster)
        ).node.labels
        if "deploy" in key
    )
    values = {key: data.draw(st.sampled_from(VALUES)) for key in data.draw(st.sets(st.sampled_from(deployed), max_size=4))}
    values[labels.DRIVER] = data.draw(st.sampled_from(["true", "pre-installed", "", "odd", labels.PAUSED, None]))
    values[labels.UPGRADE_STATE] = data.draw(st.sampled_from([None, "upgrade-done", "upgrade-failed", "drain-required", "odd"]))
    notes = data.draw(st.sets(st.sampled_from([labels.UPGRADE_ANNOTATION, *op.UPGRADE_NOTES, op.UPGRADE_REQUESTED])))
    mounts = data.draw(st.sampled_from([(), ("/run/nvidia/driver",), ("/run/nvidia/driver", "/run/mellanox/drivers")]))
    hosts = [
        "clean",
        "container-driver-loaded",
        "runfile-580",
        "ubuntu-24.04-headless-580-open",
        "talos-vfio-pci",
        "vfio-bound-partly",
        "wrapper-prints-anything",
    ]
    node = bundle(
        data.draw(st.sampled_from(hosts)),
        cluster,
        labels=values,
        annotations=dict.fromkeys(notes, "true"),
        unschedulable=data.draw(st.booleans()),
        host_fields={"mounts": mounts},
    )
    release = data.draw(st.sampled_from(["v0.8.1", "v0.10.0", "v0.12.0"]))
    told = []
    for _ in range(16):
        mendable = [finding for finding in diagnose(node, release) if finding.commands]
        if not mendable:
            break
        told.append(mendable[0].kind)
        node = mended(node, mendable[0].commands, release)
    else:
        raise AssertionError(told)
    assert len(told) == len(set(told))
