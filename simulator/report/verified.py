"""What is known to be verified without replaying anything: counted by `simulator.report.fidelity`, kept in `fixtures/verified.json`."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Final

from simulator.reading import Place, read_document
from simulator.scenario import fixtures

RECORDED: Final = "November 2026"
"""When the recordings were made."""


@lru_cache(maxsize=1)
def verified_counts() -> dict[str, dict[str, int]]:
    """Release -> step -> number of recordings that went through it and replay without a mismatch; "" counts them all."""
    place: Place = read_document(fixtures() / "verified.json")
    return {release: {step: number.integer(low=0) for step, number in steps.items()} for release, steps in place.entries("counts")}


def recordings_of(description: str, tags: Collection[str]) -> tuple[str, ...]:
    """The recordings that show what a scenario says: those that its description names, if it is tagged `verified`."""
    named = re.search(r"Recorded: ((?:[\w.-]+,\s*)*[\w.-]+)\.(?:\s|\Z)", description)
    return tuple(re.split(r",\s*", named[1])) if named and "verified" in tags else ()
