"""A scenario from what a bundle holds: the node and what is on it, driver-manager's settings, the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.reading import FORMAT, Place
from simulator.scenario import Scenario, read_scenario
from simulator.snapshot.kubernetes import cluster_of, node_of
from simulator.snapshot.sorting import Found


@dataclass(frozen=True, slots=True)
class Made:
    """A scenario, and what it rests on."""

    scenario: Scenario
    unseen: tuple[str, ...]
    assumed: tuple[str, ...]
    logs: Mapping[str, str]
    cluster_policy: Mapping[str, Any] | None


def make_scenario(found: Found, node_name: str = "") -> Made:
    """The scenario of one node. Raises InputError."""
    node = node_of(found, node_name)
    name = node.value["metadata"]["name"]
    document = {
        "format": FORMAT,
        "env": {"NODE_NAME": name},
        "host": {},
        "cluster": cluster_of(found, node),
    }
    policies = found.of("ClusterPolicy")
    return Made(
        read_scenario(Place(document, found.name), Path()),
        (),
        (),
        found.logs,
        policies[0].value if policies else None,
    )
