"""Colour on a terminal: which words of a report stand out, and when.

Reports are plain lines, and stay so: colour is put on at the very end, by the tables of marks below. Logs are never touched, as
they are byte for byte what the program prints; nor are documents (`-o json`, `-o markdown`). Whether there is colour is decided
as Python itself decides it, in this order: `--no-color`, `NO_COLOR` (https://no-color.org), `FORCE_COLOR` or `CLICOLOR_FORCE`,
`CLICOLOR=0`, `TERM=dumb`, and then whether standard output is a terminal.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

GOOD: Final = "32"
BAD: Final = "31"
DOUBTFUL: Final = "33"
HEADING: Final = "1"
"""Parameters of SGR, ECMA-48: the eight colours that every terminal has, as its user has set them."""


class Mark(NamedTuple):
    """What is coloured: what an expression finds in a line, or its first group if it has one."""

    expression: re.Pattern[str]
    style: str


def _mark(expression: str, style: str) -> Mark:
    return Mark(re.compile(expression), style)


ENDING: Final = (_mark(r"^exit code 0$", GOOD), _mark(r"^(?:exit code|killed by|it was still|it would never).*", BAD))
CHANGES: Final = (
    *ENDING,
    _mark(r'^  (?:label|annotation) .*?: (absent|".*?") -> (?:absent|")', BAD),
    _mark(r'^  (?:label|annotation) .* -> (absent|".*")$', GOOD),
    _mark(r"^  \S+ .*(?:is gone|is unloaded|is unmounted|is removed|is loaded|is there)$", DOUBTFUL),
    _mark(r"^  node +(?:un)?cordoned$", DOUBTFUL),
    _mark(r"^  (?:gpu +)?\S+:?  ?(.+ -> .+)$", DOUBTFUL),
    _mark(r"^(?:---|(?:un)?changed:|devices:|written:).*", HEADING),
)
"""Of a run: what it changed, and how it ended."""

COMPARISON: Final = (
    _mark(r"^UNNAMED.*", BAD),
    _mark(r"UNNAMED differences in \d+", BAD),
    _mark(r"^    (without) ", BAD),
    _mark(r"^    (with) ", GOOD),
    _mark(r"^[a-z0-9.-]+(?= \(v)", HEADING),
    _mark(r"^  to do:      (?!nothing$)(.*)", DOUBTFUL),
    _mark(r"^v\S+ -> v\S+", HEADING),
)
"""Of two releases."""

PREDICTION: Final = (
    _mark(r"^will succeed as far as was seen", DOUBTFUL),
    _mark(r"^will succeed", GOOD),
    _mark(r"^cannot be told", DOUBTFUL),
    _mark(r"^will not succeed", BAD),
    _mark(r"^   - (trap|blocking|left paused):", BAD),
    _mark(r"^\d+\. [^:]+:", HEADING),
)
"""Of what will happen to a node."""

DIAGNOSIS: Final = (
    _mark(r"^[^:]+: (nothing is left over that is known)", GOOD),
    _mark(r"^[^:]+: (\d+ findings?)", BAD),
    _mark(r"^\d+\. ([a-z0-9-]+):", BAD),
    _mark(r"^     (?!#)(.*)", HEADING),
)
"""Of what is left over on a node: the kinds, and the commands that mend."""

CHECKED: Final = (_mark(r"^no mismatch$", GOOD), _mark(r"^\d+ mismatch(?:es)?\b.*", BAD), _mark(r"^  mend: (.*)", HEADING))
"""Of GPU passthrough."""

EXPLANATION: Final = (
    _mark(r"^Nothing fits\.?", BAD),
    _mark(r"^fits .*exit code 0$", GOOD),
    _mark(r"^fits .*", DOUBTFUL),
    _mark(r"^(?:decided|the node now|next|what you can do|or else):$", HEADING),
)
"""Of a log."""

DEMO: Final = (
    _mark(r" 0     (no driver)$", GOOD),
    _mark(r" 1     (nvidia)$", BAD),
    _mark(r"^(?:Issue #191.*|  host  .*|As it is:|FORCE_REINSTALL:|The override:)", HEADING),
    _mark(r"  (dmsim .*)", HEADING),
)
"""Of the demo."""

FAULTS: Final = (
    _mark(r"without a fault: (exit code 0) ", GOOD),
    _mark(r"without a fault: (.*)", BAD),
    _mark(r"^# +where .*", HEADING),
    _mark(r"^\d+ .*  (no)  ", BAD),
    _mark(r"^\d+ .*  (late) ", DOUBTFUL),
)
"""Of single faults: the fault-free run, and what no restart of the pod heals, or none that comes by itself."""

HOSTS: Final = (_mark(r"false (?:negatives?|positives?)$", BAD), _mark(r"the check .*$", DOUBTFUL), _mark(r"^HOST  .*", HEADING))
"""Of the host check on named hosts."""

RECORDED: Final = (
    _mark(r"^\d+ passed, 0 failed$", GOOD),
    _mark(r"\d+ failed$", BAD),
    _mark(r"^\d+ equal, 0 differ(?!.*broken).*", GOOD),
    _mark(r"^\d+ equal, .*", BAD),
    _mark(r"^(?!  |no recording)\S+ \S+$", BAD),
    _mark(r": (?:recorded|image) (.*), (?:simulated|model) ", GOOD),
    _mark(r", (?:simulated|model) (.*)", BAD),
)
"""Of recordings or an image held against the model."""


def is_wanted(environment: Mapping[str, str], *, terminal: bool, refused: bool = False) -> bool:
    """Is there to be colour? `refused` is `--no-color`, `terminal` whether standard output is one."""
    if refused or environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR", "0") not in {"", "0"} or environment.get("CLICOLOR_FORCE", "0") not in {"", "0"}:
        return True
    return terminal and environment.get("CLICOLOR") != "0" and environment.get("TERM") != "dumb"


def coloured(line: str, marks: Sequence[Mark]) -> str:
    """A line with its marked words in colour. Where two marks overlap the earlier one of the table holds."""
    spans: list[tuple[int, int, str]] = []
    for mark in marks:
        for match in mark.expression.finditer(line):
            start, end = match.span(1 if mark.expression.groups else 0)
            if start < end and all(end <= left or start >= right for left, right, _ in spans):
                spans.append((start, end, mark.style))
    out, done = [], 0
    for start, end, style in sorted(spans):
        out += [line[done:start], f"\x1b[{style}m", line[start:end], "\x1b[0m"]
        done = end
    return "".join([*out, line[done:]])


def write(lines: Iterable[str], marks: Sequence[Mark], options: argparse.Namespace) -> None:
    """Write lines to standard output, all at once, in colour if it is wanted there."""
    wanted = is_wanted(os.environ, terminal=sys.stdout.isatty(), refused=options.no_color)
    sys.stdout.write("".join(f"{coloured(line, marks) if wanted else line}\n" for line in lines))
