"""An image held against the model."""

from __future__ import annotations

import dataclasses
import json

from simulator.runners.container.supervisor import Broken
from simulator.runners.container.unfit import Unfit
from simulator.scenario import load_host, make_world
from simulator.verifying.judging import ATTEMPTS, Model, Tally, Verdict, judge, judge_all, plain

MODEL = Model("v0.12.0")
WORLD = make_world(load_host("container-driver-loaded"), env={"NODE_NAME": "gpu-1"})


def judged(image):
    (verdict,) = judge_all([WORLD], lambda world: judge("w", world, lambda: plain(image(world)), MODEL), jobs=1)
    return verdict


def test_the_model_equals_itself(model_image):
    """One run is enough."""
    image = model_image()
    assert judged(image) == Verdict("w", WORLD)
    assert len(image.worlds) == 1


def test_a_difference_is_looked_at_again(model_image):
    """And named with image and model."""
    image = model_image("v0.11.0")
    verdict = judged(image)
    assert len(image.worlds) == ATTEMPTS
    assert verdict.found
    assert not verdict.unsteady


def test_a_difference_that_goes_away_is_named_but_none(model_image):
    """A loaded machine; equal at a later attempt."""
    images = [model_image(), model_image("v0.11.0")]

    def one_after_the_other(world):
        return images.pop()(world)

    verdict = judged(one_after_the_other)
    assert not verdict.found
    assert verdict.unsteady


def test_a_world_that_no_container_can_stand_for(model_image):
    """Is excluded with its reason, and run no more."""
    image = model_image(fails=lambda _: Unfit("needs a scripted unlink"))
    assert judged(image) == Verdict("w", WORLD, excluded="needs a scripted unlink")
    assert len(image.worlds) == 1


def test_a_runner_that_fails(model_image):
    """Is tried again, and then told from what the image does."""
    image = model_image(fails=lambda _: Broken("no answer"))
    verdict = judged(image)
    assert (verdict.broken, verdict.word, len(image.worlds)) == ("no answer", "broken", ATTEMPTS)
    tally = Tally()
    tally.count(verdict)
    tally.count(Verdict("b"))
    assert str(tally) == "1 equal, 0 differ, 1 broken, 0 excluded, 0 fields unobserved"
    assert not tally.passed


def test_the_last_line():
    """Counts worlds, and fields that could not be observed in those that were compared."""
    tally = Tally()
    found = judge("x", WORLD, lambda: {**MODEL.observation(WORLD), "exit_code": 9}, MODEL).found
    for verdict in (
        Verdict("a", unobserved=("exec", "stdout")),
        Verdict("b", unobserved=("exec",)),
        Verdict("c", excluded="of a race"),
        Verdict("d", excluded="of a race"),
        Verdict("e", excluded="of an errno", unobserved=("exec",)),
        Verdict("f", found=found),
    ):
        tally.count(verdict)
    assert str(tally) == "2 equal, 1 differ, 3 excluded (2 of a race, 1 of an errno), 3 fields unobserved"
    assert not tally.passed


def test_nothing_compared_is_no_pass():
    """Nor is a difference."""
    tally = Tally()
    assert not tally.passed
    tally.count(Verdict("a", excluded="x"))
    assert not tally.passed
    tally.count(Verdict("b"))
    assert tally.passed


def test_an_observation_is_plain_data(model_image):
    """As it would come from a file."""
    observed = plain(model_image()(WORLD))
    assert observed == json.loads(json.dumps(observed))
    assert dataclasses.asdict(MODEL)["release"] == "v0.12.0"
