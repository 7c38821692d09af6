"""Worlds that a real clock can decide.

In the model time passes only while the program waits, so a pod that goes in the very moment at which the program looks
for it has a definite answer. A real run has none: it is a race. A world is *settled* if whatever happens in it by itself
(a pod that terminates, a planned change, a signal, the end of watching) may come a little earlier or later without a
difference that the comparison would see.

The model is asked where its moments are. If it is wrong about them the run differs, and that is what is looked for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from simulator.gocompat import SECOND
from simulator.recordings.comparing import mismatches
from simulator.recordings.observation import observation
from simulator.runners.simulated import simulate
from simulator.trace import Outcome
from simulator.world import World

SLACK: Final = 0.25
"""How much earlier or later, in seconds. Half of what the comparison allows for a request."""

LATE: Final = 1.0
"""How much later than the model's, in seconds, a program may end on a machine with much to do. What happens just after the end
would be seen in the end."""

_STEPS: Final = (0.0, 0.25, 0.5, 0.75, 1.3, 2.1)
"""By how much everything is put off, in seconds, until the world is settled. Programs poll every one, two or five seconds."""


def settled(world: World, release: str, without: frozenset[str] = frozenset()) -> World | None:
    """The world, what happens by itself put off by as little as makes it settled; None: it stays a race."""
    for by in _STEPS:
        moved = _put_off(world, by)
        if _is_settled(moved, release, without):
            return moved
    return None


def _is_settled(world: World, release: str, without: frozenset[str]) -> bool:
    outcome = simulate(world, release, without=without)
    exact = observation(outcome)
    moments = [world.stop_after, *([world.signal[1]] if world.signal else [])]
    elapsed = outcome.elapsed / SECOND
    if elapsed not in moments:  # it ended by itself
        if any(abs(elapsed - moment) <= 2 * SLACK for moment in moments):
            return False
        if _end(simulate(_put_off(world, -LATE), release, without=without)) != _end(outcome):
            return False
    return not any(
        mismatches(release, exact, observation(simulate(_put_off(world, by), release, without=without))) for by in (-SLACK, SLACK)
    )


def _end(outcome: Outcome) -> tuple[object, ...]:
    after = outcome.after
    return after.node, sorted(after.pods), after.mounts, dict(after.files), after.modules


def _put_off(world: World, by: float) -> World:
    """Everything that happens by itself, and takes time at all, so many seconds later."""
    if not by:
        return world

    def later(seconds: float) -> float:
        return max(0.0, seconds + by)

    pods = tuple(pod if not pod.termination else replace(pod, termination=later(pod.termination)) for pod in world.cluster.pods)
    return replace(
        world,
        cluster=replace(world.cluster, pods=pods),
        changes=tuple(replace(change, after=later(change.after)) for change in world.changes),
        signal=(world.signal[0], later(world.signal[1])) if world.signal else None,
        stop_after=later(world.stop_after),
    )
