"""`dmsim hosts`: the list, one host in full, and the table of verdicts."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from simulator.cli.main import main
from simulator.host.spec import KINDS
from simulator.manager.releases import DEFAULT, GO_RELEASES, NEWEST
from simulator.report.hosts import FALSE_NEGATIVE, FALSE_POSITIVE, judge, named_hosts
from simulator.scenario import load_host, names

HOSTS = names("hosts")
FIRST_GPU = 'gpus: [{address: "0000:18:00.0"}]\n'


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    code = main(["hosts", *arguments])
    captured = capsys.readouterr()
    return code, (captured.out + captured.err).splitlines()


@pytest.fixture
def lying(tmp_path: Path) -> str:
    """A host whose file expects the opposite of what the host check says."""
    path = tmp_path / "lying.yaml"
    path.write_text(FIRST_GPU + "verdict: {host_check: true, driver: true}\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("release", GO_RELEASES)
@pytest.mark.parametrize("name", HOSTS)
def test_the_host_check_says_what_the_file_expects(name, release):
    """Each named host's expected answer is that of each release's simulated host check."""
    judgement = judge(load_host(name), release)
    assert judgement.is_expected
    assert (judgement.exit_code == 0) or not judgement.host_check


def test_the_list(capsys):
    """Without a name, every host is listed with its kind and description, in the order of the kinds."""
    code, lines = run(capsys)
    assert code == 0
    assert lines[0].split() == ["HOST", "KIND", "DESCRIPTION"]
    assert lines[1].split()[:2] == ["clean", "A1"]
    assert [line.split()[0] for line in lines[1:-1]] == [host.name for host in named_hosts()]
    assert lines[-1] == f"{len(HOSTS)} hosts of {len(KINDS)} kinds"


def test_the_list_as_a_document(capsys):
    """The list as JSON has a format version, and each host's name, kind and description."""
    code = main(["hosts", "-o", "json"])
    document = json.loads(capsys.readouterr().out)
    assert (code, document["format"]) == (0, 1)
    assert {host["name"] for host in document["hosts"]} == set(HOSTS)
    assert [*document["hosts"][0]] == ["name", "kind", "description"]


def test_one_host_in_full(capsys):
    """A host's page tells its description, source, GPUs, modules, programs, and both halves of the verdict."""
    code, lines = run(capsys, "debian-12-driver-535")
    assert code == 0
    assert lines[:2] == ["name         debian-12-driver-535", "kind         A9"]
    assert "GPUs         0000:18:00.0  10de:2236  3D  on nvidia  IOMMU group 12" in lines
    assert "modules      nvidia_uvm, nvidia_drm, nvidia_modeset, nvidia" in lines
    assert "nvidia-smi   /usr/bin/nvidia-smi -> /etc/alternatives/nvidia--nvidia-smi" in lines
    assert "             /usr/lib/nvidia/current/nvidia-smi: NVIDIA's, 535.261.03" in lines
    assert lines[-2:] == ["host check   yes (v0.10.0: exit code 0)", "driver       yes"]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("clean", "nvidia-smi   nowhere"),
        ("wsl2", "GPUs         none"),
        ("no-host-root", "root         not mounted at /host"),
        ("hgx-h100-gpu-lost", "             0000:5d:00.0  10de:2330  3D  on nvidia  IOMMU group 38  lost"),
        ("hgx-h100-gpu-lost", "other PCI    0000:05:00.0  10de:22a3  bridge  on nvidia-nvswitch  IOMMU group 5"),
        ("half-purged-blacklisted", "host check   yes (v0.10.0: exit code 0, loads nvidia)"),
        ("gke-cos", "driver       yes, so that is a false negative"),
        ("library-missing", "nvidia-smi   /usr/bin/nvidia-smi: NVIDIA's, 580.82.07, library-missing"),
        ("foreign-architecture", "nvidia-smi   /usr/local/bin/nvidia-smi: NVIDIA's, 580.82.07, for aarch64"),
        ("wrapper-prints-nothing", "nvidia-smi   /usr/local/bin/nvidia-smi: an empty file"),
        ("wrapper-to-opt-bin", "             /usr/local/bin/nvidia-smi: a script that starts /opt/bin/nvidia-smi"),
        ("wsl2", r"nvidia-smi   /usr/lib/wsl/lib/nvidia-smi: a program that prints '581.29\n' and exits with 0"),
        ("dkms-half-configured", "             nvidia-dkms-580-open 580.82.07-0ubuntu0.24.04.1 iF"),
    ],
)
def test_a_line_of_a_hosts_page(capsys, name, line):
    """What is particular about a host stands on its page."""
    assert line in run(capsys, name)[1]


