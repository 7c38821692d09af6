"""What the model prints, held against the log line by line.

An error's text that only the world knows is a *hole* in the model's message: the first line that shows it fills it, each
later one has to say the same. A line that does not fit ends the run at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from simulator.explaining.text import ROW, Entry, polled, squeezed

_LEFT, _RIGHT = "\ue000", "\ue001"
_HOLE: Final = re.compile(f"{_LEFT}(\\d+){_RIGHT}")


def hole(number: int) -> str:
    """A text that is not known yet."""
    return f"{_LEFT}{number}{_RIGHT}"


def shown(text: str) -> str:
    """A text for people: what is not known is left out."""
    return _HOLE.sub("...", text).strip()


class Departed(Exception):
    """The model does something else than the log says."""


class Cut(Exception):
    """The log has ended, and the model goes on."""


@lru_cache(maxsize=8192)
def _squeezed(text: str) -> str:
    return squeezed(text)


class Matcher:
    """The log, as far as it is used up, and the streams that the model prints to."""

    def __init__(self, entries: Sequence[Entry], kind: str, *, started: bool) -> None:
        self.entries = entries
        self.kind = kind
        self.position = 0
        self.started = started
        self.filled: dict[int, str] = {}
        self.refused: dict[int, frozenset[str]] = {}
        """Hole -> texts that mean something else."""
        self.beside: list[str] = []
        """What was printed beside the log."""
        self.expected = ""
        """The line that the model printed where it departed."""
        self.may_repeat = False
        """Does the model poll for as long as it takes?"""
        self._recent: list[str] = []

    @property
    def exhausted(self) -> bool:
        """Is every line of the log used up?"""
        return self.position == len(self.entries)

    @property
    def next(self) -> Entry | None:
        """The next line of the log, None if there is none or it is not known yet where the log begins."""
        return self.entries[self.position] if self.started and self.position < len(self.entries) else None

    def fits(self, level: str, message: str) -> bool:
        """Could this be the next line? Nothing is used up."""
        return self._match(self.entries[self.position], level, message, {}) is not None

    def see(self, level: str, message: str) -> None:
        """A line of the model's, which has to be the next of the log. Raises Departed or Cut."""
        message = self.known(message)
        if message == "" or message.isspace():
            return
        if not self.started:
            return
        key = polled(message)
        again = bool(key) and key in self._recent[-2:]
        if self.exhausted:
            if again and self.may_repeat:
                return
            raise Cut
        bindings: dict[int, str] = {}
        used = self._match(self.entries[self.position], level, message, bindings)
        if used is None:
            if again and self.may_repeat:
                return
            if self.position + 1 == len(self.entries) and self._is_begun(level, message):
                self.position += 1
                raise Cut
            self.expected = message
            raise Departed
        self.filled.update(bindings)
        self._recent.append(key)
        self.position += 1

    def aside(self, text: str) -> None:
        """What the model prints beside the log."""
        self.beside.append(text)

    def unexplained(self, raws: Sequence[Entry]) -> Entry | None:
        """The first line beside the log that was not printed."""
        if not raws:
            return None
        printed = [self.known(line) for text in self.beside for line in text.split("\n")]
        plain = {_squeezed(_unstamped(line)) for line in printed if not _HOLE.search(line)}
        patterns = [_pattern(squeezed(_unstamped(line)))[0] for line in printed if _HOLE.search(line)]
        for raw in raws:
            key = squeezed(raw.message)
            if key not in plain and not any(pattern.fullmatch(key) for pattern in patterns):
                return raw
        return None

    def known(self, message: str) -> str:
        """The message with its holes filled, as far as they are."""
        if _LEFT not in message:
            return message
        return _HOLE.sub(lambda found: self.filled.get(int(found[1]), found[0]), message)

    def _match(self, entry: Entry, level: str, message: str, bindings: dict[int, str]) -> int | None:
        """How many of the lines after it belong to the message; None if it is another."""
        if entry.level != level and level and entry.level:
            return None
        wanted, found = _squeezed(message), _squeezed(entry.message)
        if _LEFT in wanted:
            return 0 if self._fill(message, entry, bindings) else None
        if wanted == found:
            return 0
        poll = polled(message)
        if poll and poll == polled(entry.message):
            return 0
        if not found or not wanted.startswith(found):
            return None
        rest = wanted[len(found) :]
        used = 0
        for index, line in enumerate(entry.more):
            part = squeezed(line)
            if part and rest.startswith(part):
                rest = rest[len(part) :]
                used = index + 1
                if not rest:
                    return used
        return None

    def _is_begun(self, level: str, message: str) -> bool:
        """Is the last line the beginning of this message, and the rest of it cut?"""
        entry = self.entries[self.position]
        first = message.strip("\n").split("\n")[0]
        return "\n" in message.strip("\n") and entry.level == level and _squeezed(first) == _squeezed(entry.message)

    def _fill(self, message: str, entry: Entry, bindings: dict[int, str]) -> bool:
        pattern, holes = _pattern(message.strip())
        match = pattern.fullmatch(entry.message.strip())
        if match is None:
            match = pattern.fullmatch(entry.whole.strip())
        if match is None:
            pattern, holes = _pattern(squeezed(message))
            match = pattern.fullmatch(squeezed(entry.whole)) or pattern.fullmatch(squeezed(entry.message))
        if match is None:
            return False
        for number, text in zip(holes, match.groups(), strict=True):
            if text.strip() in self.refused.get(number, ()) or bindings.get(number, text) != text:
                return False
            bindings[number] = text
        return True


def is_row(entry: Entry) -> bool:
    """Is it a row of the table of modules?"""
    return bool(ROW.match(entry.message))


_KLOG: Final = re.compile(r"\A([IWEF])(?:\d{4} [\d:.]+ +\d+)? ")


def _unstamped(line: str) -> str:
    return _KLOG.sub(r"\1 ", line)


@lru_cache(maxsize=4096)
def _pattern(message: str) -> tuple[re.Pattern[str], tuple[int, ...]]:
    parts = _HOLE.split(message)
    pattern = "(.+)".join(map(re.escape, parts[::2]))
    return re.compile(pattern, re.DOTALL), tuple(map(int, parts[1::2]))
