"""What Cozystack brings: its charts' defaults and tables, read from the data that comes along.

Source: the head of `fixtures/cozystack/v1.6.2.yaml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from simulator.reading import read_document
from simulator.scenario import fixtures

NEWEST: Final = "v1.6.2"


@dataclass(frozen=True, slots=True)
class Cozystack:
    """A release. Documents are as Helm has them."""

    release: str
    values: Mapping[str, Any]
    """The platform chart's defaults, as far as they decide anything here."""
    feature_gates: tuple[str, ...]
    pci_host_devices: tuple[Mapping[str, Any], ...]
    mediated_devices: tuple[Mapping[str, Any], ...]
    gpu_operator_variants: Mapping[str, Mapping[str, Any]]
    cluster_policy: Mapping[str, Any]
    """What the GPU Operator's chart makes of its own defaults and of those of every variant."""
    gpu_operator_objects: tuple[str, ...]
    """Kind/name of everything that chart makes, in any variant."""


def releases() -> tuple[str, ...]:
    """The releases that are known."""
    return tuple(sorted(path.stem for path in (fixtures() / "cozystack").glob("v*.yaml")))


@cache
def cozystack(release: str = NEWEST) -> Cozystack:
    """What a release brings. Raises InputError for an unknown one."""
    document = read_document(fixtures() / "cozystack" / f"{release}.yaml").value
    operator = document["gpu_operator"]
    return Cozystack(
        release,
        document["values"],
        tuple(document["feature_gates"]),
        tuple(document["pci_host_devices"]),
        tuple(document["mediated_devices"]),
        operator["variants"],
        operator["cluster_policy"],
        tuple(operator["objects"]),
    )
