"""Several runs at once: real programs mostly sleep.

Threads, because a run waits for a container. An error or Ctrl-C starts no further run and has those that go on end, so
that each takes its container with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def nothing() -> None:
    """What there is to do where nothing has to be cancelled."""


def in_parallel(
    act: Callable[[Item], Result], items: Iterable[Item], jobs: int, cancel: Callable[[], None] = nothing
) -> Iterator[tuple[Item, Result]]:
    """Each item with its result, as they are done, `jobs` at once. What an act raises is raised here.

    `cancel` is called where not all are wanted any more.
    """
    pool = ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="run")
    try:
        pending: dict[Future[Result], Item] = {pool.submit(act, item): item for item in items}
        for future in as_completed(pending):
            yield pending.pop(future), future.result()
    except BaseException:
        cancel()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
