"""The command line, as urfave/cli reads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.config import FLAGS, FORCE_REINSTALL, Config, read
from simulator.gocompat import SECOND
from simulator.urfave import End

ALL = (*FLAGS, FORCE_REINSTALL)
ENV = {"NODE_NAME": "n"}


def parse(*args, **env):
    return read(ALL, args, {**ENV, **env})


def test_defaults():
    """What an unset setting is."""
    config = parse("uninstall_driver")
    assert config == Config(
        command="uninstall_driver",
        node_name="n",
        drain_use_force=False,
        drain_pod_selector_label="",
        drain_timeout=0,
        drain_delete_emptydir_data=False,
        enable_auto_drain=True,
        enable_gpu_pod_eviction=True,
        operator_namespace="gpu-operator",
        node_label_for_gpu_pod_eviction="",
        gpu_direct_rdma_enabled=False,
        use_host_mofed=False,
        kubeconfig="",
        force_reinstall=False,
        sources=config.sources,
    )
    assert config.sources["node-name"] == "environment"
    assert config.sources["kubeconfig"] == "default"


@pytest.mark.parametrize("flag", ALL, ids=lambda flag: flag.name)
def test_every_flag_and_its_variable(flag):
    """A flag overrides its variable, the variable overrides the default."""
    field = {"drain-timeout-seconds": "drain_timeout"}.get(flag.name, flag.name.replace("-", "_"))
    text, value = {"string": ("x", "x"), "bool": ("true", True), "duration": ("5s", 5 * SECOND)}[flag.kind]
    other = {"string": ("y", "y"), "bool": ("false", False), "duration": ("0s", 0)}[flag.kind]
    assert getattr(parse("uninstall_driver", **{flag.env: text}), field) == value
    both = parse(f"--{flag.name}={other[0]}", "uninstall_driver", **{flag.env: text})
    assert getattr(both, field) == other[1]
    assert both.sources[flag.name] == "flag"


@pytest.mark.parametrize(
    ("variable", "field"), [("ENABLE_AUTO_DRAIN", "enable_auto_drain"), ("ENABLE_GPU_POD_EVICTION", "enable_gpu_pod_eviction")]
)
def test_an_empty_boolean_variable_means_false(variable, field):
    """Also where the default is true."""
    assert getattr(parse("uninstall_driver", **{variable: ""}), field) is False


def test_an_empty_duration_variable_is_as_good_as_none():
    """The default stays."""
    config = parse("uninstall_driver", DRAIN_TIMEOUT_SECONDS="")
    assert config.drain_timeout == 0
    assert config.sources["drain-timeout-seconds"] == "default"


def test_an_empty_text_variable_is_a_value():
    """The namespace becomes empty, and NODE_NAME counts as given."""
    assert parse("uninstall_driver", OPERATOR_NAMESPACE="").operator_namespace == ""
    assert parse("uninstall_driver", NODE_NAME="").node_name == ""


def test_a_flag_takes_the_next_argument_unless_it_is_a_boolean():
    """`--drain-use-force false` leaves `false` as the command."""
    assert parse("--drain-timeout-seconds", "5s", "uninstall_driver").drain_timeout == 5 * SECOND
    ended = parse("--drain-use-force", "false", "uninstall_driver")
    assert (ended.exit_code, ended.stderr) == (3, "No help topic for 'false'\n")


@pytest.mark.parametrize(
    ("args", "env", "fatal"),
    [
        (["--bogus"], {}, "flag provided but not defined: -bogus"),
        (["--node-name"], {}, "flag needs an argument: -node-name"),
        (["--=x"], {}, "bad flag syntax: --=x"),
        (["---x"], {}, "bad flag syntax: ---x"),
        (["--force-reinstall=maybe"], {}, 'invalid boolean value "maybe" for -force-reinstall: parse error'),
        (["--drain-timeout-seconds=5"], {}, 'invalid value "5" for flag -drain-timeout-seconds: parse error'),
        (["-h", "--help"], {}, "Cannot use two forms of the same flag: h help"),
        (
            ["uninstall_driver"],
            {"DRAIN_TIMEOUT_SECONDS": "300"},
            (
                'could not parse "300" as duration value from environment variable "DRAIN_TIMEOUT_SECONDS" for flag'
                ' drain-timeout-seconds: time: missing unit in duration "300"'
            ),
        ),
        (["uninstall_driver", "--force-reinstall"], {}, "flag provided but not defined: -force-reinstall"),
        (["uninstall_driver", "-v"], {}, "flag provided but not defined: -v"),
        (["--help", "bogus"], {}, "No help topic for 'bogus'"),
    ],
)
def test_usage_errors(args, env, fatal):
    """A usage error prints help, and is fatal."""
    ended = parse(*args, **env)
    assert isinstance(ended, End)
    assert ended.fatal == fatal
    if "Incorrect" in ended.stdout:
        assert ended.stdout.startswith(f"Incorrect Usage: {fatal}\n\nNAME:\n")


def test_a_variable_is_read_before_any_argument():
    """Help is not shown where a variable is wrong, but the error is."""
    ended = parse("--help", ENABLE_AUTO_DRAIN="maybe")
    assert ended.fatal is not None
    assert "maybe" in ended.fatal


def test_no_command_is_help_and_success():
    """Exit code 0."""
    ended = parse()
    assert (ended.fatal, ended.exit_code) == (None, 0)
    assert ended.stdout.startswith("NAME:\n   driver-manager - ")


def test_an_unknown_command_exits_3():
    """And says so on standard error, without help."""
    assert parse("bogus") == End(stderr="No help topic for 'bogus'\n", exit_code=3)


def test_a_missing_node_name_is_fatal_after_help():
    """The help is that of the command that was meant."""
    ended = read(ALL, ["uninstall_driver"], {})
    assert ended.fatal == 'Required flag "node-name" not set'
    assert ended.stdout.startswith("NAME:\n   driver-manager uninstall_driver - ")
    assert "COMMANDS" not in ended.stdout


def test_further_arguments_are_ignored():
    """`uninstall_driver now` runs."""
    assert parse("uninstall_driver", "now").command == "uninstall_driver"


def test_version():
    """What the build put in."""
    assert read(ALL, ["--version"], ENV, "v0.10.0").stdout == "driver-manager version v0.10.0\n"


@pytest.mark.parametrize(
    ("args", "start"),
    [
        (["help"], "NAME:\n   driver-manager - "),
        (["help", "uninstall_driver"], "NAME:\n   driver-manager uninstall_driver - "),
        (["uninstall_driver", "help"], "NAME:\n   driver-manager uninstall_driver - "),
        (["uninstall_driver", "--help"], "NAME:\n   driver-manager uninstall_driver - "),
        (["help", "help"], "NAME:\n    help - Shows a list"),
        (["uninstall_driver", "help", "help"], "NAME:\n   driver-manager uninstall_driver help - "),
        (["help", "--help", "help"], "NAME:\n    help - "),
    ],
)
def test_help_topics(args, start):
    """Whose help is shown, nested `help` included."""
    ended = parse(*args)
    assert ended.stdout.startswith(start)
    assert (ended.fatal, ended.exit_code) == (None, 0)


WORDS = st.sampled_from(
    [
        "help",
        "h",
        "--help",
        "-h",
        "-v",
        "uninstall_driver",
        "preflight_check",
        "bogus",
        "",
        "--",
        "-x",
        "--force-reinstall",
        "--node-name",
        "--=x",
        "-",
    ]
)


@given(
    st.lists(WORDS | st.text(max_size=5), max_size=6),
    st.dictionaries(st.sampled_from([flag.env for flag in ALL]), st.text(max_size=6)),
)
def test_reading_never_crashes(args, env):
    """Any command line is a configuration or an end."""
    outcome = read(ALL, args, env)
    assert isinstance(outcome, Config | End)
