"""BusyBox's getopt, as the script calls it."""

from __future__ import annotations

import pytest

from simulator.vfio.getopt import getopt


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([], " --"),
        (["--all"], " --all --"),
        (["-a", "extra"], " -a -- 'extra'"),
        (["extra", "--all"], " --all -- 'extra'"),
        (["--dev", "a b"], " --device-id 'a b' --"),
        (["--device-id="], " --device-id '' --"),
        (["-ad", "x"], " -a -d 'x' --"),
        (["-dx"], " -d 'x' --"),
        (["-d", "it's"], " -d 'it'\\''s' --"),
        (["--", "--all"], " -- '--all'"),
        (["-", "-a"], " -a -- '-'"),
    ],
)
def test_what_it_prints(args, text):
    """Options first, arguments quoted, then the rest."""
    parsed = getopt(args)
    assert parsed.text == text
    assert not parsed.complaints


@pytest.mark.parametrize(
    "args", [["--bogus"], ["--all=true"], ["--device-id"], ["-d"], ["-x"], ["-all"], ["--=x"], ["--all", "--help"]]
)
def test_what_it_complains_about(args):
    """Unknown options, arguments too many or missing, what could be two options."""
    assert getopt(args).complaints


def test_posixly_correct():
    """With the variable set, nothing behind the first argument is an option."""
    assert getopt(["x", "--all"], posixly_correct=True).text == " -- 'x' '--all'"
