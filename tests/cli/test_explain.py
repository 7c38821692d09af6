"""`dmsim explain`: exit codes, both forms, bad input."""

from __future__ import annotations

import io
import json
import sys
import time

import pytest

from tests.cli.test_main import call, refused
from tests.explaining.test_explanation import log_of


@pytest.fixture
def log(tmp_path):
    """A log of v0.10.0 on a host with a driver of its own."""
    path = tmp_path / "log"
    path.write_text(log_of("ubuntu-24.04-driver-580-open", "v0.10.0")[0])
    return path


def test_something_fits(capsys, log):
    """Exit code 0, in words."""
    code, out, _ = call(capsys, "explain", str(log))
    assert code == 0
    assert out.startswith("fits v0.9.0, v0.9.1, v0.10.0: exit code 1\n")


def test_json_has_candidates(capsys, log):
    """Release, exit code, decisions."""
    code, out, _ = call(capsys, "explain", str(log), "-o", "json", "--release", "v0.10.0")
    document = json.loads(out)
    assert code == 0
    assert document["format"] == 1
    (candidate,) = document["candidates"]
    assert (candidate["release"], candidate["exit_code"]) == ("v0.10.0", 1)
    assert [decision["step"] for decision in candidate["decisions"]] == ["is_host_driver", "disable_containerized_driver"]


def test_a_cut_log_has_no_exit_code(capsys, log):
    """null, as JSON has it."""
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:3]))
    _, out, _ = call(capsys, "explain", str(log), "-o", "json")
    assert {candidate["exit_code"] for candidate in json.loads(out)["candidates"]} == {None}


def test_nothing_fits(capsys, log):
    """Exit code 1, with the line that departs."""
    code, out, _ = call(capsys, "explain", str(log), "--release", "v0.12.0")
    assert code == 1
    assert "Nothing fits" in out


def test_a_log_may_come_from_standard_input(capsys, log, monkeypatch):
    """Named by a dash."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(log.read_bytes())))
    assert call(capsys, "explain", "-")[0] == 0


def test_escapes_in_a_log_do_not_reach_the_terminal(capsys, log):
    """Shown escaped, wherever they stand."""
    log.write_text("time=x level=fatal msg=failed to cordon node: \x1b]0;evil\x07\n")
    assert "\x1b" not in call(capsys, "explain", str(log))[1]


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"", "is empty"), (b" \n\n", "is empty")],
)
def test_an_empty_log_is_bad_input(capsys, log, content, told):
    """One message."""
    log.write_bytes(content)
    assert told in refused(capsys, "explain", str(log))


def test_a_missing_log_is_bad_input(capsys, tmp_path):
    """So is a directory, and a release that nobody knows."""
    assert "does not exist" in refused(capsys, "explain", str(tmp_path / "none"))
    assert "is no file" in refused(capsys, "explain", str(tmp_path))
    assert "v9" in refused(capsys, "explain", str(tmp_path), "--release", "v9")


def test_bytes_that_are_no_text_are_no_traceback(capsys, log):
    """They fit nothing."""
    log.write_bytes(bytes(range(256)) * 50)
    assert call(capsys, "explain", str(log))[0] == 1


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_log_may_be_as_powershell_saves_it(capsys, log, encoding):
    """UTF-16, or UTF-8 with a byte order mark."""
    plain = call(capsys, "explain", str(log))
    log.write_bytes(log.read_text().replace("\n", "\r\n").encode(encoding))
    assert call(capsys, "explain", str(log)) == plain


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    ["2026-01-01T00:00:00.1Z stderr P abc\n", '{"log":"time=x"}\n'],
    ids=["cri", "docker"],
)
def test_parts_of_a_line_that_never_ends_take_no_longer_than_lines(capsys, log, line):
    """Each is put to those before it; of ten megabytes."""
    log.write_text(line * (10 * 2**20 // len(line)))
    begun = time.process_time()
    assert call(capsys, "explain", str(log))[0] == 1
    assert time.process_time() - begun < 15  # it was minutes


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_secret_in_a_log_is_not_told(capsys, log, form):
    """Not even in the line that departs."""
    log.write_text(
        "time=x level=fatal msg=failed to cordon node: Get https://me:canary@api: Bearer ghp_0123456789abcdefghijABCDEFGHIJ\n"
    )
    out = call(capsys, "explain", str(log), *(["-o", "json"] if form == "json" else []))[1]
    assert "failed to cordon node: Get https://redacted@api: Bearer redacted" in out
