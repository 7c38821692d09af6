"""Where the operator's upgrade controller owns eviction, a failure depends on what it does first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.cluster.objects import Owner, Pod
from simulator.host.spec import Module
from simulator.labels import UPGRADE_ANNOTATION
from simulator.predicting.events import Event
from simulator.predicting.prediction import predict
from simulator.predicting.upgrade import evicted_first

from .nodes import DIGEST, gpu_pod, host, world

OWNED = {"annotations": {UPGRADE_ANNOTATION: "true"}, "env": {"DRIVER_CONFIG_DIGEST": DIGEST}}
TRAIN = gpu_pod()
HELD = host(modules=(Module("nvidia", users=2, pods=(TRAIN.full_name,)),))
UNLESS = f"will not succeed unless the upgrade controller has evicted {TRAIN.full_name} first"


@pytest.mark.parametrize("event", [Event.IMAGE_BUMP, Event.CONFIG_CHANGE])
def test_the_verdict_says_what_the_controller_has_to_do_first(event):
    """In its first words, not in the last line."""
    verdict = predict(world(HELD, [TRAIN], **OWNED), "v0.10.0", event=event).verdict
    assert verdict.sentence.startswith(f"{UNLESS}: modules stay")
    assert not verdict.succeeds


def test_handles_that_nobody_names_are_perhaps_its_pods():
    """A condition on the condition."""
    nameless = host(modules=(Module("nvidia", users=2),))
    sentence = predict(world(nameless, [TRAIN], **OWNED), "v0.10.0", event=Event.IMAGE_BUMP).verdict.sentence
    assert sentence.startswith(f"{UNLESS}, and nothing else holds the modules: ")


@pytest.mark.parametrize(
    ("described", "event"),
    [
        (world(HELD, [TRAIN], **OWNED), Event.POD_RESTART),
        (world(HELD, [TRAIN], env={"ENABLE_GPU_POD_EVICTION": "false"}), Event.IMAGE_BUMP),
        (world(host(modules=(Module("nvidia", users=2, processes=("jupyter (7)",)),)), [TRAIN], **OWNED), Event.IMAGE_BUMP),
        (world(host(modules=(Module("nvidia", users=2),)), [], **OWNED), Event.IMAGE_BUMP),
    ],
    ids=["a restart", "no policy", "its eviction does not help", "there is nobody to evict"],
)
def test_else_it_is_a_flat_no(described, event):
    """No controller acts, or it would not help."""
    assert predict(described, "v0.10.0", event=event).verdict.sentence.startswith("will not succeed: ")


def test_the_controller_evicts_what_asks_for_gpus_on_this_node():
    """But for DaemonSets' pods, and for those that have ended."""
    others = [
        Pod("default", "web"),
        gpu_pod("far", node_name="other"),
        gpu_pod("daemon", owner=Owner("DaemonSet", "d")),
        gpu_pod("done", phase="Succeeded"),
        gpu_pod("other-resource", resource="nvidia.com/GA102GL_A10"),
    ]
    described = world(pods=[TRAIN, *others, gpu_pod("mig", resource="nvidia.com/mig-1g.5gb")])
    names, after = evicted_first(described)
    assert names == [TRAIN.full_name, "default/mig"]
    assert after == replace(described, cluster=replace(described.cluster, pods=tuple(others)))
