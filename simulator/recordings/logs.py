"""The log that a recorded run left, as `kubectl logs` shows it."""

from __future__ import annotations

import datetime
from typing import Final

from simulator import logrus
from simulator.recordings.layout import Recording

_START: Final = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
_KLOG: Final = "0101 00:00:00.000000       1"
_STREAMS: Final = ("stdout", "stderr")


def log_lines(recording: Recording) -> list[str]:
    """Each log call of a Go release, each line of both streams of a shell release, in order, with its newline.

    What a Go release prints beside its log is left out: where it stood among the calls was not recorded.
    """
    observed = recording.observed
    if "log" in observed:
        return [logrus.line(_START, entry["level"], entry["msg"]) for entry in observed["log"]]
    entries = (observed[kind][index] for _, kind, index in observed["timeline"] if kind in _STREAMS)
    return [f"{entry.replace('TTTT PID', _KLOG)}\n" for entry in entries]


def ended_with(recording: Recording) -> int | None:
    """The exit code, None for a run that a signal or the recorder ended."""
    code: int | None = recording.observed["exit_code"]
    return None if code is not None and code < 0 else code
