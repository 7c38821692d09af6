"""What could not be seen and what was assumed instead: sentences for a person, each once, in the order in which they came up."""

from __future__ import annotations

from simulator.reading import printable


class Findings:
    """Both lists, as they grow."""

    def __init__(self) -> None:
        self._unseen: dict[str, None] = {}
        self._assumed: dict[str, None] = {}

    def unseen(self, sentence: str) -> None:
        """Something could not be seen."""
        self._unseen.setdefault(sentence)

    def assumed(self, sentence: str) -> None:
        """Something was assumed."""
        self._assumed.setdefault(sentence)

    @property
    def all_unseen(self) -> tuple[str, ...]:
        """What could not be seen."""
        return tuple(self._unseen)

    @property
    def all_assumed(self) -> tuple[str, ...]:
        """What was assumed."""
        return tuple(self._assumed)


def quoted(said: str) -> str:
    """What a program said, for a sentence: its lines, printable, not endlessly long; "nothing" if it said nothing."""
    lines = " / ".join(f'"{printable(line.strip())[:80]}"' for line in said.strip().split("\n")[:3] if line.strip())
    return lines or "nothing"
