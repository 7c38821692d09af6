"""Worlds moved out of the way of races."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.cluster.objects import Owner
from simulator.labels import DEVICE_PLUGIN
from simulator.recordings.comparing import mismatches
from simulator.recordings.observation import observation
from simulator.runners.simulated import simulate
from simulator.scenario import load_cluster, load_host, make_world
from simulator.verifying.random_worlds import draw, short, worlds
from simulator.verifying.settling import SLACK, settled

RELEASE = "v0.10.0"


def busy_world(termination):
    """The device plugin's pod takes so many seconds to go."""
    world = make_world(load_host("container-driver-loaded"), load_cluster("container-node"), env={"NODE_NAME": "gpu-1"})
    pods = tuple(
        replace(pod, termination=termination)
        if DEVICE_PLUGIN in pod.node_selector and pod.owner == Owner("DaemonSet", pod.owner.name)
        else replace(pod, termination=0.0)
        for pod in world.cluster.pods
    )
    return replace(world, cluster=replace(world.cluster, pods=pods))


def test_a_world_without_a_race_stays_as_it_is():
    """Equal, not merely alike."""
    world = make_world(load_host("clean"), env={"NODE_NAME": "gpu-1"})
    assert settled(world, RELEASE) == world


def test_a_signal_that_comes_with_a_request_is_put_off():
    """Else chance would decide whether the request was sent."""
    world = busy_world(9.3)
    late = next(event.at / 1e9 for event in simulate(world, RELEASE).requests if event.method == "PATCH" and event.at > 9e9)
    moved = settled(replace(world, signal=("TERM", late)), RELEASE)
    assert moved.signal[0] == "TERM"
    assert moved.signal[1] >= late + SLACK


@pytest.mark.parametrize("release", ["v0.9.0", "v0.12.0"])
def test_a_settled_world_bears_a_little_delay(release):
    """Of whatever happens in it by itself; else it is no world to compare in."""
    found = [calm for world in draw(60, 5, short(worlds)) if (calm := settled(world, release)) is not None]
    assert len(found) > 40
    for calm in found:
        late = replace(
            calm,
            cluster=replace(
                calm.cluster,
                pods=tuple(
                    replace(pod, termination=pod.termination + SLACK) if pod.termination else pod for pod in calm.cluster.pods
                ),
            ),
            changes=tuple(replace(change, after=change.after + SLACK) for change in calm.changes),
            signal=(calm.signal[0], calm.signal[1] + SLACK) if calm.signal else None,
            stop_after=calm.stop_after + SLACK,
        )
        assert not mismatches(release, observation(simulate(calm, release)), observation(simulate(late, release)))


def test_a_program_that_ends_with_its_watch_is_a_race():
    """Whether it ended by itself would be chance."""
    world = make_world(load_host("ubuntu-24.04-driver-580-open"), env={"NODE_NAME": "gpu-1"})
    assert simulate(world, RELEASE).elapsed == 60_000_000_000
    moved = settled(replace(world, stop_after=59.9), RELEASE)
    assert abs(moved.stop_after - 60) > 2 * SLACK
