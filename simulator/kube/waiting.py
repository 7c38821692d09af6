"""Waiting as apimachinery does it: polls on a ticker, retries with backoff, several goroutines at once.

Source: k8s.io/apimachinery/pkg/util/wait loop.go, poll.go, backoff.go; client-go/util/retry.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from simulator.gocompat import MAX_DURATION, MILLISECOND, Duration, GoError
from simulator.kube.rest import Waiting
from simulator.ports import Chance, Clock

_LOOK: Final = 100
"""Nanoseconds that pass between two readings of a clock, and more."""

DEADLINE_EXCEEDED: Final = "context deadline exceeded"


def deadline(clock: Clock, timeout: Duration, parent: Duration | None = None) -> Duration | None:
    """`context.WithTimeout`: the time at which the context ends, None for never. What is shorter than a look at the clock is over."""
    own = None if timeout >= MAX_DURATION else clock.now + (timeout if timeout >= _LOOK else 0)
    if own is None or parent is None:
        return parent if own is None else own
    return min(own, parent)


TIMED_OUT: Final = "timed out waiting for the condition"


def poll(
    clock: Clock, interval: Duration, ends: Duration | None, condition: Callable[[], Waiting[bool]], *, late: bool = False
) -> Waiting[None]:
    """`wait.PollUntilContextTimeout(ctx, interval, timeout, immediate=true, condition)`.

    The condition is asked at once, even after the deadline, then at each tick. Ticks are those of a Go ticker: they do
    not wait for a slow condition, one that was missed is delivered late, further ones are lost. Raises GoError
    `context deadline exceeded`, or the condition's own.

    `late` makes it v0.27's `wait.PollImmediate`: the condition is asked once more at the deadline, and the error is
    `timed out waiting for the condition`.
    """
    start = clock.now
    tick = start + interval
    if (yield from condition()):
        return
    while True:
        wake = tick if ends is None else min(tick, ends)
        if wake > clock.now:
            yield wake - clock.now
        if ends is not None and clock.now >= ends:
            if late and (yield from condition()):
                return
            raise GoError(TIMED_OUT if late else DEADLINE_EXCEEDED)
        tick = clock.now + interval - (clock.now - start) % interval
        if (yield from condition()):
            return


@dataclass(frozen=True, slots=True)
class Backoff:
    """`wait.Backoff`: so many attempts, the pause between them growing, a share of jitter on top."""

    duration: Duration
    factor: float
    jitter: float
    steps: int


DEFAULT_BACKOFF: Final = Backoff(10 * MILLISECOND, 5.0, 0.1, 4)
"""`retry.DefaultBackoff` of client-go."""


def retry_on_error(chance: Chance, backoff: Backoff, attempt: Callable[[], Waiting[None]]) -> Waiting[None]:
    """`retry.OnError` for any error. Raises the last attempt's GoError."""
    pause = backoff.duration
    for step in range(backoff.steps, 0, -1):
        try:
            yield from attempt()
        except GoError:
            if step == 1:
                raise
        else:
            return
        yield pause + int(pause * chance.random() * backoff.jitter)
        pause = int(pause * backoff.factor)


def concurrent(clock: Clock, works: Sequence[Waiting[GoError | None]]) -> Waiting[list[GoError]]:
    """Run goroutines side by side; their errors, in the order they ended.

    One heap of virtual deadlines: the work that wakes first goes on first, those of equal time in the order they
    fell asleep. The goroutine that was started last runs first, as Go's scheduler mostly has it (`runnext`).
    """
    order = len(works)
    heap: list[tuple[Duration, int, Waiting[GoError | None]]] = [
        (clock.now, (index + 1) % order, work) for index, work in enumerate(works)
    ]
    heapq.heapify(heap)
    errors: list[GoError] = []
    while heap:
        wake, _, work = heapq.heappop(heap)
        if wake > clock.now:
            yield wake - clock.now
        try:
            pause = next(work)
        except StopIteration as stop:
            if stop.value is not None:
                errors.append(stop.value)
            continue
        heapq.heappush(heap, (clock.now + pause, order, work))
        order += 1
    return errors
