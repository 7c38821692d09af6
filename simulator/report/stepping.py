"""Which upstream function is at work when an event happens: a flow whose steps say so, and a list of events that listens."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from simulator.manager.releases import Flow, ShellFlow, resolve
from simulator.runners.simulated import run
from simulator.trace import Event, Outcome
from simulator.world import World

Around = Callable[[str], AbstractContextManager[None]]
"""Given a step's name, what its work is done within."""


def instrumented(resolved: Flow | ShellFlow, around: Around) -> Flow | ShellFlow:
    """The flow with steps that do their work within something."""

    def wrapped(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def step(*args: Any, **kwargs: Any) -> Any:
            with around(name):
                return function(*args, **kwargs)

        return step

    steps: type = resolved.script if isinstance(resolved, ShellFlow) else resolved.steps
    watched = type(steps.__name__, (steps,), {name: wrapped(name, function) for name, function in _methods(steps)})
    if isinstance(resolved, ShellFlow):
        return resolved._replace(script=watched)
    return resolved._replace(steps=watched)


def _methods(steps: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    return ((name, function) for name, function in inspect.getmembers(steps, inspect.isfunction) if not name.startswith("_"))


def upstream_name(resolved: Flow | ShellFlow, step: str) -> str:
    """What upstream calls a step's function: what a docstring of it begins with. "" for a seam, which upstream has no function for."""
    steps: type = resolved.script if isinstance(resolved, ShellFlow) else resolved.steps
    for cls in steps.__mro__:
        doc = inspect.getdoc(vars(cls).get(step))
        if doc is not None and (found := re.match(r"`([A-Za-z_]\w*)`", doc)):
            return found[1]
    return ""


class SteppedEvents(list[Event]):
    """Events, each with the step of an upstream function that was at work: `steps[i]` is of event i, "" outside of every one."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[str] = []
        self._at_work: list[str] = []

    @contextmanager
    def within(self, step: str) -> Iterator[None]:
        """A step is at work."""
        self._at_work.append(step)
        try:
            yield
        finally:
            self._at_work.pop()

    def append(self, event: Event) -> None:
        """Note an event."""
        super().append(event)
        self.steps.append(self._at_work[-1] if self._at_work else "")


def simulate_stepping(world: World, release: str, *, what_if: str = "", note_tree: bool = False) -> Outcome:
    """As `simulate`, with SteppedEvents. Raises KeyError for an unknown release or what-if."""
    events = SteppedEvents()
    resolved = resolve(release, what_if=what_if)

    def around(step: str) -> AbstractContextManager[None]:
        return events.within(step) if upstream_name(resolved, step) else nullcontext()

    return run(world, instrumented(resolved, around), note_tree=note_tree, events=events)
