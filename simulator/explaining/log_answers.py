"""What the next line of a log leaves open, whichever program wrote it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from simulator.explaining.matching import Matcher
from simulator.explaining.text import squeezed
from simulator.explore.answers import Answers


def _starts(texts: Sequence[str]) -> tuple[str, ...]:
    """How the messages begin, up to their first value."""
    return tuple(squeezed(text.partition("%")[0]) for text in texts)


class LogAnswers(Answers):
    """The domain of each question, for one run that is held against a log. `entered`: the functions that have not returned."""

    def __init__(self, matcher: Matcher, entered: Callable[[], Sequence[str]]) -> None:
        self.matcher = matcher
        self._entered = entered

    def _said(self, *starts: str) -> bool | None:
        """Does the next line begin as one of these messages does? None where it is not known."""
        entry = self.matcher.next
        return None if entry is None else squeezed(entry.message).startswith(_starts(starts))

    def _begins(self, *starts: str) -> bool:
        """Does the log begin with one of these messages? It is asked while its beginning is looked for."""
        entries = self.matcher.entries
        return bool(entries) and squeezed(entries[0].message).startswith(_starts(starts))

    def _unless(self, usual: Any, *starts: str, other: Any) -> Sequence[Any]:
        """The usual answer, the other one where the model then says one of these lines; both where nothing is known.

        Before the beginning of the log only a line that is its first matters.
        """
        said = self._said(*starts)
        if said is not None:
            return (other,) if said else (usual,)
        return (usual, other) if self.matcher.started or self._begins(*starts) else (usual,)

    def _yes_if(self, *starts: str) -> Sequence[bool]:
        usual, other = False, True
        return self._unless(usual, *starts, other=other)

    def _no_if(self, *starts: str) -> Sequence[bool]:
        usual, other = True, False
        return self._unless(usual, *starts, other=other)
