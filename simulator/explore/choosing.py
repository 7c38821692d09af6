"""Choices, and every run that they make possible.

A run asks a `Chooser` whenever more than one answer is possible. `explored` runs it again and again, each time with the
answers of the time before up to the last question that has another one left: depth first, without a copy of anything.
That is cheap, because a run takes less than a millisecond, and exact, because a run depends on nothing but its answers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple, TypeVar

Answer = TypeVar("Answer")
Result = TypeVar("Result")


class Choice(NamedTuple):
    """One answer that was chosen: the question, which of its answers (from 0), and of how many."""

    question: Hashable
    answer: int
    of: int


class Chooser:
    """Answers questions: the first ones as it is told to, each later one with its first answer.

    `bound`: so many answers may be another than the first, while `is_bounded`; after them there is no choice.
    """

    __slots__ = ("_left", "_told", "is_bounded", "taken")

    def __init__(self, told: Sequence[int] = (), bound: int | None = None) -> None:
        self._told = told
        self._left = bound
        self.is_bounded: Callable[[], bool] = _never
        """Does the bound hold now?"""
        self.taken: list[Choice] = []

    def choose(self, question: Hashable, answers: Sequence[Answer], *, free: bool = False) -> Answer:
        """One of the answers, of which there is at least one; that of a question with a single answer is no choice.

        A `free` one does not count against the bound.
        """
        if len(answers) == 1:
            return answers[0]
        bounded = self._left is not None and not free and self.is_bounded()
        if bounded and self._left == 0:
            return answers[0]
        index = self._told[len(self.taken)] if len(self.taken) < len(self._told) else 0
        if bounded and index:
            self._left -= 1  # type: ignore[operator]  # it is a number, or the bound would not hold
        self.taken.append(Choice(question, index, len(answers)))
        return answers[index]

    @property
    def indices(self) -> tuple[int, ...]:
        """What `Chooser` has to be told to make the same run once more."""
        return tuple(choice.answer for choice in self.taken)


def _never() -> bool:
    return False


def explored(
    run: Callable[[Chooser], Result], limit: int | None = None, bound: int | None = None, prefix: Sequence[int] = ()
) -> Iterator[tuple[tuple[int, ...], Result]]:
    """Every run whose choices begin with `prefix`, with the choices that make it, in lexicographic order; at most `limit`."""
    told: tuple[int, ...] | None = tuple(prefix)
    runs = 0
    while told is not None and runs != limit:
        chooser = Chooser(told, bound)
        result = run(chooser)
        yield chooser.indices, result
        told = _next(chooser.taken, len(prefix))
        runs += 1


def _next(taken: Sequence[Choice], fixed: int) -> tuple[int, ...] | None:
    """The choices of the next run: the last question behind the `fixed` ones with an answer left gets it; None if there is none."""
    for last in range(len(taken) - 1, fixed - 1, -1):
        if taken[last].answer + 1 < taken[last].of:
            return (*(choice.answer for choice in taken[:last]), taken[last].answer + 1)
    return None
