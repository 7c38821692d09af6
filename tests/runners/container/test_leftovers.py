"""Whatever ends a runner, nothing of it is left after the next start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.signals import as_at_a_login

pytestmark = [pytest.mark.container, pytest.mark.slow]

RUNS = 28
CHECKOUT = Path(__file__).parents[3]
RUNNER = """
import sys
from simulator.cluster.objects import ClusterSpec
from simulator.host.spec import HostSpec
from simulator.runners.container.runner import run_images
from simulator.world import World
image, script, number, tracer = sys.argv[1:]
world = World(HostSpec("test", mounts=("/run/nvidia/driver",)), ClusterSpec("test", None), env={"SCRIPT": script})
for _, outcome in run_images([world] * int(number), image, parallel=6, tracer=None if tracer else False):
    print(outcome.exit_code, flush=True)
"""


def runner(image, script, number, tracer="where it can"):
    """A process that runs an image so many times."""
    command = [sys.executable, "-c", RUNNER, image, script, str(number), tracer]
    return subprocess.Popen(
        command,
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=as_at_a_login,  # noqa: PLW1509  # it only sets signals
    )


def left(client, process):
    """What there is of a process: containers, folders, mounts. No run makes a network."""
    containers = [
        container.name
        for container in client.containers.list(all=True, filters={"label": "dmsim.run"}, ignore_removed=True)
        if container.labels["dmsim.run"].startswith(f"{process.pid}-")
    ]
    folders = [path.name for path in Path(tempfile.gettempdir()).glob(f"dmsim-*-{process.pid}-*")]
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f"-{process.pid}-" in line]
    return [*containers, *folders, *mounts]


def wait_until_it_runs(client, process):
    deadline = time.monotonic() + 60
    while not client.containers.list(filters={"label": "dmsim.run"}, ignore_removed=True) or not any(
        container.labels["dmsim.run"].startswith(f"{process.pid}-")
        for container in client.containers.list(filters={"label": "dmsim.run"}, ignore_removed=True)
    ):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(1)


def test_thirty_runs_one_interrupted_and_one_killed_leave_nothing(docker_engine, image):
    networks = {network.name for network in docker_engine.networks.list()}
    many, interrupted, killed = runner(image, "exit 4", RUNS), runner(image, "sleep 60", 1), runner(image, "sleep 60", 1)
    wait_until_it_runs(docker_engine, interrupted)
    interrupted.send_signal(signal.SIGINT)
    interrupted.communicate(timeout=60)
    assert interrupted.returncode != 0
    assert left(docker_engine, interrupted) == []
    wait_until_it_runs(docker_engine, killed)
    killed.kill()
    killed.communicate(timeout=60)
    assert left(docker_engine, killed) != []
    assert many.communicate(timeout=300)[0].split() == ["4"] * RUNS
    assert left(docker_engine, many) == []

    assert runner(image, "exit 5", 1).communicate(timeout=60)[0].split() == ["5"]
    assert left(docker_engine, killed) == []
    assert {network.name for network in docker_engine.networks.list()} <= networks


@pytest.mark.parametrize("tracer", ["", "where it can"], ids=["docker", "traced"])
def test_a_container_without_a_runner_ends_by_itself(tracer, docker_engine, image):
    process = runner(image, "sleep 600", 1, tracer)
    wait_until_it_runs(docker_engine, process)
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 60
    while any(
        container.labels["dmsim.run"].startswith(f"{process.pid}-")
        for container in docker_engine.containers.list(filters={"label": "dmsim.run"}, ignore_removed=True)
    ):
        assert time.monotonic() < deadline
        time.sleep(0.2)
