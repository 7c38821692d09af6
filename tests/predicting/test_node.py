"""The node object: cordon and labels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.cluster.objects import ClusterSpec, Fault
from simulator.labels import CLIENT, DEVICE_PLUGIN, DRIVER, NVSM, PAUSED, SANDBOX_VALIDATOR, UPGRADE_ANNOTATION
from simulator.predicting.answers import Cause
from simulator.predicting.node import kind_of
from simulator.predicting.prediction import predict

from .nodes import DEPLOYED, DIGEST, EVICTS_NOTHING, NO_DRAIN, SMI, STATE, gpu_pod, host, watched, world


def test_a_foreign_cordon_is_lifted():
    """B18, B20: whoever made it."""
    cordon = predict(world(cordoned=True), "v0.10.0").cordon
    assert (cordon.before, cordon.after, cordon.cordoned, cordon.foreign_lifted) == (True, False, False, True)
    assert "upgrade policy" in cordon.note


@pytest.mark.parametrize("fields", [{"annotations": {UPGRADE_ANNOTATION: "true"}}, {"env": EVICTS_NOTHING}])
def test_a_foreign_cordon_can_be_kept(fields):
    """By the upgrade policy, or with both eviction and drain off."""
    cordon = predict(world(cordoned=True, **fields), "v0.10.0").cordon
    assert (cordon.after, cordon.foreign_lifted) == (True, False)
    assert "stays" in cordon.note


def test_the_upgrade_controllers_label_is_a_hint_whose_cordon_it_is():
    """Both leave the same mark on the node."""
    state = {"nvidia.com/gpu-driver-upgrade-state": "pod-restart-required"}
    cordon = predict(world(cordoned=True, node_labels={**DEPLOYED, **state}), "v0.10.0").cordon
    assert "nvidia.com/gpu-driver-upgrade-state=pod-restart-required" in cordon.note


def test_the_fast_path_keeps_a_cordon():
    """B40: not driver-manager uncordons then."""
    kept = world(host(files=(STATE,)), cordoned=True, env={"DRIVER_CONFIG_DIGEST": DIGEST})
    assert predict(kept, "v0.10.0").cordon.after is True


def test_a_cordon_of_its_own_is_lifted():
    """And is no foreign one."""
    cordon = predict(world(), "v0.10.0").cordon
    assert (cordon.before, cordon.after, cordon.cordoned, cordon.uncordoned, cordon.foreign_lifted) == (
        False,
        False,
        True,
        True,
        False,
    )


def test_a_run_that_hangs_leaves_the_node_cordoned():
    """B52."""
    prediction = predict(watched(world(pods=[gpu_pod(termination=None)]), 60), "v0.10.0")
    assert (prediction.cordon.after, prediction.labels.left_paused != ()) == (True, True)
    assert "does not get to uncordon" in prediction.cordon.note


def test_a_cordon_that_stays_is_no_success():
    """Although the program exits 0: uncordoning is only warned about."""
    faults = (Fault("PATCH", "/nodes/", body='unschedulable":null', status=403),)
    verdict = predict(world(faults=faults, env=NO_DRAIN), "v0.10.0").verdict
    assert (verdict.exit_code, verdict.cause) == (0, Cause.CORDON_STAYS)


@pytest.mark.parametrize(("release", "code", "cause"), [("v0.10.0", 0, Cause.OPERANDS_PAUSED), ("v0.11.0", 1, Cause.API)])
def test_labels_that_stay_paused_are_no_success(release, code, cause):
    """B50: the restoring patch is refused; up to v0.10.0 the program exits 0."""
    faults = (Fault("PATCH", "/nodes/", body=f'"{DEVICE_PLUGIN}":"true"', status=403),)
    prediction = predict(world(faults=faults, env=NO_DRAIN), release)
    assert (prediction.verdict.exit_code, prediction.verdict.cause) == (code, cause)
    assert DEVICE_PLUGIN in prediction.labels.left_paused


def test_a_label_that_only_a_newer_release_knows_may_stay_paused():
    """It is told of; the run itself did what it is for."""
    prediction = predict(world(node_labels={**DEPLOYED, CLIENT: PAUSED}, env=NO_DRAIN), "v0.10.0")
    assert (prediction.labels.left_paused, prediction.verdict.succeeds) == ((CLIENT,), True)


def test_labels_that_were_absent_are_created_blank():
    """B32, T7."""
    labels = predict(world(), "v0.10.0").labels
    assert NVSM in labels.created_blank
    assert SANDBOX_VALIDATOR in labels.created_blank


def test_a_label_is_told_with_what_it_is_meanwhile():
    """Paused, then restored."""
    found = {label.key: label for label in predict(world(), "v0.10.0").labels.labels}[DEVICE_PLUGIN]
    assert (found.before, found.meanwhile, found.after) == ("true", (PAUSED,), "true")


def test_a_foreign_pause_is_not_healed():
    """B61."""
    labels = predict(world(node_labels={**DEPLOYED, SANDBOX_VALIDATOR: "paused-for-vgpu-change"}), "v0.10.0").labels
    assert labels.foreign == (SANDBOX_VALIDATOR,)
    assert labels.left_paused == ()


def test_a_host_driver_leaves_what_was_paused():
    """T6: the labels of an aborted run are not read, so not restored."""
    described = world(host(programs=(SMI,)), node_labels={**DEPLOYED, DEVICE_PLUGIN: PAUSED})
    labels = predict(described, "v0.10.0").labels
    assert labels.left_paused == (DEVICE_PLUGIN,)
    assert {label.key: label.kind_after for label in labels.labels}[DRIVER] == "pre-installed"


def test_a_paused_label_is_healed_by_the_next_run():
    """It comes back as true."""
    labels = predict(world(node_labels={**DEPLOYED, DEVICE_PLUGIN: PAUSED}), "v0.10.0").labels
    assert {label.key: label.after for label in labels.labels}[DEVICE_PLUGIN] == "true"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "absent"),
        ("", "blank"),
        ("true", "deployed"),
        ("false", "disabled"),
        ("pre-installed", "pre-installed"),
        (PAUSED, "paused"),
        (f"x_{PAUSED}", "paused"),
        ("paused-for-mig-change", "foreign pause"),
        ("x", "other"),
    ],
)
def test_every_value_is_of_a_kind(value, kind):
    """A closed set."""
    assert kind_of(value) == kind


def test_without_a_node_there_is_no_cordon():
    """And nothing else to say of it."""
    prediction = predict(replace(world(), cluster=ClusterSpec("none", None)), "v0.10.0")
    assert (prediction.cordon.after, prediction.labels.labels) == (None, ())
