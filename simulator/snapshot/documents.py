"""Objects of the Kubernetes API as people save them: YAML or JSON, one or several, lists. Read late, so that much can be saved.

What kubectl prints has one form, so that a list can be taken apart by its lines, and an object's kind and node be told, before
anything is parsed: of ten thousand pods those of one node are. Any other form is parsed whole, within limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from simulator.reading import InputError, Place, parse_document
from simulator.snapshot.values import text

_MARKER: Final = re.compile(r"^---(?=\s|$)[^\n]*$", re.MULTILINE)
_COMMENT: Final = re.compile(r"(?:\s*#[^\n]*\n)*\s*(?:#[^\n]*)?\Z")
_YAML_LIST: Final = re.compile(r"\s*apiVersion: v1\nitems:\n(?=- )")
_YAML_ITEM: Final = re.compile(r"^- ", re.MULTILINE)
_YAML_END: Final = re.compile(r"^[^\s-]", re.MULTILINE)
_YAML_FACTS: Final = {
    "name": re.compile(r"^    name: (\S+)$", re.MULTILINE),
    "kind": re.compile(r"^  kind: (\w+)$", re.MULTILINE),
    "node": re.compile(r"^    nodeName: (\S+)$", re.MULTILINE),
}
_JSON_LIST: Final = re.compile(r'\s*\{\n    "apiVersion": "v1",\n    "items": \[\n(?=        \{\n)')
_JSON_OPENS: Final = "        {\n"
_JSON_CLOSES: Final = "\n        }"
_JSON_END: Final = "\n    ]"
_JSON_FACTS: Final = {
    "name": re.compile(r'^                "name": "([^"]+)",?$', re.MULTILINE),
    "kind": re.compile(r'^            "kind": "(\w+)",?$', re.MULTILINE),
    "node": re.compile(r'^                "nodeName": "([^"]+)",?$', re.MULTILINE),
}
_DEAREST_YAML: Final = 120_000
"""Marks (`cost`) that are read as YAML, of one bundle: about two seconds."""
_DEAREST_JSON: Final = 1_500_000
_DEAREST_TEXT: Final = 400_000
"""The same of what `kubectl describe` and must-gather print: a line is an object, at worst."""


_PRICE_OF_STARTING: Final = 20
"""What a document costs beside what is in it."""


class TooMuch(InputError):
    """More than is read at once."""


class Budget:
    """How much may still be parsed. What does not fit is refused, before it is parsed."""

    def __init__(self) -> None:
        self._left = {"YAML": _DEAREST_YAML, "JSON": _DEAREST_JSON, "text": _DEAREST_TEXT}

    def spend(self, text: str, form: str, file: str) -> None:
        """Raises TooMuch if it does not fit."""
        price = cost(text)
        if price > self._left[form]:
            mend = "save it with -o json, which is read faster" if form == "YAML" else "save less: the objects of one node"
            raise TooMuch(file, "", f"holds more {form} than is read at once", mend)
        self._left[form] -= price


def cost(text: str) -> int:
    """An upper limit, but for a factor, of how many values a text holds."""
    return sum(map(text.count, ("\n", ",", "[", "{", "- ", "? "))) + _PRICE_OF_STARTING


@dataclass(slots=True)
class Object:
    """An object of the API, perhaps not parsed yet. `node` is the node that a pod is on, None if that is not known yet."""

    kind: str
    file: str
    node: str | None
    text: str = ""
    place: Place | None = None
    name: str = ""
    """"" if it is not known yet."""

    def read(self, budget: Budget) -> Place | None:
        """The object. None if it is another than its lines said. Raises InputError."""
        if self.place is None:
            form = "JSON" if self.text.lstrip().startswith("{") else "YAML"
            budget.spend(self.text, form, self.file)
            self.place = _parsed(self.text, self.file)
        return self.place if self.place.value.get("kind") == self.kind else None


def read_objects(text: str, file: str, budget: Budget) -> Iterator[Object]:
    """The objects in a file. Raises InputError."""
    if start := _JSON_LIST.match(text):
        yield from _lines_of(_json_items(text, start.end()), _JSON_FACTS, file)
        if text.rfind(_JSON_END) < 0 or text.rstrip()[-1] != "}":
            raise _cut(file)
    elif text.lstrip()[:1] == "{":
        budget.spend(text, "JSON", file)
        yield from _objects_of(_parsed(text, file))
    else:
        for part in _MARKER.split(text):
            if _COMMENT.match(part):
                continue
            if head := _YAML_LIST.match(part):
                yield from _lines_of(_yaml_items(part, head.end()), _YAML_FACTS, file)
                if not _YAML_END.search(part, head.end()):
                    raise _cut(file)
            else:
                budget.spend(part, "YAML", file)
                yield from _objects_of(_parsed(part, file))


def _cut(file: str) -> InputError:
    return InputError(file, "", "is damaged: the list in it has no end", "save it again, whole")


def _parsed(text: str, file: str) -> Place:
    return parse_document(text, file, is_json=text.lstrip()[:1] == "{")


def _json_items(text: str, start: int) -> Iterator[str]:
    """The items of a list that begins there."""
    while text.startswith(_JSON_OPENS, start) and (end := text.find(_JSON_CLOSES, start)) > 0:
        end += len(_JSON_CLOSES)
        yield text[start:end]
        start = end + len(",\n")


def _yaml_items(text: str, start: int) -> Iterator[str]:
    """The items of a list that begins there; each one's first line is made to look like the others."""
    end = _YAML_END.search(text, start)
    body = text[start : end.start() if end else len(text)]
    starts = [match.start() for match in _YAML_ITEM.finditer(body)]
    for index, at in enumerate(starts):
        below = starts[index + 1] if index + 1 < len(starts) else len(body)
        yield f"  {body[at + 2 : below]}"


def _lines_of(items: Iterator[str], facts: Mapping[str, re.Pattern[str]], file: str) -> Iterator[Object]:
    for item in items:
        found = {name: pattern.search(item) for name, pattern in facts.items()}
        if kind := found["kind"]:
            name, node = ((match[1].strip("\"'") if (match := found[key]) else "") for key in ("name", "node"))
            yield Object(kind[1], file, node, item, name=name)


def _objects_of(place: Place) -> Iterator[Object]:
    """A list's objects, or the one object that a document is."""
    value: Mapping[str, Any] = place.value
    kind = value.get("kind")
    items = value.get("items")
    if not isinstance(items, list):
        yield from _object(place, kind)
        return
    single = kind.removesuffix("List") if isinstance(kind, str) else ""
    for item in place.child("items").list():
        if isinstance(item.value, dict):
            if single and "kind" not in item.value:
                item.value["kind"] = single
            yield from _object(item, item.value.get("kind"))


def _object(place: Place, kind: Any) -> Iterator[Object]:
    if (isinstance(kind, str) and "metadata" in place.value) or kind == "APIResourceList":
        yield Object(kind, place.file, None, place=place, name=text(place.value, "metadata", "name"))
