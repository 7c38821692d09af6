"""`explain` on what a release prints in worlds that Hypothesis draws: the truth is among the candidates, of the whole log and of a cut one."""

from __future__ import annotations

import random

import pytest

from simulator.explaining.explanation import explain
from simulator.manager.releases import RELEASES
from simulator.report.text import log_text
from simulator.runners.simulated import START, simulate
from simulator.trace import Signal
from simulator.verifying.random_worlds import draw

MISSED = (300011, 300067, 300069, 300073, 300090, 300114, 300116, 300128, 300183, 300276, 300294, 300330)
"""Draws whose truth was once missing."""
FRESH = range(600000, 600010)


@pytest.mark.parametrize("seed", [*MISSED, *FRESH])
def test_the_true_flow_is_among_the_candidates(seed):
    """Of every release. A program that was killed left a cut log: its exit code is not known. White space alone is no log."""
    world = draw(1, seed)[0]
    for release in RELEASES:
        outcome = simulate(world, release)
        lines = log_text(outcome, START).splitlines(keepends=True)
        was_killed = outcome.exit_code is None or isinstance(outcome.events[-1], Signal)
        at = random.Random(f"{seed} {release}").randrange(1, max(len(lines), 2))
        for text, exit_code in (
            ("".join(lines), None if was_killed else outcome.exit_code),
            ("".join(lines[:at]) if at < len(lines) else "", None),
        ):
            found = {(candidate.release, candidate.exit_code) for candidate in explain(text).candidates}
            assert not text.strip() or (release, exit_code) in found, text
