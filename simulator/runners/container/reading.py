"""What a program wrote -> the events that a simulated run leaves: log lines, raw standard output, raw standard error.

logrus' text format is read with quoting off, as upstream sets it: a message may hold anything, lines of its own among it. A
line that looks like another entry, or like what the libraries write beside the log, begins something new; any other belongs
to what came before it.

Source: sirupsen/logrus text_formatter.go; k8s.io/klog/v2; k8s.io/kubectl/pkg/drain; Go's runtime (panics).
"""

from __future__ import annotations

import bisect
import os
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from simulator.trace import Event, LogLine, StderrText, StdoutText

_ENTRY: Final = re.compile(r"time=\S+ level=(panic|fatal|error|warning|info|debug|trace)(?: msg=(.*))?\Z")
_PANIC: Final = re.compile(r"panic: |fatal error: ")
_BESIDE: Final = re.compile(
    r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ \S+:\d+\] "  # klog
    r"|error when (?:evicting|deleting|waiting)"
    r"|WARNING: |Warning: "
)
_STACK_CUT: Final = "[stack trace left out]"


class Chunk(NamedTuple):
    """Bytes that arrived at once, at a time in nanoseconds since the start."""

    at: int
    stream: str
    """stdout or stderr."""
    data: bytes


class Told(NamedTuple):
    """Everything a run left, in order, and its panic's first line ("" for none)."""

    events: list[Event]
    panic: str


def read(record: Sequence[Event | Chunk]) -> Told:
    """The events of a record, in order. What was written belongs to the chunk that its first byte came in."""
    placed: list[tuple[int, int, Event]] = []
    for index, item in enumerate(record):
        if not isinstance(item, Chunk):
            placed.append((index, 0, item))
        elif item.stream == "stdout":
            placed.append((index, 0, StdoutText(item.at, _text(item.data))))
    chunks = [(index, item) for index, item in enumerate(record) if isinstance(item, Chunk) and item.stream == "stderr"]
    starts, total = [], 0
    for _, chunk in chunks:
        starts.append(total)
        total += len(chunk.data)
    panic = ""
    for offset, entry in _entries(b"".join(chunk.data for _, chunk in chunks)):
        index, chunk = chunks[bisect.bisect_right(starts, offset) - 1]
        if isinstance(entry, str):
            if _PANIC.match(entry):
                panic = entry.partition("\n")[0]
                placed.append((index, offset, StderrText(chunk.at, f"{panic}\n{_STACK_CUT}\n")))
                panic = panic.removeprefix("panic: ")
            else:
                placed.append((index, offset, StderrText(chunk.at, entry)))
        else:
            placed.append((index, offset, LogLine(chunk.at, *entry)))
    return Told([event for _, _, event in sorted(placed, key=lambda place: place[:2])], panic)


def _entries(data: bytes) -> Iterator[tuple[int, tuple[str, str] | str]]:
    """Offset of each entry, and (level, message), or a text that is no log entry."""
    start, level, lines, offset = 0, "", list[str](), 0
    for raw in data.removesuffix(b"\n").split(b"\n") if data else ():
        line = _text(raw)
        match = _ENTRY.match(line)
        in_panic = not level and bool(lines) and bool(_PANIC.match(lines[0]))
        begins = match is not None or (not in_panic and bool(_BESIDE.match(line) or _PANIC.match(line)))
        if lines and begins:
            yield start, _entry(level, lines)
            lines = []
        if not lines:
            start, level = offset, match[1] if match else ""
        lines.append(match[2] or "" if match else line)
        offset += len(raw) + 1
    if lines:
        yield start, _entry(level, lines)


def _entry(level: str, lines: list[str]) -> tuple[str, str] | str:
    return (level, "\n".join(lines)) if level else "".join(f"{line}\n" for line in lines)


def _text(data: bytes) -> str:
    return os.fsdecode(data)
