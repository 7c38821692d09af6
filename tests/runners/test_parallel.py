"""Several runs at once."""

from __future__ import annotations

import threading
import time

import pytest

from simulator.runners.parallel import in_parallel


def test_each_item_comes_with_its_result():
    """Whatever the order in which they are done; equal items too."""
    assert sorted(in_parallel(lambda item: item * 2, [3, 1, 2, 2], 3)) == [(1, 2), (2, 4), (2, 4), (3, 6)]


@pytest.mark.parametrize("jobs", [1, 3])
def test_no_more_than_so_many_at_once(jobs):
    """And as many as that."""
    lock, now, most = threading.Lock(), [], []

    def act(item):
        with lock:
            now.append(item)
            most.append(len(now))
        time.sleep(0.01)
        with lock:
            now.remove(item)

    list(in_parallel(act, range(12), jobs))
    assert max(most) == jobs


def test_an_error_is_raised_and_nothing_more_begun():
    """Those that go on are told to end, and have ended when it is raised."""
    begun, ended, cancelled = [], [], threading.Event()

    def act(item):
        begun.append(item)
        if item == 1:
            raise KeyboardInterrupt
        cancelled.wait(5)
        ended.append(item)

    with pytest.raises(KeyboardInterrupt):
        list(in_parallel(act, range(50), 2, cancelled.set))
    assert len(begun) <= 4
    assert sorted(begun) == sorted([1, *ended])


def test_a_caller_that_has_had_enough():
    """Ends the others as well."""
    cancelled = threading.Event()
    runs = in_parallel(lambda item: item, range(50), 2, cancelled.set)
    next(runs)
    runs.close()
    assert cancelled.is_set()


def test_nothing_is_cancelled_where_all_is_well():
    """A run that is over has nothing to end."""
    cancelled = threading.Event()
    assert len(list(in_parallel(lambda item: item, range(5), 2, cancelled.set))) == 5
    assert not cancelled.is_set()
