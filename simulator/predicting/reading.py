"""What a trace says, whichever program left it: the Go releases log, the shell releases echo."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from simulator.cluster.kinds import NODE, POD
from simulator.cluster.store import target
from simulator.gocompat import SECOND, Duration
from simulator.trace import ApiRequest, Event, LogLine, Outcome, StderrText, StdoutText

_DISPATCHED: Final = (200, 201, 202)
"""Statuses of a request that had its effect."""


def lines_of(event: Event) -> list[str]:
    """What an event says."""
    if isinstance(event, LogLine):
        return [event.message]
    return event.text.splitlines() if isinstance(event, StdoutText | StderrText) else []


def says(outcome: Outcome, *texts: str) -> bool:
    """Is there a line that holds one of these texts, which may have a place for a value?"""
    parts = [text.split("%s")[0].split("%d")[0].strip() if "%" in text else text for text in texts]
    return any(part in line for event in outcome.events for line in lines_of(event) for part in parts)


def fatal(outcome: Outcome) -> str:
    """The error with which a Go release ends, "" if it does not."""
    return next((line.message for line in reversed(outcome.log) if line.level == "fatal"), "")


class PodRequest(NamedTuple):
    """A request about one pod."""

    at: Duration
    verb: str
    """"evict", "delete" or "get"."""
    name: str
    """namespace/name."""
    status: int | str

    @property
    def is_done(self) -> bool:
        """Had it its effect?"""
        return self.status in _DISPATCHED


def pod_request(event: Event) -> PodRequest | None:
    """The event as a request about a pod, if it is one."""
    if not isinstance(event, ApiRequest):
        return None
    found = target(event.path)
    if found is None or found.kind is not POD or not found.name:
        return None
    verbs = {("POST", "eviction"): "evict", ("DELETE", ""): "delete", ("GET", ""): "get"}
    verb = verbs.get((event.method, found.subresource))
    return PodRequest(event.at, verb, found.key, event.status) if verb else None


def pod_requests(outcome: Outcome) -> list[PodRequest]:
    """Every request about a pod, in order."""
    return [found for event in outcome.events if (found := pod_request(event)) is not None]


def node_patches(outcome: Outcome) -> Iterator[ApiRequest]:
    """The patches of the node that were accepted, in order."""
    for event in outcome.requests:
        if event.method == "PATCH" and event.status == 200:
            found = target(event.path)
            if found is not None and found.kind is NODE:
                yield event


def few(items: Sequence[str], separator: str = ", ", most: int = 3) -> str:
    """The first few of them, and how many more there are."""
    more = len(items) - most
    if more <= 1:  # naming the one is as short as counting it
        return separator.join(items)
    return f"{separator.join(items[:most])} and {more} more"


def seconds(span: Duration) -> float:
    """A span in seconds, to the millisecond."""
    return round(span / SECOND, 3)
