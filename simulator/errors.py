"""The one error of bad input, and the words it is made of. A leaf that loads nothing, so that `dmsim --help` is quick."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final


class InputError(Exception):
    """Bad input: one message for a person. The command line prints it and exits 2."""

    def __init__(self, file: str, place: str, problem: str, mend: str = "") -> None:
        self.file, self.place, self.problem, self.mend = file, place, problem, mend
        where = f"{file}: " if file else ""
        text = f"{where}{place} {problem}" if place else f"{where}{problem}"
        super().__init__(printable(f"{text}; {mend}" if mend else text))


def printable(text: str) -> str:
    """The text with control characters escaped, so that a file cannot steer a terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape", "backslashreplace").decode() for char in text)


_VERSION: Final = re.compile(r"v?\d+\.")


def _by_number(name: str) -> tuple[tuple[int, int, str], ...]:
    """A key by which v0.9.1 stands before v0.10.0."""
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name) if part)


def nearest(name: str, known: Iterable[str]) -> str:
    """A mend for an unknown name: the names most like it, or all of them if they are few."""
    names = sorted(known, key=_by_number)
    part = name.split("-", maxsplit=1)[0]
    likely = [other for other in names if name and other.startswith(name)]
    if not likely or not _VERSION.match(name):  # versions are all alike, and none but its own continues one
        likely += [other for other in difflib.get_close_matches(name, names, n=3, cutoff=0.6) if other not in likely]
    likely += [other for other in names if len(part) > 2 and part in other.split("-") and other not in likely]
    close = likely[:3]
    if close:
        return "did you mean " + " or ".join(close) + "?"
    if not names:
        return "there is none"
    return "known: " + ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
