"""Kinds of differences, and the smallest world of each."""

from __future__ import annotations

from simulator.recordings.comparing import Mismatch
from simulator.scenario import load_host, make_world
from simulator.verifying.judging import Model, Verdict
from simulator.verifying.random_runs import RACE, different, judge_world, smallest
from simulator.verifying.shrinking import plain_world

MISSED = frozenset({"gpu-client-label"})
MODEL = Model("v0.12.0", MISSED)
WORLD = make_world(load_host("container-driver-loaded"), env={"NODE_NAME": "gpu-1", "DRAIN_USE_FORCE": "true"})


def test_worlds_that_differ_alike_are_one_difference():
    """The same field and values, but for numbers; equal ones are none."""
    verdicts = [
        Verdict("a", found=(Mismatch("log", "[1]", "pod 7", "pod 8"),)),
        Verdict("b"),
        Verdict("c", found=(Mismatch("log", "[23]", "pod 1", "pod 9"), Mismatch("api", "", "x", "y"))),
        Verdict("d", found=(Mismatch("log", "[1]", "pod 7", "node 8"),)),
        Verdict("e", excluded=RACE),
    ]
    assert [(kind.verdict.name, kind.like) for kind in different(verdicts)] == [("a", ["c"]), ("d", [])]


def test_a_difference_is_made_small(model_image):
    """Down to a bare node, where that is enough; each smaller world is one that shows the difference, twice."""
    image = model_image()
    verdict = judge_world("w", WORLD, image, MODEL)
    (difference,) = different([verdict])
    small = smallest(difference, image, MODEL, runs=30, jobs=1)
    assert small.tried <= 30
    assert small.first.field == difference.first.field
    bare = plain_world(WORLD)
    assert small.verdict.world.cluster.pods == bare.cluster.pods
    assert small.verdict.world.host == bare.host
    assert judge_world("w", small.verdict.world, image, MODEL).found == small.verdict.found


def test_a_difference_that_does_not_come_back_stays_large(model_image):
    """No smaller world shows it."""
    verdict = judge_world("w", WORLD, model_image(), MODEL)
    (difference,) = different([verdict])
    equal = model_image(without=MISSED)
    small = smallest(difference, equal, MODEL, runs=12, jobs=3)
    assert small.verdict == verdict
    assert small.tried == 12


def test_no_smaller_world_is_tried_where_none_may_be(model_image):
    """`--shrink-runs 0`."""
    verdict = judge_world("w", WORLD, model_image(), MODEL)
    (difference,) = different([verdict])
    image = model_image()
    assert smallest(difference, image, MODEL, runs=0, jobs=1).verdict == verdict
    assert not image.worlds
