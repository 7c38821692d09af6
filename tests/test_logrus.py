"""logrus' text formatter."""

from __future__ import annotations

import datetime

from simulator import logrus


def test_a_line():
    """Whole seconds, no quotes, a message of several lines as it is."""
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 999_999, datetime.UTC)
    assert logrus.line(moment, "info", 'a "b"\nc') == 'time=2026-01-02T03:04:05Z level=info msg=a "b"\nc\n'


def test_a_time_zone():
    """As RFC 3339 has it; UTC is Z."""
    zone = datetime.timezone(datetime.timedelta(hours=-3, minutes=-30))
    assert logrus.timestamp(datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=zone)) == "2026-01-02T03:04:05-03:30"


def test_a_line_with_quotes():
    """Where the formatter is as it comes: what is not plain is quoted, fields follow by name."""
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    line = logrus.quoted_line(moment, "info", 'a "b"', {"z": "vm-vgpu", "b": "x y", "a": "1.2/3@4^5+6_7"})
    assert line == 'time="2026-01-02T03:04:05Z" level=info msg="a \\"b\\"" a=1.2/3@4^5+6_7 b="x y" z=vm-vgpu\n'
    assert logrus.quoted_line(moment, "info", "plain") == 'time="2026-01-02T03:04:05Z" level=info msg=plain\n'
