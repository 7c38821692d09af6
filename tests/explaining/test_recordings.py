"""`explain` on logs that the real program left: a seeded sample; `make explain-recordings` takes them all."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from simulator.explaining.explanation import explain
from simulator.manager.releases import RELEASES
from simulator.recordings.logs import log_lines
from tests.explaining.every_recording import cut, problems, recordings

SAMPLE = 6


@pytest.fixture(scope="module")
def by_release():
    """Release -> its recordings."""
    found = defaultdict(list)
    for recording in recordings():
        found[recording.release].append(recording)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("how", ["whole", "tail missing"])
@pytest.mark.parametrize("release", RELEASES)
def test_the_flows_that_are_found_are_those_that_print_the_log(by_release, release, how):
    """The true release with its exit code, each twin, and no flow whose choices do not print it once more."""
    chance = random.Random(f"{release} {how}")
    for recording in chance.sample(by_release[release], SAMPLE):
        lines = cut(log_lines(recording), how, chance)
        twins = [twin for each in by_release.values() for twin in each if twin.case == recording.case]
        found = explain("".join(lines))
        assert not list(problems(recording, lines, found, how, twins))
        assert found.from_beginning
        assert found.complete
