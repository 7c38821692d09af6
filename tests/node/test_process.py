"""Programs on one clock: who runs when, and how each ends."""

from __future__ import annotations

import pytest

from simulator.clock import VirtualClock
from simulator.gocompat import SECOND
from simulator.node.process import KILL, TERM, Processes, Wait, blocking, polling
from simulator.ports import Stopped, Terminated


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def processes(clock):
    return Processes(clock)


def test_programs_that_sleep_run_side_by_side(clock, processes):
    """A blocking program that sleeps long does not hold up one that sleeps briefly."""
    seen = []

    def slow(own):
        own.sleep(60 * SECOND)
        seen.append(("slow", own.now // SECOND))
        return 1

    def quick():
        for _ in range(3):
            yield Wait(10 * SECOND)
            seen.append(("quick", clock.now // SECOND))
        return 0

    processes.start(blocking(clock, slow), lambda code: seen.append(("slow ended", code)))
    processes.start(quick(), lambda code: seen.append(("quick ended", code)))
    clock.sleep(100 * SECOND)
    assert seen == [("quick", 10), ("quick", 20), ("quick", 30), ("quick ended", 0), ("slow", 60), ("slow ended", 1)]
    assert clock.now == 100 * SECOND


def test_two_blocking_programs_overlap(clock, processes):
    """Each wakes at its own time, whatever the other sleeps."""
    seen = []

    def work(span):
        def sleeps(own):
            own.sleep(span * SECOND)
            own.sleep(span * SECOND)
            seen.append((span, own.now // SECOND))
            return 0

        return sleeps

    for span in (50, 30):
        processes.start(blocking(clock, work(span)), lambda _: None)
    clock.sleep(200 * SECOND)
    assert seen == [(30, 60), (50, 100)]


def test_a_condition_wakes_a_program_at_once_and_a_deadline_ends_its_wait(clock, processes):
    """As `kubectl wait` needs it."""
    world, seen = set(), []

    def work(own):
        seen.append((own.wait(100 * SECOND, lambda: "a" in world), own.now // SECOND))
        seen.append((own.wait(100 * SECOND, lambda: "b" in world), own.now // SECOND))
        return 0

    def other():
        yield Wait(7 * SECOND)
        world.add("a")
        return 0

    processes.start(blocking(clock, work), lambda _: None)
    processes.start(other(), lambda _: None)
    clock.sleep(300 * SECOND)
    assert seen == [(True, 7), (False, 107)]


def test_a_poll_sees_at_its_next_look_what_happened_in_between(clock, processes):
    """Looks at 0, 5, 10, ...: what is so at 7 is seen at 10."""
    world, seen = set(), []

    def loop():
        yield from polling(clock, 5 * SECOND, lambda: "a" in world)
        seen.append(clock.now // SECOND)
        return 0

    def other(at):
        yield Wait(at * SECOND)
        world.add("a")
        return 0

    processes.start(loop(), lambda _: None)
    processes.start(other(7), lambda _: None)
    clock.sleep(60 * SECOND)
    assert seen == [10]


@pytest.mark.parametrize("after", [0, 3])
def test_sigterm_reaches_a_sleeping_program(clock, processes, after):
    """It can handle it, and its exit code counts."""
    codes = []

    def work(own):
        try:
            own.sleep(60 * SECOND)
        except Terminated:
            own.sleep(after * SECOND)
            return 2
        return 0

    process = processes.start(blocking(clock, work), codes.append)
    clock.sleep(10 * SECOND)
    process.kill(TERM)
    clock.sleep(after * SECOND)
    assert codes == [2]
    clock.sleep(100 * SECOND)
    assert codes == [2]


def test_a_program_that_handles_no_signal_ends_by_it(clock, processes):
    """128 and the signal's number, as a shell tells it."""
    codes = []

    def sleeps():
        yield Wait()
        return 0

    process = processes.start(sleeps(), codes.append)
    clock.sleep(1)
    process.kill(TERM)
    assert codes == [143]
    process.kill(KILL)
    assert codes == [143]


def test_only_sigkill_ends_a_deaf_program(clock, processes):
    """And its sleep goes on as if there had been no signal."""
    codes, seen = [], []

    def sleeps():
        yield Wait(20 * SECOND)
        seen.append(clock.now // SECOND)
        yield Wait()
        return 0

    process = processes.start(sleeps(), codes.append, is_deaf=True)
    clock.sleep(10 * SECOND)
    process.kill(TERM)
    clock.sleep(20 * SECOND)
    assert (seen, codes) == ([20], [])
    process.kill(KILL)
    assert codes == [137]


def test_an_abandoned_program_unwinds_and_is_not_heard_of(clock, processes):
    """Its thread gets Stopped, also from further sleeps."""
    codes, seen = [], []

    def work(own):
        for _ in range(2):
            try:
                own.sleep(60 * SECOND)
            except Stopped:
                seen.append("stopped")
        return 0

    process = processes.start(blocking(clock, work), codes.append)
    clock.sleep(10 * SECOND)
    process.abandon()
    assert (seen, codes) == (["stopped", "stopped"], [])
    clock.sleep(100 * SECOND)
    assert codes == []


@pytest.mark.parametrize("sleeps", [0, 1])
def test_what_a_blocking_program_raises_is_raised_to_whoever_lets_time_pass(clock, processes, sleeps):
    """A mistake is not lost in a thread."""

    def work(own):
        if sleeps:
            own.sleep(SECOND)
        raise ValueError("mistake")

    processes.start(blocking(clock, work), lambda _: None)
    with pytest.raises(ValueError, match="mistake"):
        clock.sleep(2 * SECOND)
