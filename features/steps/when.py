"""When: one act, a run of driver-manager."""

from __future__ import annotations

import dataclasses
import shlex

from pytest_bdd import parsers, when

from features.steps.stage import Stage
from simulator.runners.simulated import simulate


@when("driver-manager runs")
def runs(stage: Stage) -> None:
    stage.run()


@when("driver-manager runs again")
def runs_again(stage: Stage) -> None:
    """The pod restarts: the same settings, the world as the last run left it."""
    stage.go_on()
    stage.run()


@when(parsers.parse("driver-manager runs with the arguments {text}"))
def runs_with(stage: Stage, text: str) -> None:
    stage.args = tuple(shlex.split(text))
    stage.run()


@when(parsers.parse("driver-manager runs and is watched for {seconds:g} seconds"))
def watched(stage: Stage, seconds: float) -> None:
    stage.stop_after = seconds
    stage.run()


@when("driver-manager runs with and without the what-if")
def with_and_without(stage: Stage) -> None:
    """Two runs of one world; the last one is with the what-if."""
    world = stage.world()
    stage.runs.append(simulate(world, stage.release, note_tree=True))
    stage.worlds.append(world)
    stage.run()


@when(parsers.parse("driver-manager runs once plainly and once with {name}={value}"))
def with_and_without_setting(stage: Stage, name: str, value: str) -> None:
    """Two runs of one world; the last one is with the setting."""
    world = stage.world()
    stage.runs.append(simulate(world, stage.release, note_tree=True))
    stage.worlds.append(world)
    stage.env[name] = value
    stage.run()


@when(parsers.parse("driver-manager runs once plainly and once with the flag {flag}"))
def with_and_without_flag(stage: Stage, flag: str) -> None:
    """Two runs of one world; the last one is with the flag."""
    world = stage.world()
    stage.runs.append(simulate(world, stage.release, note_tree=True))
    stage.worlds.append(world)
    stage.args = (flag, *dataclasses.replace(world).args)
    stage.run()
