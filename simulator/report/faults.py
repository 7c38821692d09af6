"""The single faults of a run, as text, as a document, and each as a world file."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final

from simulator.faults.damage import KINDS
from simulator.faults.domains import CALLS, REQUESTS
from simulator.faults.planning import Base, Place, SignalEnd
from simulator.faults.table import Row, Table
from simulator.reading import printable
from simulator.report.text import counted, ending, seconds
from simulator.writing import world_document, yaml_text

FORMAT: Final = 1
_WIDTHS: Final = (3, 42, 22, 4, 5, 50)
"""Columns of the table: number, where, fault, exit code, healed by a restart, damage."""
_HEAD: Final = ("#", "where", "fault", "exit", "heals", "damage")
_LONGEST_ARGUMENT: Final = 120


def fault_lines(table: Table, *, harmless: bool) -> Iterator[str]:
    """The table, below a line about the run itself. `harmless`: with the rows without damage."""
    outcome, rows = table.base.outcome, table.rows
    damaging = [row for row in rows if row.damages]
    yield f"{table.release}, without a fault: {ending(outcome)} after {seconds(outcome.elapsed)}"
    yield (
        f"{len(table.base.places)} requests and host operations, {counted(table.runs, 'run')}:"
        f" {counted(len(damaging), 'fault')} {'does' if len(damaging) == 1 else 'do'} damage, {len(rows) - len(damaging)} do none"
    )
    shown = rows if harmless else damaging
    if shown:
        yield ""
        yield _line(_HEAD)
    for number, row in enumerate(shown, 1):
        yield from _row_lines(number, row, table.base)
    if any(row.heals and not row.restarts for row in shown):
        yield ""
        yield "late: healed by the next start of the pod, which does not come by itself, since the init container succeeded or still runs"


def _row_lines(number: int, row: Row, base: Base) -> Iterator[str]:
    words = [damage.what for damage in row.damages]
    if len(words) > 1 and row.damages[-1].kind == "fails":
        words.pop()  # the exit code stands in its column
    code = row.outcome.exit_code
    cells = (
        str(number),
        where(row, base),
        ", ".join(end.name for end in row.ends),
        "-" if code is None else str(code),
        healing(row),
        "; ".join(words) or "none",
    )
    wrapped = [textwrap.wrap(printable(cell), width, break_on_hyphens=False) for cell, width in zip(cells, _WIDTHS, strict=True)]
    for parts in zip_longest(*wrapped, fillvalue=""):
        yield _line(parts)


def _line(cells: Sequence[str]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=True)).rstrip()


def healing(row: Row) -> str:
    """Does a restart of the pod heal it? In one word."""
    if row.heals is None:
        return "-"
    if not row.heals:
        return "no"
    return "yes" if row.restarts else "late"


def where(row: Row, base: Base) -> str:
    """The call, or the calls, and the upstream function that makes them."""
    counts = Counter(place.call[:2] for place in base.places)
    first, last = row.places[0], row.places[-1]
    is_signal = isinstance(row.ends[0], SignalEnd)
    alike = is_signal or len({_detail(place) for place in row.places}) == 1
    text = _called(first, with_detail=alike)
    of = counts[first.call[:2]]
    if is_signal:
        text = f"before {text}{_nth([first], of)}"
        if last is not first:
            text += f" ... {_called(last, with_detail=True)}{_nth([last], counts[last.call[:2]])}"
    else:
        text += _nth(row.places, of)
    functions = list(dict.fromkeys(place.function for place in (first, last) if place.function))
    return f"{text} in {' ... '.join(functions)}" if functions else text


def _called(place: Place, *, with_detail: bool) -> str:
    call, argument, _ = place.call
    if len(argument) > _LONGEST_ARGUMENT:
        argument = argument[: _LONGEST_ARGUMENT - 3] + "..."
    text = argument if call == "request" else f"{call} {argument}"
    detail = _detail(place) if with_detail else ""
    return f"{text} [{detail}]" if detail else text


def _detail(place: Place) -> str:
    """What tells requests of one path apart: a selector, or what a patch is about."""
    request = place.request
    if request is None:
        return ""
    if request.method == "PATCH" and request.body is not None:
        spec = request.body.get("spec")
        if spec is None:
            return "labels"
        return "cordon" if spec.get("unschedulable") else "uncordon"
    return request.query.get("labelSelector", "")


def _nth(places: Sequence[Place], of: int) -> str:
    """` (2 of 14)`, ` (1-11 of 14)`; nothing where there is one such call."""
    if of == 1:
        return ""
    numbers = [place.call.nth for place in places]
    is_run = len(numbers) > 1 and numbers == list(range(numbers[0], numbers[-1] + 1))
    text = f"{numbers[0]}-{numbers[-1]}" if is_run else ", ".join(map(str, numbers))
    return f" ({text} of {of})"


def faults_document(table: Table) -> dict[str, Any]:
    """The table as a document."""
    outcome = table.base.outcome
    return {
        "format": FORMAT,
        "release": table.release,
        "what_if": table.what_if,
        "without_fault": {"exit_code": outcome.exit_code, "elapsed_s": outcome.elapsed / 1e9},
        "calls": len(table.base.places),
        "runs": table.runs,
        "rows": [_row_document(number, row) for number, row in enumerate(table.rows, 1)],
    }


def _row_document(number: int, row: Row) -> dict[str, Any]:
    return {
        "number": number,
        "places": [
            {
                "number": place.number,
                "call": place.call.call,
                "argument": place.call.argument,
                "nth": place.call.nth,
                "function": place.function,
            }
            for place in row.places
        ],
        "faults": [end.name for end in row.ends],
        "exit_code": row.outcome.exit_code,
        "panic": row.outcome.panic,
        "elapsed_s": row.outcome.elapsed / 1e9,
        "damages": [damage._asdict() for damage in row.damages],
        "restarts": row.restarts,
        "heals": row.heals,
    }


def row_world(table: Table, number: int) -> str:
    """The world file of a row, numbered from 1: `dmsim run --world` comes to the same end."""
    row = table.rows[number - 1]
    text = f"{where(row, table.base)}: {row.ends[0].name}"
    document = world_document(row.world, release=table.release, what_if=table.what_if, description=text)
    comments = [f"Row {number} of dmsim faults: {'; '.join(damage.what for damage in row.damages) or 'no damage'}."]
    return yaml_text(document, comments)


def domain_lines() -> Iterator[str]:
    """What can go wrong at a call, and why: a table in Markdown."""
    yield "| call | how it ends | why it can |"
    yield "|---|---|---|"
    for call, ends in CALLS.items():
        for end in ends:
            yield f"| `{call}` | {end.name} | {end.why} |"
    for request in REQUESTS:
        yield f"| request | {request.name} | {request.why} |"


def damage_lines() -> Iterator[str]:
    """The kinds of damage, the worst first: a list in Markdown."""
    for number, (kind, what) in enumerate(KINDS.items(), 1):
        yield f"{number}. `{kind}`: {what}"
