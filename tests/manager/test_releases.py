"""Releases, resolved."""

from __future__ import annotations

import pytest

from simulator.manager.releases import RELEASES, flow, resolved_steps


@pytest.mark.parametrize("release", RELEASES)
def test_every_step_of_a_release_says_what_it_is(release):
    """A sentence each, for `dmsim releases --flow`."""
    steps = resolved_steps(flow(release))
    assert len({step.name for step in steps}) == len(steps)
    assert all(step.summary for step in steps)
    assert steps[0].name == "uninstall_driver"
