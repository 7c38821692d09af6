"""Cases, recorded or not, and recordings written."""

from __future__ import annotations

import json
import lzma

import pytest

from simulator.reading import InputError
from simulator.recordings.layout import VFIO_MANAGE, read_cases, write_recording, write_whole
from simulator.scenario import fixtures


def test_the_cases_that_come_along():
    """Of either program, by id, not recorded yet."""
    cases = list(read_cases(fixtures() / "recordings"))
    assert len(cases) == 408
    assert [case.case for case in cases] == sorted(case.case for case in cases)
    assert not any(case.release or case.observed or "steps" in case.input for case in cases)
    assert all("steps" in case.input for case in read_cases(fixtures() / "recordings", VFIO_MANAGE))


def test_a_folder_of_cases_needs_no_recordings(tmp_path):
    """`cases/ID.json` is enough."""
    (tmp_path / "cases").mkdir()
    for name in ("b", "a"):
        (tmp_path / "cases" / f"{name}.json").write_text(json.dumps({"id": name, "input": {"args": [name]}}))
    assert [(case.case, case.input) for case in read_cases(tmp_path)] == [("a", {"args": ["a"]}), ("b", {"args": ["b"]})]


@pytest.mark.parametrize("text", ["{", "[]", '{"input": 5}', '{"id": "a"}'])
def test_a_case_that_is_none(tmp_path, text):
    """One error that names the file."""
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases/a.json").write_text(text)
    with pytest.raises(InputError, match=r"cases/a\.json"):
        list(read_cases(tmp_path))


@pytest.mark.parametrize("name", ["../a", "/a", "", "a" * 101, "a b"])
def test_a_name_that_could_lead_out_of_a_folder(tmp_path, name):
    """Is refused, packed or not."""
    (tmp_path / "driver-manager.json.xz").write_bytes(lzma.compress(json.dumps({"cases": {name: {}}}).encode()))
    with pytest.raises(InputError, match="which is no name"):
        list(read_cases(tmp_path))


def test_a_recording_is_written_whole(tmp_path):
    """What was there goes in one step, and a link that lies there is not followed."""
    write_recording(tmp_path, "v1", "a", {"x": 1})
    write_recording(tmp_path, "v1", "a", {"x": "ü"}, made={"image": "i"})
    path = tmp_path / "v1/a.json"
    assert json.loads(path.read_text("utf-8")) == {"id": "a", "upstream": "v1", "made": {"image": "i"}, "observed": {"x": "ü"}}
    assert [entry.name for entry in path.parent.iterdir()] == ["a.json"]


def test_a_file_that_cannot_be_written(tmp_path):
    """One error, nothing half done."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"is no folder|cannot be made"):
        write_whole(tmp_path / "file" / "x.yaml", "text")
    (tmp_path / "x.yaml").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write_whole(tmp_path / "x.yaml", "text")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "x.yaml"]
