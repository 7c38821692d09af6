"""What a script prints is told only where it is fixed."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.importing.scripts import Script, read_script

FIXED = [
    b"#!/bin/sh\necho 580.82.07\n",
    b"#!/bin/bash\n\n# words\nset -eu\n  echo 'a  b' \"c'd\" e=f\n",
    b"#!/bin/sh\nprintf '580.82.07\\n'\nexit 3\necho never\n",
    b'#! /bin/sh\nprintf "x"\necho -n y z\n:\ntrue\n',
    b"#!/bin/sh\necho out\necho err >&2\nexit\n",
    b"#!/usr/bin/env sh\necho\n",
    b"#!/bin/true\nwhatever\n",
    b"#!/bin/false\n",
    b"echo no shebang\n",
    b"",
    b"exit 300",
    b'#!/bin/sh\nexec /bin/echo "$@"\n',
]


@pytest.mark.parametrize("data", FIXED)
def test_what_a_fixed_script_prints_is_what_a_real_shell_prints(tmp_path, data):
    """The model's reading, against running it."""
    path = tmp_path / "script"
    path.write_bytes(data)
    path.chmod(0o755)
    command = [str(path), "argument"] if data.startswith(b"#!") else ["/bin/sh", str(path), "argument"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    script = read_script(data)
    assert script.is_known
    handed_over = "argument\n" if script.hands_over_to else ""
    assert (script.stdout + handed_over, script.stderr, script.exit_code) == (done.stdout, done.stderr, done.returncode)


@pytest.mark.parametrize(
    "line",
    [
        "echo $X", "echo `id`", 'echo "$(id)"', "echo a; exit 1", "echo a && b", "echo a > /dev/null", "echo *", "echo ~", "echo a\\nb", "cat x",
        "if true; then", "printf '%s' x", "printf 'a\\tb'", "exit $?", "exec nvidia-smi", "X=1", "echo {a,b}", "echo !", "echo a | b", "echo a &",
        "echo 'a", "echo a #b", "echo -e a", "echo -n -e a", "exec /a b", "echo " + "x" * 600, "echo " + "a" * 400 + "$", "echo " + "a " * 200 + "`",
    ],
)  # fmt: skip
def test_what_depends_on_anything_is_not_known(line):
    """Variables, pipes, patterns, other programs, flags that shells disagree on."""
    assert not read_script(f"#!/bin/sh\n{line}\n".encode()).is_known


def test_other_interpreters_are_not_read():
    """Python, awk, a shell that is none; a script that is longer than was read; bytes that are no script."""
    assert read_script(b"#!/usr/bin/python3\necho 1\n") == Script("/usr/bin/python3", is_known=False)
    assert read_script(b"#!/usr/bin/env -S awk -f\n") == Script("/usr/bin/env", is_known=False)
    assert not read_script(b"#!/bin/sh\necho 1\n", is_whole=False).is_known
    assert read_script(b"\0\1\2") == Script(exit_code=127)
    assert read_script(b"#!\necho 1\n").stdout == "1\n"


@given(st.binary(max_size=200))
def test_any_bytes_are_a_script(data):
    """Whatever they are."""
    for start in (b"", b"#!", b"#!/bin/sh\n", b"#!/bin/sh\necho "):
        read_script(start + data)
