"""What may be asked of a node."""

from __future__ import annotations

from dataclasses import replace

from simulator import labels
from simulator.cluster.objects import Owner, Pod
from simulator.diagnosing.situation import Situation
from simulator.predicting.driver_pod import driver_pods
from simulator.predicting.modes import WORKLOADS
from tests.diagnosing.ailing import bundle


def test_the_pods_of_driver_manager_are_those_that_predict_speaks_of():
    """A DaemonSet's, chosen by the label that brings the driver; a name or a label `app` alone makes none."""
    named = Pod("gpu-operator", "nvidia-driver-daemonset-x", labels={"app": "nvidia-driver-daemonset"})
    owned = replace(named, name="nvidia-gpu-driver-x", owner=Owner("DaemonSet", "d"), node_selector={labels.DRIVER: "true"})
    found = bundle("clean", pods=(named, owned))
    situation = Situation(found, "v0.10.0")
    assert owned in situation.driver_pods
    assert named not in situation.driver_pods
    assert list(situation.driver_pods) == driver_pods(found.scenario.world, WORKLOADS[situation.mode])
