"""A comparison of two releases for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from simulator.report.attribution import Divergence, first_of_weight
from simulator.report.comparison import Compared, Group, Survey, Title
from simulator.report.events import pair_of_texts
from simulator.report.named import Named

_WIDTH: Final = 118
_ANOTHER_END: Final = "(every event is the same, the end state is not)"


def compared_lines(title: Title, compared: Compared) -> Iterator[str]:
    """One world: the first difference, the end states side by side, the changes responsible."""
    yield f"{title}: {compared.subject.name}"
    if compared.first is None:
        yield f"no difference; both: {compared.right.ending}"
        return
    yield one_verdict(compared)
    first = first_of_weight(compared.left, compared.right) or compared.first
    yield ""
    yield f"first difference, at {place(first)}:"
    yield from _pair(first, title.left, title.right, "  ")
    yield ""
    rows = [(row.what, row.left, row.right) for row in compared.rows]
    if rows:
        yield from _table([("end state", title.left, title.right), *rows])
    for blame in compared.blames:
        yield ""
        yield from _change(blame.named)
        yield from _indented(f"shows at:   {place(blame.shows)}", "  ")
        yield from _pair(blame.shows, "without", "with", "    ")
    if compared.unnamed is not None:
        yield ""
        yield f"UNNAMED: no named change explains a difference at {place(compared.unnamed)}"
        yield from _pair(compared.unnamed, title.left, title.right, "  ")


def one_verdict(compared: Compared) -> str:
    """Do they end alike, and is there something to do? In one line."""
    ends = "they end differently" if compared.rows else f"both end alike: {compared.right.ending}"
    wanted = ", ".join(blame.named.change.name for blame in compared.blames if blame.named.change.action)
    unnamed = "; UNNAMED: a difference has no named change" if compared.unnamed is not None else ""
    return f"{ends}; {f'to do: see {wanted}' if wanted else 'nothing to do'}{unnamed}"


def survey_lines(found: Survey) -> Iterator[str]:
    """Many worlds: a table of the changes with their counts and smallest worlds, what each means, what has no name."""
    title = found.title
    yield str(title)
    yield f"{counted(found)}: {verdict(found)}"
    if found.differing and title.is_downgrade:
        yield "this goes back: each change is undone"
    if found.groups:
        yield ""
        rows = [
            (group.named.change.name, group.named.release, str(group.count), str(group.alone), _needs(group.named), _world(group))
            for group in found.groups
        ]
        yield from _table([("change", "since", "worlds", "alone", "to do", "smallest world"), *rows])
    for group in found.groups:
        yield ""
        yield from _change(group.named)
        yield from _indented(f"worlds:     {group.count}, {alone(group)}", "  ")
        yield from _indented(f"smallest:   {smallest(group)}, shows at {place(group.shows)}", "  ")
        yield from _pair(group.shows, "without", "with", "    ")
    if found.silent:
        yield ""
        changes = ", ".join(f"{named.change.name} ({named.release})" for named in found.silent)
        yield from _indented(f"seen in none of these worlds: {changes}", "")
    for compared in found.unnamed:
        assert compared.unnamed is not None
        yield ""
        yield f"UNNAMED: {compared.subject.name}: no named change explains a difference at {place(compared.unnamed)}"
        yield from _pair(compared.unnamed, title.left, title.right, "  ")


def counted(found: Survey) -> str:
    """How many worlds were looked at."""
    if found.paths:
        return f"{found.paths} witnesses that go through every stretch of both releases"
    return f"{found.cases} recorded cases and {found.hosts} named hosts"


def verdict(found: Survey) -> str:
    """How many differ, and whether every difference has a name."""
    if not found.differing:
        return "no difference"
    named = f"UNNAMED differences in {len(found.unnamed)}" if found.unnamed else "every difference has a name"
    return f"{found.differing} differ, {named}"


def alone(group: Group) -> str:
    """In how many of its worlds a change is the only one."""
    return "in each the only change" if group.alone == group.count else f"the only change in {group.alone or 'none'}"


def smallest(group: Group) -> str:
    """The smallest world of a change."""
    others = len(group.smallest.blames) - 1
    beside = f", beside {others} more change{'s' if others > 1 else ''}" if others else ""
    return f"{group.smallest.subject.name} ({group.smallest.events} events{beside})"


def place(found: Divergence) -> str:
    """Where two traces part."""
    return "the end" if found.left is None and found.right is None else f"event {found.number}"


def texts(found: Divergence) -> tuple[str, str]:
    """The two events where two traces part, as text."""
    if found.left is None and found.right is None:
        return _ANOTHER_END, _ANOTHER_END
    return pair_of_texts(found.left, found.right)


def _change(named: Named) -> Iterator[str]:
    change = named.change
    yield f"{change.name} ({named.release}; {change.upstream})"
    yield from _indented(change.summary, "  ")
    yield from _indented(f"you notice: {change.notice}", "  ")
    yield from _indented(f"to do:      {change.action or 'nothing'}", "  ")


def _indented(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False)


def _pair(found: Divergence, left_name: str, right_name: str, indent: str) -> Iterator[str]:
    left, right = texts(found)
    width = max(len(left_name), len(right_name))
    yield f"{indent}{left_name:<{width}}  {left}"
    yield f"{indent}{right_name:<{width}}  {right}"


def _needs(named: Named) -> str:
    return "yes" if named.change.action else ""


def _world(group: Group) -> str:
    return f"{group.smallest.subject.name} ({group.smallest.events} events)"


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
