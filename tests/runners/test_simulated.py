"""The simulated runner: whole runs."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.manager.releases import GO_RELEASES, RELEASES
from simulator.recordings.comparing import mismatches
from simulator.recordings.observation import observation
from simulator.runners.simulated import simulate
from simulator.scenario import load_host, make_world
from simulator.trace import ApiRequest, LogLine
from simulator.verifying.random_worlds import worlds
from simulator.world import World, followed_by

TAGS = st.sampled_from(list(GO_RELEASES))
ANY = st.sampled_from(list(RELEASES))


@settings(max_examples=150)
@given(worlds, TAGS)
def test_random_worlds_never_crash_the_model(world: World, release):
    """Every run ends by itself, by a signal or by the runner, with a whole trace."""
    outcome = simulate(world, release)
    assert outcome.exit_code in {None, 0, 1, 2, 3, -9, -15}
    times = [event.at for event in outcome.events]
    assert times == sorted(times)
    assert not times or times[-1] <= outcome.elapsed
    fatal = [line for line in outcome.log if line.level == "fatal"]
    if outcome.exit_code == 1:
        assert outcome.events[-1] == fatal[0]
        assert len(fatal) == 1
    else:
        assert not fatal
    assert bool(outcome.panic) <= (outcome.exit_code == 2)
    for event in outcome.events:
        if isinstance(event, ApiRequest):
            assert event.status == "drop" or 200 <= int(event.status) < 600
        if isinstance(event, LogLine):
            assert event.level in {"info", "warning", "error", "fatal"}
    written = json.loads(json.dumps(observation(outcome)))
    assert len(written["timeline"]) == sum(len(written[key]) for key in ("log", "api", "kernel", "exec")) + sum(
        entry[1] in {"change", "signal"} for entry in written["timeline"]
    )


@settings(max_examples=40)
@given(worlds, TAGS)
def test_a_run_is_deterministic(world: World, release):
    """The same world, release and seed leave the same trace."""
    one, other = simulate(world, release), simulate(world, release)
    assert list(one.events) == list(other.events)
    assert one.after == other.after
    assert not mismatches(release, observation(one), observation(other))


@settings(max_examples=40)
@given(worlds, TAGS)
def test_a_what_if_that_is_not_set_changes_nothing(world: World, release):
    """Its flag is there, and only help shows it."""
    if not world.args or world.args[0] == "bogus":
        return
    plain, overlaid = simulate(world, release), simulate(world, release, what_if="force-host-driver-unbind")
    shown = "force-host-driver-unbind"
    assert [event for event in overlaid.events if shown not in str(event)] == [
        event for event, other in zip(plain.events, overlaid.events, strict=True) if shown not in str(other)
    ]
    assert plain.exit_code == overlaid.exit_code


@settings(max_examples=40)
@given(worlds, TAGS)
def test_a_world_goes_on_after_a_run(world: World, release):
    """What a run left is a world for the next one."""
    outcome = simulate(world, release)
    following = followed_by(world, outcome)
    again = simulate(following, release)
    if again.before.node is not None:
        assert again.before.node == outcome.after.node
    assert again.before.mounts == outcome.after.mounts


@pytest.mark.parametrize("release", RELEASES)
def test_a_host_driver_takes_a_minute(release):
    """In every release: the label, sixty seconds, exit code 1."""
    outcome = simulate(make_world(load_host("ubuntu-24.04-driver-580-open"), env={"NODE_NAME": "gpu-1"}), release)
    assert outcome.exit_code == 1
    assert round(outcome.elapsed / 1_000_000_000, 1) == (60.1 if RELEASES[release].is_script else 60)
    assert outcome.after.node.labels["nvidia.com/gpu.deploy.driver"] == "pre-installed"
    assert set(outcome.after.gpu_drivers.values()) == {"nvidia"}


@pytest.mark.parametrize(("pid_1", "code"), [(True, 2), (False, -15)])
def test_sigterm(pid_1, code):
    """As process 1 the Go runtime exits 2, else the signal kills; nothing is cleaned up."""
    world = make_world(load_host("runfile-580"), env={"NODE_NAME": "gpu-1"})
    outcome = simulate(
        World(**{**{name: getattr(world, name) for name in world.__slots__}, "signal": ("TERM", 30.0), "pid_1": pid_1})
    )
    assert outcome.exit_code == code
    assert outcome.elapsed == 30_000_000_000
    assert outcome.after.node.labels["nvidia.com/gpu.deploy.driver"] == "pre-installed"


def test_an_unknown_release_is_a_key_error():
    """The command line turns it into a message."""
    with pytest.raises(KeyError):
        simulate(make_world(load_host("clean")), "v9.9.9")


def test_a_module_that_the_host_check_loaded_is_there_in_the_next_run():
    """The probe loads the module past the blacklist; the restarted pod finds it loaded, and the GPUs on it."""
    world = make_world(load_host("half-purged-blacklisted"), env={"NODE_NAME": "gpu-1", "ENABLE_AUTO_DRAIN": "false"})
    first = simulate(world)
    following = followed_by(world, first)
    assert "nvidia" not in first.before.modules
    assert "nvidia" in {module.name for module in following.host.modules}
    second = simulate(following)
    assert second.before.modules == first.after.modules
    assert second.before.gpu_drivers == first.after.gpu_drivers
