"""Who runs a scenario's world: the model, or a real image in a container."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pytest

from simulator.bdd.unmet import Unmet
from simulator.gocompat import SECOND
from simulator.recordings.comparing import mismatches
from simulator.recordings.observation import observation
from simulator.report.stepping import simulate_stepping
from simulator.runners.simulated import simulate
from simulator.trace import Outcome
from simulator.world import World


class Runner(Protocol):
    """Runs worlds, and says when two runs are alike."""

    def run(self, world: World, release: str, *, what_if: str, note_tree: bool) -> Outcome:
        """Run a release in a world, with a what-if or none; `note_tree` keeps every file's text before and after."""

    def same(self, one: Outcome, other: Outcome) -> bool:
        """Did two runs do the same?"""

    def slack(self, seconds: float) -> float:
        """By how many seconds a run's length may differ from this one."""


@dataclass(frozen=True)
class Simulated:
    """The model, in virtual time: everything is exact."""

    is_stepping: bool = False
    """Are events to tell which step was at work? It takes a little longer, and a report shows it."""

    def run(self, world: World, release: str, *, what_if: str, note_tree: bool) -> Outcome:
        """Run the model."""
        if self.is_stepping:
            return simulate_stepping(world, release, what_if=what_if, note_tree=note_tree)
        return simulate(world, release, what_if=what_if, note_tree=note_tree)

    def same(self, one: Outcome, other: Outcome) -> bool:
        """To the nanosecond, and to the byte."""
        ends = [(outcome.exit_code, outcome.elapsed, outcome.after) for outcome in (one, other)]
        return list(one.events) == list(other.events) and ends[0] == ends[1]

    def slack(self, seconds: float) -> float:  # noqa: ARG002  # the same for every length
        """Features tell tenths of a second."""
        return 0.05


@dataclass(frozen=True)
class Container:
    """An image in a container, in real time: what differs from run to run is compared as recordings are."""

    image: str
    longest: float
    """Seconds: a run that the model says to take longer is not made."""
    tracer: bool | None

    def run(self, world: World, release: str, *, what_if: str, note_tree: bool) -> Outcome:
        """Run the image; a scenario that no container can show is skipped."""
        from simulator.runners.container.runner import Unfit, run_image  # noqa: PLC0415  # needs the extra

        if what_if:
            raise Unmet("a change that an image carries", "none does; tag the scenario @simulated-only-what-if")
        takes = simulate(world, release).elapsed / SECOND
        if takes > self.longest:
            pytest.skip(f"excluded: a run of over {self.longest:g} s (--longest)")
        try:
            return run_image(world, self.image, release=release, tracer=self.tracer, note_tree=note_tree)
        except Unfit as unfit:
            pytest.skip(f"excluded: {unfit.reason}")

    def same(self, one: Outcome, other: Outcome) -> bool:
        """As recordings are compared."""
        return not mismatches(one.release, observation(one), observation(other))

    def slack(self, seconds: float) -> float:
        """A container has its own pace."""
        return max(3.0, 0.02 * seconds)  # a container starts slowly on a machine that runs several
