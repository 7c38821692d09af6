"""A bar on standard error while work takes long: for the person who waits, at a terminal; for nothing else.

    with progress("replay", len(recordings)) as bar:
        for recording in recordings:
            ...
            bar.advance()

Nothing is drawn in the first second, so that quick work stays quiet, nor where standard error is no terminal or one that cannot
erase a line (`TERM=dumb`). What is drawn is one line, erased at the end. It is ASCII, so that any encoding has it. What prints
lines of its own meanwhile calls `clear` before. One thread advances a bar.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO, TypeVar

T = TypeVar("T")

QUIET_S: Final = 1.0
"""Seconds of work before a bar is drawn."""

_INTERVAL_S: Final = 0.1
_ERASE: Final = "\r\x1b[K"
_LONGEST: Final = 30
"""Characters of the bar itself, where there is room."""


class Bar:
    """How far one piece of work is. `total` is None where nobody knows how much there is: the count is shown then."""

    def __init__(self, label: str, total: int | None, stream: TextIO | None, now: Callable[[], float]) -> None:
        """Drawn on a stream, None for nowhere; `now` is a clock in seconds that never goes back."""
        self._label = label
        self._total = total
        self._stream = stream
        self._now = now
        self._start = now()
        self._due = self._start + QUIET_S
        self._is_shown = False
        self.done = 0

    @property
    def is_at_terminal(self) -> bool:
        """Is there a bar once the work takes long? Where not, lines of one's own may say how far it is."""
        return self._stream is not None

    def advance(self, n: int = 1) -> None:
        """N more are done."""
        self.done += n
        if self._stream is None:
            return
        moment = self._now()
        if moment < self._due:
            return
        self._due = moment + _INTERVAL_S
        self._stream.write(_ERASE + line(self._label, self.done, self._total, moment - self._start, _width(self._stream)))
        self._stream.flush()
        self._is_shown = True

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """The items, each of them done when the next one is asked for."""
        for item in items:
            yield item
            self.advance()

    def clear(self) -> None:
        """Erase the bar until it advances again: something else is about to be printed."""
        if self._stream is not None and self._is_shown:
            self._stream.write(_ERASE)
            self._stream.flush()
            self._is_shown = False


@contextmanager
def progress(
    label: str, total: int | None, *, stream: TextIO | None = None, now: Callable[[], float] = time.monotonic
) -> Iterator[Bar]:
    """A bar for what is done inside, on standard error or another stream. Erased at the end, however it ends."""
    where = sys.stderr if stream is None else stream
    bar = Bar(label, total, where if _is_drawable(where) else None, now)
    try:
        yield bar
    finally:
        bar.clear()


def line(label: str, done: int, total: int | None, elapsed: float, width: int) -> str:
    """What is shown of work after some seconds, in fewer characters than a line has."""
    if not total:
        return f"{label} {done}"[: width - 1]
    share = min(done / total, 1)
    tail = f"{done}/{total}"
    if 0 < share < 1:
        tail += f", {_duration(elapsed / share - elapsed)} left"
    room = min(_LONGEST, width - len(label) - len(tail) - len(" [] ") - 1)
    if room < 5:
        return f"{label} {tail}"[: width - 1]
    return f"{label} [{('#' * int(share * room)).ljust(room, '.')}] {tail}"


def _duration(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02} s"


def _is_drawable(stream: TextIO | None) -> bool:
    """None is what Python makes of a closed standard error."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def _width(stream: TextIO) -> int:
    """Columns of the terminal; 80 where it does not say."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except OSError:  # io.UnsupportedOperation is one
        return 80
