"""A node's story as one page: lanes of bars that can be zoomed and moved. Everything is in the page, nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from simulator.gocompat import SECOND
from simulator.node.story import Played
from simulator.node.timeline import ACTS, ALLOCATABLE, DRIVER_MANAGER, GPUS, KUBELET, LABELS, LANES
from simulator.report.node_story import Span, clock, ending, is_bad, said, spans
from simulator.report.page import fill, part, script_data, text_of


def page(played: Played) -> str:
    """The page's text."""
    story = played.story
    who = "new" if story.new_operator else "old"
    entries = played.timeline.entries
    parts = {
        "TITLE": text_of(story.name),
        "ABOUT": text_of(f"{story.description} Host {story.host.name}, chart {story.chart}, {who} operator.".strip()),
        "ACTS": "".join(f"<li><time>{clock(entry.at)}</time>{text_of(entry.text)}</li>" for entry in entries if entry.lane == ACTS),
        "ENDING": text_of("\n".join(ending(played))),
        "ROWS": "".join(
            f"<tr><td>{clock(entry.at)}</td><td>{entry.lane}</td><td>{text_of(said(entry))}</td></tr>" for entry in entries
        ),
        "DATA": script_data(_data(played)),
    }
    return fill(part("simulator.report", "node_page.html"), parts)


def _data(played: Played) -> dict[str, Any]:
    """What the page's script draws. Times are seconds."""
    made = spans(played)
    return {
        "until": max(played.story.until / SECOND, 1),
        "acts": [{"at": entry.at / SECOND} for entry in played.timeline.entries if entry.lane == ACTS],
        "lanes": [lane for name in LANES if (lane := _lane(name, made))],
    }


def _lane(name: str, made: list[Span]) -> dict[str, Any] | None:
    rows = list(_rows([span for span in made if span.lane == name]))
    return {"name": name, "rows": rows} if rows else None


def _rows(of_lane: list[Span]) -> Iterator[Mapping[str, Any]]:
    """A row for each subject, in the order in which they came."""
    for subject in dict.fromkeys(span.subject for span in of_lane):
        yield {
            "subject": subject,
            "spans": [
                [span.begins / SECOND, span.ends / SECOND, span.text, _kind(span)] for span in of_lane if span.subject == subject
            ],
        }


def _kind(span: Span) -> str:
    """How a bar is coloured: good, bad, wait or plain."""
    text = span.text
    if span.lane == DRIVER_MANAGER:
        return {"exit 0": "good", "still running": "wait", "cut off": "wait"}.get(text, "bad")
    if span.lane == KUBELET:
        if is_bad(span):
            return "bad"
        return "good" if text.startswith("Running") else "wait"
    if span.lane == GPUS:
        return {"vfio-pci": "good", "no driver": "wait"}.get(text, "plain")
    if span.lane == LABELS:
        return "bad" if "pre-installed" in text else "wait" if "paused" in text else "plain"
    if span.lane == ALLOCATABLE:
        return "plain" if text == "0" else "good"
    return "wait" if text == "down" else "plain"
