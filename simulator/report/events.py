"""An event as one line for people, and as a JSON document for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from simulator.gocompat import SECOND
from simulator.reading import printable
from simulator.report.effects import Effect
from simulator.trace import (
    ApiRequest,
    Change,
    ChildProcess,
    Event,
    KernelCall,
    LogLine,
    Signal,
    Sleep,
    StderrText,
    StdoutText,
)
from simulator.vfio.trace import Modprobe, SysfsWrite, VfioEvent

AnyEvent: TypeAlias = "Event | VfioEvent | Effect"

_KINDS: Final = {
    LogLine: "log",
    StdoutText: "stdout",
    StderrText: "stderr",
    ApiRequest: "request",
    KernelCall: "kernel",
    ChildProcess: "child",
    Sleep: "sleep",
    Change: "change",
    Signal: "signal",
    SysfsWrite: "write",
    Modprobe: "modprobe",
    Effect: "effect",
}
_OVER: Final = "(the run is over)"
_LONGEST: Final = 240
_BEFORE: Final = 40
"""So much of what two long texts have in common is shown before they differ."""


def event_text(event: AnyEvent | None) -> str:
    """What happened, without its time. None stands for the end of the run."""
    return _shortened(_told(event))


def kind_of(event: AnyEvent) -> str:
    """What kind of event it is, as documents have it."""
    return _KINDS[type(event)]


def pair_of_texts(left: AnyEvent | None, right: AnyEvent | None) -> tuple[str, str]:
    """Two events that differ, told so that the difference shows.

    Of two like requests only what differs in their bodies, of long texts the part where they differ, of events that differ
    in nothing but their time the time.
    """
    if isinstance(left, ApiRequest) and isinstance(right, ApiRequest) and _is_like(left, right):
        one, other = dict(_leaves(left.body)), dict(_leaves(right.body))
        keys = [key for key in sorted(one.keys() | other.keys()) if one.get(key) != other.get(key)]
        return _with_body(left, one, keys), _with_body(right, other, keys)
    texts = _told(left), _told(right)
    if texts[0] == texts[1]:
        return f"{_shortened(texts[0])}{_when(left)}", f"{_shortened(texts[1])}{_when(right)}"
    common = next((index for index, (one, other) in enumerate(zip(*texts, strict=False)) if one != other), min(map(len, texts)))
    start = common - _BEFORE if common > _LONGEST - _BEFORE else 0
    return _shortened(texts[0], start), _shortened(texts[1], start)


def _told(event: AnyEvent | None) -> str:
    match event:
        case None:
            text = _OVER
        case LogLine():
            text = f"{event.level}: {event.message}"
        case StdoutText() | StderrText():
            text = f"{_KINDS[type(event)]}: {event.text}"
        case ApiRequest():
            body = f" {json.dumps(event.body, ensure_ascii=False, sort_keys=True)}" if event.body is not None else ""
            query = "".join(f" {key}={value}" for key, value in sorted(event.query.items()) if value)
            text = f"{event.method} {event.path} -> {event.status}{query}{body}"
        case KernelCall():
            text = f"{event.call}({event.argument}) = {event.result}"
        case ChildProcess():
            ended = "" if event.exit_code is None else f" (exit code {event.exit_code})"
            text = f"ran {' '.join(event.argv)}{ended}"
        case Sleep():
            text = f"waits {_seconds(event.span)}"
        case Change():
            text = f"meanwhile: {json.dumps(event.what, ensure_ascii=False, sort_keys=True)}"
        case Signal():
            text = f"signal {event.name}"
        case SysfsWrite():
            what = "could not be opened" if event.text is None else f"<- {json.dumps(event.text)}"
            text = f"{event.path} {what} = {event.result}"
        case Effect():
            text = event.what
        case Modprobe():
            text = f"in {event.root}: {' '.join(event.argv)} (exit code {event.exit_code})"
    return printable(text.removesuffix("\n"))


def event_document(event: AnyEvent | None) -> dict[str, Any] | None:
    """An event's fields, its kind, its time in seconds."""
    if event is None:
        return None
    fields = event._asdict()
    out: dict[str, Any] = {"kind": kind_of(event)}
    if "at" in fields:
        out["at_s"] = round(fields.pop("at") / SECOND, 3)
    if "span" in fields:
        out["for_s"] = round(fields.pop("span") / SECOND, 3)
    return out | {key: list(value) if isinstance(value, tuple) else value for key, value in fields.items()}


def _with_body(request: ApiRequest, body: Mapping[str, str], keys: Sequence[str]) -> str:
    told = ", ".join(f"{key}: {body.get(key, 'absent')}" for key in keys)
    return _shortened(printable(f"{request.method} {request.path} -> {request.status}: {told}"))


def _is_like(left: ApiRequest, right: ApiRequest) -> bool:
    """Two requests that differ in nothing but body and time, and do differ in their bodies."""
    return left.body != right.body and left._replace(at=0, body=None) == right._replace(at=0, body=None)


def _leaves(body: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(body, Mapping):
        for key, value in body.items():
            yield from _leaves(value, f"{path}.{key}" if path else str(key))
    else:
        yield path, json.dumps(body, ensure_ascii=False)


def _when(event: AnyEvent | None) -> str:
    at = getattr(event, "at", None)
    return "" if at is None else f" at {_seconds(at)}"


def _seconds(span: int) -> str:
    return f"{span / SECOND:.3f}".rstrip("0").removesuffix(".") + " s"


def _shortened(text: str, start: int = 0) -> str:
    out = f"...{text[start:]}" if start else text
    return out if len(out) <= _LONGEST else out[:_LONGEST] + "..."
