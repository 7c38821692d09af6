"""How long a run takes, and what it waits for: the time between two events belongs to what was said or asked last."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from simulator import messages as m
from simulator.config import Config
from simulator.gocompat import SECOND, GoError, parse_duration
from simulator.manager.kubernetes import GRACE_PERIOD
from simulator.manager.shell import messages as shell
from simulator.predicting.answers import TimingAnswer, Wait
from simulator.predicting.reading import lines_of, pod_request, seconds
from simulator.predicting.run import Run
from simulator.trace import ApiRequest, Event

_OPERAND: Final = re.compile(r"Waiting for (?:the )?(\S+) to shutdown\Z")
_GRACE: Final = GRACE_PERIOD / SECOND
_MINUTE: Final = 60.0
_SHORT: Final = 0.001
_RATE: Final = "the client's own limit of five requests per second"
_API: Final = "the API server, which answers with errors"
_GPU_PODS: Final = "GPU pods to go"
_BUDGET: Final = "a disruption budget to let a pod go"
_DRAIN: Final = "the pods of the full drain to go"
_PATCH: Final = "the API server to take a label patch"
_POD: Final = "the DaemonSet's pod to be taken away because of the label; always a minute"
_MOFED: Final = "MOFED to be ready"
_CLIENTS: Final = "DaemonSets' pods with nvidia.com/gpu.deploy.client in their node selector"


class _Activity(NamedTuple):
    """What a run is at: what it waits for, and that wait's limit in seconds, None for none."""

    what: str
    limit: float | None = None


_NOTHING: Final = _Activity(_RATE)


def timing_answer(run: Run) -> TimingAnswer:
    """The waits of a run, longest first."""
    outcome = run.outcome
    spans: dict[str, float] = {}
    limits: dict[str, float | None] = {}
    last = _NOTHING
    for activity, span in _spans(run):
        spans[activity.what] = spans.get(activity.what, 0.0) + span
        limits[activity.what] = activity.limit
        last = activity
    waits = [Wait(what, round(span, 3), limits[what]) for what, span in spans.items() if span >= _SHORT]
    waits.sort(key=lambda wait: -wait.seconds)
    return TimingAnswer(
        seconds(outcome.elapsed),
        run.world.stop_after,
        outcome.exit_code is not None,
        tuple(waits),
        "" if outcome.exit_code is not None else last.what,
        _worst(run, waits),
    )


def _spans(run: Run) -> Iterator[tuple[_Activity, float]]:
    """The time between each two events, with what the first of them began."""
    activity, at = _NOTHING, 0
    for event in run.outcome.events:
        if event.at > at:
            yield activity, (event.at - at) / SECOND
            at = event.at
        activity = _begun(run, event, activity)
    if run.outcome.elapsed > at:
        yield activity, (run.outcome.elapsed - at) / SECOND


def _begun(run: Run, event: Event, current: _Activity) -> _Activity:
    """What a run is at after an event."""
    if isinstance(event, ApiRequest):
        asked = pod_request(event)
        if asked is not None and asked.verb == "evict":
            return _Activity(f"{_BUDGET}: {asked.name}", _drain_limit(run)) if asked.status == 429 else _gpu_pods(run, current)
        if asked is not None and asked.verb in {"delete", "get"}:
            return current
        if event.status == "drop" or (isinstance(event.status, int) and event.status >= 500):
            return _Activity(_API) if current is _NOTHING else current
        return current
    for line in lines_of(event):
        current = _after_line(run, line, current)
    return current


def _gpu_pods(run: Run, current: _Activity) -> _Activity:
    return current if current.what in {_GPU_PODS, _DRAIN} else _Activity(_GPU_PODS, _drain_limit(run))


def _after_line(run: Run, line: str, current: _Activity) -> _Activity:
    """What a run is at after saying something."""
    if operand := _OPERAND.search(line):
        return _Activity(f"the pods of {operand[1]} to go", _GRACE)
    if line.startswith((m.WAITING_FOR_CLIENTS.partition(" %s")[0], "Waiting for ")) and "daemon set pod" in line:
        return _Activity(_CLIENTS, _GRACE)
    if m.DELETING_GPU_PODS in line:
        return _Activity(_GPU_PODS, _drain_limit(run))
    if line.startswith((m.ATTEMPTING_DRAIN, m.RETRYING_WITH_DRAIN)):
        return _Activity(_DRAIN, _drain_limit(run))
    if line.startswith(m.WAITING_FOR_MOFED_ONCE):
        return _Activity(_MOFED, None)
    if line in {m.PRE_INSTALLED, shell.PRE_INSTALLED} or line.startswith("Labeling node"):
        return _Activity(_POD, _MINUTE)
    if line.startswith("Failed to update labels on node"):
        return _Activity(_PATCH, None)
    if run.resolved.release.is_script:
        return _NOTHING if line.startswith(_SHELL_STEPS) else current
    return current if line.startswith(("evicting pod", "error when evicting", "Waiting for", "Draining node", "GPU pod - ")) else _NOTHING


_SHELL_STEPS: Final = tuple(
    text.partition("%")[0]
    for text in (
        shell.RESCHEDULING,
        shell.UNCORDONING,
        shell.CORDONING,
        shell.UNLOADING,
        shell.UNMOUNTING,
        shell.UNINSTALLED,
        shell.LOADED,
        shell.CANNOT_PROCEED,
        shell.GPU_DRAIN_FAILED,
    )
)


def _drain_limit(run: Run) -> float | None:
    """DRAIN_TIMEOUT_SECONDS; None where there is none, or it is not for this release to read."""
    if isinstance(run.settings, Config):
        return run.settings.drain_timeout / SECOND or None
    try:
        return parse_duration(run.variable("DRAIN_TIMEOUT_SECONDS", "0s")) / SECOND or None
    except GoError:
        return None


def _worst(run: Run, waits: list[Wait]) -> float | None:
    """The sum of the limits of what this run waits for, and of what it spends otherwise."""
    total = 0.0
    for wait in waits:
        if wait.what in {_RATE, _API, _PATCH}:
            total += wait.seconds
        elif wait.limit is None:
            return None
        else:
            total += max(wait.limit, wait.seconds)
    return round(total, 3)
