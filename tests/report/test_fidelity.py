"""The page that says how equal the model is."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.report.fidelity import counts_text, page, replayed_counts
from simulator.report.verified import recordings_of, verified_counts

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def counts():
    """That every recording replays is held where they are replayed."""
    return replayed_counts(compares=False)


@pytest.mark.slow
def test_the_page_is_up_to_date(counts):
    """`make pages` writes what stands there."""
    assert (ROOT / "docs/fidelity.md").read_text(encoding="utf-8") == page(counts, compares=False)


@pytest.mark.slow
def test_the_counts_that_reports_use_are_up_to_date(counts):
    """`make pages` writes them too."""
    assert (ROOT / "fixtures/verified.json").read_text(encoding="utf-8") == counts_text(counts)
    assert verified_counts() == counts


def test_a_scenario_is_verified_by_the_recordings_it_names():
    """Only if it is tagged so."""
    said = "Like this. Recorded: a-1, b.2."
    assert recordings_of(said, {"verified"}) == ("a-1", "b.2")
    assert recordings_of(said, {"quirk"}) == ()
