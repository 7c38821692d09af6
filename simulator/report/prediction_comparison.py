"""Two releases' predictions for one node: the answers that differ, in their order, and the named changes responsible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from simulator.predicting.prediction import ANSWERS, FORMAT, Prediction
from simulator.reading import printable
from simulator.report.attribution import Attribution
from simulator.report.named import Named
from simulator.report.prediction import Section, escaped, heading, rows_of, sections
from simulator.report.trials import DriverManagerTrial


@dataclass(frozen=True, slots=True)
class Difference:
    """One answer that differs: its section on either side, and the rows that only one side has."""

    left: Section
    right: Section

    @property
    def only_left(self) -> list[str]:
        """What only the first release's answer says."""
        return [row for row in rows_of(self.left) if row not in rows_of(self.right)]

    @property
    def only_right(self) -> list[str]:
        """What only the second release's answer says."""
        return [row for row in rows_of(self.right) if row not in rows_of(self.left)]


@dataclass(frozen=True, slots=True)
class PredictionComparison:
    """Two predictions, what differs, and why."""

    left: Prediction
    right: Prediction
    differences: tuple[Difference, ...]
    changes: tuple[Named, ...]
    """The named changes that are responsible for the runs being different."""

    @property
    def verdicts_differ(self) -> bool:
        """Is the verdict another one?"""
        return self.left.verdict != self.right.verdict


def compare_predictions(left: Prediction, right: Prediction) -> PredictionComparison:
    """Two releases after the same event on the same node."""
    pairs = (Difference(one, other) for one, other in zip(sections(left), sections(right), strict=True))
    explained = Attribution(left.release, right.release).explain(DriverManagerTrial(right.world))
    return PredictionComparison(
        left,
        right,
        tuple(pair for pair in pairs if pair.only_left or pair.only_right),
        tuple(blame.named for blame in explained.blames),
    )


def comparison_document(compared: PredictionComparison) -> dict[str, Any]:
    """As JSON has it: of each answer that differs both sides."""
    left, right = compared.left.document(), compared.right.document()
    return {
        "format": FORMAT,
        "releases": [compared.left.release, compared.right.release],
        "event": compared.left.event.value,
        "differences": [
            {"answer": name, "left": left[name], "right": right[name]} for name in ANSWERS if left[name] != right[name]
        ],
        "changes": [
            {"name": named.change.name, "release": named.release, "program": named.program, "notice": named.change.notice}
            for named in compared.changes
        ],
    }


def comparison_lines(compared: PredictionComparison) -> Iterator[str]:
    """As text, a line each."""
    yield from map(printable, _lines(compared))


def _lines(compared: PredictionComparison) -> Iterator[str]:
    left, right = compared.left, compared.right
    yield f"{heading(left)}, against {right.release}"
    if compared.verdicts_differ:
        yield f"- {left.release}: {left.verdict.sentence}"
        yield f"+ {right.release}: {right.verdict.sentence}"
    else:
        yield f"both: {left.verdict.sentence}"
    for difference in compared.differences:
        yield ""
        yield f"{difference.left.title}:"
        yield from (f"  - {row}" for row in difference.only_left)
        yield from (f"  + {row}" for row in difference.only_right)
    if compared.changes:
        yield ""
        yield "Because of:"
        yield from (f"  {named.change.name} ({named.release}): {named.change.notice}" for named in compared.changes)


def comparison_markdown(compared: PredictionComparison) -> str:
    """As markdown."""
    left, right = compared.left, compared.right
    out = [f"## {heading(left)}, against {right.release}", ""]
    if compared.verdicts_differ:
        out += [f"- {left.release}: {escaped(left.verdict.sentence)}", f"- {right.release}: {escaped(right.verdict.sentence)}"]
    else:
        out += [f"Both: {escaped(left.verdict.sentence)}"]
    for difference in compared.differences:
        out += ["", f"### {difference.left.title}", ""]
        out += [f"- {left.release}: {escaped(row)}" for row in difference.only_left]
        out += [f"- {right.release}: {escaped(row)}" for row in difference.only_right]
    if compared.changes:
        out += ["", "### Because of", ""]
        out += [f"- `{named.change.name}` ({named.release}): {escaped(named.change.notice)}" for named in compared.changes]
    return "\n".join(out) + "\n"
