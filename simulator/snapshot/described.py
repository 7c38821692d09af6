"""Nodes as `kubectl describe` prints them, and the labels in a must-gather of the GPU Operator: objects again, as far as they tell.

Source: kubectl pkg/describe/describe.go `describeNode`; gpu-operator hack/must-gather.sh (gpu_nodes.descr, gpu_nodes.labels).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from simulator.reading import Place
from simulator.snapshot.documents import Object

_FIELD: Final = re.compile(r"(?P<name>[A-Z][\w -]*):(?:\s+(?P<value>\S.*)|\s*)")
_NODES: Final = re.compile(r"^Name:[ ]{8,}\S+[ ]*\nRoles:[ ]+\S", re.MULTILINE)
_NODE_START: Final = re.compile(r"^Name:[ ]+", re.MULTILINE)
_LABELS: Final = re.compile(r"\A\s*[\w.-]+\n- [\w./-]+=")
_LABEL: Final = re.compile(r"- (?P<key>[\w./-]+)=(?P<value>[\w.-]*)")
_POD: Final = re.compile(r"  (?P<namespace>[a-z0-9-]+)[ ]+(?P<name>[a-z0-9.-]+)[ ]+\d")
_ALLOCATED: Final = re.compile(r"  (?P<resource>nvidia\.com/[\w.-]{1,63})[ ]+(?P<requests>\d{1,4})(?!\S)")
_INFO: Final = {"Kernel Version": "kernelVersion", "OS Image": "osImage", "Architecture": "architecture"}


def describes_nodes(text: str) -> bool:
    """Is this what `kubectl describe nodes` prints?"""
    return _NODES.search(text[:4096]) is not None


def lists_labels(text: str) -> bool:
    """Is this a must-gather's list of nodes and their labels?"""
    return _LABELS.match(text[:4096]) is not None


def described_objects(text: str, file: str) -> Iterator[Object]:
    """The nodes of a description, and the pods that it lists, of which nothing but the names is told."""
    starts = [match.start() for match in _NODE_START.finditer(text)]
    for index, start in enumerate(starts):
        end = starts[index + 1] if index + 1 < len(starts) else len(text)
        yield from _described(text[start:end], file)


def _described(text: str, file: str) -> Iterator[Object]:
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if match := _FIELD.fullmatch(line):
            lines = sections.setdefault(match["name"], [match["value"] or ""])
        elif line.startswith(" "):
            lines.append(line)
    name = "".join(sections.get("Name", ())).strip()
    labels = _pairs(sections.get("Labels", ()), "=")
    info = _pairs(sections.get("System Info", ()), ":")
    allocated = sections.get("Allocated resources", ())
    node = {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": _pairs(sections.get("Annotations", ()), ":")},
        "spec": {"unschedulable": "".join(sections.get("Unschedulable", ())).strip() == "true"},
        "status": {
            "capacity": _pairs(sections.get("Capacity", ()), ":"),
            "allocated": {match["resource"]: match["requests"] for match in map(_ALLOCATED.match, allocated) if match},
            "nodeInfo": {key: info[word] for word, key in _INFO.items() if word in info},
        },
    }
    yield _object(node, file, None)
    for line in sections.get("Non-terminated Pods", ()):
        if match := _POD.match(line):
            metadata = {"namespace": match["namespace"], "name": match["name"]}
            pod = {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": name}, "isListed": True}
            yield _object(pod, file, name)


def _pairs(lines: list[str] | tuple[str, ...], sign: str) -> dict[str, str]:
    pairs = (line.strip().partition(sign) for line in lines)
    return {key.strip(): value.strip() for key, found, value in pairs if found and key.strip()}


def labelled_objects(text: str, file: str) -> Iterator[Object]:
    """The nodes of a list of labels."""
    for part in re.split(r"\n\s*\n", text.strip()):
        name, *lines = part.strip().splitlines() or [""]
        labels = {match["key"]: match["value"] for line in lines if (match := _LABEL.fullmatch(line.strip()))}
        if labels:
            yield _object({"kind": "Node", "metadata": {"name": name.strip(), "labels": labels}}, file, None)


def _object(value: dict[str, Any], file: str, node: str | None) -> Object:
    return Object(value["kind"], file, node, place=Place(value, file), name=value["metadata"]["name"])
