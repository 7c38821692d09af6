"""`dmsim hosts import` and `dmsim run --host-image`."""

from __future__ import annotations

import pytest

from simulator.cli import arguments
from simulator.cli.main import main
from simulator.importing.sources import import_named
from tests.importing.made import ORDINARY, as_directory

UNKNOWN = {**ORDINARY, "/usr/bin/nvidia-smi": b"#!/bin/bash\ncat /proc/driver/nvidia/version\n", "/bin/bash": b"x"}


@pytest.fixture
def node(tmp_path):
    """A root whose nvidia-smi does what cannot be told."""
    as_directory(tmp_path / "node", UNKNOWN).close()
    return str(tmp_path / "node")


def test_what_is_imported_can_be_run(capsys, tmp_path, node):
    """The written file is a host file, with what was assumed above it."""
    path = tmp_path / "host.yaml"
    assert main(["hosts", "import", node, "-o", str(path)]) == 0
    assert capsys.readouterr().out == ""
    assert path.read_text().startswith("# Assumed:\n# - /usr/bin/nvidia-smi is a script that does more than print fixed text: ")
    assert main(["run", "--host", str(path), "--env", "NODE_NAME=gpu-1", "--exit-code"]) == 1
    assert "Host driver detected: unknown" in capsys.readouterr().out
    assert main(["hosts", str(path)]) == 0
    assert "nvidia-smi   /usr/bin/nvidia-smi: a program that prints 'unknown\\n' and exits with 0" in capsys.readouterr().out


def test_it_is_printed_unless_a_file_is_named(capsys, tmp_path, node):
    """On standard output, the same text."""
    path = tmp_path / "host.yaml"
    assert main(["hosts", "import", node]) == main(["hosts", "import", node, "-o", str(path)]) == 0
    assert capsys.readouterr().out == path.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["{}", "-o", "/no/such/folder/x"],
            "dmsim hosts import: /no/such/folder/x: cannot be written: No such file or directory; name another file",
        ),
        (["/no/such/root"], 'dmsim hosts import: there is no file "/no/such/root", and no image can be named so; check the path'),
        (["{}/usr/bin/nvidia-smi"], "/usr/bin/nvidia-smi: is no tar archive, or a damaged one: "),
    ],
)
def test_bad_input(capsys, node, arguments, message):
    """One message, exit code 2."""
    assert main(["hosts", "import", *(argument.format(node) for argument in arguments)]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


def test_a_host_image_is_imported_and_run(capsys, monkeypatch, node):
    """What was assumed is told on standard error, apart from the log."""
    monkeypatch.setattr(arguments, "import_image", lambda reference: import_named(node) if reference == "mine:1" else None)
    assert main(["run", "--host-image", "mine:1", "--env", "NODE_NAME=gpu-1"]) == 0
    captured = capsys.readouterr()
    assert "Host driver detected: unknown" in captured.out
    assert captured.err.startswith("Assumed:\n- /usr/bin/nvidia-smi is a script")


@pytest.mark.parametrize("other", ["--host", "--world"])
def test_a_run_has_one_host(capsys, other):
    """Only one of the ways to name it."""
    with pytest.raises(SystemExit) as stopped:
        main(["run", "--host-image", "x", other, "clean"])
    assert stopped.value.code == 2
    assert "not allowed with argument" in capsys.readouterr().err
