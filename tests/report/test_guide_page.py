"""The page that sets the guide beside the sources."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from simulator.report.guide_page import ELSEWHERE, SECTIONS, page

ROOT = Path(__file__).parents[2]
ROWS = [row for section in SECTIONS for row in section.rows]


def numbers(text):
    """The traps that a text names, `S14 to S19` all of them."""
    found = set()
    for letter, first, last in re.findall(r"([SH])(\d+)(?: to [SH](\d+))?", text):
        found |= {f"{letter}{number}" for number in range(int(first), int(last or first) + 1)}
    return found


def test_the_page_is_up_to_date():
    """`make pages` writes what stands there."""
    assert (ROOT / "docs/guide-versus-sources.md").read_text(encoding="utf-8") == page()


def test_each_trap_has_a_row_or_a_reason():
    """S1 to S26, H1 to H21; none has both."""
    rows = {trap for row in ROWS for trap in row.traps}
    elsewhere = {trap for traps in ELSEWHERE for trap in numbers(traps)}
    assert rows | elsewhere == {f"S{number}" for number in range(1, 27)} | {f"H{number}" for number in range(1, 22)}
    assert not rows & elsewhere


@pytest.mark.parametrize(("file", "name"), sorted({proof for row in ROWS for proof in row.proof}))
def test_what_a_row_names_is_there(file, name):
    """A scenario of that name, or a test."""
    text = (ROOT / file).read_text("utf-8")
    pattern = rf"^ *Scenario(?: Outline)?: {re.escape(name)}$" if file.endswith(".feature") else rf"^def {re.escape(name)}\("
    assert re.search(pattern, text, re.MULTILINE)


def test_a_row_without_proof_says_what_it_rests_on():
    """And there are few."""
    without = [row.traps for row in ROWS if not row.proof]
    assert without == [("H16",)]
    assert all(row.evidence and row.releases for row in ROWS)
