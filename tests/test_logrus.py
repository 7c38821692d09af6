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
