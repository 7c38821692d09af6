"""An outcome of a shell release in the recordings' own form."""

from __future__ import annotations

import re
from typing import Any, Final

from simulator.gocompat import SECOND
from simulator.recordings.observation import api_entry, end_state, kernel_entry
from simulator.trace import ApiRequest, Change, ChildProcess, KernelCall, Outcome, Signal, StderrText, StdoutText

_STAMPS: Final = ((re.compile(r'\Atime="[^"]*"'), 'time="T"'), (re.compile(r"\A([IWEF])\d{4} [\d:.]+ +\d+ "), r"\1TTTT PID "))

_UNSEEN: Final = "chroot"
"""What the recorder does not see: it leaves the root that is watched."""


def shell_observation(outcome: Outcome) -> dict[str, Any]:
    """An outcome in the recordings' own form. Times in seconds; lines of both streams without their newline."""
    lists: dict[str, list[Any]] = {"stdout": [], "stderr": [], "exec": [], "api": [], "api_reads": [], "kernel": []}
    started = {"stdout": "", "stderr": ""}
    timeline: list[Any] = []

    def note(kind: str, entry: Any) -> None:
        timeline.append([at, kind, len(lists[kind])])
        lists[kind].append(entry)

    def write(stream: str, text: str) -> None:
        *lines, started[stream] = (started[stream] + text).split("\n")
        for line in lines:
            note(stream, _unstamped(line))

    at = 0.0
    for event in outcome.events:
        at = round(event.at / SECOND, 1)
        match event:
            case StdoutText():
                write("stdout", event.text)
            case StderrText():
                write("stderr", event.text)
            case ChildProcess() if event.argv[0] != _UNSEEN:
                note("exec", list(event.argv))
            case ApiRequest() if event.method == "GET":
                lists["api_reads"].append({"path": event.path, "query": dict(event.query), "status": event.status, "t": at})
            case ApiRequest():
                note("api", api_entry(event, at))
            case KernelCall():
                note("kernel", kernel_entry(event))
            case Change():
                timeline.append([at, "change", dict(event.what)])
            case Signal():
                timeline.append([at, "signal", event.name])
            case _:
                pass
    for stream, text in started.items():
        if text:
            note(stream, _unstamped(text))
    return {"exit_code": outcome.exit_code, **lists, **end_state(outcome), "timeline": timeline}


def _unstamped(line: str) -> str:
    for pattern, text in _STAMPS:
        line = pattern.sub(text, line)
    return line
