"""What came of verifying an image: lines for people, and a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from simulator.recordings.comparing import Mismatch
from simulator.verifying.judging import Model, Tally, Verdict
from simulator.verifying.random_runs import Difference

FORMAT: Final = 1

Written = tuple[Difference, str]
"""A kind of difference, and the file that its smallest world was written to."""


def said(mismatch: Mismatch) -> str:
    """Where image and model differ, in a line."""
    return f"{mismatch.field}{mismatch.place}: image {mismatch.recorded}, model {mismatch.simulated}"


def verification_lines(tally: Tally, verdicts: Sequence[Verdict], written: Sequence[Written]) -> Iterator[str]:
    """The first difference of each world that has one, the files, and the count."""
    for verdict in verdicts:
        if verdict.unsteady:
            yield f"{verdict.name}: equal at a later attempt, at the first {said(verdict.unsteady[0])}"
        if verdict.broken:
            yield f"{verdict.name}: the runner failed: {verdict.broken.rstrip()}"
        if verdict.found:
            yield verdict.name
            yield f"  {said(verdict.found[0])}"
    for difference, path in written:
        like = f" (and {len(difference.like)} more like it)" if difference.like else ""
        yield f"{path}: smallest world of {difference.verdict.name}{like}, after {difference.tried} tries"
        yield f"  {said(difference.first)}"
    yield str(tally)


def verification_document(model: Model, tally: Tally, verdicts: Sequence[Verdict], written: Sequence[Written]) -> dict[str, Any]:
    """The same with every difference of every world."""
    return {
        "format": FORMAT,
        "release": model.release,
        "without": sorted(model.without),
        "equal": tally.equal,
        "differ": tally.differ,
        "broken": tally.broken,
        "excluded": dict(tally.excluded),
        "unobserved": dict(tally.unobserved),
        "worlds": [
            {
                "name": verdict.name,
                "differences": [_mismatch(mismatch) for mismatch in verdict.found],
                "excluded": verdict.excluded,
                "broken": verdict.broken,
                "unobserved": list(verdict.unobserved),
                "unsteady": [_mismatch(mismatch) for mismatch in verdict.unsteady],
            }
            for verdict in verdicts
        ],
        "smallest": [
            {
                "world": difference.verdict.name,
                "like": difference.like,
                "file": path,
                "tried": difference.tried,
                "differences": [_mismatch(mismatch) for mismatch in difference.verdict.found],
            }
            for difference, path in written
        ],
    }


def _mismatch(mismatch: Mismatch) -> dict[str, str]:
    return {"field": mismatch.field, "place": mismatch.place, "image": mismatch.recorded, "model": mismatch.simulated}
