"""Which field report is answered by which scenarios and which command: `python -m features.field_reports > docs/field-reports.md`.

Made from features/regressions themselves. `tests/features` checks that the page is up to date, and that no report is missing.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from pytest_bdd.feature import get_feature
from pytest_bdd.parser import Rule, ScenarioTemplate

FOLDER: Final = Path(__file__).resolve().parent / "regressions"
_COMMANDS: Final = {
    "I ask what will happen": "predict",
    "I ask what is left over": "diagnose",
    "I ask what its log means": "explain",
    "I ask for the meaning": "explain",
    "driver-manager runs": "run",
}
"""How a When step begins -> the subcommand of dmsim that does the same."""
_REFERENCE: Final = re.compile(r"[\w.-]+/[\w.-]+#\d+|#\d+")


class Answered(NamedTuple):
    """The question of some reports, and one scenario that answers it."""

    reports: str
    """Their numbers, as the rule names them."""
    question: str
    references: tuple[str, ...]
    scenario: str
    feature: str
    command: str


def answered() -> list[Answered]:
    """Every scenario of every report, by the reports' numbers."""
    found = []
    for path in sorted(FOLDER.glob("*.feature")):
        feature = get_feature(str(path.parent), path.name)
        for template in feature.scenarios.values():
            assert template.rule is not None
            reports, _, question = template.rule.name.partition(": ")
            found.append(Answered(reports, question, _references(template.rule), template.name, path.name, _command(template)))
    return sorted(found, key=lambda one: one.reports)


def _references(rule: Rule) -> tuple[str, ...]:
    """The threads that a rule's description names first; `#7` is of the repository before it."""
    out: list[str] = []
    for found in _REFERENCE.findall(rule.description):
        repository = out[-1].partition("#")[0] if found.startswith("#") and out else ""
        out.append(repository + found)
    return tuple(dict.fromkeys(one for one in out if not one.startswith("#")))


def _command(template: ScenarioTemplate) -> str:
    when = next(step.name for step in template.steps if step.type == "when")
    return next(command for begins, command in _COMMANDS.items() if when.startswith(begins))


_HEAD: Final = """\
# Field reports

<!-- Made by `make pages`; change the features, not this page. -->

What people ran into, and where it is answered. Each report is a world in `features/regressions`; its question is answered by
the subcommand of `dmsim` that stands before a scenario's name, and the scenario asserts the answer.
"""


def page() -> Iterator[str]:
    """The page, line by line."""
    yield from _HEAD.splitlines()
    yield ""
    yield "| reports | asked | threads | `dmsim`: scenario |"
    yield "|---|---|---|---|"
    for (reports, question, references), scenarios in itertools.groupby(answered(), key=lambda one: one[:3]):
        cells = [reports, question, ", ".join(f"`{reference}`" for reference in references) or "-"]
        cells.append("; ".join(f"{one.command}: {one.scenario} (`{one.feature}`)" for one in scenarios))
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the page."""
    sys.stdout.write("\n".join(page()) + "\n")


if __name__ == "__main__":
    main()
