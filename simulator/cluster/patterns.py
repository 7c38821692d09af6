"""Regular expressions of faults, read so that no search with them takes for ever.

Python's `re` tries every way in which an expression may match, and cannot be stopped while it does. So an expression has
few choices: three repeats at most, of one character or class and not of a group, and a dozen other choices. What is refused
can be written with fewer.

Source: Python's re module; `re.search` of a cluster's and a recording's faults.
"""

from __future__ import annotations

import re
import warnings
from typing import Final

from simulator.reading import Place

_LONGEST: Final = 200
_MOST_REPEATS: Final = 3
_MOST_CHOICES: Final = 12
_TOKEN: Final = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<odd>\(\?(?:#|[a-zA-Z-]*x|\())|\(\?P?[<=!:]?"
    r"|(?P<group>\)(?:[*+{]))|(?P<repeat>[*+]|\{\d*,\d*\})|(?P<choice>[?|])|.",
    re.DOTALL,
)


def pattern(place: Place) -> str:
    """A regular expression. Raises InputError, also for one with which a search might not end in our time."""
    value = place.text()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # Python's plans for sets in expressions are not the reader's
            re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        place.fail(f'"{value}" is no regular expression: {error}')
    if len(value) > _LONGEST:
        place.fail("is too long for a regular expression of a fault", f"write {_LONGEST} characters at most")
    found = [match.lastgroup for match in _TOKEN.finditer(value)]
    if "group" in found or "odd" in found:
        place.fail(f'"{value}" repeats a group, or has a comment or a condition', "repeat single characters or classes: [^/]+")
    if found.count("repeat") > _MOST_REPEATS or found.count("choice") > _MOST_CHOICES:
        most = f"write {_MOST_REPEATS} of * + {{m,n}} and {_MOST_CHOICES} of | ? at most"
        place.fail(f'"{value}" has so many choices that a search with it might never end', most)
    return value
