"""Events as lines for people, and as JSON."""

from __future__ import annotations

import json

import pytest

from simulator.report.events import event_document, event_text, pair_of_texts
from simulator.trace import ApiRequest, Change, ChildProcess, KernelCall, LogLine, Signal, Sleep, StderrText, StdoutText
from simulator.vfio.trace import Modprobe, SysfsWrite

SECOND = 10**9
TEXTS = {
    LogLine(0, "info", "Unmounting\nit\n"): "info: Unmounting\\nit",
    StdoutText(0, "evicting pod a/b\n"): "stdout: evicting pod a/b",
    StderrText(0, "W0101\x1b[0m"): "stderr: W0101\\x1b[0m",
    KernelCall(0, "delete_module", "nvidia", "EBUSY"): "delete_module(nvidia) = EBUSY",
    ChildProcess(0, ("vfio-manage", "unbind", "--all"), 0): "ran vfio-manage unbind --all (exit code 0)",
    Sleep(0, 1_500_000_000): "waits 1.5 s",
    Sleep(0, 60 * SECOND): "waits 60 s",
    Signal(0, "TERM"): "signal TERM",
    SysfsWrite("/sys/x/unbind", "0000:18:00.0", "ok"): '/sys/x/unbind <- "0000:18:00.0" = ok',
    SysfsWrite("/sys/x/unbind", None, "ENOENT"): "/sys/x/unbind could not be opened = ENOENT",
    Modprobe("/host", ("modprobe", "vfio_pci"), 1): "in /host: modprobe vfio_pci (exit code 1)",
    None: "(the run is over)",
}


@pytest.mark.parametrize(("event", "text"), TEXTS.items(), ids=TEXTS.values())
def test_an_event_is_one_line(event, text):
    """What happened, control characters escaped."""
    assert event_text(event) == text


def request(body, at=0, path="/api/v1/nodes/gpu-1"):
    return ApiRequest(at, "PATCH", path, {}, body, 200, "application/strategic-merge-patch+json")


def test_a_request_is_one_line():
    """Method, path, status, what was asked for."""
    assert event_text(ApiRequest(0, "GET", "/api/v1/pods", {"limit": "500", "continue": ""}, None, 200, "")) == (
        "GET /api/v1/pods -> 200 limit=500"
    )
    assert event_text(request({"a": 1})) == 'PATCH /api/v1/nodes/gpu-1 -> 200 {"a": 1}'
    assert event_text(Change(0, {"after_s": 1})) == 'meanwhile: {"after_s": 1}'


def test_of_like_requests_the_difference_is_told():
    """Only the keys in which the bodies differ."""
    one = request({"metadata": {"labels": {"a": "1", "b": "2"}}})
    other = request({"metadata": {"labels": {"a": "1", "b": "3", "c": ""}}})
    assert pair_of_texts(one, other) == (
        'PATCH /api/v1/nodes/gpu-1 -> 200: metadata.labels.b: "2", metadata.labels.c: absent',
        'PATCH /api/v1/nodes/gpu-1 -> 200: metadata.labels.b: "3", metadata.labels.c: ""',
    )


def test_of_like_events_the_times_are_told():
    """If nothing else differs."""
    assert pair_of_texts(LogLine(0, "info", "x"), LogLine(SECOND, "info", "x")) == ("info: x at 0 s", "info: x at 1 s")


def test_of_long_texts_the_part_that_differs_is_told():
    """With a little of what comes before; other texts are cut."""
    one, other = pair_of_texts(LogLine(0, "info", "a" * 500 + "x"), LogLine(0, "info", "a" * 500 + "y" + "b" * 500))
    assert one == "..." + "a" * 40 + "x"
    assert other.startswith("..." + "a" * 40 + "yb")
    assert other.endswith("b...")
    assert event_text(LogLine(0, "info", "a" * 500)).endswith("a...")


def test_an_event_of_another_kind_is_told_whole():
    """No part of either is hidden."""
    assert pair_of_texts(Sleep(0, SECOND), None) == ("waits 1 s", "(the run is over)")
    assert pair_of_texts(request({"a": 1}), request({"a": 1}, path="/x")) == (
        'PATCH /api/v1/nodes/gpu-1 -> 200 {"a": 1}',
        'PATCH /x -> 200 {"a": 1}',
    )


@pytest.mark.parametrize("event", [*TEXTS, request({"a": [1]}), Change(0, {"after_s": 1})], ids=repr)
def test_an_event_is_a_document(event):
    """Kind, time in seconds if it has one, its fields; plain JSON."""
    found = event_document(event)
    if event is None:
        assert found is None
        return
    assert json.loads(json.dumps(found)) == found
    assert found["kind"]
    assert ("at_s" in found) == hasattr(event, "at")
    assert event_document(Sleep(SECOND, 2 * SECOND)) == {"kind": "sleep", "at_s": 1.0, "for_s": 2.0}
