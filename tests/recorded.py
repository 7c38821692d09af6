"""The recordings of the checkout, read once for all tests of a process: reading them takes a second."""

from __future__ import annotations

import gc
from functools import cache

from simulator.recordings.layout import Recording, read_folder
from simulator.scenario import fixtures


@cache
def recorded() -> tuple[Recording, ...]:
    """Every recording. A test that changes one changes a copy."""
    found = tuple(read_folder(fixtures() / "recordings"))
    gc.freeze()  # half a million objects that stay: nothing is won by looking through them again and again
    return found
