"""`dmsim vfio`, and `dmsim replay` of vfio-manage's recordings."""

from __future__ import annotations

import json

import pytest

from simulator.cli.main import main
from simulator.recordings.layout import VFIO_MANAGE
from simulator.scenario import fixtures
from tests.recorded import recorded as every_recorded

HOST = ("--host", "ubuntu-24.04-driver-580-open")


def call(capsys, *argv):
    code = main(["vfio", *argv])
    return code, capsys.readouterr().out


def test_text(capsys):
    """The log as the program prints it, then devices, child processes, writes and the exit code."""
    code, out = call(capsys, "bind", *HOST, "--device-id", "0000:18:00.0")
    assert code == 0
    assert out == (
        "time=2026-01-01T00:00:00Z level=info msg=Binding device 0000:18:00.0\n"
        "time=2026-01-01T00:00:00Z level=info msg=Binding device 0000:18:00.0 to driver: vfio-pci\n"
        "--- vfio-manage bind --device-id 0000:18:00.0, v0.10.0\n"
        "devices:\n"
        "  0000:18:00.0  nvidia -> vfio-pci (driver_override vfio-pci)\n"
        "  0000:3b:00.0  nvidia, as before\n"
        "run: chroot /host modprobe vfio_pci (exit code 0)\n"
        "written:\n"
        '  /sys/bus/pci/devices/0000:18:00.0/driver_override  "\\n"\n'
        '  /sys/bus/pci/drivers/nvidia/unbind                 "0000:18:00.0"\n'
        '  /sys/bus/pci/devices/0000:18:00.0/driver_override  "vfio-pci"\n'
        '  /sys/bus/pci/drivers/vfio-pci/bind                 "0000:18:00.0"\n'
        "exit code 0\n"
    )


def test_json(capsys):
    """The observation as recordings have it, and each device before and after."""
    code, out = call(capsys, "unbind", *HOST, "--release", "v0.9.1", "-o", "json")
    document = json.loads(out)
    assert code == 0
    assert (document["format"], document["release"], document["args"]) == (1, "v0.9.1", ["unbind", "--all"])
    assert document["observed"]["log"][0] == {"level": None, "msg": "unbinding device 0000:18:00.0"}
    assert document["devices"]["0000:3b:00.0"]["before"]["driver"] == "nvidia"
    assert document["devices"]["0000:3b:00.0"]["after"] == {"driver": None, "driver_override": None}


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("bind", *HOST), "--- vfio-manage bind --all, v0.10.0"),
        (("unbind", *HOST, "--unbind-nvswitches", "--start", "2026-02-03"), "time=2026-02-03T00:00:00Z level=info msg=Unbinding"),
        (("bind", *HOST, "--host-root", "/nowhere"), 'failed to load "vfio_pci" driver: exit status 1'),
        (("bind", *HOST, "--env", "HOST_ROOT=/x"), "run: chroot /x modprobe vfio_pci (exit code 1)"),
        (("bind", *HOST, "--", "-h"), "NAME:\n   vfio-manage bind - Bind device(s) to vfio-pci driver"),
        (("bind", *HOST, "--", "--bogus"), "level=fatal msg=flag provided but not defined: -bogus"),
        (("bind", "--host", "clean", "--release", "v0.9.0"), "can't create /sys/bus/pci/drivers/vfio-pci/bind"),
    ],
)
def test_arguments(capsys, argv, words):
    """vfio-manage's own flags are passed on, those after -- as they are."""
    code, out = call(capsys, *argv)
    assert code == 0
    assert words in out


def test_exit_code(capsys):
    """--exit-code passes on the program's."""
    assert call(capsys, "bind", *HOST, "--exit-code", "--", "--bogus")[0] == 1
    assert call(capsys, "bind", *HOST, "--exit-code")[0] == 0


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("bind",),
        ("rebind", *HOST),
        ("bind", "--host", "nope"),
        ("bind", *HOST, "--release", "v1"),
        ("bind", *HOST, "--env", "x"),
        ("bind", *HOST, "--start", "x"),
        ("bind", *HOST, "--all", "--", "-a"),
        ("unbind", *HOST, "--host-root", "/"),
    ],
)
def test_bad_input(capsys, argv):
    """Is one message on standard error, exit code 2."""
    try:
        code = main(["vfio", *argv])
    except SystemExit as ended:
        code = ended.code
    shown = capsys.readouterr()
    assert code == 2
    assert shown.out == ""
    assert shown.err.count("\n") == 1


def test_help(capsys):
    """Each command has help with an example."""
    for argv in (["vfio", "--help"], ["vfio", "bind", "--help"], ["vfio", "unbind", "--help"]):
        with pytest.raises(SystemExit) as ended:
            main(argv)
        assert ended.value.code == 0
        assert "dmsim vfio bind --host ubuntu-24.04-driver-580-open --all" in capsys.readouterr().out


@pytest.mark.slow
def test_replay_writes_what_it_saw(capsys, tmp_path):
    """OUT/<release>/<id>.json has the model's own steps, in the recordings' format."""
    out = tmp_path / "out"
    argv = [
        "replay",
        str(fixtures() / "recordings"),
        "--program",
        "vfio-manage",
        "--release",
        "v0.12.0",
        "-k",
        "trip-grace",
        "--write",
        str(out),
    ]
    assert main(argv) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"
    document = json.loads((out / "v0.12.0/trip-grace.json").read_text())
    recorded = next(
        recording
        for recording in every_recorded()
        if (recording.program, recording.release, recording.case) == (VFIO_MANAGE, "v0.12.0", "trip-grace")
    )
    assert document == {"id": "trip-grace", "upstream": "v0.12.0", "observed": recorded.observed}
