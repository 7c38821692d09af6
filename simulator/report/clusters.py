"""Clusters in words and as documents: what `dmsim clusters` prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from simulator.cluster.objects import ClusterSpec, Pod
from simulator.report.hosts import table

FORMAT: Final = 1


def listing(clusters: Iterable[ClusterSpec]) -> list[str]:
    """A line each: the name, what it is."""
    return table([("CLUSTER", "DESCRIPTION"), *((cluster.name, cluster.description) for cluster in clusters)])


def details(cluster: ClusterSpec) -> Iterator[str]:
    """One cluster: its node, the node's labels, its pods by the names that a sentence or a selector takes."""
    yield f"name         {cluster.name}"
    if cluster.description:
        yield f"description  {cluster.description}"
    node = cluster.node
    yield f"node         {'none' if node is None else node.name}{' (cordoned)' if node and node.unschedulable else ''}"
    if node is not None and node.labels:
        yield "labels"
        yield from (f"  {key}={value}" for key, value in node.labels.items())
    yield "pods" if cluster.pods else "pods         none"
    yield from (f"  {row}" for row in table([(_name(pod), _owner(pod), pod.phase) for pod in cluster.pods]))


def _name(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.name}"


def _owner(pod: Pod) -> str:
    return f"{pod.owner.kind}/{pod.owner.name}" if pod.owner else "no owner"


def listing_document(clusters: Iterable[ClusterSpec]) -> dict[str, Any]:
    """The named clusters."""
    return {"format": FORMAT, "clusters": [{"name": one.name, "description": one.description} for one in clusters]}


def details_document(cluster: ClusterSpec) -> dict[str, Any]:
    """One cluster."""
    node = cluster.node
    return {
        "format": FORMAT,
        "name": cluster.name,
        "description": cluster.description,
        "node": None if node is None else {"name": node.name, "labels": dict(node.labels), "unschedulable": node.unschedulable},
        "pods": [{"name": _name(pod), "owner": _owner(pod), "phase": pod.phase} for pod in cluster.pods],
    }
