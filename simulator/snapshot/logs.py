"""The logs of a bundle that may be of this node's driver-manager, and what they say of a host at which nobody looked.

Whose a log is its lines say (`kubectl logs --prefix`), else its file's name, by the pods that were saved; else the nodes that it names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from simulator import messages as m
from simulator.manager.charts import DRIVER_MANAGER_CONTAINER
from simulator.snapshot.contents import Contents
from simulator.snapshot.findings import Findings
from simulator.snapshot.kubernetes import Scene, full_name
from simulator.snapshot.secrets import without_secrets
from simulator.snapshot.values import text

_PREFIX: Final = re.compile(r"\[pod/(?P<pod>[\w.-]{1,253})/(?P<container>[\w.-]{1,253})\]")
_WORD: Final = re.compile(r"(?<![\w.-])[a-z0-9][a-z0-9.-]{0,252}(?![\w-])")
_MOST_WORDS, _MOST_PARTS = 8, 24
_LARGEST_LOGS: Final = 8 << 20
"""Characters of all logs together; of what is longer the end is kept."""
_DETECTED: Final = re.compile(re.escape(m.HOST_DRIVER_DETECTED.partition("%")[0]) + r"(?P<said>[^\n\\\"]{0,256})")
_VERSION: Final = re.compile(r"\d+(\.\d+)+")


@dataclass(frozen=True, slots=True)
class HostDriver:
    """What a log says that nvidia-smi said in the host's root, "" if that is not told."""

    said: str
    log: str

    @property
    def version(self) -> str:
        """The driver's version, "" if it was none that was said."""
        return self.said if _VERSION.fullmatch(self.said) else ""


@dataclass(slots=True)
class NodeLogs:
    """The logs, by "namespace/pod/container" where that can be told, else by file. Of those of `unsure` nothing says the node."""

    texts: dict[str, str] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)
    _left: int = _LARGEST_LOGS
    _again: Counter[str] = field(default_factory=Counter)

    def add(self, key: str, log: str, findings: Findings) -> str:
        """Keep a log, what looks like a secret left out; gives its key."""
        if key in self.texts:
            self._again[key] += 1
            return self.add(f"{key}+{self._again[key]}", log, findings)
        kept = log[-self._left :] if self._left else ""
        self._left -= len(kept)
        if kept != log:
            findings.unseen(f"the beginning of log {key}: there is more than is read")
        self.texts[key] = without_secrets(kept)
        if self.texts[key] != kept:
            findings.unseen(f"a part of log {key}: it looks like a secret")
        return key

    def host_driver(self) -> HostDriver | None:
        """The driver that the last run of some log found on the host."""
        for key, log in self.texts.items():
            if key in self.unsure:
                continue
            last = log[max(log.rfind(m.STARTING), 0) :]
            if said := _DETECTED.search(last):
                return HostDriver(said["said"].strip(), key)
            if m.PRE_INSTALLED in last:
                return HostDriver("", key)
        return None


def node_logs(found: Contents, scene: Scene, findings: Findings) -> NodeLogs:
    """The logs that are this node's, or may be."""
    here = {text(pod, "metadata", "name"): full_name(pod) for pod in scene.pods}
    known = {*here, *(item.name for item in found.objects if item.kind == "Pod")} - {""}
    nodes = {text(place.value, "metadata", "name") for place in found.of("Node")} - {"", scene.name}
    logs = NodeLogs()
    for file, whole in found.logs.items():
        for pod, log in _by_pod(file, whole, known):
            if pod in here:
                logs.add(f"{here[pod]}/{DRIVER_MANAGER_CONTAINER}", log, findings)
            elif pod not in known:
                _add_stray(logs, file, pod, log, (scene.name, nodes), findings)
    return logs


def _by_pod(file: str, log: str, known: set[str]) -> Iterator[tuple[str, str]]:
    """What driver-manager logged in each pod; in "" where nothing tells the pod."""
    if not any(map(_PREFIX.match, log.split("\n"))):
        yield max(_spans(file) & known, key=len, default=""), log
        return
    parts: dict[str, list[str]] = {}
    lines: list[str] | None = None
    for line in log.splitlines(keepends=True):
        if match := _PREFIX.match(line):
            lines = parts.setdefault(match["pod"], []) if match["container"] == DRIVER_MANAGER_CONTAINER else None
        if lines is not None:
            lines.append(line)
    yield from ((pod, "".join(lines)) for pod, lines in parts.items())


def _spans(file: str) -> set[str]:
    """What in a file's name, with the folders that it is in, could be the name of a pod."""
    out = set()
    for word in re.findall(r"[a-z0-9.-]+", file)[-_MOST_WORDS:]:
        edges = [*(match.start() for match in re.finditer(r"[.-]|\Z", word))][:_MOST_PARTS]
        starts = [0, *(edge + 1 for edge in edges)]
        out |= {word[start:end] for start in starts for end in edges if start < end}
    return out


def _add_stray(logs: NodeLogs, file: str, pod: str, log: str, nodes: tuple[str, set[str]], findings: Findings) -> None:
    """Keep a log of no pod that was saved, unless it names another node and not this one."""
    node, others = nodes
    whose = f" of pod {pod}" if pod else ""
    if not others:
        logs.add(file, log, findings)
        if pod:
            findings.assumed(f"the log {file}{whose}, which was not saved, is of this node")
        return
    named = {match[0].rstrip(".-") for match in _WORD.finditer(log)}
    is_ours, is_theirs = node in named, not named.isdisjoint(others)
    if is_theirs and not is_ours:
        return
    key = logs.add(file, log, findings)
    if not is_ours or is_theirs:
        logs.unsure.add(key)
        findings.unseen(f"whose the log {file}{whose} is: {len(others) + 1} nodes were saved, and nothing says of which it is")


__all__ = ["HostDriver", "NodeLogs", "node_logs"]
