"""Every field report that concerns driver-manager has a world and an answer, and the page says where."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from features.field_reports import answered, page

REPORTS = {
    *("B01", "B02", "B03", "B04", "B06", "B08", "B10", "B12", "B15", "B17", "B18", "B20", "B23", "B25", "B28", "B29", "B32"),
    *("B33", "B35", "B37", "B40", "B41", "B43", "B45", "B47", "B49", "B50", "B52", "B54", "B56", "B58", "B61", "B63", "B65"),
    *("B67", "B69", "B71", "B76", "B78", "B80", "B90"),
}
"""The handed reports rated full or partial, but for the four that are KubeVirt's alone (B81, B83, B84, B86)."""
QUESTIONS = {"predict", "diagnose", "explain"}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "field-reports.md"


def test_every_report_has_a_question_that_is_answered():
    """By predict, diagnose or explain; that a run shows it too is not enough."""
    commands = defaultdict(set)
    for one in answered():
        for report in one.reports.split(", "):
            commands[report].add(one.command)
    assert set(commands) == REPORTS
    assert {report: found for report, found in commands.items() if not found & QUESTIONS} == {}


def test_the_page_is_up_to_date():
    """If this fails: `python -m features.field_reports > docs/field-reports.md`."""
    assert PAGE.read_text(encoding="utf-8") == "\n".join(page()) + "\n"
