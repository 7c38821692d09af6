"""The prediction: what a release will do to a node, in the order in which people ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from simulator.manager.releases import resolve
from simulator.predicting.answers import (
    Answers,
    CordonAnswer,
    DriverAnswer,
    GpusAnswer,
    LabelsAnswer,
    ModulesAnswer,
    PodsAnswer,
    SettingsAnswer,
    TimingAnswer,
    Verdict,
    plain,
)
from simulator.predicting.events import Event, happen, has_nameless_holders, policy_owns_eviction
from simulator.predicting.gpu_pods import pods_answer
from simulator.predicting.gpus import bind, gpus_answer
from simulator.predicting.host_driver import driver_answer
from simulator.predicting.modes import Mode, mode_of
from simulator.predicting.modules import modules_answer
from simulator.predicting.node import cordon_answer, labels_answer
from simulator.predicting.reading import few
from simulator.predicting.run import Run
from simulator.predicting.settings import settings_answer
from simulator.predicting.sight import Sight
from simulator.predicting.upgrade import evicted_first, without_nameless_holders
from simulator.predicting.verdict import decide, ending
from simulator.predicting.waits import timing_answer
from simulator.runners.simulated import simulate
from simulator.trace import Outcome
from simulator.world import World, followed_by

FORMAT: Final = 1
"""The version of the JSON document."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The verdict and the eight answers, for one release after one event."""

    release: str
    event: Event
    mode: Mode
    verdict: Verdict
    driver: DriverAnswer
    pods: PodsAnswer
    modules: ModulesAnswer
    cordon: CordonAnswer
    labels: LabelsAnswer
    gpus: GpusAnswer
    timing: TimingAnswer
    settings: SettingsAnswer
    changed: tuple[str, ...]
    """What the event changes in the world."""
    unseen: tuple[str, ...]
    """What whoever described the node could not see."""
    assumed: tuple[str, ...]
    """What could not be known, and is taken for true."""
    world: World
    """The world after the event."""
    outcome: Outcome
    """The simulated run from which the answers are read."""

    def document(self) -> dict[str, Any]:
        """The answers as JSON has them, in their order."""
        heading = {"format": FORMAT, "release": self.release, "event": self.event.value, "mode": self.mode.value}
        answers = {name: plain(getattr(self, name)) for name in ANSWERS}
        return {**heading, **answers, **{name: [*getattr(self, name)] for name in REMARKS}}


ANSWERS: Final = ("verdict", "driver", "pods", "modules", "cordon", "labels", "gpus", "timing", "settings")
"""The answers, in the order in which people ask."""
REMARKS: Final = ("changed", "unseen", "assumed")
"""What an answer rests on."""


def predict(
    world: World,
    release: str,
    *,
    event: Event = Event.POD_RESTART,
    to: str = "",
    what_if: str = "",
    unseen: tuple[str, ...] = (),
    assumed: tuple[str, ...] = (),
    is_host_seen: bool = True,
    unsaved_gpus: int = 0,
) -> Prediction:
    """What a release will do to a node after an event.

    `to` is the mode of a mode switch, `what_if` a proposed upstream change to put on top; `unseen` and `assumed` are what
    whoever made the world could not see, and assumed instead; `is_host_seen` and `unsaved_gpus` are those of a `Sight`.
    Raises KeyError for an unknown release or what-if, ValueError for an unknown mode.
    """
    event = Event(event)
    happened = happen(world, release, event, Mode(to) if event is Event.MODE_SWITCH else None)
    now = happened.world
    node = now.cluster.node
    outcome = simulate(now, release, what_if=what_if)
    sight = Sight(unseen, (*assumed, *happened.assumed), is_host_seen, unsaved_gpus)
    run = Run(now, resolve(release, what_if=what_if), outcome, mode_of(node.labels if node else {}), sight)
    bound = bind(run)
    answers = Answers(
        driver_answer(run),
        pods_answer(run),
        modules_answer(run),
        cordon_answer(run),
        labels_answer(run),
        gpus_answer(run, bound),
        timing_answer(run),
        settings_answer(run),
    )
    return Prediction(
        release=release,
        event=event,
        mode=run.mode,
        verdict=decide(run, answers, bound, event, next_try=_next_try(run, what_if), unless=_unless(run, event, what_if)),
        driver=answers.driver,
        pods=answers.pods,
        modules=answers.modules,
        cordon=answers.cordon,
        labels=answers.labels,
        gpus=answers.gpus,
        timing=answers.timing,
        settings=answers.settings,
        changed=happened.changed,
        unseen=sight.unseen,
        assumed=sight.assumed,
        world=now,
        outcome=outcome,
    )


def _unless(run: Run, event: Event, what_if: str) -> str:
    """What the upgrade controller would have to do before for a failed run to succeed, where it acts; "" if it would not help."""
    if event not in {Event.IMAGE_BUMP, Event.CONFIG_CHANGE} or run.outcome.exit_code == 0 or not policy_owns_eviction(run.world):
        return ""
    pods, world = evicted_first(run.world)
    condition = ""
    if has_nameless_holders(world.host):
        world, condition = without_nameless_holders(world), ", and nothing else holds the modules"
    if not pods or simulate(world, run.release, what_if=what_if).exit_code != 0:
        return ""
    return f"the upgrade controller has evicted {few(pods)} first{condition}"


def _next_try(run: Run, what_if: str) -> str:
    """How the next try ends, where there is one: the init container failed, and its pod stays."""
    code, node = run.outcome.exit_code, run.outcome.after.node
    if code in {0, None} or node is None or node.labels.get(run.workload.selector) not in {None, "true"}:
        return ""
    return ending(simulate(followed_by(run.world, run.outcome), run.release, what_if=what_if))