def test_a_host_as_a_document(capsys):
    """A host as JSON has what its page has."""
    main(["hosts", "half-purged-blacklisted", "--release", "v0.12.0", "-o", "json"])
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == 1
    assert document["release"] == "v0.12.0"
    assert document["loads"] == ["nvidia"]
    assert (document["host_check"], document["expected"], document["driver"]) == (True, True, True)
    assert [function["address"] for function in document["pci"]] == ["0000:18:00.0", "0000:3b:00.0"]


def test_a_host_of_ones_own(capsys, tmp_path):
    """A host file without a verdict is shown too; what is true is then not known."""
    path = tmp_path / "mine.yaml"
    path.write_text(FIRST_GPU + 'container: {programs: {chroot: null}}\ndescription: "a\\e[31m"\n', encoding="utf-8")
    code, lines = run(capsys, str(path))
    assert code == 0
    assert "description  a\\x1b[31m" in lines, "a file cannot steer the terminal"
    assert lines[-1] == "host check   no (v0.10.0: could not be asked)"
    code, lines = run(capsys, "--verdict", str(path))
    assert code == 0
    assert lines[1].split() == ["mine", "no", "-", "?"]
    assert lines[-1] == "v0.10.0: 1 host, 0 right, 0 false negatives, 0 false positives, 1 without a verdict in the file"


@pytest.mark.slow
@pytest.mark.parametrize("release", [DEFAULT, NEWEST])
def test_the_table_of_verdicts(capsys, release):
    """The table has a line for each host, names where the check is wrong, and counts."""
    code, lines = run(capsys, "--verdict", "--release", release)
    assert code == 0
    assert len(lines) == len(HOSTS) + 2
    rows = {line.split()[0]: line for line in lines[1:-1]}
    assert rows["nixos"].split()[2:] == ["no", "127", "yes", "false", "negative"]
    assert rows["wrapper-prints-anything"].split()[2:] == ["yes", "0", "no", "false", "positive"]
    assert rows["half-purged-blacklisted"].endswith("the check loads nvidia")
    count = Counter(word for row in rows.values() for word in (FALSE_NEGATIVE, FALSE_POSITIVE) if word in row)
    assert (count[FALSE_NEGATIVE], count[FALSE_POSITIVE]) == (20, 1)
    assert lines[-1] == f"{release}: 60 hosts of 52 kinds, 39 right, 20 false negatives, 1 false positive"


@pytest.mark.slow
def test_the_table_as_a_document(capsys):
    """The table as JSON has the counts beside the hosts."""
    code = main(["hosts", "--verdict", "-o", "json"])
    document = json.loads(capsys.readouterr().out)
    assert code == 0
    assert document["counts"] == {"right": 39, "false_negatives": 20, "false_positives": 1, "unknown": 0}
    assert (document["release"], len(document["hosts"])) == (DEFAULT, 60)


def test_a_contradiction_fails(capsys, lying):
    """A host check against the verdict of the host's file is named, and the exit code is 1."""
    code, lines = run(capsys, "--verdict", lying)
    assert code == 1
    assert lines[-2] == "lying: the host check says no, against the verdict of its file"


def test_a_contradiction_in_another_release_is_only_named(capsys, lying):
    """A file's verdict is about the default release; elsewhere a difference is shown and no failure."""
    code, lines = run(capsys, "--verdict", "--release", "v0.12.0", lying)
    assert code == 0
    assert lines[-2] == "lying: the host check says no, against the verdict of its file"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["half-purged"], 'there is no host named "half-purged"; did you mean half-purged-rebooted'),
        (["--verdict", "none"], 'there is no host named "none"; '),
        (["--verdict", "--release", "v9"], 'there is no release "v9"; '),
        (["--release", "v0.9.0"], "--release goes with --verdict or the name of a host; add one of them"),
        (["/none.yaml"], "/none.yaml: does not exist; check the path"),
    ],
)
def test_bad_input(capsys, arguments, message):
    """An unknown host, release or file is one message with the nearest names, exit code 2."""
    code, lines = run(capsys, *arguments)
    assert code == 2
    assert len(lines) == 1
    assert lines[0].startswith("dmsim hosts: ")
    if "half-purged" in arguments:
        assert "half-purged-" in lines[0]
    else:
        assert message in lines[0]


@pytest.mark.parametrize(("name", "script"), [("runfile-580", True), ("runfile-580-usr-local", False), ("clean", False)])
def test_the_script_looks_in_usr_bin(name, script):
    """The host check of a shell release is made too, and its answer is found in its own words."""
    assert judge(load_host(name), "v0.8.1").host_check is script
