"""The page on the bump over the rewrite."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.manager.releases import RELEASES
from simulator.report.rewrite_page import NEWER, OLDER, page

PAGE = Path(__file__).parents[2] / "docs/from-shell-to-go.md"


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_page_is_up_to_date():
    """`make pages` writes what stands there."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_the_page_is_of_the_bump_over_the_rewrite():
    """Every named change of the first Go release, with what is noticed and what is to be set."""
    text = PAGE.read_text(encoding="utf-8")
    assert RELEASES[OLDER].is_script
    assert not RELEASES[NEWER].is_script
    for change in RELEASES[NEWER].changes:
        assert f"### {change.name}\n\n{change.summary}\n\n*You notice:* {change.notice}\n" in text
        assert f"*Set:* {change.action or 'nothing.'}\n" in text
    assert "every difference has a name" in text
