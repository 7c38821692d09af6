"""A run as text: the program's output as `kubectl logs` shows it, then what changed."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from simulator import logrus
from simulator.gocompat import SECOND, Duration
from simulator.report.changes import Difference, differences
from simulator.trace import LogLine, Outcome, StderrText, StdoutText


def log_text(outcome: Outcome, start: datetime.datetime) -> str:
    """Everything the program printed, in order."""
    out = []
    for event in outcome.events:
        match event:
            case LogLine():
                moment = start + datetime.timedelta(microseconds=event.at // 1000)
                out.append(logrus.line(moment, event.level, event.message))
            case StdoutText() | StderrText():
                out.append(event.text)
            case _:
                pass
    return "".join(out)


def seconds(span: Duration) -> str:
    """A span for people: `60 s`, `0.4 s`."""
    return f"{span / SECOND:.1f}".removesuffix(".0") + " s"


def counted(count: int, noun: str) -> str:
    """So many of something, in words: `1 run`, `2 runs`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def ending(outcome: Outcome) -> str:
    """How the program ended."""
    if outcome.exit_code is None:
        return f"it was still running when the simulation stopped, after {outcome.stopped_after} s"
    if outcome.panic:
        return f"exit code {outcome.exit_code} (panic: {outcome.panic})"
    if outcome.exit_code < 0:
        return f"killed by signal {-outcome.exit_code}"
    return f"exit code {outcome.exit_code}"


def _line(difference: Difference) -> str:
    return f"  {difference.subject:<11} {difference.what}"


def summary(outcome: Outcome) -> Iterator[str]:
    """What changed, what did not, how long it took, how it ended: a line each."""
    changed = differences(outcome.before, outcome.after)
    yield f"--- {outcome.release}, {seconds(outcome.elapsed)} simulated"
    yield "changed:" if changed else "changed: nothing"
    for difference in changed:
        yield _line(difference)
    before, after = outcome.before.gpu_drivers, outcome.after.gpu_drivers
    same = [address for address in sorted(after) if before.get(address) == after[address]]
    if same:
        yield "unchanged:"
    for address in same:
        yield _line(Difference("gpu", f"{address}: {after[address] or 'no driver'}"))
    yield ending(outcome)
