"""What a program wrote becomes the events that a simulated run leaves."""

from __future__ import annotations

import pytest

from simulator.runners.container.reading import Chunk, read
from simulator.trace import ApiRequest, LogLine, StderrText, StdoutText

TIME = "time=2026-01-01T00:00:00Z"


def told(*texts):
    return read([Chunk(index, "stderr", text.encode()) for index, text in enumerate(texts)])


def messages(*texts):
    return [(event.level, event.message) for event in told(*texts).events if isinstance(event, LogLine)]


def test_a_line_of_the_log_is_level_and_message():
    assert messages(f"{TIME} level=warning msg=Failed to unload kernel module nvidia: device or resource busy\n") == [
        ("warning", "Failed to unload kernel module nvidia: device or resource busy")
    ]


def test_a_message_keeps_its_own_lines_and_its_own_last_newline():
    text = f"{TIME} level=info msg=Host driver detected: a\n\nb\n\n{TIME} level=info msg=next\n"
    assert messages(text) == [("info", "Host driver detected: a\n\nb\n"), ("info", "next")]


def test_an_empty_message_has_no_key():
    assert messages(f"{TIME} level=fatal\n") == [("fatal", "")]


def test_quotes_stay_as_they_are():
    assert messages(f'{TIME} level=info msg="a"=b\n') == [("info", '"a"=b')]


def test_the_last_line_need_not_end():
    assert messages(f"{TIME} level=info msg=killed in the mid") == [("info", "killed in the mid")]


@pytest.mark.parametrize(
    "line",
    [
        "W1130 11:12:22.658591    3810 client_config.go:667] Neither --kubeconfig nor --master was specified.\n",
        'error when evicting pods/"a" -n "default" (will retry after 5s): no\n',
        'error when evicting pod "a" from terminating namespace "b" (will retry after 5s): no\n',
        "WARNING: deleting Pods\n",
    ],
)
def test_what_libraries_write_is_no_part_of_a_message(line):
    found = told(f"{TIME} level=info msg=before\n{line}{TIME} level=info msg=after\n").events
    assert [type(event) for event in found] == [LogLine, StderrText, LogLine]
    assert found[1].text == line


def test_a_panic_is_its_first_line():
    text = "panic: runtime error: nil [recovered]\n\tpanic: again\n\ngoroutine 1 [running]:\nW1130 11:12:22.658591 1 a.go:1] x\n"
    result = told(f"{TIME} level=info msg=before\n", text)
    assert result.panic == "runtime error: nil [recovered]"
    assert result.events[-1] == StderrText(1, "panic: runtime error: nil [recovered]\n[stack trace left out]\n")


def test_no_panic_is_no_text():
    assert told(f"{TIME} level=info msg=x\n").panic == ""


def test_an_entry_has_the_time_and_the_place_of_its_first_byte():
    request = ApiRequest(5, "GET", "/api/v1", {}, None, 200, "")
    record = [
        Chunk(1, "stderr", f"{TIME} level=info msg=one\n{TIME} lev".encode()),
        request,
        Chunk(9, "stderr", f"el=info msg=two\n{TIME} level=info msg=three\n".encode()),
    ]
    assert read(record).events == [LogLine(1, "info", "one"), LogLine(1, "info", "two"), request, LogLine(9, "info", "three")]


def test_standard_output_stands_where_it_came():
    record = [Chunk(1, "stderr", f"{TIME} level=info msg=a\n".encode()), Chunk(2, "stdout", b"evicting pod a/b\n")]
    assert read(record).events == [LogLine(1, "info", "a"), StdoutText(2, "evicting pod a/b\n")]


def test_bytes_that_are_no_text_come_back_as_they_went():
    assert messages(*[]) == []
    result = read([Chunk(0, "stderr", f"{TIME} level=info msg=".encode() + b"\xff\n")])
    assert result.events[0].message.encode("utf-8", "surrogateescape") == b"\xff"
