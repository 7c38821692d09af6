"""`dmsim report`."""

from __future__ import annotations

import json

from simulator.cli.main import main
from simulator.report.results import to_line
from tests.report.test_results import FAILED, RAN, RUN, write


def test_a_run_is_told_as_markdown_json_and_a_page(tmp_path, capsys):
    """In the form that is asked for; `--html` writes the page beside it."""
    path = str(write(tmp_path, to_line(RUN), to_line(RAN)))
    assert main(["report", path, "--html", str(tmp_path / "out/report.html")]) == 0
    assert capsys.readouterr().out.startswith("## driver-manager scenarios: all passed")
    assert main(["report", path, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == 1
    assert main(["report", path, "-o", "html", "--title", "Ours"]) == 0
    page = capsys.readouterr().out
    assert "<title>Ours</title>" in page
    assert "<title>driver-manager scenarios</title>" in (tmp_path / "out/report.html").read_text()


def test_a_failure_is_exit_code_1(tmp_path, capsys):
    """As of every check of dmsim."""
    assert main(["report", str(write(tmp_path, to_line(RUN), to_line(FAILED)))]) == 1
    assert "1 failed" in capsys.readouterr().out


def test_a_wrong_file_is_exit_code_2_and_nothing_is_written(tmp_path, capsys):
    """One message."""
    path = write(tmp_path, "{}")
    assert main(["report", str(path), "--html", str(tmp_path / "report.html")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("dmsim report: ")
    assert len(said.err.splitlines()) == 1
    assert not (tmp_path / "report.html").exists()
