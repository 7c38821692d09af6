"""A node's story as a table in text, as a Mermaid chart and as a JSON document."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from simulator.gocompat import SECOND, Duration
from simulator.node.story import Played
from simulator.node.timeline import ACTS, ALLOCATABLE, DRIVER_MANAGER, GPUS, HOST, KUBELET, LABELS, LANES, NO_DRIVER, Entry
from simulator.reading import printable

FORMAT: Final = 1
_LANE_WIDTH: Final = max(map(len, LANES))


def clock(at: Duration) -> str:
    """A time of a story: `17:10`, `0:00.6`, `1:02:03`."""
    tenths = at * 10 // SECOND
    seconds, tenth = divmod(tenths, 10)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
    return f"{text}.{tenth}" if tenth else text


def said(entry: Entry) -> str:
    """What an entry says, in a line."""
    if entry.lane == ACTS:
        return entry.text
    return f"{entry.subject}: {entry.text or 'gone'}"


# --- text ------------------------------------------------------------------------------------------------------------


def table(played: Played, lanes: Collection[str] = LANES) -> Iterator[str]:
    """The timeline, a line for each entry of these lanes; then how the node was left."""
    story = played.story
    who = "new" if story.new_operator else "old"
    yield f"{story.host.name}, chart {story.chart}, {who} operator"
    yield ""
    before = ""
    for entry in played.timeline.entries:
        if entry.lane in lanes:
            now = clock(entry.at)
            yield f"{now if now != before else '':>9}  {entry.lane:<{_LANE_WIDTH}}  {said(entry)}"
            before = now
    yield ""
    yield from ending(played)


def ending(played: Played) -> Iterator[str]:
    """The pods as `kubectl get pods` shows them, what can be allocated, the GPUs' drivers."""
    yield f"--- at {clock(played.story.until)}"
    heads = ("Name", "Ready", "Status", "Restarts", "Age")
    rows = [[head.upper() for head in heads], *([row[head] for head in heads] for row in played.pods)]
    widths = [max(len(row[index]) for row in rows) for index in range(len(heads))]
    for row in rows:
        yield "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield f"allocatable: {_amounts(played.allocatable)}"
    drivers = sorted(played.gpu_drivers.items())
    yield f"GPUs: {', '.join(f'{address} {driver or NO_DRIVER}' for address, driver in drivers)}"


def _amounts(allocatable: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {amount}" for name, amount in sorted(allocatable.items())) or "{}"


# --- spans -------------------------------------------------------------------------------------------------------------


class Span(NamedTuple):
    """A subject was so from a time to another, in nanoseconds."""

    lane: str
    subject: str
    begins: Duration
    ends: Duration
    text: str


def spans(played: Played) -> list[Span]:
    """What was so how long: pods' statuses, labels, GPUs' drivers, resources, modules, power, and runs of driver-manager.

    What was over in the moment in which it began is left out.
    """
    until = played.story.until
    open_: dict[tuple[str, str], Entry] = {}
    out: list[Span] = []

    def close(key: tuple[str, str], at: Duration) -> None:
        entry = open_.pop(key, None)
        if entry is not None and entry.text and entry.at < at:
            out.append(Span(entry.lane, entry.subject, entry.at, at, entry.text))

    for entry in played.timeline.entries:
        if entry.lane in {ACTS, DRIVER_MANAGER}:
            continue
        key = (entry.lane, entry.subject)
        close(key, entry.at)
        open_[key] = entry
    for key in list(open_):
        close(key, until)
    out += (
        Span(DRIVER_MANAGER, run.pod.partition("/")[2], run.began, run.ended, run.verdict)
        for run in played.timeline.runs
        if run.began <= until
    )
    return sorted(out, key=lambda span: (LANES.index(span.lane), span.begins))


# --- Mermaid -----------------------------------------------------------------------------------------------------------

_IN_CHART: Final = (HOST, DRIVER_MANAGER, KUBELET, LABELS, GPUS, ALLOCATABLE)


def mermaid(played: Played) -> str:
    """A Gantt chart, a section for each lane. A label that never changed after the first second is left out."""
    lines = ["gantt", f"    title {_plain(played.story.name)}", "    dateFormat X", "    axisFormat %H:%M:%S"]
    made = [span for span in spans(played) if span.lane != LABELS or _changes(span, played.story.until)]
    for lane in _IN_CHART:
        of_lane = [span for span in made if span.lane == lane]
        if of_lane:
            lines.append(f"    section {lane}")
            lines += (_task(span) for span in of_lane)
    acts = [entry for entry in played.timeline.entries if entry.lane == ACTS]
    if acts:
        lines.append(f"    section {ACTS}")
        lines += (f"    {_plain(entry.text)} :milestone, {entry.at // SECOND}, 0s" for entry in acts)
    return "\n".join(lines) + "\n"


def _changes(span: Span, until: Duration) -> bool:
    return span.begins >= SECOND or span.ends < until


def _task(span: Span) -> str:
    begins, ends = span.begins // SECOND, max(-(-span.ends // SECOND), span.begins // SECOND + 1)
    tag = "crit, " if is_bad(span) else ""
    subject = span.subject.rpartition("/")[2] if span.lane == LABELS else span.subject
    return f"    {_plain(f'{subject} {span.text}')} :{tag}{begins}, {ends}"


def is_bad(span: Span) -> bool:
    """Is it a failure?"""
    return "CrashLoopBackOff" in span.text or "Error" in span.text or span.text.startswith("exit 1")


def _plain(text: str) -> str:
    """Text without what Mermaid reads as its own."""
    return printable(re.sub(r"[:;#,\n]+", " ", text)).strip() or "-"


# --- JSON --------------------------------------------------------------------------------------------------------------


def document(played: Played) -> dict[str, Any]:
    """Everything, with a format version. Times are seconds."""
    story = played.story
    return {
        "format": FORMAT,
        "story": {
            "name": story.name,
            "host": story.host.name,
            "chart": story.chart,
            "operator": "new" if story.new_operator else "old",
            "until_s": story.until / SECOND,
        },
        "timeline": [
            {"at_s": entry.at / SECOND, "lane": entry.lane, "subject": entry.subject, "text": entry.text}
            for entry in played.timeline.entries
        ],
        "driver_manager": [
            {
                "pod": run.pod,
                "at_s": run.began / SECOND,
                "for_s": run.outcome.elapsed / SECOND,
                "exit_code": run.outcome.exit_code,
                "log": [f"{line.level}: {line.message}" for line in run.outcome.log],
            }
            for run in played.timeline.runs
        ],
        "containers": [
            {"pod": log.pod, "container": log.container, "at_s": log.at / SECOND, "log": _lines(log.lines)}
            for log in played.timeline.logs
        ],
        "events": [
            {
                "object": event["involvedObject"]["name"],
                **{key: event[key] for key in ("type", "reason", "message", "count", "firstTimestamp", "lastTimestamp")},
            }
            for event in played.events
        ],
        "end": {
            "pods": [{key.lower(): value for key, value in row.items()} for row in played.pods],
            "labels": dict(sorted(played.labels.items())),
            "allocatable": dict(sorted(played.allocatable.items())),
            "gpu_drivers": dict(sorted(played.gpu_drivers.items())),
        },
    }


def _lines(lines: Sequence[Any]) -> list[str]:
    return [f"{line.level}: {line.message}" if line.level else line.message for line in lines]
