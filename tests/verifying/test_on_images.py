"""`dmsim record` and `dmsim verify` on a real image: the stand-in, which is the model as a process, in a container."""

from __future__ import annotations

import json
import re

import pytest

from simulator.cli.main import main
from simulator.runners.container.engine import LABEL, own_mark
from simulator.scenario import load_scenario
from simulator.standin.image import build
from simulator.verifying.images import look_up

pytestmark = [pytest.mark.container, pytest.mark.slow]

RELEASE = "v0.12.0"
SEED = "8"
"""Of worlds that are over within twelve seconds, each with requests and calls of the kernel; a machine that is seconds late
changes hardly one."""
QUICK_SEED = "3"
"""Of worlds that are over within two seconds and five."""


@pytest.fixture(scope="module")
def image(docker_engine):
    """The stand-in's image; afterwards no container of ours is left."""
    yield build(docker_engine, RELEASE)
    assert not docker_engine.containers.list(all=True, filters={"label": f"{LABEL}={own_mark()}"})


def call(capsys, *argv):
    """Exit code and lines of standard output."""
    code = main(argv)
    return code, capsys.readouterr().out.splitlines()


def test_an_image_says_which_it_is(docker_engine, image):
    """Its id, and the release by its tag."""
    found = look_up(image)
    assert (found.id, found.release) == (docker_engine.images.get(image).id, RELEASE)


def test_random_worlds_are_equal(capsys, image, tmp_path):
    """On a real file system, in real processes, over a real network, in real time."""
    code, out = call(capsys, "verify", "--image", image, "--random", "8", "--seed", SEED, "--jobs", "4", "--out", str(tmp_path))
    assert re.match(r"[5-8] equal, 0 differ, [0-3] excluded", out[-1]), out
    assert code == 0
    assert not list(tmp_path.iterdir())


def test_a_planted_fault_is_found_and_made_small(capsys, image, tmp_path):
    """A named change left out of the model: one kind of difference, in a world that dmsim runs."""
    argv = ("verify", "--image", image, "--without", "gpu-client-label", "--random", "2", "--seed", QUICK_SEED, "--jobs", "4")
    code, out = call(capsys, *argv, "--shrink-runs", "24", "--out", str(tmp_path))
    assert code == 1
    path = tmp_path / "difference-1.yaml"
    assert "nvidia.com/gpu.deploy.client" in path.read_text(), out
    world = load_scenario(path).world
    assert len((*world.cluster.pods, *world.cluster.faults, *world.host.modules, *world.host.pci)) <= 1
    assert main(("run", "--world", str(path))) == 0


def test_cases_are_recorded_and_replay(capsys, image, tmp_path):
    """What is recorded of the stand-in equals the model, as `verify --recorded` says."""
    argv = ("record", "--image", image, "--out", str(tmp_path), "-k", "drain-umount", "--jobs", "4")
    code, out = call(capsys, *argv)
    assert (code, out[-1].split(",")[0]) == (0, "2 recorded")
    code, out = call(capsys, *argv)
    assert (code, out[-1].split(",")[:2]) == (0, ["0 recorded", " 2 kept"])
    code, out = call(capsys, "verify", "--recorded", str(tmp_path / RELEASE), "-k", "drain-umount", "-o", "json")
    worlds = json.loads("\n".join(out))["worlds"]
    assert len(worlds) == 2
    different = {difference["field"] for world in worlds for difference in world["differences"]}
    assert different <= {"elapsed_s", "second of request"}, "a machine with much to do may be slow, and no more than that"
