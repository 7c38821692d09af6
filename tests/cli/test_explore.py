"""`dmsim explore`."""

from __future__ import annotations

import json

import pytest

from simulator.cli.main import main

NARROW = ["--faults", "0", "--pods", "0", "--polls", "0", "--labels", "0", "--odd-pods", "0", "--modules", "1"]


def test_outcomes_are_a_table_and_json(capsys):
    """The worst first; --outcome filters both."""
    assert main(["explore", "--release", "v0.9.0", *NARROW, "--outcome", "pre-installed"]) == 0
    head, row, _, tail = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["ID", "WALKS", "ENDS"]
    assert "pre-installed" in row
    assert "1 shown" in tail
    assert main(["explore", "--release", "v0.9.0", *NARROW, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["format"], document["release"], document["bounds"]["pods"]) == (1, "v0.9.0", 0)
    assert row.split()[0] in [outcome["id"] for outcome in document["outcomes"]]
    assert document["walks"] == sum(outcome["walks"] for outcome in document["outcomes"])


def test_a_witness_is_a_world_that_dmsim_run_takes(tmp_path, capsys):
    """It ends with the outcome's last line."""
    main(["explore", "--release", "v0.9.0", *NARROW, "--outcome", "pre-installed"])
    name = capsys.readouterr().out.splitlines()[1].split()[0]
    path = str(tmp_path / "witness.yaml")
    assert main(["explore", "--release", "v0.9.0", *NARROW, "--witness", name, "--write", path]) == 0
    assert capsys.readouterr().out == ""
    assert main(["run", "--world", path, "--release", "v0.9.0"]) == 0
    out = capsys.readouterr().out
    assert "driver is pre-installed on host" in out
    assert out.endswith("exit code 1\n")


def test_the_page_is_written_whole(tmp_path, capsys):
    """With the outcomes that --outcome leaves; a place that cannot be written is an error."""
    path = tmp_path / "atlas.html"
    arguments = ["explore", "--release", "v0.9.0", *NARROW, "--outcome", "pre-installed", "-o", "html", "--write"]
    assert main([*arguments, str(path)]) == 0
    assert path.read_text().count('"ends":"exit') == 1
    assert main([*arguments, str(path / "below")]) == 2
    assert capsys.readouterr().err.startswith("dmsim explore: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--release", "v0.8.1"], "v0.8.1 is a shell script, and the explorer walks Go releases; explore v0.9.0 or newer"),
        (
            ["--release", "v0.9.0", "--witness", "zzz", "-o", "json"],
            "--witness prints a world file, and -o and --outcome are of the atlas",
        ),
        (["--release", "v0.9.0", *NARROW, "--witness", "zzz"], 'no outcome within these bounds has the ID "zzz"'),
        (["--release", "v0.9.0", *NARROW, "--outcome", "zzz"], 'no outcome holds "zzz"'),
    ],
)
def test_what_cannot_be_explored_is_one_message(capsys, arguments, said):
    """Exit code 2."""
    assert main(["explore", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"dmsim explore: {said}")
    assert len(err.splitlines()) == 1


def test_a_bound_out_of_range_is_refused(capsys):
    """With the range."""
    with pytest.raises(SystemExit) as ended:
        main(["explore", "--modules", "7"])
    assert ended.value.code == 2
    assert '"7" is no number from 0 to 6' in capsys.readouterr().err
