"""What a runner could not see is named, and not compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.recordings.comparing import mismatches
from simulator.recordings.observation import observation
from simulator.runners.simulated import simulate
from simulator.scenario import load_host, make_world
from simulator.trace import ChildProcess, KernelCall, LogLine

RELEASE = "v0.10.0"


@pytest.fixture(scope="module")
def outcome():
    return simulate(make_world(load_host("container-driver-loaded"), env={"NODE_NAME": "gpu-1"}), RELEASE)


def without(outcome, kinds, *names):
    """The outcome as somebody sees it who cannot see some events."""
    events = [event for event in outcome.events if not isinstance(event, kinds)]
    return observation(replace(outcome, events=events, unobserved=frozenset(names)))


def test_what_was_seen_wholly_names_nothing(outcome):
    assert "unobserved" not in observation(outcome)


def test_what_was_not_seen_is_named_in_order(outcome):
    assert without(outcome, (), "kernel", "exec")["unobserved"] == ["exec", "kernel"]


def test_what_was_not_seen_is_not_compared_from_either_side(outcome):
    blind = without(outcome, (KernelCall, ChildProcess), "kernel", "exec")
    assert blind["kernel"] == blind["exec"] == []
    assert mismatches(RELEASE, observation(outcome), blind) == []
    assert mismatches(RELEASE, blind, observation(outcome)) == []


def test_what_is_missing_without_a_word_is_a_difference(outcome):
    blind = without(outcome, (KernelCall, ChildProcess), "kernel")
    assert [mismatch.field for mismatch in mismatches(RELEASE, observation(outcome), blind)] == ["exec", "order"]


def test_what_was_seen_is_compared_all_the_same(outcome):
    def other(event):
        return event._replace(message="another") if isinstance(event, LogLine) else event

    blind = without(replace(outcome, events=[other(event) for event in outcome.events]), KernelCall, "kernel")
    assert [mismatch.field for mismatch in mismatches(RELEASE, observation(outcome), blind)] == ["log", "order"]


def test_a_state_that_was_not_seen_is_not_compared(outcome):
    after = replace(outcome.after, modules=("nvidia",))
    blind = observation(replace(outcome, after=after, unobserved=frozenset({"modules_after"})))
    assert mismatches(RELEASE, observation(outcome), blind) == []
    blind = observation(replace(outcome, after=after))
    assert [mismatch.field for mismatch in mismatches(RELEASE, observation(outcome), blind)] == ["modules_after"]
