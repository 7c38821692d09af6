"""Two releases' predictions for one node: the answers that differ, in their order, and the named changes responsible."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from simulator.predicting.answers import plain
from simulator.predicting.prediction import ANSWERS, FORMAT, Prediction
from simulator.reading import printable
from simulator.report.attribution import Attribution
from simulator.report.named import Named
from simulator.report.prediction import Section, escaped, heading, rows_of, sections
from simulator.report.trials import DriverManagerTrial


@dataclass(frozen=True, slots=True)
class Difference:
    """One answer that differs: its section on either side, and the rows that only one side has, but for its release's name."""

    left: Section
    right: Section
    releases: tuple[str, str]

    @property
    def only_left(self) -> list[str]:
        """What only the first release's answer says."""
        one, other = self.releases
        return _only(self.left, one, self.right, other)

    @property
    def only_right(self) -> list[str]:
        """What only the second release's answer says."""
        one, other = self.releases
        return _only(self.right, other, self.left, one)


def _only(section: Section, release: str, against: Section, other: str) -> list[str]:
    known = [nameless(row, other) for row in rows_of(against)]
    return [row for row in rows_of(section) if nameless(row, release) not in known]


def nameless(value: Any, release: str) -> Any:
    """An answer, or a part of it, in which a release does not name itself: what differs by the name alone is the same."""
    if isinstance(value, str):
        return re.sub(rf"{re.escape(release)}(?![\w.])", "the release", value)
    if isinstance(value, dict):
        return {key: nameless(item, release) for key, item in value.items()}
    return [nameless(item, release) for item in value] if isinstance(value, list) else value


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
        left, right = (plain(one.verdict) for one in (self.left, self.right))
        return bool(nameless(left, self.left.release) != nameless(right, self.right.release))


def compare_predictions(left: Prediction, right: Prediction) -> PredictionComparison:
    """Two releases after the same event on the same node."""
    pairs = (
        Difference(one, other, (left.release, right.release)) for one, other in zip(sections(left), sections(right), strict=True)
    )
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
            {"answer": name, "left": left[name], "right": right[name]}
            for name in ANSWERS
            if nameless(left[name], compared.left.release) != nameless(right[name], compared.right.release)
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
