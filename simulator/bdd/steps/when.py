"""When: one act, a run of driver-manager or a question to the model."""

from __future__ import annotations

import shlex

from pytest_bdd import when

from simulator.bdd.sentences import Sentence
from simulator.bdd.stage import Stage
from simulator.naming import check_setting


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
        stage.env[check_setting(name)] = value
    stage.run()


@when(
    Sentence(
        "I ask what will happen[ after (a {event=pod-restart|reboot|config-change}|an {bump=image-bump}|a mode-switch to {mode})]"
    )
)
def ask_what_will_happen(stage: Stage, event: str | None, bump: str | None, mode: str | None) -> None:
    """As `dmsim predict` does, of this node and this release; without more, after a restart of the pod."""
    stage.ask("mode-switch" if mode else event or bump or "pod-restart", mode or "")


@when("I ask what is left over")
def ask_what_is_left_over(stage: Stage) -> None:
    """As `dmsim diagnose` does, of this node and this release."""
    stage.ask_what_is_left()


@when("I ask what its log means")
def ask_what_its_log_means(stage: Stage) -> None:
    """As `dmsim explain` does, of the last run's log, every release in question."""
    stage.ask_what_the_log_means()


@when("I ask for the meaning of these lines:")
def ask_for_the_meaning(stage: Stage, docstring: str) -> None:
    """As `dmsim explain` does, of a piece of a log."""
    stage.ask_what_the_log_means(docstring)
