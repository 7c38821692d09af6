"""How long a run takes, and what it waits for: the time between two events belongs to what was said or asked last."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from simulator import messages as m
from simulator.config import Config
from simulator.gocompat import SECOND, Duration, GoError, parse_duration
from simulator.kube.rest import QPS_INTERVAL
from simulator.manager.kubernetes import GRACE_PERIOD
from simulator.manager.shell import messages as shell
from simulator.manager.steps import MOFED_READY
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
_BY_REQUESTS: Final = (_BUDGET, _API, _PATCH)


def timing_answer(run: Run) -> TimingAnswer:
    """The waits of a run, longest first."""
    outcome = run.outcome
    activity, at = _NOTHING, 0
    spans: dict[_Activity, float] = {activity: 0.0}
    for event in outcome.events:
        spans[_of(activity, event.at - at)] += (event.at - at) / SECOND
        activity, at = _begun(run, event, activity), event.at
        spans.setdefault(activity, 0.0)
    spans[_of(activity, outcome.elapsed - at)] += (outcome.elapsed - at) / SECOND
    waits = [Wait(activity.what, round(span, 3), activity.limit) for activity, span in spans.items() if span >= _SHORT]
    return TimingAnswer(
        seconds(outcome.elapsed),
        run.world.stop_after,
        outcome.exit_code is not None,
        tuple(sorted(waits, key=lambda wait: -wait.seconds)),
        "" if outcome.exit_code is not None else activity.what,
        _worst(spans),
    )


def _of(activity: _Activity, span: Duration) -> _Activity:
    """To what a span belongs: one that is shorter than any poll is the client's limit, unless requests are what is repeated."""
    return activity if span > QPS_INTERVAL or activity.what.startswith(_BY_REQUESTS) else _NOTHING


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
        return _Activity(_mofed(run))
    if line in {m.PRE_INSTALLED, shell.PRE_INSTALLED} or line.startswith("Labeling node"):
        return _Activity(_POD, _MINUTE)
    if line.startswith("Failed to update labels on node"):
        return _Activity(_PATCH, None)
    if run.resolved.release.is_script:
        return _NOTHING if line.startswith(_SHELL_STEPS) else current
    return (
        current
        if line.startswith(("evicting pod", "error when evicting", "Waiting for", "Draining node", "GPU pod - "))
        else _NOTHING
    )


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


def _worst(spans: Mapping[_Activity, float]) -> float | None:
    """The sum of the limits of all waits that were begun, and of what was spent otherwise."""
    total = 0.0
    for activity, span in spans.items():
        if activity.what in {_RATE, _API, _PATCH}:
            total += span
        elif activity.limit is None:
            return None
        else:
            total += max(activity.limit, span)
    return round(total, 3)


def _mofed(run: Run) -> str:
    """MOFED, and the sign of it that this release looks for."""
    if run.steps is not None:
        of_host = run.steps.mofed_check() == run.steps.host_mofed_is_loaded
    else:
        of_host = run.variable("USE_HOST_MOFED") == "true"
    sign = "mlx5_core in /proc/modules" if of_host else f"the file {MOFED_READY}"
    return f"{_MOFED} ({sign})"
