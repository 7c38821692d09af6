"""Ends of runs, said thing by thing."""

from __future__ import annotations

import dataclasses

from simulator.report.comparison import Compared, Subject, recorded_cases
from simulator.report.trials import DriverManagerTrial, Finished, VfioTrial
from simulator.scenario import load_host, make_world
from simulator.trace import NodeState


def finished(host="container-driver-loaded"):
    return DriverManagerTrial(make_world(load_host(host), env={"NODE_NAME": "gpu-1"})).run("v0.10.0", frozenset(), [])


def rows(one, other):
    subject = Subject("x", DriverManagerTrial(make_world(load_host("clean"))), 0)
    return [tuple(row) for row in Compared(subject, one, other, None, (), None).rows]


def changed(run, **kwargs):
    outcome = dataclasses.replace(run.outcome, after=dataclasses.replace(run.outcome.after, **kwargs))
    return Finished(run.events, None, outcome)


def test_equal_ends_have_no_rows():
    """Nothing is said twice."""
    assert rows(finished(), finished()) == []


def test_what_differs_at_the_end_is_said():
    """Labels, cordon, modules, mounts, files, GPUs; a stacked mount is told from a single one."""
    run = finished()
    after = run.outcome.after
    node = NodeState({**after.node.labels, "new": "1"}, {"note": "x"}, unschedulable=True)
    other = changed(
        run, node=node, mounts=("/run/a", "/run/a"), modules=("nvidia",), pods=(), gpu_drivers={}, files={"/run/x": True}
    )
    found = {what: (left, right) for what, left, right in rows(changed(run, mounts=("/run/a",)), other)}
    assert found["label new"] == ("absent", '"1"')
    assert found["annotation note"] == ("absent", '"x"')
    assert found["node"] == ("schedulable", "cordoned")
    assert found["mount /run/a"] == ("mounted", "mounted twice or more")
    assert found["module nvidia"] == ("absent", "loaded")
    assert found["file /run/x"] == ("absent", "there")
    assert any(what.startswith("GPU 0000:") and right == "absent" for what, (_, right) in found.items())


def test_a_node_that_is_gone_is_said():
    """Its labels are absent."""
    run = finished()
    found = rows(run, changed(run, node=None))
    assert ("node", "schedulable", "absent") in found


def test_vfio_manage_is_tried_step_by_step():
    """Events of all steps, exit codes in order, the bus at the end."""
    subject = next(subject for subject in recorded_cases() if subject.name == "vfio-manage case trip-bind-unbind")
    assert isinstance(subject.trial, VfioTrial)
    run = subject.trial.run("v0.12.0", frozenset(), [])
    assert run.ending == "exit code 0, then exit code 0"
    assert run.facts["ends with"] == run.ending
    assert run.events
    assert any(what.startswith("driver_override ") for what in run.facts)
    older = subject.trial.run("v0.9.1", frozenset(), [])
    assert older.end != run.end or list(older.events) != list(run.events)
