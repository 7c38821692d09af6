"""Worlds made small."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings

from simulator.cluster.objects import ClusterSpec, Node, Pod
from simulator.verifying.random_worlds import draw, short, worlds
from simulator.verifying.shrinking import plain_world, shrunk, simpler


def drawn():
    """One large world."""
    return max(draw(50, 4, short(worlds)), key=lambda world: len(repr(world)))


def first_that(holds):
    return lambda batch: next(((number, world) for number, world in enumerate(batch) if holds(world)), None)


def test_what_is_not_needed_goes():
    """Everything, if nothing is needed."""
    world = drawn()
    small, tried = shrunk(world, first_that(lambda _: True), runs=100)
    assert small == plain_world(world)
    assert tried == 1


def test_what_is_needed_stays_and_nothing_else():
    """A pod of a phase on a cordoned node, a variable, a module in /proc."""
    world = drawn()
    pods = tuple(Pod("default", f"x{number}", termination=3.0, phase="Failed", empty_dir=True) for number in range(8))
    world = replace(world, cluster=replace(world.cluster, node=Node("n", {"a": "b"}, unschedulable=True), pods=pods))
    world = replace(world, env={**world.env, "ENABLE_AUTO_DRAIN": "false", "DRAIN_USE_FORCE": "true"})

    def holds(candidate):
        return (
            any(pod.name == "x5" and pod.phase == "Failed" for pod in candidate.cluster.pods)
            and candidate.cluster.node is not None
            and candidate.cluster.node.unschedulable
            and candidate.env.get("DRAIN_USE_FORCE") == "true"
        )

    small, tried = shrunk(world, first_that(holds), runs=1000, at_once=3)
    bare = plain_world(world)
    assert small == replace(
        bare,
        cluster=ClusterSpec(bare.cluster.name, Node("n", unschedulable=True), pods=(Pod("default", "x5", phase="Failed"),)),
        env={**bare.env, "DRAIN_USE_FORCE": "true"},
    )
    assert tried < 200


def test_the_number_of_tries_is_bounded():
    """A run takes seconds."""
    met = []

    def never(batch):
        met.extend(batch)

    world = drawn()
    small, tried = shrunk(world, never, runs=10, at_once=4)
    assert (small, tried, len(met)) == (world, 10, 10)


def test_no_world_is_tried_twice():
    """Also not on the way from one smaller world to the next."""
    met = []

    def every_third(batch):
        met.extend(map(repr, batch))
        return (len(batch) - 1, batch[-1]) if len(met) % 3 == 0 else None

    shrunk(drawn(), every_third, runs=300)
    assert len(met) == len(set(met)) > 20


@settings(max_examples=40)
@given(short(worlds))
def test_simpler_worlds_are_others_and_none_is_watched_longer(world):
    """Shrinking must not make a run of half a minute one of an hour."""
    for _, candidate in simpler(world, plain_world(world)):
        assert candidate != world
        assert candidate.stop_after == world.stop_after
