"""The page of named hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.report.host_page import page


@pytest.mark.slow
def test_the_page_is_up_to_date():
    """`make pages` writes what stands there."""
    assert (Path(__file__).parents[2] / "docs/hosts.md").read_text(encoding="utf-8") == page()


def test_what_is_copied_from_the_page_is_whole():
    """No asterisk of a description becomes a mark of Markdown's."""
    (row,) = [line for line in page().splitlines() if line.startswith("| `precompiled-580-purged-by-glob`") and "purge" in line]
    assert r"apt purge 'nvidia-\*' 'libnvidia-\*' 'cuda-\*'" in row
