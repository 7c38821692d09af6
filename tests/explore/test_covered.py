"""Every branch of the model is on a path, or there is a reason why it is on none."""

from __future__ import annotations

import pytest

from simulator.explore.covered import IN_OTHERS, NEVER, Why, branches, coverage
from simulator.manager.releases import GO_RELEASES, flow


@pytest.mark.parametrize("release", GO_RELEASES)
@pytest.mark.slow
def test_every_branch_is_taken_or_explained(release):
    """And nothing is explained that is taken."""
    found = coverage(release)
    assert found.unexplained == ()
    assert not found.taken & set(NEVER)
    assert not [branch for branch in found.taken if branch in IN_OTHERS and release in IN_OTHERS[branch].releases]
    assert len(found.taken) + sum(map(len, (found.never, found.in_others, found.elsewhere))) == len(branches())


@pytest.mark.slow
def test_the_newest_release_has_nearly_every_function():
    """What it does not call was replaced by what it does."""
    functions = {branch.function for branch in coverage("v0.12.0").elsewhere}
    assert functions == {"DriverManager.cleanup_cordon", "DriverManager.mofed_check", "DriverManager.remove_pid_file"}


def test_every_reason_is_of_a_branch_that_there_is():
    """A renamed function or a reworded condition has to be looked at again."""
    assert {*NEVER, *IN_OTHERS} <= set(branches())
    assert not set(NEVER) & set(IN_OTHERS)


@pytest.mark.parametrize("release", GO_RELEASES)
def test_every_constant_is_one(release):
    """It is the value that keeps the branch from being taken, in each release."""
    constants = {branch: never for branch, never in NEVER.items() if never.why is Why.CONSTANT}
    assert constants
    for branch, never in constants.items():
        assert never.proof is not None, branch
        assert never.proof(flow(release)), branch


def test_a_branch_is_named_by_its_place_among_those_alike():
    """Of several places with one text the first is 0."""
    alike = sorted(branch.which for branch in branches() if branch.function == "poll" and "condition" in branch.text)
    assert alike == [0, 0, 1, 1, 2, 2]
