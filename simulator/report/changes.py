"""What a run changed on the node and its host: two states side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from simulator.trace import State


class Difference(NamedTuple):
    """One difference: what kind of thing, and what happened to it."""

    subject: str
    what: str


def differences(before: State, after: State) -> list[Difference]:
    """Every difference, in a fixed order: labels, annotations, cordon, pods, modules, GPUs, mounts, files."""
    out: list[Difference] = []
    if before.node is not None and after.node is not None:
        out += _maps("label", before.node.labels, after.node.labels)
        out += _maps("annotation", before.node.annotations, after.node.annotations)
        if before.node.unschedulable != after.node.unschedulable:
            out.append(Difference("node", "cordoned" if after.node.unschedulable else "uncordoned"))
    out += (Difference("pod", f"{pod} is gone") for pod in before.pods if pod not in after.pods)
    out += (Difference("module", f"{name} is unloaded") for name in before.modules if name not in after.modules)
    out += (Difference("module", f"{name} is loaded") for name in after.modules if name not in before.modules)
    for address, driver in sorted(after.gpu_drivers.items()):
        was = before.gpu_drivers.get(address, "")
        if was != driver:
            out.append(Difference("gpu", f"{address}: {was or 'no driver'} -> {driver or 'no driver'}"))
    out += (Difference("mount", f"{path} is unmounted") for path in _missing(before.mounts, after.mounts))
    out += (
        Difference("file", f"{path} is {'there' if exists else 'removed'}")
        for path, exists in after.files.items()
        if before.files.get(path) != exists
    )
    return out


def _maps(subject: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[Difference]:
    out = []
    for key in sorted(before.keys() | after.keys()):
        was, now = before.get(key), after.get(key)
        if was != now:
            out.append(Difference(subject, f"{key}: {_shown(was)} -> {_shown(now)}"))
    return out


def _shown(value: str | None) -> str:
    return "absent" if value is None else f'"{value}"'


def _missing(before: tuple[str, ...], after: tuple[str, ...]) -> list[str]:
    left = list(after)
    out = []
    for path in before:
        if path in left:
            left.remove(path)
        else:
            out.append(path)
    return out
