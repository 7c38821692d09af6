"""What a run of pytest tells others: results, JUnit XML, annotations, a summary."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import pytest

from simulator.report.results import read_results
from tests.bdd.projects import FEATURE, INI, pytest_in, write

pytestmark = pytest.mark.slow
FAILING = """\
Feature: More, or less
  Rule: It fails
    @until-v0.10.0 @quirk
    Scenario Outline: With <host>
      Like this. Upstream: main.go.

      Given the host "<host>"
      When driver-manager runs
      Then the exit code is 7
      And the node is schedulable

      Examples:
        | host        |
        | runfile-580 |
        | clean       |
"""


@pytest.fixture
def project(tmp_path):
    """Two features, a scenario that passes and two that fail."""
    return write(tmp_path, {"pyproject.toml": INI, "features/a.feature": FEATURE, "features/b.feature": FAILING})


@pytest.mark.parametrize("processes", [[], ["-n2"]])
def test_a_results_file_tells_what_each_scenario_did(project, processes):
    """The same in one process and in several: steps, which failed and why, events with the upstream function behind each."""
    done = pytest_in(project, "-q", "--dmsim-results", "out/results.jsonl", *processes)
    assert done.returncode == 1, done.stderr
    results = read_results(project / "out/results.jsonl")
    assert (results.run.runner, results.run.release, results.run.image) == ("simulated", "", "")
    good, *bad = sorted(results.scenarios, key=lambda ran: (ran.file, ran.line, ran.title))
    assert (good.file, good.feature, good.rule, good.outcome) == (
        "features/a.feature",
        "Nodes",
        "A host driver is left alone",
        "passed",
    )
    assert (good.release, good.since, good.until, good.done) == ("v0.10.0", "v0.9.0", "v0.12.0", 3)
    (trace,) = good.traces
    assert trace.ended == "exit code 1, after 60 s"
    labelled = "info: Labeling node gpu-1 with nvidia.com/gpu.deploy.driver=pre-installed"
    assert ("log", labelled, "disable_containerized_driver") in [event[1:] for event in trace.events]
    assert {(ran.title, ran.row["host"]) for ran in bad} == {("With runfile-580", "runfile-580"), ("With clean", "clean")}
    for ran in bad:
        assert (ran.outcome, ran.done, ran.failed_line, ran.until, ran.tags) == (
            "failed",
            2,
            9,
            "v0.10.0",
            ("quirk", "until-v0.10.0"),
        )
        assert re.search(r"^expected: exit code 7\nit is: exit code \d", ran.why)
        assert "fixture" not in ran.why
        assert "Upstream: main.go." in ran.description


def test_without_the_option_no_scenario_runs_otherwise(project):
    """Only a run with results says which step was at work."""
    done = pytest_in(project, "-q", "features/a.feature", "--dmsim-results", "results.jsonl")
    assert done.returncode == 0
    assert sorted(path.name for path in project.iterdir()) == ["features", "pyproject.toml", "results.jsonl"]


def test_a_results_file_that_cannot_be_written_is_an_error(project):
    """With the file and the mend; the scenarios have run."""
    done = pytest_in(project, "-q", "features/a.feature", "--dmsim-results", "pyproject.toml/results.jsonl")
    assert done.returncode == 4
    assert "pyproject.toml" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout


def test_junit_xml_carries_feature_rule_tags_and_release(project):
    """As properties of the test case; other tests have none."""
    write(project, {"test_own.py": "def test_own():\n    pass\n"})
    pytest_in(project, "-q", "--junit-xml", "junit.xml")
    cases = {case.get("name"): case for case in ET.parse(project / "junit.xml").iter("testcase")}
    assert {each.get("name"): each.get("value") for each in cases["test_gives_way"].iter("property")} == {
        "feature": "Nodes",
        "rule": "A host driver is left alone",
        "scenario": "Gives way",
        "tags": "",
        "release": "v0.10.0",
    }
    tagged = next(case for name, case in cases.items() if "clean" in name)
    assert {"name": "tags", "value": "quirk until-v0.10.0"} in [each.attrib for each in tagged.iter("property")]
    assert not list(cases["test_own"].iter("property"))


def test_on_github_a_failure_is_an_annotation_at_its_step(project):
    """From the checkout's root, which may lie above the project's; a feature that cannot be read has one too."""
    environment = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(project.parent)}
    done = pytest_in(project, "-q", **environment)
    lines = [line for line in done.stdout.splitlines() if line.startswith("::error ")]
    assert len(lines) == 2
    assert all(line.startswith(f"::error file={project.name}/features/b.feature,line=9,title=With ") for line in lines)
    write(project, {"features/c.feature": FEATURE + "      Foo bar\n"})
    done = pytest_in(project, "-q", **environment)
    assert f"::error file={project.name}/features/c.feature,line=1,title=cannot be read::" in done.stdout


def test_on_github_a_summary_is_added_to_the_job(project):
    """In Markdown, after what stands there."""
    (project / "summary.md").write_text("before\n")
    pytest_in(project, "-q", GITHUB_STEP_SUMMARY="summary.md")
    text = (project / "summary.md").read_text()
    assert text.startswith("before\n## driver-manager scenarios: 2 failed\n")
    assert "| each scenario's release, simulated | 1 | 2 | 0 |" in text
    assert "`features/b.feature:9`" in text


def test_the_results_are_json_lines_with_a_version(project):
    """So that other programs can read them."""
    pytest_in(project, "-q", "features/a.feature", "--dmsim-results", "results.jsonl")
    head, scenario = map(json.loads, (project / "results.jsonl").read_text().splitlines())
    assert (head["kind"], head["format"]) == ("run", 1)
    assert scenario["kind"] == "scenario"
