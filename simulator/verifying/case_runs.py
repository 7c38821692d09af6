"""Recorded cases on an image, or as they were recorded of it, held against the model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from simulator.reading import InputError, read_text
from simulator.recordings.form import OBSERVED, check
from simulator.recordings.layout import Recording
from simulator.recordings.worlds import world_of
from simulator.runners.container.unfit import Unfit
from simulator.verifying.images import RunsWorlds
from simulator.verifying.judging import Model, Observation, Verdict, judge, plain
from simulator.world import World

Observe = Callable[[Recording, World], Observation]
"""What is known of a case. Raises Unfit if nothing can be."""


def judge_case(case: Recording, observe: Observe, model: Model) -> Verdict:
    """What came of a case. Raises InputError."""
    world = world_of(case)
    return judge(case.case, world, lambda: observe(case, world), model)


def run_now(image: RunsWorlds) -> Observe:
    """Cases are run on an image."""
    return lambda _, world: plain(image(world))


def recorded_in(folder: Path) -> Observe:
    """Cases were run before: `folder/ID.json`, as `dmsim record` writes it."""

    def observe(case: Recording, _: World) -> Observation:
        path = folder / f"{case.case}.json"
        if not path.exists():
            raise Unfit("not recorded")
        try:
            document = json.loads(read_text(path))
        except (ValueError, RecursionError) as error:
            raise InputError(str(path), "", f"is no valid JSON: {error}", "record it again") from None
        if not isinstance(document, dict) or not isinstance(document.get("observed"), dict):
            raise InputError(str(path), "", 'lacks the key "observed"', "record it again")
        observed: Observation = document["observed"]
        check(observed, OBSERVED, str(path), "observed")
        return observed

    return observe
