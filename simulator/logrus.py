"""A line of logrus' text formatter without a terminal: `time=... level=... msg=...`.

driver-manager has its quotes off, so that a message of several lines is several lines; other programs have them on.

Source: github.com/sirupsen/logrus text_formatter.go; cmd/driver-manager/main.go, cmd/vfio-manage/main.go `SetFormatter`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from simulator.gocompat import quote

_PLAIN: Final = re.compile(r"[\w./@^+-]*", re.ASCII)


def timestamp(moment: datetime.datetime) -> str:
    """RFC 3339, whole seconds, in the moment's own zone."""
    text = moment.replace(microsecond=0).isoformat()
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text


def line(moment: datetime.datetime, level: str, message: str) -> str:
    """One log call as text."""
    return f"time={timestamp(moment)} level={level} msg={message}\n"


def quoted_line(moment: datetime.datetime, level: str, message: str, fields: Mapping[str, str] = MappingProxyType({})) -> str:
    """One log call as text, as a program prints it that leaves the formatter as it is."""
    values = {"time": timestamp(moment), "level": level, "msg": message, **dict(sorted(fields.items()))}
    return " ".join(f"{key}={value if _PLAIN.fullmatch(value) else quote(value)}" for key, value in values.items()) + "\n"
