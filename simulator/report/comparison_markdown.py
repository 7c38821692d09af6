"""A comparison of two releases as Markdown that fits a pull request's comment.

Short at first sight: a table, what has to be done, the rest folded away. References to upstream stand in code spans, so
that GitHub makes neither links into the wrong repository nor mentions in upstream's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from simulator.report.attribution import Divergence
from simulator.report.comparison import Compared, Group, Survey, Title
from simulator.report.comparison_text import alone, counted, place, smallest, texts, verdict
from simulator.report.named import Change, Named

LONGEST: Final = 60_000
"""GitHub refuses comments of more than 65,536 characters."""
_LEFT_OUT: Final = "Details of {} more changes are left out; `dmsim compare {}` shows them."


def survey_markdown(found: Survey, longest: int = LONGEST) -> str:
    """Many worlds, in at most so many characters as far as details go."""
    out = [
        _heading(found.title),
        f"Simulated in {counted(found)}: **{verdict(found)}**.",
        *_direction(found.title, found.differing),
    ]
    out += _unnamed(found.title, found.unnamed)
    if found.groups:
        groups = sorted(found.groups, key=lambda group: not group.named.change.action)
        rows = (
            (f"`{group.named.change.name}`", group.named.release, str(group.count), group.named.change.notice) for group in groups
        )
        out += [table(("change", "since", "worlds", "what you notice"), rows)]
        out += _to_do(group.named.change for group in groups)
        out += _within((_group_details(group) for group in groups), longest - sum(map(len, out)), found.title)
    if found.silent:
        out.append("Seen in none of these worlds: " + ", ".join(f"`{named.change.name}`" for named in found.silent) + ".")
    return "\n\n".join(out) + "\n"


def compared_markdown(title: Title, compared: Compared, longest: int = LONGEST) -> str:
    """One world."""
    out = [
        _heading(title),
        f"Simulated on {_code(compared.subject.name)}: **{'no ' if compared.first is None else ''}difference**.",
    ]
    if compared.first is None:
        return "\n\n".join([*out, f"Both: {compared.right.ending}."]) + "\n"
    out += _direction(title, 1)
    out.append(f"First difference, at {place(compared.first)}:")
    out.append(fence(compared.first))
    rows = ((row.what, _code(row.left), _code(row.right)) for row in compared.rows)
    out.append(
        table(("end state", title.left, title.right), rows) if compared.rows else f"Both end alike: {compared.right.ending}."
    )
    if compared.unnamed is not None:
        out += _unnamed(title, [compared])
    out += _to_do(blame.named.change for blame in compared.blames)
    details = (_details(blame.named, [f"Shows at {place(blame.shows)}:", fence(blame.shows)]) for blame in compared.blames)
    out += _within(details, longest - sum(map(len, out)), title)
    return "\n\n".join(out) + "\n"


def _heading(title: Title) -> str:
    return f"### k8s-driver-manager {title}".replace(" -> ", " → ")


def _direction(title: Title, differing: int) -> list[str]:
    return ["This goes back: each change below is undone."] if differing and title.is_downgrade else []


def _unnamed(title: Title, found: Iterable[Compared]) -> list[str]:
    out = []
    for compared in found:
        assert compared.unnamed is not None
        out.append(
            f"**Unnamed:** on {_code(compared.subject.name)} no named change explains a difference at {place(compared.unnamed)}:"
        )
        out.append(fence(compared.unnamed, title.left, title.right))
    return out


def _to_do(changes: Iterable[Change]) -> list[str]:
    rows = [f"- [ ] {change.action} (`{change.name}`)" for change in changes if change.action]
    return ["**To do**\n\n" + "\n".join(rows)] if rows else ["Nothing to do."]


def _group_details(group: Group) -> str:
    more = [
        f"Worlds: {group.count}, {alone(group)}. Smallest: {_code(smallest(group))}, shows at {place(group.shows)}:",
        fence(group.shows),
    ]
    return _details(group.named, more)


def _details(named: Named, more: list[str]) -> str:
    change = named.change
    head = f"<details><summary><code>{change.name}</code>: {_escaped(change.summary)}</summary>"
    facts = f"Since {named.release} ({_code(change.upstream)}). {_plain(change.notice)}"
    return "\n\n".join([head, facts, *more, "</details>"])


def _within(details: Iterable[str], room: int, title: Title) -> Iterator[str]:
    """The details that fit, and how many do not."""
    left_out = 0
    for text in details:
        room -= len(text) + 2
        if room < 0:
            left_out += 1
        else:
            yield text
    if left_out:
        yield _LEFT_OUT.format(left_out, f"{title.left} {title.right}")


def fence(found: Divergence, left: str = "", right: str = "") -> str:
    """The two events as a diff. The prefixes keep whatever an event says from ending the block."""
    one, other = texts(found)
    head = f"--- {left}\n+++ {right}\n" if left else ""
    return f"```diff\n{head}- {one}\n+ {other}\n```"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table; what stands in a cell is escaped."""
    lines = [head, tuple("---" for _ in head), *(tuple(_cell(text) for text in row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _code(text: str) -> str:
    """A code span, also of a text that holds backquotes."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _plain(text: str) -> str:
    return text.replace("<", "&lt;")


def _escaped(text: str) -> str:
    """For a place where Markdown is not read: code spans become elements."""
    parts = text.replace("&", "&amp;").replace("<", "&lt;").split("`")
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))
