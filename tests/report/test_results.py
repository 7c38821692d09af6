"""Results files: written and read alike, wrong ones told by their line; as Markdown."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from simulator.reading import InputError
from simulator.report.results import Ran, Results, Run, Step, Traced, read_results, to_line
from simulator.report.suite_markdown import suite_markdown

RUN = Run("0.1.0", "2026-01-01T00:00:00Z", "simulated")
RAN = Ran(
    file="features/a.feature",
    feature="F",
    feature_description="",
    rule="R",
    rule_description="",
    scenario="S",
    description="",
    row={"host": "clean"},
    line=3,
    tags=("quirk",),
    since="v0.9.0",
    until="v0.12.0",
    release="v0.10.0",
    outcome="passed",
    seconds=0.5,
    steps=[Step("Given", 'the host \u2028 "clean"', 4), Step("Then", "it is:", 5, [("a", "b")], "")],
    done=2,
    traces=[Traced("driver-manager", "exit code 0", "v0.10.0", [(0.5, "log", "info: x", "uninstall_driver")])],
)
FAILED = replace(RAN, file="features/a_b.feature", outcome="failed", done=1, why="tests\nE   AssertionError: a | b\nmore")


def write(tmp_path, *lines):
    path = tmp_path / "results.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_what_is_written_is_read(tmp_path):
    """Also with a text that has a line's end of another kind."""
    read = read_results(write(tmp_path, to_line(RUN), to_line(RAN)))
    assert read.run == RUN
    assert to_line(read.scenarios[0]) == to_line(RAN)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "is empty; write the file by pytest --dmsim-results FILE"),
        (["no json"], "line 1 is no JSON"),
        (["[]"], "line 1: the document is a list"),
        ([to_line(RAN)], "is no head of a results file"),
        ([json.dumps({"kind": "run", "format": 2})], "format is 2, which this version does not read; this one reads 1"),
        ([to_line(RUN), to_line(RUN)], 'line 2: kind is "run"; write "scenario"'),
        ([to_line(RUN), to_line(replace(RAN, outcome="fine"))], 'line 2: outcome is "fine"'),
        ([to_line(RUN), json.dumps({"kind": "scenario"})], "line 2: the document lacks the key"),
        ([to_line(RUN), to_line(RAN).replace('[0.5,"log"', '["x","log"')], "line 2: traces[0].events[0] is no event"),
    ],
)
def test_a_wrong_file_is_told_by_its_line(tmp_path, lines, words):
    with pytest.raises(InputError) as raised:
        read_results(write(tmp_path, *lines))
    assert words in str(raised.value)


def test_the_line_of_a_failure_is_its_steps():
    """Of one that failed before or after its steps the scenario's."""
    assert (FAILED.failed_line, RAN.failed_line, replace(FAILED, done=2).failed_line) == (5, 3, 3)


def test_markdown_tells_runs_failures_and_features():
    """What is printed cannot break a table."""
    text = suite_markdown([Results(RUN, (RAN, FAILED)), Results(replace(RUN, release="v0.12.0", image="i:1"), (RAN,))])
    assert text.startswith("## driver-manager scenarios: 1 failed\n")
    assert "| each scenario's release, simulated | 1 | 1 | 0 |" in text
    assert "| v0.12.0, i:1 in a container | 1 | 0 | 0 |" in text
    assert r"| S \[clean\] | v0.10.0 | `features/a_b.feature:5` | AssertionError: a \| b |" in text


def test_markdown_of_a_good_run_says_so():
    assert suite_markdown([Results(RUN, (RAN,))]).startswith("## driver-manager scenarios: all passed\n")
