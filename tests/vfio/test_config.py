"""The Go version's command line."""

from __future__ import annotations

import pytest

from simulator.urfave import End
from simulator.vfio.bind import Options
from simulator.vfio.config import Config, read

NEITHER = "either --all or --device-id must be specified"
BOTH = "cannot specify both --all and --device-id"


@pytest.mark.parametrize(
    ("args", "env", "options"),
    [
        (["bind", "-a"], {}, Options(True, "", False, "/")),
        (["bind", "-d", "x", "--host-root", ""], {"HOST_ROOT": "/host"}, Options(False, "x", False, "")),
        (["bind", "--all", "extra"], {"HOST_ROOT": "/host", "BIND_NVSWITCHES": "1"}, Options(True, "", True, "/host")),
        (["bind", "--all", "--bind-nvswitches=false"], {"BIND_NVSWITCHES": "true"}, Options(True, "", False, "/")),
        (["unbind", "--all"], {"HOST_ROOT": "/host", "BIND_NVSWITCHES": "T"}, Options(True, "", True, "")),
        (["unbind", "--all"], {"BIND_NVSWITCHES": "", "UNBIND_NVSWITCHES": "true"}, Options(True, "", False, "")),
    ],
)
def test_options(args, env, options):
    """Flags go before variables, and unbind's variable is BIND_NVSWITCHES too."""
    assert read(args, env) == Config(args[0], options)


@pytest.mark.parametrize(
    ("args", "fatal"),
    [
        (["bind"], NEITHER),
        (["unbind", "--device-id", ""], NEITHER),
        (["bind", "--all=false"], NEITHER),
        (["bind", "-a", "-d", "x"], BOTH),
        (["bind", "help"], NEITHER),
        (["bind", "h", "--all"], NEITHER),
        (["unbind", "-a", "-d", "x", "help"], BOTH),
    ],
)
def test_flags_are_checked_before_the_nested_help(args, fatal):
    """Neither or both of --all and --device-id is fatal, also where `help` follows."""
    assert read(args, {}) == End(fatal=fatal)


@pytest.mark.parametrize(
    "args", [["bind", "--help"], ["bind", "-h", "--all"], ["bind", "--all", "help"], ["help", "bind"], [], ["--help"]]
)
def test_help(args):
    """Help ends the program with exit code 0."""
    end = read(args, {})
    assert isinstance(end, End)
    assert (end.fatal, end.exit_code, end.stderr) == (None, 0, "")
    assert end.stdout.startswith("NAME:\n   vfio-manage")


@pytest.mark.parametrize(
    ("args", "env", "fatal"),
    [
        (["unbind", "--all", "--host-root", "/"], {}, "flag provided but not defined: -host-root"),
        (["bind", "--all=maybe"], {}, 'invalid boolean value "maybe" for -all: parse error'),
        (["--all", "bind"], {}, "flag provided but not defined: -all"),
        (
            ["bind", "--all"],
            {"BIND_NVSWITCHES": "yes"},
            (
                'could not parse "yes" as bool value from environment variable "BIND_NVSWITCHES" for flag bind-nvswitches:'
                ' strconv.ParseBool: parsing "yes": invalid syntax'
            ),
        ),
    ],
)
def test_usage_errors(args, env, fatal):
    """Are printed with the usage on standard output, and are fatal."""
    end = read(args, env)
    assert isinstance(end, End)
    assert end.fatal == fatal
    assert end.stdout.startswith(f"Incorrect Usage: {fatal}\n\nNAME:")


def test_version_and_unknown_commands():
    """The version is what the build set; an unknown command exits 3."""
    assert read(["--version"], {}, "v0.10.0") == End("vfio-manage version v0.10.0\n")
    assert read(["BIND", "--all"], {}) == End(stderr="No help topic for 'BIND'\n", exit_code=3)
