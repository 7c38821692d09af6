"""Recordings made of an image."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from simulator.recordings.layout import read_cases, read_folder
from simulator.recordings.replaying import differences, replayed
from simulator.runners.container.unfit import Unfit
from simulator.scenario import fixtures
from simulator.verifying.recorder import Recorded, Recorder

CASES = list(read_cases(fixtures() / "recordings"))
FEW = CASES[::60]


def recorded(path, image, **settings):
    return sorted(Recorder(path, "v0.12.0", "sha256:1").record(FEW, image, **settings), key=lambda item: item.case)


def test_a_recording_of_the_model_replays(tmp_path, model_image):
    """What is written is a folder of recordings beside its cases, and equals the model."""
    image = model_image()
    assert recorded(tmp_path / "recordings", image, jobs=3) == [Recorded(case.case) for case in FEW]
    assert len(image.worlds) == len(FEW)
    for case in FEW:
        path = tmp_path / "cases" / f"{case.case}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"id": case.case, "input": case.input}))
    read = list(read_folder(tmp_path))
    assert [(recording.case, recording.release) for recording in read] == [(case.case, "v0.12.0") for case in FEW]
    assert not any(differences(recording, replayed(recording)) for recording in read)


def test_what_is_recorded_is_kept(tmp_path, model_image):
    """Unless it is of another image or input, is broken, or is wanted again."""
    recorded(tmp_path, model_image())
    image = model_image()
    assert all(item.kept for item in recorded(tmp_path, image))
    assert not image.worlds
    (tmp_path / "v0.12.0" / f"{FEW[1].case}.json").write_text('{"id": "half')
    assert [item.kept for item in recorded(tmp_path, image)] == [True, False] + [True] * (len(FEW) - 2)
    other = Recorder(tmp_path, "v0.12.0", "sha256:2")
    assert not any(other.is_recorded(case) for case in FEW)
    changed = replace(FEW[0], input={**FEW[0].input, "max_s": 9})
    assert not Recorder(tmp_path, "v0.12.0", "sha256:1").is_recorded(changed)
    image = model_image()
    assert not any(item.kept for item in recorded(tmp_path, image, again=True))
    assert len(image.worlds) == len(FEW)


@pytest.mark.parametrize("jobs", [1, 3])
def test_an_interrupted_recording_is_gone_on_with(tmp_path, model_image, jobs):
    """No half file is left, no further case was run, and the next time only the others are."""
    met = []

    def interrupt(world):
        met.append(world)
        return KeyboardInterrupt() if len(met) == 3 else None

    interrupted = model_image(fails=interrupt)
    with pytest.raises(KeyboardInterrupt):
        recorded(tmp_path, interrupted, jobs=jobs)
    assert interrupted.cancelled
    files = sorted(tmp_path.rglob("*"))
    assert 2 <= len([path for path in files if path.suffix == ".json"]) < len(FEW)
    assert not [path for path in files if path.name.endswith(".part")]
    assert all(json.loads(path.read_text())["observed"] for path in files if path.is_file())
    image = model_image()
    again = recorded(tmp_path, image)
    assert len(image.worlds) == sum(not item.kept for item in again) == len(FEW) - len(files) + 1


def test_a_case_that_does_not_fit_is_excluded(tmp_path, model_image):
    """With its reason; nothing is written for it, the others are."""
    image = model_image(fails=lambda world: Unfit("no") if world.host.name == FEW[2].case else None)
    out = recorded(tmp_path, image)
    assert [item.excluded for item in out] == ["", "", "no"] + [""] * (len(FEW) - 3)
    assert len(list(tmp_path.rglob("*.json"))) == len(FEW) - 1


def test_runs_are_bounded(tmp_path, model_image):
    """At most so many at once."""
    image = model_image()
    recorded(tmp_path, image, jobs=2)
    assert image.most_at_once <= 2
