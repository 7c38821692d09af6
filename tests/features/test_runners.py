"""The feature suite on a container: the options, what is left out, and scenarios on the stand-in's image."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.bdd.tags import SIMULATED_ONLY
from simulator.standin.image import build

ROOT = Path(__file__).parents[2]
RELEASE = "v0.10.0"


def features(*arguments):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:benchmark", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--runner=container"], "--dmsim-runner=container needs --dmsim-image REF, and --dmsim-release R"),
        (["--runner=container", "--image", "x"], "--dmsim-runner=container needs --dmsim-image REF, and --dmsim-release R"),
        (["--image", "x"], "--dmsim-image is for --dmsim-runner=container"),
        (["--runner=container", "--image", "x", "--release", "v0.10"], 'there is no release "v0.10"'),
    ],
)
def test_options_that_do_not_fit(arguments, words):
    """One error that says what is missing."""
    done = features("features/no_driver", *arguments)
    assert done.returncode == 4
    assert words in done.stderr


@pytest.mark.container
def test_what_no_image_can_show_is_left_out(docker_engine):
    """Each scenario with its reason, in the summary too; nothing is run for it, so that any name of an image will do."""
    done = features(
        "features/issue_191/what_if_force_unbind.feature", "--runner=container", "--image", "none", "--release", RELEASE
    )
    assert done.returncode == 0, done.stdout
    assert re.search(rf"scenarios excluded: (\d+)\n +\1 {SIMULATED_ONLY['what-if']}\n", done.stdout)
    assert "scenarios passed: 0\n" in done.stdout


@pytest.mark.container
@pytest.mark.slow
@pytest.mark.parametrize(
    ("chosen", "unseen"),
    [(("features/modules",), ""), (("features/modules", "features/no_driver", "--no-tracer"), "kernel")],
    ids=["traced", "docker"],
)
def test_scenarios_on_the_stand_in(docker_engine, chosen, unseen):
    """The same scenarios pass; what Docker alone cannot see is counted and not compared."""
    image = build(docker_engine, RELEASE)
    done = features(*chosen, "--longest=4", "-n4", "--runner=container", "--image", image, "--release", RELEASE)
    assert done.returncode == 0, done.stdout[-5000:]
    assert int(re.search(r"scenarios passed: (\d+)", done.stdout)[1]) >= 5, done.stdout[-2000:]
    missed = re.search(r"because unobserved: (\d+)\n((?:  \d+ \w+\n)*)", done.stdout)
    assert (int(missed[1]) > 0) is bool(unseen), done.stdout[-2000:]
    assert f" {unseen}\n" in missed[2] or not unseen
