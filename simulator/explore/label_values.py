"""The values that a run can leave in a label, by class of the value that it had.

Pausing and restoring look at a value as text; all else of a run asks only whether it is empty. So a class stands for all its
values, and a run's label ends as it was, paused, or restored: a patch is applied as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from simulator.labels import PAUSED, pause, restore

CLASSES: Final[Mapping[str, str]] = {
    "absent or empty": "",
    "true": "true",
    "false": "false",
    "paused": PAUSED,
    "another value": "custom",
    "another value, paused": f"custom_{PAUSED}",
    "underscore before": "_custom",
    "underscore behind": "custom_",
    "paused twice": f"{PAUSED}_{PAUSED}",
    "paused in front": f"{PAUSED}_custom",
    "pre-installed": "pre-installed",
}
"""Class -> a value of it. One value for each way that the two functions' tests can fall out."""


class Results(NamedTuple):
    """What becomes of a value."""

    paused: str
    restored: str
    next_run: str
    """What the next run restores a value to that was left paused."""


def results(value: str) -> Results:
    """What a value can become."""
    return Results(pause(value), restore(value), restore(pause(value)))
