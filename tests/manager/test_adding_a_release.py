"""docs/adding-a-release.md, done word for word: an invented v0.13.0 is added to a copy of the project, and dmsim knows it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from simulator.manager.releases import NEWEST
from simulator.recordings.layout import unpack
from simulator.report.named import named_changes
from simulator.scenario import fixtures

ROOT = fixtures().parent
GUIDE = (ROOT / "docs/adding-a-release.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"<!-- (file|patch): (\S+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LOADED = "container-driver-loaded"
CASES = ("digest-equal", "clean-paused", "api-resched-403", "hostdrv-usr-bin")

pytestmark = pytest.mark.slow


def patch(text, diff):
    """Replace each group of removed lines by the added lines after it."""
    removed, added = [], []
    for line in [*diff.splitlines(), "-"]:
        if line.startswith("-") and added:
            old = "".join(f"{part}\n" for part in removed)
            assert text.count(old) == 1, old
            text = text.replace(old, "".join(f"{part}\n" for part in added))
            removed, added = [], []
        (removed if line.startswith("-") else added).append(line[1:])
    return text


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project with the guide's steps done."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "simulator", folder / "simulator", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "fixtures", folder / "fixtures")
    blocks = BLOCK.findall(GUIDE)
    assert [path for _, path, _ in blocks] == [
        "simulator/manager/v0_13_0.py",
        "simulator/manager/releases.py",
        "simulator/manager/charts.py",
    ]
    for kind, path, text in blocks:
        file = folder / path
        if kind == "file":
            assert not file.exists()
            file.write_text(text, encoding="utf-8")
        else:
            file.write_text(patch(file.read_text(encoding="utf-8"), text), encoding="utf-8")
    return folder


def python(project, *argv):
    environment = {**os.environ, "PYTHONPATH": str(project), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", *argv]
    return subprocess.run(command, cwd=project, env=environment, text=True, capture_output=True, timeout=120, check=False)


def dmsim(project, *argv):
    done = python(project, "-m", "simulator", *argv)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_the_guide_is_about_a_release_that_is_not_here_yet():
    """Once v0.13.0 is real the guide needs another example."""
    assert NEWEST == "v0.12.0"


def test_releases_lists_it(project):
    """With its change and its chart."""
    found = json.loads(dmsim(project, "releases", "-o", "json"))
    newest = found["releases"][-1]
    assert (newest["tag"], newest["charts"]) == ("v0.13.0", ["v27.1.0"])
    assert [change["name"] for change in newest["changes"]] == ["rescheduling-told"]
    assert "drain-minds-daemonsets" in newest["quirks"]
    assert "last-unload-failure-reported" not in newest["quirks"]


def test_its_flow_resolves(project):
    """The step comes from the new change; all older changes are below."""
    text = dmsim(project, "releases", "--flow", "v0.13.0")
    assert re.search(r"^  reschedule_gpu_operator_components +rescheduling-told$", text, re.MULTILINE)
    assert all(named.change.name in text for named in named_changes("v0.12.0") if named.program == "driver-manager")


def test_run_knows_it(project):
    """The new line is in the log."""
    text = dmsim(project, "run", "--host", LOADED, "--release", "v0.13.0", "--env", "NODE_NAME=gpu-1")
    assert "msg=Rescheduled all GPU clients\n" in text


@pytest.mark.parametrize("argv", [("v0.12.0", "v0.13.0"), ("--chart", "v26.7.0", "v27.1.0")])
def test_compare_names_its_change(project, argv):
    """And nothing else."""
    found = json.loads(dmsim(project, "compare", *argv, "--host", LOADED, "-o", "json"))
    assert [change["name"] for change in found["changes"]] == ["rescheduling-told"]
    assert found["unnamed"] is None


RECORD = """
import json, sys
from pathlib import Path
from simulator.recordings.layout import Recording, unpack
from simulator.recordings.observation import observation
from simulator.recordings.worlds import world_of
from simulator.runners.simulated import simulate
from simulator.scenario import fixtures

folder = Path(sys.argv[1])
for part in ("cases", "recordings/v0.13.0"):
    (folder / part).mkdir(parents=True)
inputs = unpack(fixtures() / "recordings/driver-manager.json.xz")["cases"]
for case in sys.argv[2:]:
    observed = observation(simulate(world_of(Recording(case, "v0.13.0", inputs[case], {}, case)), "v0.13.0"))
    (folder / f"cases/{case}.json").write_text(json.dumps({"id": case, "input": inputs[case]}))
    document = {"id": case, "upstream": "v0.13.0", "observed": observed}
    (folder / f"recordings/v0.13.0/{case}.json").write_text(json.dumps(document))
"""
"""Stands for the recorder: what an invented program would have done."""


def test_replay_knows_it(project, tmp_path):
    """Recordings in the form that the guide names replay; without the named change they do not."""
    assert set(CASES) <= unpack(fixtures() / "recordings/driver-manager.json.xz")["cases"].keys()
    folder = tmp_path / "my-recordings"
    done = python(project, "-c", RECORD, str(folder), *CASES)
    assert done.returncode == 0, done.stderr
    assert dmsim(project, "replay", str(folder)) == f"{len(CASES)} passed, 0 failed\n"
    check = (
        "from pathlib import Path\n"
        "from simulator.recordings.layout import read_folder\n"
        "from simulator.recordings.replaying import differences, replayed\n"
        f"for found in read_folder(Path({str(folder)!r})):\n"
        "    wrong = differences(found, replayed(found, without=frozenset({'rescheduling-told'})))\n"
        "    print(found.case, bool(wrong))\n"
    )
    done = python(project, "-c", check)
    assert dict(line.split() for line in done.stdout.splitlines()) == {
        case: str(case in {"digest-equal", "clean-paused"}) for case in CASES
    }


def test_it_packs(project, tmp_path):
    """`simulator.recordings.layout.pack`, and the packed folder replays."""
    folder, out = tmp_path / "my-recordings", tmp_path / "packed"
    out.mkdir()
    assert python(project, "-c", RECORD, str(folder), *CASES).returncode == 0
    pack = f"from pathlib import Path\nfrom simulator.recordings.layout import pack\npack(Path({str(folder)!r}), Path({str(out)!r}), ['v0.13.0'])\n"
    done = python(project, "-c", pack)
    assert done.returncode == 0, done.stderr
    assert dmsim(project, "replay", str(out)) == f"{len(CASES)} passed, 0 failed\n"


def test_every_path_that_the_guide_names_exists():
    """In this project, but for the new release's own."""
    named = set(re.findall(r"`((?:simulator|tests|fixtures|docs)/[\w./-]+)`", GUIDE))
    assert named
    assert [path for path in named if "v0_13_0" not in path and not (ROOT / path).exists()] == []
