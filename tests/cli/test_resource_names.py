"""`dmsim resource-names`."""

from __future__ import annotations

import json

from simulator.cli.main import main
from simulator.recordings.layout import PLUGIN, read_folder
from simulator.scenario import fixtures


def test_every_name_of_the_plugins_own_file(capsys):
    """Is printed as the recorded plugin gave it, with or without the file named."""
    assert main(["resource-names"]) == 0
    printed = capsys.readouterr().out
    recorded = next(entry for entry in read_folder(fixtures() / "recordings", PLUGIN) if entry.case == "names-bundled")
    assert [line.split("\t") for line in printed.splitlines()] == recorded.observed["names"]
    assert main(["resource-names", "--pci-ids", str(fixtures() / "pci.ids")]) == 0
    assert capsys.readouterr().out == printed


def test_devices_of_one_name(tmp_path, capsys):
    """Are shown together, as text and as JSON."""
    path = tmp_path / "pci.ids"
    path.write_text("10de  NVIDIA\n\t1111  One\n\t1112  Two\n\t2222  [one]\n\t3333  \n")
    assert main(["resource-names", "--pci-ids", str(path), "--shared"]) == 0
    assert capsys.readouterr().out == "1111\tOne\tnvidia.com/ONE\n2222\t[one]\tnvidia.com/ONE\n"
    assert main(["resource-names", "--pci-ids", str(path), "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == 1
    assert document["devices"][-1] == {"id": "3333", "name": "", "resource": "nvidia.com/3333"}


def test_a_file_of_other_bytes(tmp_path, capsys):
    """Cannot steer a terminal, and cannot end in a traceback."""
    path = tmp_path / "pci.ids"
    path.write_bytes(b"10de\n\t1111  \x1b[2J\xff\tA\n")
    assert main(["resource-names", "--pci-ids", str(path)]) == 0
    assert capsys.readouterr().out == "1111\t\\x1b[2J\\udcff\\tA\tnvidia.com/2J_A\n"


def test_bad_files(tmp_path, capsys):
    """Are one message."""
    (tmp_path / "empty").write_text("")
    assert main(["resource-names", "--pci-ids", str(tmp_path / "empty")]) == 2
    assert main(["resource-names", "--pci-ids", str(tmp_path)]) == 2
    assert main(["resource-names", "--pci-ids", str(tmp_path / "none")]) == 2
    first, second, third = capsys.readouterr().err.splitlines()
    assert first.endswith("empty: has no device of vendor 10de; name a pci.ids file")
    assert "is a directory" in second
    assert "does not exist" in third
