"""Pages of help, whole and cut, in the dress of a log, beside what others print."""

from __future__ import annotations

import pytest

from simulator.config import read
from simulator.explaining.explanation import explain
from simulator.manager.releases import GO_RELEASES, RELEASES, flow

HELP = {tag: read(flow(tag).flags, ("--help",), {"NODE_NAME": "n"}).stdout for tag in GO_RELEASES}
LAST = next(reversed(GO_RELEASES))


def found(text):
    """The releases and exit codes that fit."""
    return {(candidate.release, candidate.exit_code) for candidate in explain(text).candidates}


@pytest.mark.parametrize("release", GO_RELEASES)
def test_a_whole_page_is_that_of_the_releases_that_print_it(release):
    """It ends the run, or an error would have followed it."""
    alike = {tag for tag in GO_RELEASES if HELP[tag] == HELP[release]}
    assert found(HELP[release]) == {(tag, code) for tag in alike for code in (0, None)}


@pytest.mark.parametrize("lines", [1, 2, 8, 20, 28])
def test_a_cut_page_is_cut(lines):
    """Nobody knows how the run ended."""
    text = "".join(HELP[LAST].splitlines(keepends=True)[:lines])
    assert (LAST, None) in found(text)
    assert {code for _, code in found(text)} == {None}


def test_a_page_without_its_beginning_is_one():
    """An option's line says whose page it is."""
    told = explain("\n".join(HELP[LAST].splitlines()[20:]))
    assert (LAST, 0) in {(candidate.release, candidate.exit_code) for candidate in told.candidates}
    assert not told.from_beginning


@pytest.mark.parametrize(
    ("env", "args"),
    [({"NODE_NAME": "n", "DRAIN_USE_FORCE": "maybe"}, ("uninstall_driver",)), ({"NODE_NAME": "n"}, ("uninstall_driver", "--foo"))],
)
def test_a_page_that_an_error_follows_is_cut_in_front_of_it(env, args):
    """`Incorrect Usage` and the page, but not the last line."""
    text = read(flow(LAST).flags, args, env).stdout
    assert text.startswith("Incorrect Usage: ")
    assert (LAST, None) in found(text)
    assert (LAST, 0) not in found(text)


def test_there_is_no_such_command():
    """Exit code 3, with the cause."""
    told = explain("No help topic for 'bogus'\n")
    assert {(each.release, each.exit_code) for each in told.candidates} == {(tag, 3) for tag in GO_RELEASES}
    assert "bogus" in told.candidates[0].decisions[-1].answer


def test_the_build_s_version_does_not_matter():
    """Upstream's builds set it."""
    assert (LAST, 0) in found(HELP[LAST].replace("   unknown\n", "   v0.12.0-4f3b2a1\n"))
    assert (LAST, 0) in found("driver-manager version v0.12.0\n")


@pytest.mark.parametrize("prefix", ["2026-01-01T00:00:00.123456789Z ", "2026-01-01T00:00:00.123456789Z stdout F "])
def test_a_page_with_time_stamps(prefix):
    """What kubectl and the CRI put in front of each line."""
    assert (LAST, 0) in found("".join(f"{prefix}{line}" for line in HELP[LAST].splitlines(keepends=True)))


def test_others_lines_between_do_not_hide_a_page():
    """They are counted as foreign."""
    told = explain(HELP[LAST].replace("\nUSAGE:", "\nreconciling\nUSAGE:"))
    assert (LAST, 0) in {(candidate.release, candidate.exit_code) for candidate in told.candidates}
    assert told.foreign == 1


@pytest.mark.parametrize(
    "text",
    [
        "NAME:\n   nvidia-ctk - Tools\n\nUSAGE:\n   nvidia-ctk [global options]\n",
        "starting\nVERSION:\n1.2\n",
        HELP[LAST].replace("--use-host-mofed ", "--use-other-mofed"),
    ],
)
def test_another_program_s_page_is_none(text):
    """Headings are anybody's; a page has to be right in every line of its own."""
    assert not found(text)


TABLE = """Mon Nov 30 22:59:22 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.82.07              Driver Version: 580.82.07      CUDA Version: 13.0     |
|-----------------------------------------+------------------------+----------------------+
"""


@pytest.mark.parametrize("text", ["580.82.07\n", TABLE, "NVIDIA-SMI has failed because it couldn't communicate.\n"])
def test_nvidia_smi_s_answer_is_what_v0_4_2_shows_first(text):
    """Later scripts keep it to themselves. The run goes on after it."""
    assert found(text) == {("v0.4.2", None)}
    assert not found("hello\n" + text)


def test_that_nvidia_smi_does_not_run_is_what_scripts_show_first():
    """Chroot's complaint."""
    text = "chroot: failed to run command 'nvidia-smi': Permission denied\n"
    assert found(text) == {(tag, None) for tag in RELEASES if tag not in GO_RELEASES}


@pytest.mark.parametrize("text", ["", "\n \n", "+--+\n", "hello\n", "3\n"])
def test_what_says_nothing_is_nobody_s(text):
    """Neither a page nor an answer."""
    assert not found(text)
