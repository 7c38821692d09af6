"""`dmsim host plan`."""

from __future__ import annotations

import json

import pytest

from simulator.cli.main import main
from simulator.snapshot.bundle import read_world_or_bundle


def test_text(capsys):
    """Lists, then numbered commands."""
    assert main(["host", "plan", "ubuntu-24.04-driver-580-open"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("ubuntu-24.04-driver-580-open: how to free its GPUs for vfio-pci\n\nremove (8):\n")
    assert "\n1. ask apt what it would do\n     apt-get -s " in out
    assert "\nnot known:\n" in out


def test_markdown(capsys):
    """Tables and fences; a step's expectation stands below it."""
    assert main(["host", "plan", "removed-not-purged", "-o", "markdown"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# Free the GPUs of removed-not-purged for vfio-pci\n\n## Remove\n\n| package | role | why |\n")
    assert "| `libnvidia-compute-580:i386` | driver (rc) |" in out
    assert out.count("```sh") == out.count("    ```\n")


def test_json(capsys):
    """A format version and all of the plan."""
    assert main(["host", "plan", "converged-gpu-rdma", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == 1
    assert document["purge"] == [item["name"] for item in (*document["remove"], *document["along"])]
    assert {item["name"] for item in document["keep"]} >= {"doca-ofed", "rdma-core"}


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_a_host_with_nothing_to_remove(form, capsys):
    """It says so."""
    assert main(["host", "plan", "clean", "-o", form]) == 0
    out = capsys.readouterr().out
    assert '"steps": []' in out if form == "json" else "othing to remove is known on this host" in out


def test_a_host_that_is_an_image(capsys):
    """There are no commands; it says why."""
    assert main(["host", "plan", "fedora-atomic-nvidia"]) == 0
    assert "what is on this host is part of its image: no command here removes it" in capsys.readouterr().out


def test_a_world_s_host(tmp_path, capsys):
    """By name or written in place."""
    world = tmp_path / "w.yaml"
    world.write_text("host: converged-gpu-rdma\nenv: {NODE_NAME: gpu-1}\n")
    assert main(["host", "plan", str(world)]) == 0
    assert capsys.readouterr().out.startswith("converged-gpu-rdma: ")


def test_a_bundle_s_host(tmp_path, capsys):
    """Saved objects without a host: nothing is known of packages, and the plan passes on what could not be seen."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-1", "labels": {"nvidia.com/gpu.present": "true"}}}
    (tmp_path / "node.json").write_text(json.dumps(node))
    unseen = read_world_or_bundle(tmp_path).unseen
    assert unseen
    for reference in (tmp_path, tmp_path / "node.json"):
        assert main(["host", "plan", str(reference), "-o", "json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["purge"] == []
        assert set(unseen) <= set(document["unknown"])


def test_bad_input(tmp_path, capsys):
    """One message with file, place and mend; exit 2."""
    host = tmp_path / "h.yaml"
    host.write_text("packages: {nvidia-smi: {version: '1', state: rc}}\n")
    assert main(["host", "plan", str(host)]) == 2
    assert 'packages.nvidia-smi has the unknown key "state"' in (said := capsys.readouterr().err), said
    assert main(["host", "plan", "converged"]) == 2
    assert "did you mean converged-gpu-rdma" in capsys.readouterr().err
    assert main(["host", "plan", ""]) == 2
    assert 'there is no host named ""' in capsys.readouterr().err
    assert main(["host", "plan", str(tmp_path / "missing.yaml")]) == 2
    assert "does not exist" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["host", "plan", str(tmp_path / "empty")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_terminal_cannot_be_steered(tmp_path, capsys):
    """Control characters of names are shown escaped, and words are quoted."""
    host = tmp_path / "h.yaml"
    host.write_text('os: {name: Ubuntu}\npackages: {"nvidia-driver\\u001b[31m": "1", "nvidia-utils-1;reboot": "1"}\n')
    assert main(["host", "plan", str(host)]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "purge" not in out


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_a_path_makes_no_line_of_its_own(form, tmp_path, capsys):
    """Whoever reads the plan would take it for a step."""
    host = tmp_path / "h\n1. trust this.yaml"
    host.write_text(
        'os: {name: Ubuntu}\nfiles: {"/etc/modules-load.d/x\\n2. run this | <b>": nvidia}\npackages: {"nvidia-utils-1": "1"}\n'
    )
    assert main(["host", "plan", str(host), "-o", form]) == 0
    out = capsys.readouterr().out
    assert not [line for line in out.splitlines() if line.startswith(("1. trust", "2. run"))]
    assert ("&lt;b>" in out) == (form == "markdown")
