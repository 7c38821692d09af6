"""The recordings of the real vfio-manage, replayed on the model."""

from __future__ import annotations

import copy
import json
from functools import cache

import pytest

from simulator.reading import InputError
from simulator.recordings.comparing import vfio_mismatches
from simulator.recordings.layout import VFIO_MANAGE, pack, read_folder
from simulator.recordings.replaying import differences, replayed
from simulator.vfio.releases import CHANGES
from tests.recorded import recorded

CASES = {"v0.9.1": 312, "v0.10.0": 324, "v0.11.0": 324, "v0.12.0": 324}


@cache
def recordings():
    return [recording for recording in recorded() if recording.program == VFIO_MANAGE]


def of(release):
    return [recording for recording in recordings() if recording.release == release]


def one(case, release="v0.10.0"):
    return next(recording for recording in of(release) if recording.case == case)


@pytest.mark.slow
@pytest.mark.parametrize("release", CASES)
def test_every_recording_replays(release):
    """The model's trace equals the real program's, in every recorded case."""
    found = of(release)
    assert len(found) == CASES[release]
    wrong = {recording.case: list(map(str, differences(recording, replayed(recording)))) for recording in found}
    assert {case: texts for case, texts in wrong.items() if texts} == {}


@pytest.mark.slow
@pytest.mark.parametrize("change", [change.name for changed in CHANGES.values() for change in changed])
def test_each_named_change_matters(change):
    """Without a named change some recording no longer replays: of the release that brought it, or of the first one recorded."""
    tags = list(CHANGES)
    brought = next(tag for tag, changed in CHANGES.items() if change in {entry.name for entry in changed})
    release = next(tag for tag in tags[tags.index(brought) :] if of(tag))
    without = frozenset({change})
    assert any(differences(recording, replayed(recording, without=without)) for recording in of(release))


@pytest.mark.slow
def test_the_two_shell_releases_are_one():
    """What v0.9.1 was recorded to do, v0.9.0 does too."""
    for recording in of("v0.9.1"):
        assert not vfio_mismatches("v0.9.0", recording.observed, replayed(recording))


CHANGED = {
    "exit code": lambda step: step.update(exit_code=7),
    "a log text": lambda step: step["log"][0].update(msg="other"),
    "a log level": lambda step: step["log"][0].update(level="error"),
    "a written text": lambda step: step["writes"][0].update(text="x"),
    "a write's result": lambda step: step["writes"][0].update(result="EBUSY"),
    "a missing write": lambda step: step["writes"].pop(),
    "a child process": lambda step: step["exec"].pop(),
    "a modprobe": lambda step: step["modprobe"][0].update(root="/host"),
    "the order": lambda step: step["timeline"].reverse(),
    "a driver": lambda step: step["devices_after"]["0000:41:00.0"].update(driver="nvidia"),
    "a driver directory": lambda step: step["drivers_after"].append("x"),
    "standard output": lambda step: step.update(stdout="more\n"),
    "standard error": lambda step: step.update(stderr_other="more\n"),
}


@pytest.mark.parametrize("what", CHANGED)
def test_the_comparison_notices(what):
    """Any single field that is changed is one mismatch that names the step and the field."""
    recording = one("a10-nvidia-bind")
    observed = replayed(recording)
    assert not differences(recording, observed)
    changed = copy.deepcopy(observed)
    CHANGED[what](changed["steps"][0])
    (found,) = differences(recording, changed)
    assert found.field.startswith("step 0: ")


def test_the_comparison_forgives_what_it_must():
    """BusyBox's words on standard error, and coreutils' exit code for a root that is not there."""
    script = one("cli-bind-neither", "v0.9.1")
    observed = replayed(script)
    observed["steps"][0]["stderr_other"] = "ash: other words\n"
    assert not differences(script, observed)
    absent = one("hostroot-absent-all")
    observed = json.loads(json.dumps(replayed(absent)).replace("exit status 1", "exit status 125"))
    assert not differences(absent, observed)


def test_a_missing_step_is_a_mismatch():
    """Two observations with different numbers of steps differ."""
    recording = one("trip-bind-unbind")
    observed = replayed(recording)
    observed["steps"].pop()
    assert [found.field for found in differences(recording, observed)] == ["steps"]


def test_packing(tmp_path):
    """A folder as recorded, packed, reads as before, beside another program's."""
    wanted = {case: one(case) for case in ("a10-nvidia-bind", "trip-grace")}
    (tmp_path / "cases").mkdir()
    (tmp_path / "recordings/v0.10.0").mkdir(parents=True)
    for case, recording in wanted.items():
        (tmp_path / f"cases/{case}.json").write_text(json.dumps({"id": case, "input": recording.input}))
        document = {"id": case, "upstream": "v0.10.0", "observed": recording.observed}
        (tmp_path / f"recordings/v0.10.0/{case}.json").write_text(json.dumps(document))
    out = tmp_path / "packed"
    out.mkdir()
    assert [path.name for path in pack(tmp_path, out, ["v0.10.0"])] == ["vfio-manage.json.xz", "vfio-manage-v0.10.0.json.xz"]
    read = {recording.case: recording for recording in read_folder(out)}
    assert {case: (entry.input, entry.observed, entry.program) for case, entry in read.items()} == {
        case: (recording.input, recording.observed, VFIO_MANAGE) for case, recording in wanted.items()
    }


def test_an_input_of_another_form():
    """Is one error that names the recording."""
    recording = one("a10-nvidia-bind")
    for broken in ({"steps": [{}]}, {"steps": 1}, {**recording.input, "faults": [{"path": "/x", "error": "ENOSUCH"}]}):
        spoiled = type(recording)("spoiled", "v0.10.0", broken, recording.observed, "spoiled.json")
        with pytest.raises(InputError, match=r"spoiled\.json"):
            replayed(spoiled)


def test_a_release_that_is_not_modelled():
    """Is one error."""
    recording = one("a10-nvidia-bind")
    with pytest.raises(InputError, match=r"v9\.9\.9"):
        replayed(type(recording)("x", "v9.9.9", recording.input, recording.observed, "x.json"))
