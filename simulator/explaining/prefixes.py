"""What stands in front of driver-manager's lines: put there by kubectl, a runtime, a log shipper, or who quoted the log.

Some of it has a known form: docker's json-file and the JSON of Loki, journald and others, the CRI's stream and tag, the time stamps
of `kubectl logs --timestamps`, colours. The rest is learned (syslog, journalctl, stern, compose, `> `, an indent): what stands in
front of several lines that are driver-manager's beyond doubt is taken from every line, so from those that follow in a message too.
Numbers and names of months in it may change from line to line. Where lines name their container (`kubectl logs --prefix`) those of
a container that never speaks as driver-manager are another's.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

_ANSI: Final = re.compile(r"(?:\x1b|\^\[)\[[0-9;]*[A-Za-z]")
_CONTAINER: Final = re.compile(r"\[(?:pod/)?[^\s\]/]+/[^\s\]]+\] ?")
"""`kubectl logs --prefix`."""
_STAMP: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d) (?:(?:stdout|stderr) (?P<tag>[FP])(?: |$))?"
)
"""`kubectl logs --timestamps`, the CRI."""
_ANCHOR: Final = re.compile(
    r'time="?[^"\s=]{0,40}"?\s*level=|(?:INFO|WARN|ERRO|FATA)\[\d|Getting current value of the |Current value of '
)
"""Where a line of driver-manager's may begin."""
_JSON_KEYS: Final = ("log", "line", "message", "MESSAGE")
"""Where documents have the line: docker and fluentd, Loki, Elasticsearch, journald."""
_MONTH: Final = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_VARYING: Final = re.compile(rf"\b{_MONTH}\b|\d+|\s+")
_MOST_ANCHORS: Final = 2000
"""So many lines are learned from."""
_MOST_FORMS: Final = 32
_LONGEST_PREFIX: Final = 300
LONGEST_LINE: Final = 2**15
"""Of a line so much is looked at; driver-manager prints none that is nearly so long."""


def without_colours(line: str) -> str:
    """A line without a terminal's control sequences."""
    return _ANSI.sub("", line) if "[" in line else line


class Prefixes:
    """What stands in front of a text's lines. `is_own`: is a line, without a prefix, driver-manager's beyond doubt?"""

    def __init__(self, text: str, is_own: Callable[[str], bool]) -> None:
        seen: Counter[str] = Counter()
        plain = 0
        self._speakers: set[str] = set()
        for line, container in _anchored(text):
            at = _ANCHOR.search(line)
            if at is None or not is_own(line[at.start() :]):
                continue
            self._speakers.add(container)
            if 0 < at.start() <= _LONGEST_PREFIX:
                seen[_form(line[: at.start()])] += 1
            else:
                plain += 1
        least = 2 if plain else 1
        forms = [form for form, count in seen.most_common(_MOST_FORMS) if count >= least]
        self._learned = re.compile("|".join(sorted(forms, key=len, reverse=True))) if forms else None

    def bare(self, physical: str) -> tuple[str, bool]:
        """A line without what was put in front of it, "" for another container's; is it a part of one that goes on?"""
        line, is_part, container = _outer(physical)
        if container and self._speakers and container not in self._speakers:
            return "", False
        if self._learned is not None and (found := self._learned.match(line)) is not None:
            line = line[found.end() :]
        return line, is_part


def _anchored(text: str) -> Iterator[tuple[str, str]]:
    """Lines in which one of driver-manager's may begin, without what has a known form, and the containers they name."""
    last = -1
    for index, found in enumerate(_ANCHOR.finditer(text)):
        begin = text.rfind("\n", 0, found.start()) + 1
        if index == _MOST_ANCHORS:
            return
        if begin == last:
            continue
        last = begin
        end = text.find("\n", begin)
        line, _, container = _outer(text[begin : end if end >= 0 else None])
        yield line, container


def _form(prefix: str) -> str:
    """A pattern of a prefix, whatever its numbers. Of a line that is empty behind it the white space at its end may be cut."""
    body = prefix.rstrip()
    parts, at = [], 0
    for found in _VARYING.finditer(body):
        parts.append(re.escape(body[at : found.start()]))
        parts.append(_MONTH if found[0].isalpha() else r"\d+" if found[0].isdigit() else r"\s+")
        at = found.end()
    parts.append(re.escape(body[at:]))
    return f"{''.join(parts)}(?:{re.escape(prefix[len(body) :])}|$)"


def _outer(physical: str) -> tuple[str, bool, str]:
    """A line without what has a known form; is it a part of one that goes on; the container it names, "" for none."""
    line = without_colours(physical.rstrip("\r")[:LONGEST_LINE])
    is_part, container = False, ""
    if line[:1] == "{":
        line, is_part = _of_json(line)
    for _ in range(3):
        if line[:1] == "[" and (named := _CONTAINER.match(line)) is not None:
            container = named[0].strip()
            line = line[named.end() :]
        elif line[:1].isdigit() and (stamp := _STAMP.match(line)) is not None:
            is_part = is_part or stamp["tag"] == "P"
            line = line[stamp.end() :]
        else:
            break
    return line, is_part, container


def _of_json(line: str) -> tuple[str, bool]:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return line, False
    key = next((key for key in _JSON_KEYS if isinstance(document.get(key), str)), "")
    if not key:
        return line, False
    text = document[key]
    return without_colours(text.rstrip("\r\n")), key == "log" and not text.endswith("\n")
