"""The recordings of the real program, replayed on the model."""

from __future__ import annotations

import copy
import itertools
import json
import lzma
import re
from dataclasses import replace
from functools import cache

import pytest

from simulator.manager.releases import GO_RELEASES
from simulator.reading import InputError
from simulator.recordings.comparing import mismatches
from simulator.recordings.layout import SHELL_STEM, read_folder
from simulator.recordings.observation import observation
from simulator.recordings.replaying import differences, replayed
from simulator.recordings.worlds import world_of
from simulator.runners.simulated import simulate
from tests.recorded import recorded

CASES = 408


@cache
def recordings(release):
    return [
        recording
        for recording in recorded()
        if recording.release == release and SHELL_STEM not in recording.file and "steps" not in recording.input
    ]


def simulated(recording):
    return json.loads(json.dumps(observation(simulate(world_of(recording), recording.release))))


@pytest.mark.slow
@pytest.mark.parametrize("release", GO_RELEASES)
def test_every_recording_replays(release):
    """The model's trace equals the real program's, in every recorded case."""
    found = recordings(release)
    assert len(found) == CASES
    for recording in found:
        assert not list(map(str, mismatches(release, recording.observed, simulated(recording)))), recording.case


def one(case="pods-shared", release="v0.10.0"):
    return next(recording for recording in recordings(release) if recording.case == case)


CHANGES = {
    "exit code": lambda observed: observed.update(exit_code=7),
    "panic": lambda observed: observed.update(panic="x"),
    "a log text": lambda observed: observed["log"][5].update(msg="other"),
    "a log level": lambda observed: observed["log"][5].update(level="error"),
    "a request's body": lambda observed: next(entry for entry in observed["api"] if entry["method"] == "PATCH").update(body={}),
    "a request's path": lambda observed: observed["api"][-1].update(path="/x"),
    "a request's status": lambda observed: observed["api"][-1].update(status=500),
    "a missing request": lambda observed: observed["api"].pop(),
    "a kernel call": lambda observed: observed["kernel"].pop(),
    "a kernel call's result": lambda observed: observed["kernel"][0].update(result="EBUSY"),
    "a child process": lambda observed: observed["exec"].pop(),
    "a label": lambda observed: observed["node_after"]["labels"].update(x="y"),
    "the cordon": lambda observed: observed["node_after"].update(unschedulable=True),
    "a pod": lambda observed: observed["pods_after"].append("a/b"),
    "a mount": lambda observed: observed["mounts_after"].append("/run/x"),
    "a file": lambda observed: observed["files_after"].update({"/run/nvidia/driver": False}),
    "a module": lambda observed: observed["modules_after"].append("x"),
    "standard output": lambda observed: observed.update(stdout=observed["stdout"] + "more\n"),
    "standard error": lambda observed: observed.update(stderr_other="more\n"),
    "the duration": lambda observed: observed.update(elapsed_s=observed["elapsed_s"] + 5),
    "a request's time": lambda observed: observed["api"][-1].update(t=observed["api"][-1]["t"] + 1.5),
    "the order": lambda observed: observed["timeline"].sort(key=lambda entry: entry[1]),
    "a dangling timeline": lambda observed: observed["timeline"].append([0.0, "log", 10**6]),
}


@pytest.mark.parametrize("what", CHANGES)
def test_the_comparison_notices(what):
    """Any single field that is changed is a mismatch."""
    recording = one()
    observed = simulated(recording)
    assert not mismatches("v0.10.0", recording.observed, observed)
    changed = copy.deepcopy(observed)
    CHANGES[what](changed)
    assert mismatches("v0.10.0", recording.observed, changed)


def test_the_comparison_forgives_what_it_must():
    """Polls folded, times within jitter, pods interleaved."""
    recording = one("wait-slow")
    observed = simulated(recording)
    changed = copy.deepcopy(observed)
    poll = max(index for index, entry in enumerate(changed["api"]) if "labelSelector" in entry["query"])
    changed["api"].insert(poll, dict(changed["api"][poll]))
    for entry in changed["api"]:
        entry["t"] = round(entry["t"] * 1.01 + 0.1, 1)
    changed["elapsed_s"] += 1
    changed["timeline"] = [
        [time, kind, index + 1 if kind == "api" and index >= poll else index] for time, kind, index in changed["timeline"]
    ]
    assert not mismatches("v0.10.0", recording.observed, changed)


