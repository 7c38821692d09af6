"""A diagnosis as text and as Markdown, and the page that lists the kinds of findings."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from simulator.diagnosing.finding import KINDS
from simulator.diagnosing.findings import diagnose
from simulator.explaining.explanation import explain
from simulator.report.diagnosis import Diagnosis, diagnosis_document, diagnosis_lines, diagnosis_markdown, source
from simulator.report.text import log_text
from simulator.runners.simulated import START, simulate
from tests.diagnosing.ailing import AILING, WITHOUT_COMMANDS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "diagnose.md").read_text(encoding="utf-8")
CASES = {**AILING, **WITHOUT_COMMANDS}


def diagnosis(name, **fields):
    case = CASES[name]
    bundle = replace(case.bundle, **fields)
    return Diagnosis(bundle, case.release, diagnose(bundle, case.release))


def test_every_text_has_every_command_whole():
    """One to a line, in order, in all three forms."""
    for name in CASES:
        found = diagnosis(name)
        wanted = [command.text for finding in found.findings for command in finding.commands]
        document = diagnosis_document(found)
        assert [command["text"] for finding in document["findings"] for command in finding["commands"]] == wanted
        for lines in (list(diagnosis_lines(found)), diagnosis_markdown(found).splitlines()):
            assert [line.strip() for line in lines if line.strip() in wanted] == wanted


def test_commands_for_the_host_stand_below_a_word_about_where():
    """Once above each group of them."""
    lines = list(diagnosis_lines(diagnosis("pid-file-without-module")))
    assert lines[lines.index("     rm /run/nvidia/nvidia-driver.pid") - 1] == "     # on the node itself, as root:"
    assert not any("as root" in line for line in diagnosis_lines(diagnosis("blank")))


def test_without_a_command_that_is_said():
    """And not left open."""
    found = diagnosis("policy-not-seen")
    assert any("no command that is sure to be right" in line for line in diagnosis_lines(found))
    assert "No command is sure to be right here." in diagnosis_markdown(found)


def test_what_was_not_seen_and_what_was_assumed_is_told():
    """At the end of the text, in the Markdown, in the document."""
    found = diagnosis("blank", unseen=("the host's modules",), assumed=("eviction is on",))
    assert list(diagnosis_lines(found))[-5:] == ["not seen:", "  the host's modules", "", "assumed:", "  eviction is on"]
    assert "- the host's modules" in diagnosis_markdown(found)
    assert diagnosis_document(found)["unseen"] == ["the host's modules"]


def told(name, release):
    """A diagnosis with the log of a run on its node."""
    found = diagnosis(name)
    log = log_text(simulate(found.bundle.scenario.world, release), START)
    return replace(found, happened={"gpu-operator/driver/`x`": explain(log)})


def test_what_happened_is_told_by_the_logs():
    """First, in all three forms."""
    found = told("label-says-container", "v0.10.0")
    lines = list(diagnosis_lines(found))
    at = lines.index("what happened, by the log of gpu-operator/driver/`x`:")
    assert at < lines.index(next(line for line in lines if line.startswith("1. ")))
    assert any("exit code 1" in line for line in lines[at:])
    assert "### What happened, by the log of gpu-operator/driver/\\`x\\`" in diagnosis_markdown(found)
    (happened,) = diagnosis_document(found)["happened"]
    assert happened["log"] == "gpu-operator/driver/`x`"
    assert {candidate["exit_code"] for candidate in happened["candidates"]} == {1}


def test_a_log_of_another_release_is_told():
    """The node is then judged for the wrong one, perhaps."""
    assert not any("--release" in line for line in diagnosis_lines(told("label-says-container", "v0.10.0")))
    (line,) = [line for line in diagnosis_lines(told("label-says-container", "v0.8.1")) if "--release" in line]
    assert "v0.10.0" in line
    assert "`--release v0.8.1`" in line


def test_a_log_that_is_not_of_the_time_of_the_node_is_told():
    """Operands that the run restored are paused; operands that it paused are not."""
    log = log_text(simulate(CASES["held"].bundle.scenario.world, "v0.11.0"), START)
    restored = {"manager.log": explain(log)}
    paused = {"manager.log": explain(log[: log.index("Rescheduling all GPU clients")].rpartition("\n")[0] + "\n")}

    def said(name, happened):
        return [line for line in diagnosis_lines(replace(diagnosis(name), happened=happened)) if "node as it was saved" in line]

    assert any("operands that are paused" in line for line in said("cordon-of-driver-manager", restored))
    assert any("no operand that is paused" in line for line in said("blank", paused))
    assert not said("blank", restored)
    assert not said("cordon-of-driver-manager", paused)


def test_a_finding_that_another_one_mends_says_so():
    """In all three forms."""
    found = diagnosis("cordon-of-driver-manager")
    assert any("the commands of operands-paused mend this" in line for line in diagnosis_lines(found))
    assert "The commands of operands-paused mend this, too." in diagnosis_markdown(found)
    assert [finding["mended_with"] for finding in diagnosis_document(found)["findings"]] == ["", "operands-paused"]


def test_a_fact_cannot_begin_a_line_of_the_page():
    """A new line in a setting is shown, not made."""
    found = diagnosis("policy-not-seen")
    (finding,) = found.findings
    hostile = replace(found, findings=(replace(finding, evidence=("DRAIN_TIMEOUT_SECONDS=1\n# owned <b>",)),))
    assert "- seen: DRAIN\\_TIMEOUT\\_SECONDS=1\\\\n\\# owned \\<b\\>\n" in diagnosis_markdown(hostile)


def test_no_line_of_prose_is_too_long():
    """Commands are not wrapped; the rest is."""
    for found in (*map(diagnosis, CASES), told("held", "v0.11.0")):
        commands = {command.text for finding in found.findings for command in finding.commands}
        sentences = {finding.what for finding in found.findings}
        long = [line for line in diagnosis_lines(found) if len(line) > 112 and line.strip() not in commands]
        assert not [line for line in long if re.sub(r"^\d+\. [a-z0-9-]+: ", "", line) not in sentences]


def test_a_source_names_the_releases():
    """All, or from which to which."""
    assert source(KINDS["operands-paused"]).endswith("; all releases")
    assert source(KINDS["claims-wait-for-driver"]).endswith("; v0.4.2 to v0.11.0")


def test_the_page_lists_every_kind_in_order():
    """If this fails: write the row of KINDS into docs/diagnose.md."""
    assert re.findall(r"^\| `([a-z0-9-]+)` \| (.*) \|$", PAGE, re.MULTILINE) == [
        (kind.name, kind.summary) for kind in KINDS.values()
    ]
