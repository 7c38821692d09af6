"""Virtual time."""

from __future__ import annotations

import contextlib

import pytest

from simulator.clock import MOST_AT_ONCE, VirtualClock
from simulator.reading import InputError


def test_a_sleep_jumps_to_its_end():
    """Nothing waits."""
    clock = VirtualClock()
    clock.sleep(10**18)
    assert clock.now == 10**18


def test_what_is_due_happens_on_the_way_in_order():
    """Events of equal time happen in the order they were planned, each at its own time."""
    clock, seen = VirtualClock(), []
    clock.plan(5, lambda: seen.append(("b", clock.now)))
    clock.plan(5, lambda: seen.append(("c", clock.now)))
    clock.plan(2, lambda: seen.append(("a", clock.now)))
    clock.plan(9, lambda: seen.append(("later", clock.now)))
    clock.sleep(5)
    assert seen == [("a", 2), ("b", 5), ("c", 5)]
    assert clock.now == 5


def test_an_event_may_plan_another():
    """One that is due within the same sleep happens in it."""
    clock, seen = VirtualClock(), []
    clock.plan(1, lambda: clock.plan(clock.now + 1, lambda: seen.append(clock.now)))
    clock.sleep(3)
    assert seen == [2]


def test_the_past_is_now():
    """What is planned for the past happens at the next chance."""
    clock, seen = VirtualClock(), []
    clock.sleep(5)
    clock.plan(1, lambda: seen.append(clock.now))
    clock.sleep(0)
    assert seen == [5]


def test_an_event_that_ends_the_program_leaves_the_time_it_came():
    """A signal comes at its own time, not at the sleep's end."""
    clock = VirtualClock()

    def end():
        raise RuntimeError

    clock.plan(3, end)
    with contextlib.suppress(RuntimeError):
        clock.sleep(10)
    assert clock.now == 3


def test_a_wait_ends_when_it_is_ready():
    """At that moment, before what else is due then; at its end if it never is."""
    clock, seen = VirtualClock(), []
    clock.plan(3, lambda: seen.append("ready"))
    clock.plan(3, lambda: seen.append("also due"))
    assert clock.wait(10, lambda: bool(seen))
    assert (clock.now, seen) == (3, ["ready"])
    assert not clock.wait(4, lambda: False)
    assert (clock.now, seen) == (7, ["ready", "also due"])
    assert clock.wait(4, lambda: True)
    assert clock.now == 7


def test_causes_that_take_no_time_and_never_end_are_an_error():
    """Two that answer one another at once would hold the clock for ever."""
    clock = VirtualClock()

    def flip():
        clock.plan(clock.now, flip)

    clock.plan(2_000_000_000, flip)
    with pytest.raises(InputError, match=r"time stands still at 2s: 100000 events at one moment") as raised:
        clock.sleep(10**12)
    assert "let one of them take time" in str(raised.value)
    assert clock.now == 2_000_000_000


def test_as_many_events_as_are_allowed_at_one_moment_happen():
    """The count begins anew with each moment."""
    clock, seen = VirtualClock(), []
    for moment in (1, 2):
        for _ in range(MOST_AT_ONCE):
            clock.plan(moment, lambda: seen.append(clock.now))
    clock.sleep(5)
    assert (seen.count(1), seen.count(2)) == (MOST_AT_ONCE, MOST_AT_ONCE)