def test_a_recording_that_names_another_release_is_not_equal():
    """The releases do differ: at least one case of each neighbouring pair."""
    tags = list(GO_RELEASES)
    for older, newer in itertools.pairwise(tags):
        by_case = {recording.case: recording for recording in recordings(newer)}
        assert any(mismatches(newer, by_case[recording.case].observed, recording.observed) for recording in recordings(older)), (
            older,
            newer,
        )


def test_folders_that_are_none(tmp_path):
    """One error each, with the mend."""
    with pytest.raises(InputError, match="does not exist"):
        list(read_folder(tmp_path / "x"))
    with pytest.raises(InputError, match="holds no recordings"):
        list(read_folder(tmp_path))
    (tmp_path / "driver-manager.json.xz").write_bytes(b"no xz")
    (tmp_path / "driver-manager-v0.10.0.json.xz").write_bytes(b"")
    with pytest.raises(InputError, match="is damaged"):
        list(read_folder(tmp_path))


@pytest.mark.parametrize(
    ("cases", "observed", "words"),
    [
        ([], {}, 'lacks the key "cases"'),
        ({}, [], 'lacks the key "observed"'),
        ({"a": {}}, {"a": 5}, "is no recording, or has no input in driver-manager.json.xz"),
        ({}, {"a": {}}, "is no recording, or has no input in driver-manager.json.xz"),
        ({"../a": {}}, {"../a": {}}, "which is no name; write letters"),
        ({"/a": {}}, {"/a": {}}, "which is no name; write letters"),
        ({"a" * 101: {}}, {"a" * 101: {}}, "which is no name; write letters"),
    ],
)
def test_a_packed_folder_that_makes_no_sense(tmp_path, cases, observed, words):
    """One error that names the file; a case's name cannot lead `replay --write` out of its folder."""

    def write(name, document):
        (tmp_path / name).write_bytes(lzma.compress(json.dumps(document).encode()))

    write("driver-manager.json.xz", {"cases": cases})
    write("driver-manager-v0.10.0.json.xz", {"release": "v0.10.0", "observed": observed})
    with pytest.raises(InputError, match=re.escape(words)):
        list(read_folder(tmp_path))
    write("driver-manager-v0.10.0.json.xz", {"release": "../v0.10.0", "observed": observed})
    if isinstance(observed, dict) and isinstance(cases, dict):
        with pytest.raises(InputError, match=r"release holds '\.\./v0\.10\.0', which is no name"):
            list(read_folder(tmp_path))


def test_an_unpacked_folder(tmp_path):
    """Is read as recorded; a broken file is one error that names it."""
    recording = one()
    (tmp_path / "cases").mkdir()
    (tmp_path / "recordings/v0.10.0").mkdir(parents=True)
    (tmp_path / "cases/a.json").write_text(json.dumps({"id": "a", "input": recording.input}))
    path = tmp_path / "recordings/v0.10.0/a.json"
    path.write_text(json.dumps({"id": "a", "upstream": "v0.10.0", "observed": recording.observed}))
    (read,) = read_folder(tmp_path)
    assert (read.case, read.release, read.input, read.observed) == ("a", "v0.10.0", recording.input, recording.observed)
    for text in ("{", "[]", '{"id": "a"}'):
        path.write_text(text)
        with pytest.raises(InputError, match=r"a\.json"):
            list(read_folder(tmp_path))


@pytest.mark.parametrize("program", ["driver-manager", "vfio-manage"])
@pytest.mark.parametrize(
    ("part", "change"),
    [("input", {"args": 5, "steps": 5}), ("observed", {"elapsed_s": 10**400, "api": [{"t": 10**400}], "steps": 5})],
)
def test_a_recording_of_another_form(program, part, change):
    """Is one error that names the part, for both programs."""
    recording = next(read for read in recorded() if read.program == program)
    kept = {key: value for key, value in change.items() if key in getattr(recording, part)}
    assert kept
    broken = replace(recording, **{part: {**getattr(recording, part), **kept}})
    with pytest.raises(InputError) as failure:
        differences(broken, replayed(broken))
    assert failure.value.file == recording.file
    assert failure.value.place.startswith(f"{part}.")
