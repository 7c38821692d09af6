"""An expectation that a run does not meet, said in the words of the feature file: no code, no objects of Python's."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from _pytest._code.code import ReprFileLocation, TerminalRepr
from _pytest._io import TerminalWriter

_MOST = 60
"""So many lines of what there is are shown."""


class Unmet(AssertionError):
    """What was expected, and what is. Of this no traceback is shown: there is nothing in it for who writes features."""

    def __init__(self, expected: str, *found: str) -> None:
        super().__init__("\n".join((f"expected: {expected}", *found)))


class NotMet(TerminalRepr):
    """How pytest shows it: the step, with its place, and what was expected."""

    def __init__(self, file: str, line: int, step: str, message: str) -> None:
        self.reprcrash = ReprFileLocation(file, line, message)
        self._text = f"{file}:{line}  {step}\n{message}"

    def __str__(self) -> str:
        return self._text

    def toterminal(self, tw: TerminalWriter) -> None:
        """Write it."""
        first, *rest = self._text.splitlines()
        tw.line(first, bold=True)
        for text in rest:
            tw.line(text, red=text.startswith("expected:"))


def equal(what: str, found: Any, expected: Any) -> None:
    """One thing is what it is to be. Raises Unmet."""
    if found != expected:
        raise Unmet(f"{what} {said(expected)}", f"it is: {said(found)}")


def among(what: str, wanted: str, there: Iterable[str], where: str) -> None:
    """A line is among others. Raises Unmet, which shows them, and the nearest one."""
    lines = list(there)
    if wanted not in lines:
        raise Unmet(f"{what} {wanted}", *nearest_line(wanted, lines), *listed(where, lines))


def alike(what: str, found: Sequence[str], expected: Sequence[str]) -> None:
    """All lines are what they are to be, in this order. Raises Unmet, which shows how they differ."""
    if list(found) != list(expected):
        rows = [row for row in difflib.ndiff(list(expected), list(found)) if not row.startswith("?")]
        raise Unmet(f"{what}, where - is missing and + is too much:", *_first(rows))


def listed(where: str, lines: Sequence[str]) -> list[str]:
    """Lines, one below the other, under a heading."""
    return [f"{where}:", *(f"  {line}" for line in _first(lines))] if lines else [f"{where}: nothing"]


def nearest_line(wanted: str, lines: Sequence[str]) -> list[str]:
    """The line that is most like another, if one is."""
    near = difflib.get_close_matches(wanted, lines, n=1)
    return [f"the nearest is: {near[0]}"] if near else []


def said(value: Any) -> str:
    """A value as people write it."""
    match value:
        case None | "":
            return "none"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case Mapping():
            return ", ".join(f"{key}: {said(one)}" for key, one in value.items()) or "none"
        case list() | tuple():
            return ", ".join(said(one) for one in value) or "none"
        case set() | frozenset():
            return ", ".join(sorted(said(one) for one in value)) or "none"
    return str(value)


def _first(lines: Sequence[str]) -> list[str]:
    more = len(lines) - _MOST
    return [*lines[:_MOST], f"... and {more} more"] if more > 0 else list(lines)
