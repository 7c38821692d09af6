"""A world and the program that runs in it, so that two releases can be tried in it and held against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from simulator.gocompat import SECOND
from simulator.manager.releases import resolve
from simulator.report.effects import Effect
from simulator.report.text import ending
from simulator.runners.simulated import run
from simulator.runners.vfio import VfioWorld, make_host, run_step, vfio_flow
from simulator.trace import Event, Outcome, State
from simulator.vfio.trace import BusState, VfioEvent, VfioOutcome
from simulator.world import World

Facts = dict[str, str]
"""The end state, said in short: a thing -> how it is."""
GONE = "absent"
"""What stands for a thing that is there on one side only."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished run: its events, and all else that has to be equal in an equal one."""

    events: Sequence[Event | VfioEvent | Effect]
    end: object
    outcome: Outcome | Sequence[VfioOutcome]

    @property
    def ending(self) -> str:
        """How the program ended, for people."""
        if isinstance(self.outcome, Outcome):
            return ending(self.outcome)
        return ", then ".join(f"exit code {step.exit_code}" for step in self.outcome)

    @property
    def facts(self) -> Facts:
        """The end, thing by thing."""
        if isinstance(self.outcome, Outcome):
            return {"ends with": self.ending, "takes": _seconds(self.outcome), **_state_facts(self.outcome.after)}
        return {"ends with": self.ending, **(_bus_facts(self.outcome[-1].after) if self.outcome else {})}


class Trial(Protocol):
    """A world to try releases in."""

    def run(self, release: str, without: frozenset[str], events: list[Any]) -> Finished:
        """Run a release, some named changes left out. The events go to the list, which may stop the run by raising."""


@dataclass(frozen=True, slots=True)
class DriverManagerTrial:
    """driver-manager in a world."""

    world: World

    def run(self, release: str, without: frozenset[str], events: list[Any]) -> Finished:
        """One run."""
        outcome = run(self.world, resolve(release, without=without), events=events)
        end = outcome.exit_code, outcome.panic, outcome.elapsed, outcome.stopped_after, outcome.after
        return Finished(outcome.events, end, outcome)


@dataclass(frozen=True, slots=True)
class VfioTrial:
    """vfio-manage in a world, one run for each of the world's steps."""

    world: VfioWorld

    def run(self, release: str, without: frozenset[str], events: list[Any]) -> Finished:
        """Every step; its events are handed on when it is done."""
        resolved, host = vfio_flow(release, without=without), make_host(self.world)
        outcomes = []
        for step in self.world.steps:
            outcome = run_step(resolved, host, step)
            outcomes.append(outcome)
            for event in outcome.events:
                events.append(event)  # noqa: PERF402  # one by one: the list may be a watched one
        return Finished(events, [(outcome.exit_code, len(outcome.events), outcome.after) for outcome in outcomes], outcomes)


def _seconds(outcome: Outcome) -> str:
    return f"{outcome.elapsed / SECOND:.3f}".rstrip("0").removesuffix(".") + " s"


def _state_facts(state: State) -> Facts:
    facts: Facts = {}
    if state.node is not None:
        facts |= {f"label {key}": f'"{value}"' for key, value in sorted(state.node.labels.items())}
        facts |= {f"annotation {key}": f'"{value}"' for key, value in sorted(state.node.annotations.items())}
        facts["node"] = "cordoned" if state.node.unschedulable else "schedulable"
    facts |= {f"pod {pod}": "terminating" if pod in state.terminating else "there" for pod in state.pods}
    facts |= {f"module {module}": "loaded" for module in state.modules}
    facts |= {f"GPU {address}": driver or "no driver" for address, driver in sorted(state.gpu_drivers.items())}
    for mount in state.mounts:
        facts[f"mount {mount}"] = "mounted twice or more" if f"mount {mount}" in facts else "mounted"
    return facts | {f"file {path}": "there" if exists else GONE for path, exists in sorted(state.files.items())}


def _bus_facts(state: BusState) -> Facts:
    facts: Facts = {}
    for address, binding in state.devices.items():
        facts[f"function {address}"] = binding.driver or "no driver"
        facts[f"driver_override {address}"] = "none" if binding.override is None else f'"{binding.override}"'
    return facts | {f"driver {name}": "there" for name in state.drivers}
