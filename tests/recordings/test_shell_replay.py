"""The recordings of the shell releases, replayed on the model."""

from __future__ import annotations

import copy
import json
from functools import cache

import pytest

from simulator.manager.releases import SHELL_RELEASES
from simulator.recordings.layout import SHELL_STEM, pack, read_folder
from simulator.recordings.replaying import differences, replayed
from tests.recorded import recorded

CASES = {"v0.4.2": 161, "v0.6.2": 161, "v0.8.1": 518, "v0.9.0": 109, "v0.9.1": 109}


@cache
def recordings(release):
    return [recording for recording in recorded() if recording.release == release and SHELL_STEM in recording.file]


@pytest.mark.slow
@pytest.mark.parametrize("release", CASES)
def test_every_recording_replays(release):
    """The script's, and those of the Go releases on the worlds that are new here."""
    found = recordings(release)
    assert len(found) == CASES[release]
    for recording in found:
        assert differences(recording, replayed(recording)) == [], recording.case


def one(case="user-upgrade-gpu-pod", release="v0.8.1"):
    return next(recording for recording in recordings(release) if recording.case == case)


CHANGES = {
    "exit code": lambda observed: observed.update(exit_code=7),
    "a line of the script": lambda observed: observed["stdout"].append("other"),
    "a line on standard error": lambda observed: observed["stderr"].append("other"),
    "the order of lines": lambda observed: observed["stdout"].reverse(),
    "a child process": lambda observed: observed["exec"].pop(),
    "a request's body": lambda observed: observed["api"][0].update(body={}),
    "a missing request": lambda observed: observed["api"].pop(),
    "an eviction": lambda observed: next(entry for entry in observed["api"] if entry["method"] == "POST").update(status=500),
    "a kernel call": lambda observed: observed["kernel"].pop(),
    "a label": lambda observed: observed["node_after"]["labels"].update(x="y"),
    "a pod": lambda observed: observed["pods_after"].append("a/b"),
    "a mount": lambda observed: observed["mounts_after"].append("/run/x"),
    "a file": lambda observed: observed["files_after"].update({"/run/nvidia/driver": False}),
    "a module": lambda observed: observed["modules_after"].append("x"),
    "the duration": lambda observed: observed.update(elapsed_s=observed["elapsed_s"] + 15),
}


@pytest.mark.parametrize("what", CHANGES)
def test_the_comparison_notices(what):
    """Any single field that is changed is a mismatch."""
    recording = one()
    changed = copy.deepcopy(replayed(recording))
    CHANGES[what](changed)
    assert differences(recording, changed)


def test_the_comparison_forgives_what_it_must():
    """The words of other programs, line numbers, stat's dates, polls."""
    recording = one("rdma-container-later")
    changed = copy.deepcopy(replayed(recording))
    changed["stderr"] += ["error: of kubectl's", 'time="T" level=info msg=x', "Warning: x"]
    changed["stdout"] = [line for line in changed["stdout"] if not line.startswith("  File: ")]
    at = changed["stdout"].index("Waiting for MOFED to be installed...")
    changed["stdout"].insert(at, changed["stdout"][at])
    changed["exec"].insert(changed["exec"].index(["sleep", "5"]), ["sleep", "5"])
    changed["elapsed_s"] += 5
    assert differences(recording, changed) == []


def test_what_the_machine_s_speed_decided_is_not_compared():
    """Of the ids that are listed for it, and of shell releases only."""
    recording = one("api-sigterm")
    changed = copy.deepcopy(replayed(recording))
    assert "exec" in recording.time_bound
    changed["exec"] = []
    assert differences(recording, changed) == []
    assert all(not recording.time_bound for recording in recordings("v0.9.0"))


def test_the_trace_tells_children_from_their_start():
    """A program stands before what it did, with the exit code it ended with."""
    observed = replayed(one())
    kinds = [kind for _, kind, _ in observed["timeline"]]
    assert kinds.index("exec") < kinds.index("api")
    assert set(observed) >= {"stdout", "stderr", "exec", "api", "api_reads", "kernel", "timeline", "elapsed_s"}


def test_packing_keeps_everything(tmp_path):
    """A folder as recorded, packed, is read as before, with the fields that are not compared."""
    recording = one("api-sigterm")
    (tmp_path / "cases").mkdir()
    (tmp_path / "recordings/v0.8.1").mkdir(parents=True)
    (tmp_path / "cases/api-sigterm.json").write_text(json.dumps({"id": "api-sigterm", "input": recording.input}))
    (tmp_path / "recordings/v0.8.1/api-sigterm.json").write_text(json.dumps({"observed": recording.observed}))
    (tmp_path / "time_bound.json").write_text(json.dumps({"api-sigterm": ["exec", "api"]}))
    out = tmp_path / "out"
    out.mkdir()
    assert [path.name for path in pack(tmp_path, out, ["v0.8.1"])] == ["shell-releases.json.xz", "shell-releases-v0.8.1.json.xz"]
    (read,) = read_folder(out)
    assert (read.case, read.release, read.input, read.observed) == ("api-sigterm", "v0.8.1", recording.input, recording.observed)
    assert read.time_bound == {"exec", "api"}


def test_shell_releases_are_packed():
    """All of them."""
    assert {tag for tag in SHELL_RELEASES if not recordings(tag)} == set()
