"""Outcomes as JSON documents, with a format version."""

from __future__ import annotations

from typing import Any, Final

from simulator.recordings.observation import observation
from simulator.report.changes import differences
from simulator.trace import Outcome, Sleep

FORMAT: Final = 1


def outcome_document(outcome: Outcome) -> dict[str, Any]:
    """A run: the observation as recordings have it, and what only the simulation sees."""
    before = outcome.before.node
    return {
        "format": FORMAT,
        "release": outcome.release,
        "observed": observation(outcome),
        "node_before": {
            "labels": dict(before.labels),
            "annotations": dict(before.annotations),
            "unschedulable": before.unschedulable,
        }
        if before
        else None,
        "gpu_drivers": {"before": dict(outcome.before.gpu_drivers), "after": dict(outcome.after.gpu_drivers)},
        "changes": [
            {"subject": difference.subject, "what": difference.what} for difference in differences(outcome.before, outcome.after)
        ],
        "waits": [{"at_s": event.at / 1e9, "for_s": event.span / 1e9} for event in outcome.events if isinstance(event, Sleep)],
    }
