"""The page that says how equal the model is."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.report.fidelity import page

PAGE = Path(__file__).parents[2] / "docs/fidelity.md"


@pytest.mark.slow
def test_the_page_is_up_to_date():
    """`make pages` writes what stands there. That every recording replays is held where they are replayed."""
    assert PAGE.read_text(encoding="utf-8") == page(compares=False)
