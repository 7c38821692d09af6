"""When: one act, a run of driver-manager."""

from __future__ import annotations

import shlex

from pytest_bdd import when

from features.steps.sentences import Sentence
from features.steps.stage import Stage


@when("driver-manager runs")
def runs(stage: Stage) -> None:
    """To its end, with the command `uninstall_driver`."""
    stage.run()


@when(Sentence("driver-manager runs with the arguments {text:rest}"))
def runs_with(stage: Stage, text: str) -> None:
    """As a shell would split them; `none` for none at all."""
    stage.args = () if text == "none" else tuple(shlex.split(text))
    stage.run(bare=text == "none")


@when(Sentence("driver-manager runs and is watched for {seconds:number} seconds"))
def watched(stage: Stage, seconds: float) -> None:
    """What it has done by then; a run that waits for ever can be looked at only so."""
    stage.stop_after = seconds
    stage.run()


@when(Sentence("driver-manager runs once plainly and once with (the {what_if=what-if}|the flag {flag}|{name}={value})"))
def runs_twice(stage: Stage, what_if: str | None, flag: str | None, name: str | None, value: str | None) -> None:
    """Two runs of one world; the last one is the other one."""
    stage.run(what_if="" if what_if else None)
    if flag:
        stage.args = (flag, "uninstall_driver")
    if name and value:
        stage.env[name] = value
    stage.run()
