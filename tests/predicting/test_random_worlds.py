"""Predictions of worlds drawn at random: none crashes, and what they say of the end is how the run ended."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simulator.manager.releases import GO_RELEASES, RELEASES
from simulator.predicting.driver_pod import driver_pods, without_processes_of
from simulator.predicting.events import Event
from simulator.predicting.modes import WORKLOADS, Mode, mode_of
from simulator.predicting.prediction import predict
from simulator.reading import printable
from simulator.report.prediction import prediction_lines, prediction_markdown
from simulator.runners.simulated import simulate
from simulator.verifying.random_worlds import worlds

CALM = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck), database=None, derandomize=True)


@pytest.mark.slow
@CALM
@given(worlds, st.sampled_from([*RELEASES]), st.sampled_from([*Event]), st.sampled_from([*Mode]))
def test_a_prediction_is_of_the_run_that_its_world_has(world, release, event, to):
    """Exit code, cordon, labels, GPUs and modules are those of a run in the world after the event; every form is made."""
    prediction = predict(world, release, event=event, to=to)
    outcome = simulate(prediction.world, release)
    assert prediction.verdict.exit_code == outcome.exit_code
    assert prediction.verdict.succeeds is (prediction.verdict.cause == "")
    assert outcome.exit_code == 0 or not prediction.verdict.succeeds
    node = outcome.after.node
    assert prediction.cordon.after == (node.unschedulable if node else None)
    assert {label.key: label.after for label in prediction.labels.labels if label.after is not None} == {
        key: value
        for key, value in (node.labels if node else {}).items()
        if key in {label.key for label in prediction.labels.labels}
    }
    assert {gpu.address: gpu.after for gpu in prediction.gpus.gpus} == outcome.after.gpu_drivers
    assert {module.name for module in prediction.modules.modules if module.result == "unloaded"} == {
        module.name for module in prediction.modules.modules if module.name not in outcome.after.modules
    }
    assert prediction.timing.finished is (outcome.exit_code is not None)
    assert abs(sum(wait.seconds for wait in prediction.timing.waits) - prediction.timing.seconds) < 0.1
    document = prediction.document()
    assert json.loads(json.dumps(document)) == document
    assert next(prediction_lines(prediction)) == printable(prediction.verdict.sentence)
    assert prediction_markdown(prediction)


@pytest.mark.slow
@CALM
@given(worlds, st.sampled_from([*GO_RELEASES]))
def test_a_restart_changes_nothing_of_the_world(world, release):
    """But that the old pod's processes are gone: so the answers are of the world as it was given."""
    node = world.cluster.node
    workload = WORKLOADS[mode_of(node.labels if node else {})]
    host, _ = without_processes_of(world.host, [pod.full_name for pod in driver_pods(world, workload)])
    assert predict(world, release).world == replace(world, host=host)
