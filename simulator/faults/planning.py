"""The calls of a run without a fault, and the worlds in which just one of them fails.

A world with one fault more is an ordinary world: it is written, read and run as any other.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from simulator.cluster.objects import Fault
from simulator.faults.domains import CALLS, SHELL_CALLS, CallEnd, RequestEnd, request_ends
from simulator.manager.releases import Flow, ShellFlow
from simulator.runners.moments import Call
from simulator.runners.simulated import run
from simulator.trace import ApiRequest, Event, Outcome
from simulator.world import CallFault, World

_UPSTREAM: Final = re.compile(r"`([A-Za-z_]\w*)`")
"""A docstring of the model begins with the upstream function that it is."""
_KUBECTLS_OWN: Final = "/.kube/config"
"""Each call of kubectl looks for it; it is there for no pod."""


@dataclass(frozen=True, slots=True)
class Place:
    """A call of the run without a fault."""

    number: int
    """Its place among all calls, from 1."""
    call: Call
    function: str
    """The upstream function that makes it, "" if none has a name."""
    events: int
    """So many events were before it."""
    request: ApiRequest | None = None
    """The request, if it is one that reached the server."""


class SignalEnd(NamedTuple):
    """A signal comes just before the call."""

    name: str
    signal: str


class Base(NamedTuple):
    """The run without a fault."""

    outcome: Outcome
    places: tuple[Place, ...]


def base(world: World, resolved: Flow | ShellFlow) -> Base:
    """Run a world as it is, and note its calls."""
    events: list[Event] = []
    places: list[Place] = []

    def hear(call: Call) -> None:
        places.append(Place(len(places) + 1, call, _function(), len(events)))

    outcome = run(world, resolved, events=events, hear=hear)
    return Base(outcome, tuple(replace(place, request=_request(events, place)) for place in places))


def _request(events: list[Event], place: Place) -> ApiRequest | None:
    """The event that a request left, if it reached the server."""
    match events[place.events : place.events + 1]:
        case [ApiRequest() as event] if ("request", f"{event.method} {event.path}") == place.call[:2]:
            return event
    return None


def ends(place: Place, world: World, resolved: Flow | ShellFlow) -> Iterator[CallEnd | RequestEnd | SignalEnd]:
    """What can go wrong at a place. A place where the world itself says what goes wrong has no other fault."""
    call = place.call
    if any((fault.call, fault.argument, fault.nth) == call for fault in world.faults):
        return
    is_script = isinstance(resolved, ShellFlow)
    if call.call == "request":
        method, _, path = call.argument.partition(" ")
        yield from request_ends(method, path, place.request.query if place.request else {})
    elif not (is_script and call.argument.endswith(_KUBECTLS_OWN)):
        yield from (SHELL_CALLS if is_script else CALLS).get(call.call, ())
    yield signal_end(world, resolved)


def signal_end(world: World, resolved: Flow | ShellFlow) -> SignalEnd:
    """SIGTERM, as the kubelet sends it; where process 1 does not hear it, what follows after the grace period."""
    return SignalEnd("SIGKILL", "KILL") if resolved.deaf and world.pid_1 else SignalEnd("SIGTERM", "TERM")


def faulted(world: World, place: Place, end: CallEnd | RequestEnd | SignalEnd) -> World:
    """The world in which just this goes wrong beside what it says itself."""
    call, argument, nth = place.call
    match end:
        case RequestEnd():
            cluster = replace(world.cluster, faults=(_request_fault(place.call, end), *world.cluster.faults))
            return replace(world, cluster=cluster)
        case SignalEnd():
            fault = CallFault(call, argument, nth, signal=end.signal)
        case CallEnd():
            fault = CallFault(call, argument, nth, error=end.error, exit_code=end.exit_code, late=end.late)
    return replace(world, faults=(*world.faults, fault))


def _request_fault(call: Call, end: RequestEnd) -> Fault:
    method, _, path = call.argument.partition(" ")
    return Fault(
        method=method, path=f"^{re.escape(path)}$", skip=call.nth - 1, times=1, status=end.status, retry_after=end.retry_after
    )


def _function() -> str:
    """The innermost function of the model on the way to this call that is one of upstream's."""
    frame = inspect.currentframe()
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(("simulator.manager.", "simulator.vfio.")):
            owner = frame.f_locals.get("self")
            name = frame.f_code.co_name
            said = getattr(type(owner), name, None) if owner is not None else frame.f_globals.get(name)
            match = _UPSTREAM.match(inspect.getdoc(said) or "") if said is not None else None
            if match is not None:
                return match[1]
        frame = frame.f_back
    return ""
