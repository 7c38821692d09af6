"""Polls, retries, goroutines."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.clock import VirtualClock
from simulator.gocompat import MAX_DURATION, SECOND, GoError
from simulator.kube.rest import drive
from simulator.kube.waiting import DEFAULT_BACKOFF, Backoff, concurrent, deadline, poll, retry_on_error


def asked(clock, times, *, takes=0, true_at=None, ends=None):
    def condition():
        times.append(clock.now)
        if takes:
            yield takes
        return true_at is not None and clock.now >= true_at

    return poll(clock, 5 * SECOND, ends, condition)


def test_a_poll_asks_at_once_and_then_at_each_tick():
    """Five seconds apart."""
    clock, times = VirtualClock(), []
    drive(clock, asked(clock, times, true_at=12 * SECOND))
    assert times == [0, 5 * SECOND, 10 * SECOND, 15 * SECOND]


def test_ticks_do_not_wait_for_a_slow_condition():
    """A condition of a second does not push the next tick."""
    clock, times = VirtualClock(), []
    drive(clock, asked(clock, times, takes=SECOND, true_at=12 * SECOND))
    assert times == [0, 5 * SECOND, 10 * SECOND, 15 * SECOND]


def test_a_missed_tick_is_delivered_late_and_the_grid_stays():
    """A condition of seven seconds is asked again at once, then at the grid's next point."""
    clock, times = VirtualClock(), []
    with pytest.raises(GoError, match="context deadline exceeded"):
        drive(clock, asked(clock, times, takes=7 * SECOND, ends=30 * SECOND))
    assert times == [0, 7 * SECOND, 14 * SECOND, 21 * SECOND, 28 * SECOND]


def test_a_poll_ends_at_its_deadline():
    """Not a tick later, and without asking again."""
    clock, times = VirtualClock(), []
    with pytest.raises(GoError, match=r"^context deadline exceeded$"):
        drive(clock, asked(clock, times, ends=deadline(clock, 300 * SECOND)))
    assert clock.now == 300 * SECOND
    assert len(times) == 60


def test_a_context_that_has_ended_is_still_asked_once():
    """With a negative time-out too."""
    clock, times = VirtualClock(), []
    with pytest.raises(GoError):
        drive(clock, asked(clock, times, ends=deadline(clock, -SECOND)))
    assert times == [0]


@pytest.mark.parametrize(("true_at", "error"), [(30, None), (31, "timed out waiting for the condition")])
def test_a_late_poll_asks_once_more_at_its_deadline(true_at, error):
    """As v0.27 of the library does."""
    clock, times = VirtualClock(), []

    def condition():
        yield from ()
        times.append(clock.now)
        return clock.now >= true_at * SECOND

    with pytest.raises(GoError, match=f"^{error}$") if error else contextlib.nullcontext():
        drive(clock, poll(clock, 20 * SECOND, 30 * SECOND, condition, late=True))
    assert times == [0, 20 * SECOND, 30 * SECOND]


def test_deadlines():
    """The nearer one counts; the longest span is none."""
    clock = VirtualClock()
    clock.sleep(1000)
    assert deadline(clock, MAX_DURATION) is None
    assert deadline(clock, 500) == 1500
    assert deadline(clock, 5000, parent=2000) == 2000
    assert deadline(clock, MAX_DURATION, parent=2000) == 2000


class Fixed:
    def __init__(self, value):
        self.value = value

    def random(self):
        return self.value


def attempts(clock, times, fail):
    def attempt():
        yield from ()
        times.append(clock.now)
        if len(times) <= fail:
            raise GoError(f"attempt {len(times)}")

    return attempt


@pytest.mark.parametrize(("chance", "times"), [(0.0, [0, 10, 60, 310]), (1.0, [0, 11, 66, 341])])
def test_the_default_backoff(chance, times):
    """Four attempts, pauses of 10, 50 and 250 ms, up to a tenth longer; the last error is the one told."""
    clock, seen = VirtualClock(), []
    with pytest.raises(GoError, match="attempt 4"):
        drive(clock, retry_on_error(Fixed(chance), DEFAULT_BACKOFF, attempts(clock, seen, 9)))
    assert [time // 1_000_000 for time in seen] == times


def test_a_success_ends_the_retries():
    """No pause after it."""
    clock, seen = VirtualClock(), []
    drive(clock, retry_on_error(Fixed(0.0), Backoff(SECOND, 2.0, 0.2, 7), attempts(clock, seen, 2)))
    assert seen == [0, SECOND, 3 * SECOND]


@given(st.lists(st.lists(st.integers(0, 5), max_size=5), max_size=5))
def test_goroutines_share_one_clock(plans):
    """Each sleeps its own spans; the whole takes as long as the longest."""
    clock, woken = VirtualClock(), [[] for _ in plans]

    def work(index):
        for span in plans[index]:
            yield span
            woken[index].append(clock.now)

    errors = drive(clock, concurrent(clock, [work(index) for index in range(len(plans))]))
    assert errors == []
    assert clock.now == max((sum(plan) for plan in plans), default=0)
    for index, plan in enumerate(plans):
        assert woken[index] == [sum(plan[: size + 1]) for size in range(len(plan))]


def test_goroutines_errors_come_in_the_order_they_ended():
    """As through a channel."""
    clock = VirtualClock()

    def work(span):
        yield span
        return GoError(str(span))

    errors = drive(clock, concurrent(clock, [work(3), work(1), work(2)]))
    assert [str(error) for error in errors] == ["1", "2", "3"]


def test_no_steps_are_no_attempt_and_no_error():
    """As in `retry.OnError`: the last error is none."""

    def attempt():
        raise AssertionError
        yield

    drive(VirtualClock(), retry_on_error(None, Backoff(SECOND, 1.0, 0.0, 0), attempt))
