"""Renderings of Cozystack's charts, replayed."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import pytest

from simulator.cli.main import main
from simulator.reading import InputError
from simulator.recordings.cozystack_observation import HELM_4
from simulator.recordings.layout import COZYSTACK, Recording, pack, read_folder
from simulator.recordings.replaying import differences, replayed
from simulator.scenario import fixtures


@cache
def recordings():
    return list(read_folder(fixtures() / "recordings", COZYSTACK))


def as_recorded(folder, entries):
    for entry in entries:
        document = {"id": entry.case, "engines": [], **entry.input, "observed": entry.observed, **entry.others}
        (folder / f"{entry.case}.json").write_text(json.dumps(document))


def test_every_recording_replays():
    """Nothing is forgiven."""
    assert len(recordings()) == 36
    assert {entry.release for entry in recordings()} == {"v1.6.2"}
    assert [entry.case for entry in recordings() if differences(entry, replayed(entry))] == []


def test_a_recording_that_differs_is_noticed():
    """Whichever part of it is another."""
    for entry in recordings():
        for key in entry.observed:
            broken = replace(entry, observed={**entry.observed, key: "another"})
            assert [mismatch.field for mismatch in differences(broken, replayed(entry))] == [key]


@pytest.mark.slow
def test_the_form_in_which_they_are_made(tmp_path, capsys):
    """Is replayed and written as it stands, and packs into what the project carries."""
    as_recorded(tmp_path, recordings())
    assert main(["replay", str(tmp_path), "--write", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == "36 passed, 0 failed\n"
    for entry in recordings():
        assert json.loads((tmp_path / f"out/v1.6.2/{entry.case}.json").read_text())["observed"] == entry.observed
    (tmp_path / "packed").mkdir()
    pack(tmp_path, tmp_path / "packed", ["v1.6.2"])
    packed = {entry.case: entry for entry in read_folder(tmp_path / "packed")}
    assert {case: (entry.input, entry.observed) for case, entry in packed.items()} == {
        entry.case: (entry.input, entry.observed) for entry in recordings()
    }


def test_where_helm_4_says_otherwise(tmp_path, capsys):
    """It is a further observation: compared, written, packed."""
    values = {"bundles": {"system": {"enabled": True}, "iaas": None}}
    made = Recording("a", "v1.6.2", {"chart": "cozystack v1.6.2 core, ...", "values": values}, {}, "a.json", neighbour=COZYSTACK)
    name = "cozy-platform/templates/bundles/iaas.yaml"
    problem = "nil pointer evaluating interface {}.enabled"
    executing = f'executing "{name}" at <.Values.bundles.iaas.enabled>:'
    helm_4 = {"error": f"{name}:1:18\n  {executing}\n    {problem}"}
    made = replace(made, observed={"error": f"template: {name}:1:18: {executing} {problem}"}, others={HELM_4: helm_4})
    assert differences(made, replayed(made)) == []
    assert [found.field for found in differences(replace(made, others={}), replayed(made))] == [HELM_4]
    other = replace(made, others={HELM_4: {"error": "x"}})
    assert [found.field for found in differences(other, replayed(made))] == [HELM_4]
    as_recorded(tmp_path, [made])
    assert main(["replay", str(tmp_path), "--write", str(tmp_path / "out")]) == 0
    written = json.loads((tmp_path / "out/v1.6.2/a.json").read_text())
    assert (written["observed"], written[HELM_4]) == (made.observed, helm_4)
    (tmp_path / "packed").mkdir()
    pack(tmp_path, tmp_path / "packed", ["v1.6.2"])
    (read,) = read_folder(tmp_path / "packed")
    assert read.others == made.others
    assert capsys.readouterr().out == "1 passed, 0 failed\n"


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"observed": {}}, "no recording of a known form"),
        ({"observed": {}, "chart": "other v1 x"}, "no recording of a known form"),
        ({"observed": {}, "chart": "cozystack ../x y"}, "which is no name"),
        ({"observed": {}, "chart": "cozystack v0.1.0 x", "values": {}}, "which is not known"),
        ({"observed": {}, "chart": "cozystack v1.6.2 x", "values": 5}, r"input\.values is the number 5"),
        (
            {"observed": {}, "chart": "cozystack v1.6.2 x", "variant": "none"},
            r'input\.variant is "none"; write "default" or "vgpu"',
        ),
    ],
)
def test_a_file_of_another_form(tmp_path, document, problem):
    """Is one error."""
    (tmp_path / "a.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=problem):
        list(map(replayed, read_folder(tmp_path)))
