"""A command's text gives a shell exactly its arguments, whatever a hostile name holds."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.diagnosing import commands
from simulator.diagnosing.commands import CLUSTER, HOST, Command
from simulator.diagnosing.findings import diagnose
from tests.diagnosing.ailing import AILING

HOSTILE = [
    "plain",
    "it's",
    "$(reboot)",
    "`reboot`",
    "a;b|c&d>e",
    "-rf",
    "*",
    "~",
    "",
    'q"q',
    "a\nb",
    "\x1b[31m",
    "a\t1",
    "\x001"[1:],
    "ä ö",
    "\\n",
    "'\n'",
    "\udcff",
]
BASH = shutil.which("bash")


def test_printable_arguments_are_quoted_for_any_posix_shell():
    """What `shlex` reads back."""
    argv = ("kubectl", "label", "node", "it's", "$(reboot)", "a;b", "", "ä ö")
    assert shlex.split(Command(argv, CLUSTER).text) == list(argv)


@pytest.mark.skipif(BASH is None, reason="there is no bash")
def test_a_shell_makes_the_arguments_of_the_text():
    """A real one; control characters and bytes that are no UTF-8 too."""
    text = Command(("printf", r"%s\0", *HOSTILE), HOST).text
    done = subprocess.run([BASH, "-c", text], capture_output=True, check=True)
    assert done.stdout.split(b"\0")[:-1] == [argument.encode("utf-8", "surrogateescape") for argument in HOSTILE]
    assert text.isprintable()


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20))
def test_no_text_of_a_command_holds_a_control_character(argument):
    """A name cannot begin a line of its own, nor steer a terminal."""
    assert Command(("rm", argument), HOST, argument).text.isprintable()


@pytest.mark.skipif(BASH is None, reason="there is no bash")
@pytest.mark.parametrize("stdin", ["vfio-pci", "\n", "a'b\nc\n", "%s \\n"])
def test_what_a_command_reads_comes_by_a_pipe(stdin):
    """Byte by byte."""
    done = subprocess.run([BASH, "-c", Command(("cat",), HOST, stdin).text], capture_output=True, check=True)
    assert done.stdout.decode() == stdin


def test_an_override_is_written_before_its_gpu_is_let_go():
    """Between the two no other driver may take it; and it is cleared before, on the way back."""
    bind = [command.text for command in commands.to_vfio("0000:18:00.0", "nvidia")]
    assert bind == [
        "printf %s vfio-pci | tee /sys/bus/pci/devices/0000:18:00.0/driver_override",
        "printf %s 0000:18:00.0 | tee /sys/bus/pci/drivers/nvidia/unbind",
        "printf %s 0000:18:00.0 | tee /sys/bus/pci/drivers/vfio-pci/bind",
    ]
    back = [command.text for command in commands.from_vfio("0000:18:00.0", "", "nvidia")]
    assert back == [
        "printf %s $'\\n' | tee /sys/bus/pci/devices/0000:18:00.0/driver_override",
        "printf %s 0000:18:00.0 | tee /sys/bus/pci/drivers/nvidia/bind",
    ]


def test_labels_are_overwritten_only_where_one_is_set():
    """kubectl would take the flag for nothing."""
    assert commands.label_node("n", {"a/b": None}).text == "kubectl label node n a/b-"
    assert commands.label_node("n", {"a/b": "c", "d": None}).text == "kubectl label node n a/b=c d- --overwrite"


def test_a_resources_name_is_escaped_in_a_json_pointer():
    """Slash and tilde."""
    patch = json.loads(commands.drop_resources("n", ["a~b/c"]).argv[-1].removeprefix("--patch="))
    assert [step["path"] for step in patch] == ["/status/capacity/a~0b~1c", "/status/allocatable/a~0b~1c"]


def test_every_command_says_where_it_is_run():
    """With kubectl, or on the host; nothing else is told."""
    for ailing in AILING.values():
        for finding in diagnose(ailing.bundle, ailing.release):
            for command in finding.commands:
                assert (command.on == CLUSTER) == (command.argv[0] == "kubectl")
