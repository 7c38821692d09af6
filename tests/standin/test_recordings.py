"""Recorded cases of the real program, run by the stand-in in the container runner: the runner sees what the recorder saw."""

from __future__ import annotations

import json

import pytest

from simulator.recordings.observation import observation
from simulator.recordings.replaying import differences
from simulator.recordings.worlds import world_of
from simulator.runners.container import runner
from simulator.standin.image import build
from tests.recorded import recorded

pytestmark = [pytest.mark.container, pytest.mark.slow]

RELEASE = "v0.10.0"
CASES = (
    "api-uncordon-cleanup-500",
    "cli-badbool-drain_delete_emptydir_data",
    "custom-label-pods",
    "digest-nostate-force-flag",
    "gates-auto-evf-drt-gpupod",
    "hostdrv-no-chroot",
    "pods-emptydir-ok",
    "rdma-both-ready-host",
)
"""Short ones, whose kernel answers no single call otherwise than the next."""


def differing(docker_engine, cases, tag, **options):
    """Run an image in the worlds of recorded cases: how many, and those in which it differs, with the first difference.

    How long the machine took says nothing of either.
    """
    build(docker_engine, RELEASE, tag=tag, **options)
    recordings = [found for found in recorded() if found.release == RELEASE and found.case in cases]
    out = {}
    for position, outcome in runner.run_images([world_of(found) for found in recordings], tag, release=RELEASE):
        recording = recordings[position]
        observed = {**json.loads(json.dumps(observation(outcome))), "elapsed_s": recording.observed["elapsed_s"]}
        found = differences(recording, observed)
        if found:
            out[recording.case] = str(found[0])
    return len(recordings), out


def test_recorded_cases(docker_engine):
    """The stand-in leaves what the real program left. It runs in real time: what a busy machine made late is run once more."""
    tag = f"dmsim-standin:{RELEASE}"
    count, found = differing(docker_engine, CASES, tag)
    late = tuple(case for case, difference in found.items() if difference.startswith("second of "))
    if late:
        again = differing(docker_engine, late, tag)[1]
        found = {case: text for case, text in found.items() if case not in late} | again
    assert (count, found) == (len(CASES), {})


def test_a_fault_is_found(docker_engine):
    """A stand-in without one of its release's changes differs in the case that shows it, and says where."""
    tag = "dmsim-standin-test:faulty"
    try:
        count, found = differing(docker_engine, ("digest-nostate-force-flag",), tag, without=["force-reinstall"])
    finally:
        docker_engine.images.remove(tag, force=True)
    assert (count, found) == (1, {"digest-nostate-force-flag": "exit_code: recorded 0, simulated 1"})
