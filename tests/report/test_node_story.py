"""A node's story as text, Mermaid, JSON and page."""

from __future__ import annotations

import html.parser
import itertools
import json
import re
from pathlib import Path

import pytest

from simulator.gocompat import SECOND
from simulator.node.story import load_story, play, read_story
from simulator.node.timeline import DRIVER_MANAGER, KUBELET, LANES
from simulator.reading import parse_document
from simulator.report.node_page import page
from simulator.report.node_story import clock, document, mermaid, spans, table


@pytest.fixture(scope="module")
def played():
    return play(load_story("packaged-driver"))


@pytest.mark.parametrize(
    ("at", "text"),
    [(0, "0:00"), (0.6, "0:00.6"), (59.99, "0:59.9"), (61, "1:01"), (3599, "59:59"), (3600, "1:00:00"), (90061.5, "25:01:01.5")],
)
def test_times(at, text):
    """Minutes and seconds, hours if there are any, tenths if there are any."""
    assert clock(round(at * SECOND)) == text


def test_the_table_has_the_lanes_that_are_asked_for(played):
    """A time stands once."""
    lines = list(table(played, {DRIVER_MANAGER}))
    shown = [line for line in lines if "driver-manager" in line]
    assert shown[:2] == [
        "     0:00  driver-manager  nvidia-vfio-manager-52pjr: starts",
        "     1:00  driver-manager  nvidia-vfio-manager-52pjr: exit 1: driver is pre-installed on host",
    ]
    assert len(shown) == 18
    assert not [line for line in lines if " kubelet " in line]
    everything = list(table(played, LANES))
    assert sum(line.startswith("     0:00 ") for line in everything) == 1
    assert "NAME                                           READY   STATUS    RESTARTS   AGE" in everything
    assert everything[-2:] == ["allocatable: nvidia.com/GA102GL_A10: 2", "GPUs: 0000:18:00.0 vfio-pci, 0000:3b:00.0 vfio-pci"]


def test_spans_of_a_subject_do_not_overlap(played):
    """And none is empty."""
    by_subject = {}
    for span in spans(played):
        assert span.begins < span.ends <= played.story.until or span.lane == DRIVER_MANAGER
        by_subject.setdefault((span.lane, span.subject), []).append(span)
    for found in by_subject.values():
        ordered = sorted(found, key=lambda span: span.begins)
        assert all(one.ends <= other.begins for one, other in itertools.pairwise(ordered))
    crash = [span for span in by_subject[KUBELET, "nvidia-vfio-manager-52pjr"] if span.text == "Init:CrashLoopBackOff 7"]
    assert [(span.begins // SECOND, span.ends // SECOND) for span in crash] == [(1100, 1380)]


def test_mermaid_names_nothing_that_it_would_misread(played):
    """A task is a text without colons, and two whole seconds."""
    lines = mermaid(played).splitlines()
    assert lines[0] == "gantt"
    assert [line.strip() for line in lines if line.startswith("    section")] == [
        f"section {lane}" for lane in ("host", "driver-manager", "kubelet", "labels", "GPU drivers", "allocatable", "people")
    ]
    tasks = [line for line in lines[4:] if not line.startswith("    section")]
    assert tasks
    assert all(re.fullmatch(r"    [^:;#,]+ :(crit, |milestone, )?\d+, \d+s?", task) for task in tasks)


def test_the_document_has_everything(played):
    """With a format version."""
    made = json.loads(json.dumps(document(played)))
    assert made["format"] == 1
    assert [run["at_s"] for run in made["driver_manager"]] == [0, 60, 130, 210, 310, 450, 670, 1030, 1380]
    assert made["driver_manager"][0]["log"][-1] == "fatal: driver is pre-installed on host"
    assert made["end"]["allocatable"] == {"nvidia.com/GA102GL_A10": "2"}
    back_off = [event for event in made["events"] if event["reason"] == "BackOff" and "vfio-manager" in event["object"]]
    assert [(event["type"], event["count"]) for event in back_off] == [("Warning", 7)]
    assert {log["container"] for log in made["containers"]} == {
        "vfio-pci-validation",
        "vgpu-manager-validation",
        "vgpu-devices-validation",
        "nvidia-vfio-manager",
        "nvidia-sandbox-device-plugin-ctr",
    }


class Reader(html.parser.HTMLParser):
    """What a page is made of: its elements, and what they fetch."""

    def __init__(self):
        super().__init__()
        self.open, self.fetched, self.data = [], [], ""

    def handle_starttag(self, tag, attrs):
        self.fetched += [value for name, value in attrs if name in {"src", "href"} and not value.startswith(("data:", "#"))]
        if tag not in {"meta", "link", "br"}:
            self.open.append((tag, dict(attrs).get("id")))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if self.open and self.open[-1][1] == "data":
            self.data += data


def read_page(text):
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert not reader.open
    return reader


def test_the_page_fetches_nothing(played):
    """Well-formed, and complete in itself."""
    text = page(played)
    reader = read_page(text)
    assert reader.fetched == []
    assert "http" not in text.replace("http-equiv", "")
    assert "@@" not in text
    data = json.loads(reader.data)
    assert [lane["name"] for lane in data["lanes"]] == [lane for lane in LANES if lane != "people"]
    assert [act["at"] for act in data["acts"]] == [1200, 1200, 1260]


def test_texts_of_a_story_cannot_become_the_page():
    """Names and labels are anybody's."""
    nasty = "</script><script>alert(1)</script>@@DATA@@"
    text = f"host: clean\ndescription: '{nasty}'\nuntil: 40\nsteps: [{{at: 1, write: {{'/x{nasty}': y}}}}]\n"
    story = read_story(parse_document(text, "s"), Path(), nasty)
    made = page(play(story))
    assert made.count("<script>") == 1
    assert "alert(1)&lt;/script&gt;@@DATA@@" in made
    read_page(made)
