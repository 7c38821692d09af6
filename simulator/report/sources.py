"""Where each method of a resolved flow comes from: the named change that defined it last, and those it stands over."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import NamedTuple

from simulator.manager.kubernetes import KubeClient
from simulator.manager.releases import Flow, ShellFlow
from simulator.manager.shell.bash import Bash
from simulator.manager.shell.script import Script
from simulator.manager.steps import DriverManager


class StepSource(NamedTuple):
    """A method of a resolved flow, and the change that defined it last ("" for v0.9.0's own)."""

    name: str
    change: str
    summary: str
    over: tuple[str, ...] = ()
    """The changes that defined it before, newest first; "" for v0.9.0."""


def resolved_steps(resolved: Flow) -> list[StepSource]:
    """The steps of a flow in upstream's order, each with the named change it comes from."""
    return _sources(resolved.steps, DriverManager, {change.steps: change.name for change in resolved.changes if change.steps})


def resolved_script(resolved: ShellFlow) -> list[StepSource]:
    """The functions of a script in upstream's order, each with the named change it comes from."""
    return _sources(resolved.script, Script, {change.script: change.name for change in resolved.changes if change.script})


def resolved_client(resolved: Flow) -> list[StepSource]:
    """What the flow asks of the API server, each with the named change it comes from."""
    return _sources(resolved.client, KubeClient, {change.client: change.name for change in resolved.changes if change.client})


def _sources(resolved: type, base: type, owners: Mapping[type, str]) -> list[StepSource]:
    names = [
        name
        for name, function in inspect.getmembers(resolved, inspect.isfunction)
        if not name.startswith("_") and function.__module__ != Bash.__module__
    ]
    base_order = [name for name in vars(base) if name in names]
    out = []
    for name in (*base_order, *(name for name in names if name not in base_order)):
        definers = [cls for cls in resolved.__mro__ if name in vars(cls)]
        doc = inspect.getdoc(getattr(definers[0], name)) or inspect.getdoc(getattr(base, name, None)) or ""
        changes = [owners.get(cls, "") for cls in definers]
        out.append(StepSource(name, changes[0], doc.split("\n")[0], tuple(changes[1:])))
    return out
