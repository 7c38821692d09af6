"""Virtual time: a sleep jumps to its deadline, and what is due on the way happens in order.

No run waits in real time and none reads a wall clock. Events of equal time happen in the order they were planned.
Causes that have one another as effects and take no time would never end; their number at one moment is bounded.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final

from simulator.gocompat import Duration, format_duration
from simulator.reading import InputError

MOST_AT_ONCE: Final = 100_000
"""How many events may happen at one moment: a cluster of thousands of pods stays far below."""


class VirtualClock:
    """A clock that stands still unless somebody sleeps."""

    __slots__ = ("_at_once", "_due", "_planned", "now")

    def __init__(self) -> None:
        self.now: Duration = 0
        self._due: list[tuple[Duration, int, Callable[[], None]]] = []
        self._planned = 0
        self._at_once = 0

    def plan(self, at: Duration, happens: Callable[[], None]) -> None:
        """Let something happen at a time (not before now)."""
        heapq.heappush(self._due, (max(at, self.now), self._planned, happens))
        self._planned += 1

    def sleep(self, span: Duration) -> None:
        """Go forward by `span` nanoseconds; a span of 0 lets happen what is due now."""
        self.wait(span, lambda: False)

    def wait(self, span: Duration, ready: Callable[[], bool]) -> bool:
        """Go forward until `ready`, at most by `span`; was it ready? Raises InputError where time stands still."""
        target = self.now + max(span, 0)
        due = self._due
        while not ready():
            if not due or due[0][0] > target:
                self.now = target
                return False
            at, _, happens = heapq.heappop(due)
            self._count(at)
            self.now = at
            happens()
        return True

    def _count(self, at: Duration) -> None:
        self._at_once = self._at_once + 1 if at == self.now else 1
        if self._at_once > MOST_AT_ONCE:
            raise InputError(
                "",
                "",
                f"time stands still at {format_duration(at)}: {MOST_AT_ONCE} events at one moment, and more to come",
                "let one of them take time: a pod's termination_s, a fault's times, a step's at",
            )
