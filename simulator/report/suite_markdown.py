"""Results of scenarios as Markdown: a job's summary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from simulator.reading import printable
from simulator.report.results import FAILED, OUTCOMES, PASSED, SKIPPED, Results, tally

_MOST_FAILURES = 50
_LONGEST = 300


def suite_markdown(results: Sequence[Results]) -> str:
    """A heading, a table of the runs, the failures, the features of each run in a fold."""
    return "\n".join(_lines(results))


def _lines(results: Sequence[Results]) -> Iterator[str]:
    failed = [ran for one in results for ran in one.scenarios if ran.outcome == FAILED]
    yield "## driver-manager scenarios: " + (f"{len(failed)} failed" if failed else "all passed")
    yield ""
    yield "| run | passed | failed | left out |"
    yield "|---|---:|---:|---:|"
    for one in results:
        counts = tally(one.scenarios)
        yield f"| {_cell(name_of(one))} | {counts[PASSED]} | {counts[FAILED]} | {counts[SKIPPED]} |"
    if failed:
        yield from ("", "### Failed", "", "| scenario | release | where | why |", "|---|---|---|---|")
        for ran in failed[:_MOST_FAILURES]:
            yield f"| {_cell(ran.title)} | {ran.release} | {_code(f'{ran.file}:{ran.failed_line}')} | {_cell(_short(ran.why))} |"
        if len(failed) > _MOST_FAILURES:
            yield from ("", f"and {len(failed) - _MOST_FAILURES} more")
    for one in results:
        yield from ("", f"<details><summary>Features: {_cell(name_of(one))}</summary>", "")
        yield from ("| feature | passed | failed | left out |", "|---|---:|---:|---:|")
        for feature in dict.fromkeys(ran.feature for ran in one.scenarios):
            counts = tally(ran for ran in one.scenarios if ran.feature == feature)
            yield f"| {_cell(feature)} | {' | '.join(str(counts[outcome]) for outcome in OUTCOMES)} |"
        yield from ("", "</details>")


def name_of(results: Results) -> str:
    """What a run is called: its release, and the image where one was run."""
    run = results.run
    release = run.release or "each scenario's release"
    return f"{release}, {run.image} in a container" if run.image else f"{release}, simulated"


def _short(why: str) -> str:
    """What was expected and what is; else the last line that says an error, else the first."""
    lines = [line.strip() for line in why.splitlines() if line.strip()]
    if why.startswith("expected:"):
        return "; ".join(line.rstrip(":") for line in lines[:2])[:_LONGEST]
    said = next((line.removeprefix("E ").strip() for line in lines if line.startswith("E ")), lines[0] if lines else "")
    return said if len(said) <= _LONGEST else said[:_LONGEST] + "..."


def _code(text: str) -> str:
    """A text as code, in which nothing is markup but what ends it or its cell."""
    return f"`{re.sub('[`|]', '?', printable(text))}`"


def _cell(text: str) -> str:
    """A text that cannot break its cell, nor be markup."""
    return re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", printable(text))
