"""The stand-in as a process of this machine, in what it does without touching the machine: its command line and what it imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

from simulator.reading import InputError
from simulator.standin.__main__ import main
from simulator.standin.program import check


def standin(*argv, **env):
    """Run it with an environment of our own."""
    done = subprocess.run(
        [sys.executable, "-m", "simulator.standin", *argv],
        env={"PATH": "/nowhere", **env},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_upstream_s_command_line():
    """What comes after -- is the program's own: help, errors, exit codes."""
    code, out, err = standin("--", "--version")
    assert (code, out, err) == (0, "driver-manager version unknown\n", "")
    code, out, err = standin("--release", "v0.12.0", "--", "preflight_check", "--bogus", "--", NODE_NAME="n")
    assert (code, out.splitlines()[0]) == (1, "Incorrect Usage: flag provided but not defined: -bogus")
    assert err.endswith("level=fatal msg=flag provided but not defined: -bogus\n")
    code, _, err = standin("--program", "vfio-manage", "--", "bind", "--all", "--device-id", "0000:3b:00.0")
    assert (code, err.count("\n"), "level=fatal msg=" in err) == (1, 1, True)


@pytest.mark.slow
def test_a_run_without_a_configuration():
    """klog's warnings carry the process' own id; the error is upstream's."""
    code, out, err = standin("--", "preflight_check", NODE_NAME="n")
    lines = err.splitlines()
    assert (code, out, len(lines)) == (1, "", 3)
    assert "] Neither --kubeconfig nor --master was specified." in lines[0]
    assert "unable to load in-cluster configuration" in lines[1]
    assert "level=fatal msg=failed to create driver manager: failed to create kube client:" in lines[2]


@pytest.mark.slow
def test_a_change_left_out():
    """`--without` is the model's own: v0.10.0 without its flag knows no --force-reinstall."""
    assert standin("--", "--force-reinstall", "--version")[0] == 0
    code, out, _ = standin("--without", "force-reinstall", "--", "--force-reinstall", "--version")
    assert (code, out.splitlines()[0]) == (1, "Incorrect Usage: flag provided but not defined: -force-reinstall")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--release", "v0.10"], 'there is no release "v0.10"; did you mean v0.10.0?'),
        (["--program", "vfio"], 'there is no program "vfio"; did you mean vfio-manage?'),
        (["--without", "busybox"], 'there is no named change "busybox"; did you mean busybox-on-path?'),
    ],
)
def test_bad_input(argv, message, capsys):
    """One message, exit code 2."""
    assert main(argv) == 2
    assert message in capsys.readouterr().err


def test_named_changes_of_both_programs_can_be_left_out():
    """Those of vfio-manage too; anything else is refused."""
    check("vfio-manage", "v0.10.0", ["busybox-on-path", "vfio-manage-in-go"])
    with pytest.raises(InputError):
        check("driver-manager", "v0.10.0", ["nothing"])


@pytest.mark.slow
def test_it_needs_no_fakes():
    """Neither pyfakefs nor anything that makes worlds is imported, nor what a slim Python lacks."""
    text = "import sys, simulator.standin.program; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.split()
    fakes = (
        "pyfakefs",
        "simulator.host",
        "simulator.cluster",
        "simulator.world",
        "simulator.runners",
        "aiohttp",
        "docker",
        "asyncio",
    )
    assert not [name for name in loaded if name.startswith(fakes)]
