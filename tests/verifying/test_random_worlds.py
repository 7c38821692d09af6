"""Worlds drawn at random."""

from __future__ import annotations

from hypothesis import given, settings

from simulator.config import UNINSTALL_DRIVER
from simulator.host.spec import bound_without_module
from simulator.runners.simulated import simulate
from simulator.verifying.random_worlds import WATCHED, draw, short, worlds
from simulator.verifying.shrinking import shrunk


def test_the_same_seed_draws_the_same_worlds():
    """And another seed others."""
    first = draw(40, 1, short(worlds))
    assert len(first) == 40
    assert first == draw(40, 1, short(worlds))
    assert first != draw(40, 2, short(worlds))


@settings(max_examples=60)
@given(short(worlds))
def test_a_short_world_is_over_soon(world):
    """Real time: no run is watched longer, and whatever happens by itself does so well before."""
    assert simulate(world).elapsed <= WATCHED * 1e9
    assert world.pid_1
    assert all(change.after <= 7 for change in world.changes)
    assert all(pod.termination is None or pod.termination <= 7 for pod in world.cluster.pods)
    assert world.signal is None or world.signal[1] <= 7


def test_most_worlds_get_past_the_command_line():
    """A proof of equality needs worlds in which something happens: labels patched, modules unloaded, pods evicted."""
    drawn = draw(200, 3, short(worlds))
    outcomes = [simulate(world, "v0.12.0") for world in drawn]
    assert sum(world.args == (UNINSTALL_DRIVER,) for world in drawn) > 120
    assert sum(any(request.method == "PATCH" for request in outcome.requests) for outcome in outcomes) > 80
    assert sum(bool(outcome.kernel_calls) for outcome in outcomes) > 60
    assert sum("evicting pod" in outcome.stdout for outcome in outcomes) > 8
    assert sum(outcome.exit_code == 0 for outcome in outcomes) > 40


def test_no_gpu_is_on_a_driver_whose_module_is_not_loaded():
    """A world file would refuse it; nor does shrinking make such a world."""
    drawn = draw(100, 3, worlds)
    assert any(function.driver == "nvidia" for world in drawn for function in world.host.pci)
    assert not any(bound_without_module(world.host) for world in drawn)
    loaded = next(world for world in drawn if any(function.driver == "nvidia" for function in world.host.pci))
    seen = []
    shrunk(loaded, seen.extend, runs=200)
    assert len(seen) > 10
    assert not any(bound_without_module(world.host) for world in seen)
