"""A line of logrus' text formatter without a terminal: `time=... level=... msg=...`.

Quotes are off, as upstream has it, so that a message of several lines is several lines.

Source: github.com/sirupsen/logrus text_formatter.go; cmd/driver-manager/main.go, cmd/vfio-manage/main.go `SetFormatter`.
"""

from __future__ import annotations

import datetime


def timestamp(moment: datetime.datetime) -> str:
    """RFC 3339, whole seconds, in the moment's own zone."""
    text = moment.replace(microsecond=0).isoformat()
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text


def line(moment: datetime.datetime, level: str, message: str) -> str:
    """One log call as text."""
    return f"time={timestamp(moment)} level={level} msg={message}\n"
