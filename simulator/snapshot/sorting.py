"""Which file of a bundle is what: told by content, as people rename files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from simulator.reading import InputError, Place, parse_document, printable
from simulator.snapshot.files import Files

_MARKER: Final = re.compile(r"^---(?=\s|$)[^\n]*$", re.MULTILINE)
_LOOKS_LIKE_API: Final = re.compile(r"^(- )?(\"?)(apiVersion|kind|items)\2\s*:", re.MULTILINE)
_LOG: Final = re.compile(r"level=(info|warning|error|fatal) msg=|k8s-driver-manager")


@dataclass(slots=True)
class Found:
    """What a bundle holds. Documents are the API's, by kind; lists are taken apart."""

    name: str
    documents: dict[str, list[Place]] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def of(self, kind: str) -> list[Place]:
        """The documents of a kind."""
        return self.documents.get(kind, [])


def sort_files(files: Files, name: str) -> Found:
    """What is in the files. Raises InputError if nothing of use is."""
    found = Found(name, skipped=list(files.skipped))
    for path, data in files.files.items():
        shown = printable(path)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            found.skipped.append(f"{shown}: no UTF-8 text (byte {error.start})")
            continue
        if _is_document(path, text):
            _add_documents(found, path, text, alone=len(files.files) == 1)
        elif _LOG.search(text):
            found.logs[path] = text
    if not found.documents and not found.logs:
        problem = "holds nothing that can be read as Kubernetes objects, as the host script's output or as a log"
        raise InputError(name, "", problem, "save `kubectl get node NAME -o yaml` there; see dmsim snapshot --help")
    return found


def _is_document(path: str, text: str) -> bool:
    return path.endswith((".yaml", ".yml", ".json")) or text.lstrip()[:1] == "{" or _LOOKS_LIKE_API.search(text[:4096]) is not None


def _add_documents(found: Found, path: str, text: str, *, alone: bool) -> None:
    """Take a file's documents in. One that cannot be read is passed over, unless it is all there is."""
    try:
        for place in _documents(path, text):
            for item in _items(place):
                kind = item.value.get("kind")
                if isinstance(kind, str):
                    found.documents.setdefault(kind, []).append(item)
    except InputError as error:
        if alone:
            raise
        found.skipped.append(str(error))


def _documents(path: str, text: str) -> Iterator[Place]:
    """Each document of a file."""
    if text.lstrip()[:1] == "{":
        yield parse_document(text, path if path.endswith(".json") else f"{path}.json")
        return
    for part in _MARKER.split(text):
        if part.strip() and any(line.strip() and not line.lstrip().startswith("#") for line in part.splitlines()):
            yield parse_document(part, path)


def _items(place: Place) -> Iterator[Place]:
    """A list's objects, or the one object that a document is."""
    value: Mapping[str, Any] = place.value
    items = value.get("items")
    kind = value.get("kind")
    if not isinstance(items, list):
        yield place
        return
    single = kind.removesuffix("List") if isinstance(kind, str) else ""
    for item in place.child("items").list():
        if isinstance(item.value, dict):
            if single and "kind" not in item.value:
                item.value["kind"] = single
            yield item
