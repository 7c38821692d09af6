"""Where each method of a resolved flow comes from."""

from __future__ import annotations

import pytest

from simulator.manager.releases import GO_RELEASES, flow
from simulator.report.sources import resolved_client, resolved_steps


@pytest.mark.parametrize("release", GO_RELEASES)
def test_every_step_of_a_release_says_what_it_is(release):
    """A sentence each, for `dmsim releases --flow`."""
    steps = resolved_steps(flow(release))
    assert len({step.name for step in steps}) == len(steps)
    assert all(step.summary for step in steps)
    assert steps[0].name == "uninstall_driver"


def test_each_resolved_method_knows_its_change():
    """Steps and requests, with the older changes that they go on from."""
    steps = {step.name: step for step in resolved_steps(flow("v0.12.0"))}
    assert steps["mofed_check"].change == "mofed-checks-the-right-way"
    assert steps["uninstall_driver"].change == ""
    assert (steps["before_unloading"].change, *steps["before_unloading"].over) == (
        "dra-kubelet-plugin-drained",
        "dra-claim-holders-block",
        "",
    )
    assert all(step.summary for step in steps.values())
    client = {source.name: source.change for source in resolved_client(flow("v0.12.0"))}
    assert client["update_node_labels"] == "label-patch-retried"
    assert {step.change for step in resolved_steps(flow("v0.9.0"))} == {""}
