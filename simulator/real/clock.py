"""Real time for the fake cluster: the same `now` and `plan` as `simulator.clock.VirtualClock`, on an event loop.

What is planned happens on the loop's thread, in the order of its times, then in the order in which it was planned.
Until a loop drives it nothing happens, however much time passes.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable

from simulator.gocompat import SECOND, Duration


class WallClock:
    """A clock that goes by itself. Not thread-safe: once it is driven, only the loop's thread may use it, `now` excepted."""

    __slots__ = ("_due", "_loop", "_planned", "_started", "_timer")

    def __init__(self, *, stopped: bool = False) -> None:
        """A `stopped` clock stands at 0 until `restart`."""
        self._started = None if stopped else time.monotonic_ns()
        self._due: list[tuple[Duration, int, Callable[[], None]]] = []
        self._planned = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def now(self) -> Duration:
        """Nanoseconds since the start."""
        return 0 if self._started is None else time.monotonic_ns() - self._started

    def restart(self) -> None:
        """Let time begin again at 0; what is still planned keeps its time, counted from the new start."""
        self._started = time.monotonic_ns()
        self._arm()

    def plan(self, at: Duration, happens: Callable[[], None]) -> None:
        """Let something happen at a time; what lies in the past happens as soon as the loop comes to it."""
        heapq.heappush(self._due, (at, self._planned, happens))
        self._planned += 1
        self._arm()

    def drive(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Let a loop make things happen from now on; None: nothing happens any more."""
        self._loop = loop
        self._arm()

    def _arm(self) -> None:
        """Set the loop's one timer to what is due first."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._loop is not None and self._due and self._started is not None:
            self._timer = self._loop.call_later(max(self._due[0][0] - self.now, 0) / SECOND, self._ring)

    def _ring(self) -> None:
        try:
            while self._due and self._due[0][0] <= self.now:
                heapq.heappop(self._due)[2]()
        finally:
            self._arm()
