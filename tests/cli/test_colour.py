"""Colour: when there is some, and on what."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.cli.colour import (
    BAD,
    CHANGES,
    COMPARISON,
    DIAGNOSIS,
    DOUBTFUL,
    FAULTS,
    GOOD,
    PREDICTION,
    RECORDED,
    coloured,
    is_wanted,
)
from simulator.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
HOST = "ubuntu-24.04-driver-580-open"


def call(capsys, *argv):
    main(argv)
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def _settings(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("environment", "terminal", "refused", "wanted"),
    [
        ({}, True, False, True),
        ({}, False, False, False),
        ({}, True, True, False),
        ({"NO_COLOR": "1"}, True, False, False),
        ({"NO_COLOR": ""}, True, False, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False, False),
        ({"FORCE_COLOR": "1"}, False, False, True),
        ({"FORCE_COLOR": "1"}, False, True, False),
        ({"FORCE_COLOR": "0"}, False, False, False),
        ({"FORCE_COLOR": "0"}, True, False, True),
        ({"CLICOLOR_FORCE": "1"}, False, False, True),
        ({"CLICOLOR": "0"}, True, False, False),
        ({"CLICOLOR": "0", "CLICOLOR_FORCE": "1"}, True, False, True),
        ({"CLICOLOR": "1"}, False, False, False),
        ({"TERM": "dumb"}, True, False, False),
    ],
)
def test_when_there_is_colour(environment, terminal, refused, wanted):
    """The option first, then what people set, then the terminal."""
    assert is_wanted(environment, terminal=terminal, refused=refused) is wanted


@pytest.mark.parametrize(
    ("line", "marks", "words", "style"),
    [
        ("exit code 0", CHANGES, "exit code 0", GOOD),
        ("v0.11.0, without a fault: exit code 0 after 6 s", FAULTS, "exit code 0", GOOD),
        ("v0.11.0, without a fault: exit code 1 after 60 s", FAULTS, "exit code 1 after 60 s", BAD),
        ("1    stat /x      EACCES          0     no     still mounted: /x", FAULTS, "no", BAD),
        ("8    GET /x       503             0     late   the node stays cordoned", FAULTS, "late", DOUBTFUL),
        ("exit code 1", CHANGES, "exit code 1", BAD),
        ("exit code 2 (panic: runtime error)", CHANGES, "exit code 2 (panic: runtime error)", BAD),
        ("will not succeed: pods are in the way", PREDICTION, "will not succeed", BAD),
        ("will succeed: the old driver is unloaded", PREDICTION, "will succeed", GOOD),
        ("   - blocking: ml/train", PREDICTION, "blocking", BAD),
        ("gpu-1: 3 findings (v0.11.0)", DIAGNOSIS, "3 findings", BAD),
        ("gpu-1: nothing is left over that is known (v0.11.0)", DIAGNOSIS, "nothing is left over that is known", GOOD),
        ("408 passed, 0 failed", RECORDED, "408 passed, 0 failed", GOOD),
        ("407 passed, 1 failed", RECORDED, "1 failed", BAD),
        ("v0.10.0 mod-drm", RECORDED, "v0.10.0 mod-drm", BAD),
        ("UNNAMED: no named change explains it", COMPARISON, "UNNAMED: no named change explains it", BAD),
    ],
)
def test_what_is_coloured(line, marks, words, style):
    """The words that decide."""
    assert coloured(line, marks) == line.replace(words, f"\x1b[{style}m{words}\x1b[0m")


def test_both_sides_of_a_change_are_told_apart():
    """What was is red, what is now is green."""
    line = '  label       nvidia.com/gpu.deploy.driver: "true" -> "pre-installed"'
    assert coloured(line, CHANGES) == (
        '  label       nvidia.com/gpu.deploy.driver: \x1b[31m"true"\x1b[0m -> \x1b[32m"pre-installed"\x1b[0m'
    )


def test_a_line_without_a_mark_stays_as_it_is():
    """Byte for byte."""
    assert coloured("node gpu-1", CHANGES) == "node gpu-1"


def test_the_log_is_never_coloured(capsys, monkeypatch):
    """It is what `kubectl logs` shows; what follows it is coloured."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    log, _, summary = call(capsys, "run", "--host", HOST, "--env", "NODE_NAME=n").partition("---")
    assert "\x1b" not in log.removesuffix("\x1b[1m")
    assert "\x1b[31mexit code 1\x1b[0m" in summary


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_documents_are_never_coloured(capsys, monkeypatch, form):
    """Whatever is forced."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in call(capsys, "predict", "--host", HOST, "-o", form)


@pytest.mark.parametrize(
    "argv",
    [
        ("demo",),
        ("hosts", "--verdict"),
        ("run", "--host", HOST, "--env", "NODE_NAME=n"),
        ("vfio", "unbind", "--host", "runfile-580"),
        ("predict", "--host", HOST),
        ("diagnose", "docs/examples/stuck-node.yaml"),
        ("compare", "v0.10.0", "v0.12.0", "--host", HOST),
        ("passthrough", "check", "--values", "docs/examples/passthrough/values.yaml", "--host", "clean"),
    ],
    ids=lambda argv: argv[0],
)
def test_colour_adds_nothing_but_colour(capsys, monkeypatch, argv):
    """Without the escapes the text is the plain one; --no-color stands before or behind the command."""
    monkeypatch.chdir(ROOT)
    plain = call(capsys, *argv)
    monkeypatch.setenv("FORCE_COLOR", "1")
    painted = call(capsys, *argv)
    assert painted != plain
    assert ESCAPES.sub("", painted) == plain
    assert call(capsys, *argv, "--no-color") == call(capsys, "--no-color", *argv) == plain


@pytest.mark.slow
def test_a_terminal_gets_colour():
    """A real one."""
    leader, follower = pty.openpty()
    argv = [sys.executable, "-m", "simulator", "hosts", HOST, "--verdict"]
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": str(ROOT)}
    subprocess.run(argv, stdout=follower, env=environment, check=True)
    os.close(follower)
    with os.fdopen(leader, "rb", buffering=0) as terminal:
        assert terminal.read(4096).startswith(b"\x1b[1mHOST ")
