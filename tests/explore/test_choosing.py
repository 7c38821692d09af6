"""Choices: every run is made once, in order, and can be made again."""

from __future__ import annotations

from simulator.explore.choosing import Chooser, explored


def two_coins(chooser):
    """A coin; if it is heads, another."""
    first = chooser.choose("first", ("heads", "tails"))
    return (first, chooser.choose("second", ("heads", "tails"))) if first == "heads" else (first,)


def test_every_run_is_made_once():
    """Depth first, in the order of the answers."""
    assert [result for _, result in explored(two_coins, 10)] == [("heads", "heads"), ("heads", "tails"), ("tails",)]


def test_a_run_is_made_again_from_its_choices():
    """The choices are the witness."""
    for choices, result in explored(two_coins, 10):
        assert two_coins(Chooser(choices)) == result


def test_a_single_answer_is_no_choice():
    """It costs no run."""
    assert [choices for choices, _ in explored(lambda chooser: chooser.choose("one", (1,)), 10)] == [()]


def test_there_is_a_limit():
    """No more runs than that."""
    assert len(list(explored(two_coins, 2))) == 2


def test_a_bound_allows_so_many_unusual_answers():
    """Beyond it the first answer is the only one, but for a free choice."""

    def run(chooser):
        chooser.is_bounded = lambda: True
        return tuple(chooser.choose(name, (0, 1)) for name in "abc")

    assert sorted(result for _, result in explored(run, 100, 1)) == [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)]

    def free(chooser):
        chooser.is_bounded = lambda: True
        return chooser.choose("free", (0, 1), free=True), chooser.choose("other", (0, 1))

    assert sorted(result for _, result in explored(free, 100, 0)) == [(0, 0), (1, 0)]
