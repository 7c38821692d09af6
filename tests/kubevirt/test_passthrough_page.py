"""docs/passthrough.md: what its table says is held by a scenario or a test is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = re.findall(r"^\| (?:S\d+|new) \|.*\| (.*) \|$", (ROOT / "docs/passthrough.md").read_text("utf-8"), re.MULTILINE)
PROOFS = [proof for row in ROWS for proof in re.findall(r"`([^`]+)`: ([^;|]+)", row)]


def test_each_row_has_one():
    """None rests on words alone."""
    assert len(ROWS) >= 11
    assert all(re.search(r"`([^`]+)`: ([^;|]+)", row) for row in ROWS)


@pytest.mark.parametrize(("file", "name"), PROOFS)
def test_it_is_there(file, name):
    """By its name."""
    text = (ROOT / file).read_text("utf-8")
    pattern = rf"^ *Scenario(?: Outline)?: {re.escape(name)}$" if file.endswith(".feature") else rf"^def {re.escape(name)}\("
    assert re.search(pattern, text, re.MULTILINE)
