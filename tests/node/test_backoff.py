"""The kubelet's back-off."""

from __future__ import annotations

from simulator.gocompat import SECOND
from simulator.node.backoff import Backoff

KEY = ("uid", "container")


def starts(runs: float, count: int, backoff: Backoff | None = None) -> list[float]:
    """When a container that runs so long each time is started."""
    backoff, now, out = backoff or Backoff(), 0, [0.0]
    for _ in range(count):
        ended = now + round(runs * SECOND)
        until = backoff.until(KEY, ended)
        now = max(ended, until)
        backoff.next(KEY, ended, now)
        out.append(now / SECOND)
    return out


def test_the_first_restart_is_at_once_then_waits_double_up_to_five_minutes():
    """A container that runs for a minute, as driver-manager on a host with a driver."""
    assert starts(60, 8) == [0, 60, 130, 210, 310, 450, 670, 1030, 1390]


def test_a_container_that_fails_within_a_second():
    """As the validator."""
    assert starts(1, 8) == [0, 1, 12, 33, 74, 155, 316, 617, 918]


def test_ten_minutes_of_running_forget_the_crashes():
    """More than ten minutes; at ten it still counts."""
    assert starts(600, 3) == [0, 600, 1210, 1830]
    assert starts(601, 3) == [0, 601, 1202, 1803]


def test_another_pod_begins_anew():
    """Entries are kept by UID."""
    backoff = Backoff()
    starts(1, 5, backoff)
    assert backoff.span(KEY) == 160 * SECOND
    assert backoff.until(("other", "container"), 0) == 0
    backoff.forget("uid")
    assert backoff.span(KEY) == 0
