"""Branches that are noted while the model runs, and the form in which they are compared."""

from __future__ import annotations

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.clock import VirtualClock
from simulator.cluster.fake import FakeCluster
from simulator.explore.branches import AGAIN, ENDED, LEFT, UNNOTED, functions, instrumented, noting, way
from simulator.kube.profile import Libraries
from simulator.kube.rest import BURST, Connection, RestClient, drive
from simulator.manager.kubernetes import requests_gpu
from simulator.ports import Request, Server
from simulator.scenario import load_cluster

SITES = instrumented().sites
FOR = next(number for number, site in enumerate(SITES) if site.kind == "for")
WHILE = next(number for number, site in enumerate(SITES) if site.kind == "while")


class Silent:
    """An Output that says nothing."""

    def log(self, level, message):
        """A line."""

    def stdout(self, text):
        """Raw text."""

    stderr = stdout


def loop(site, iterations, end=ENDED):
    """The notes of a loop with these iterations."""
    notes = []
    for iteration in iterations:
        notes += [-3 * site - AGAIN, *iteration]
    return [*notes, -3 * site - end]


@given(st.permutations([[1], [3], [3], [5, 7]]))
def test_the_order_of_iterations_does_not_count(iterations):
    """Of a loop that came to its end."""
    assert way(loop(FOR, iterations), 2) == way(loop(FOR, [[1], [3], [3], [5, 7]]), 2)


def test_iterations_count_up_to_the_bound():
    """Three that are alike are two."""
    assert way(loop(FOR, [[1]] * 3), 2) == way(loop(FOR, [[1]] * 2), 2)
    assert way(loop(FOR, [[1]] * 2), 2) != way(loop(FOR, [[1]]), 2)


def test_a_loop_that_was_left_is_a_sequence():
    """A failure at the second label is another than one at the third."""
    assert way(loop(FOR, [[1], [3]], LEFT), 2) != way(loop(FOR, [[1], [1], [3]], LEFT), 2)


def test_rounds_that_are_alike_count_up_to_the_bound():
    """However long a poll goes on."""
    assert way(loop(WHILE, [[1]] * 60 + [[3]]), 2) == way(loop(WHILE, [[1]] * 2 + [[3]]), 2)
    assert way(loop(WHILE, [[1], [3], [1]]), 2) != way(loop(WHILE, [[1], [1], [3]]), 2)


@given(st.permutations([(1,), (1, 3), (5,)]))
def test_the_order_of_goroutines_does_not_count(tapes):
    """Each keeps what it noted together."""
    assert way([7, tuple(tapes)], 2) == way([7, ((1,), (1, 3), (5,))], 2)


def test_functions_note_only_meanwhile():
    """They are the same objects before, with it and after."""
    pod = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
    before = requests_gpu.__code__
    with noting() as tape:
        assert requests_gpu(pod)
        assert tape.notes
        assert requests_gpu.__code__ is not before
    count = len(tape.notes)
    assert requests_gpu(pod)
    assert len(tape.notes) == count
    assert requests_gpu.__code__ is before


def test_branches_are_noted_once_at_a_time():
    """A second tape would take the first one's notes."""
    with noting(), pytest.raises(RuntimeError), noting():
        pass


def test_every_function_is_found():
    """Methods, and what stands inside a decorator, among them; also those that the collector of garbage does not list."""
    found = {function.__code__.co_qualname for function in functions()}
    compiled = {name for _, name, _ in instrumented().code if "<" not in name}
    bodies = {code.co_qualname for code in instrumented().code.values() if not code.co_flags & inspect.CO_OPTIMIZED}
    assert compiled - bodies <= found


def test_what_is_not_noted_is_there_and_has_a_reason():
    """A renamed function would be noted again."""
    assert instrumented().unnoted == set(UNNOTED)
    assert all(UNNOTED.values())


def test_whether_a_request_had_to_wait_is_no_decision():
    """An empty bucket makes the same way as a full one."""
    clock = VirtualClock()
    cluster = FakeCluster(load_cluster("container-node", "n"), clock)
    rest = RestClient(Connection(cluster, clock, Server("http://a", "a")), clock, Silent(), Libraries(), str)
    with noting() as tape:
        ways = []
        for _ in range(BURST + 2):
            tape.notes = []
            drive(clock, rest.do("core", Request("GET", "/api/v1/nodes/n")))
            ways.append(way(tape.notes, 2))
    assert clock.now > 0
    assert len(set(ways)) == 1
