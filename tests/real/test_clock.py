"""Real time on an event loop."""

from __future__ import annotations

import asyncio

from simulator.gocompat import MILLISECOND
from simulator.real.clock import WallClock


def happened(plan, until_s=0.05):
    """What happens on a driven clock, in order."""
    seen = []

    async def drive():
        clock = WallClock()
        plan(clock, seen)
        clock.drive(asyncio.get_running_loop())
        await asyncio.sleep(until_s)
        clock.drive(None)

    asyncio.run(drive())
    return seen


def test_what_is_planned_happens_in_the_order_of_its_times():
    """Then in the order in which it was planned; what lies in the past at once."""

    def plan(clock, seen):
        for name, at in [("c", 20), ("a", -5), ("d", 20), ("b", 3), ("never", 10**6)]:
            clock.plan(at * MILLISECOND, lambda name=name: seen.append(name))

    assert happened(plan) == ["a", "b", "c", "d"]


def test_what_happens_may_plan_more():
    """Each time is that of the clock, not before the planned one."""

    def plan(clock, seen):
        def first():
            seen.append(clock.now >= 5 * MILLISECOND)
            clock.plan(10 * MILLISECOND, lambda: seen.append(clock.now >= 10 * MILLISECOND))

        clock.plan(5 * MILLISECOND, first)

    assert happened(plan) == [True, True]


def test_nothing_happens_until_a_loop_drives_it():
    """Nor once none does any more."""
    clock, seen = WallClock(), []
    clock.plan(0, lambda: seen.append("early"))

    async def wait():
        await asyncio.sleep(0.01)
        clock.drive(asyncio.get_running_loop())
        clock.drive(None)
        await asyncio.sleep(0.01)

    asyncio.run(wait())
    assert seen == []


def test_a_restart_begins_at_zero():
    """What is planned moves with it."""

    def plan(clock, seen):
        clock.plan(30 * MILLISECOND, lambda: seen.append("late"))

        def restart():
            clock.restart()
            seen.append(clock.now < 5 * MILLISECOND)

        clock.plan(25 * MILLISECOND, restart)

    assert happened(plan, 0.04) == [True]
    assert happened(plan, 0.08) == [True, "late"]


def test_a_stopped_clock_stands_at_zero_until_it_is_restarted():
    """Nothing is due meanwhile."""
    clock, seen = WallClock(stopped=True), []
    clock.plan(5 * MILLISECOND, lambda: seen.append(clock.now >= 5 * MILLISECOND))

    async def drive():
        clock.drive(asyncio.get_running_loop())
        await asyncio.sleep(0.03)
        assert (clock.now, seen) == (0, [])
        clock.restart()
        await asyncio.sleep(0.03)
        clock.drive(None)

    asyncio.run(drive())
    assert seen == [True]
