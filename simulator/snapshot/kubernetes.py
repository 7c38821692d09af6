"""Objects of the Kubernetes API -> a cluster's document, as cluster files have it. Only what a run can see is taken.

Everything comes from outside and is untyped: `texts`, `mapping` and their like take what is of the right type and let the
rest go, as an API server would not have taken it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from simulator.reading import FORMAT, InputError, Place, nearest
from simulator.snapshot.sorting import Found

_KEPT_ANNOTATIONS: Final = re.compile(r"(.*\.)?nvidia\.com/.*|kubernetes\.io/config\.(mirror|source)")
_QUANTITY: Final = re.compile(r"[0-9.]+[A-Za-z]*")


def mapping(value: Any, key: str) -> dict[str, Any]:
    """The mapping under a key, empty if there is none."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, dict) else {}


def elements(value: Any, key: str) -> list[dict[str, Any]]:
    """The mappings in the list under a key."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def text(value: Any, key: str) -> str:
    """The text under a key, "" if there is none."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, str) else ""


def texts(value: Any, key: str) -> dict[str, str]:
    """The mapping of texts under a key."""
    found: dict[Any, Any] = mapping(value, key)
    return {name: item for name, item in found.items() if isinstance(name, str) and isinstance(item, str)}


def node_of(found: Found, name: str) -> Place:
    """The node that is meant: the one that is named, else the only one, else the only one with GPUs. Raises InputError."""
    nodes = {text(mapping(place.value, "metadata"), "name"): place for place in found.of("Node")}
    nodes.pop("", None)
    if name:
        if name not in nodes:
            raise InputError(found.name, "", f'holds no node "{name}"', nearest(name, nodes) if nodes else "save the node, too")
        return nodes[name]
    if not nodes:
        raise InputError(found.name, "", "holds no node", "add the output of `kubectl get node NAME -o yaml`")
    with_gpus = [other for other, place in nodes.items() if has_gpus(place.value)]
    candidates = with_gpus if len(nodes) > 1 else [*nodes]
    if len(candidates) != 1:
        known = ", ".join(sorted(candidates or nodes)[:10])
        raise InputError(found.name, "", f"holds {len(nodes)} nodes", f"say which with --node: {known}")
    return nodes[candidates[0]]


def has_gpus(node: Mapping[str, Any]) -> bool:
    """Do its labels say that there are NVIDIA GPUs?"""
    labels = texts(mapping(node, "metadata"), "labels")
    found = re.compile(r"feature\.node\.kubernetes\.io/pci-(030[02]_)?10de(_.*)?\.present|nvidia\.com/gpu\.present")
    return any(found.fullmatch(label) and value == "true" for label, value in labels.items())


def cluster_of(found: Found, node: Place) -> dict[str, Any]:
    """The document of the cluster that has this node."""
    name = node.value["metadata"]["name"]
    out: dict[str, Any] = {"format": FORMAT, "node": _node(node.value)}
    pods = [place.value for place in found.of("Pod") if text(mapping(place.value, "spec"), "nodeName") == name]
    out["pods"] = [_pod(pod) for pod in pods]
    return out


def _node(node: Mapping[str, Any]) -> dict[str, Any]:
    metadata, spec = mapping(node, "metadata"), mapping(node, "spec")
    return {
        "name": metadata["name"],
        "labels": texts(metadata, "labels"),
        "annotations": _annotations(metadata),
        "unschedulable": spec.get("unschedulable") is True,
    }


def _annotations(metadata: Mapping[str, Any]) -> dict[str, str]:
    return {key: value for key, value in texts(metadata, "annotations").items() if _KEPT_ANNOTATIONS.fullmatch(key)}


def _pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    metadata, spec, status = (mapping(pod, key) for key in ("metadata", "spec", "status"))
    out: dict[str, Any] = {
        "namespace": text(metadata, "namespace") or "default",
        "name": text(metadata, "name"),
        "labels": texts(metadata, "labels"),
        "annotations": _annotations(metadata),
        "node_selector": texts(spec, "nodeSelector"),
        "phase": text(status, "phase") or "Unknown",
        "containers": [_container(container) for container in elements(spec, "containers")],
        "init_containers": [_container(container) for container in elements(spec, "initContainers")],
        "empty_dir": any("emptyDir" in volume for volume in elements(spec, "volumes")),
        "terminating": "deletionTimestamp" in metadata,
    }
    owners = elements(metadata, "ownerReferences")
    if owners:
        owner = next((owner for owner in owners if owner.get("controller") is True), owners[0])
        out["owner"] = {
            "kind": text(owner, "kind"),
            "name": text(owner, "name"),
            "controller": owner.get("controller") is True,
            "api_version": text(owner, "apiVersion"),
        }
    return out


def _container(container: Mapping[str, Any]) -> dict[str, Any]:
    resources = mapping(container, "resources")
    return {kind: _quantities(resources, kind) for kind in ("limits", "requests")}


def _quantities(resources: Mapping[str, Any], kind: str) -> dict[str, str]:
    return {name: str(value) for name, value in mapping(resources, kind).items() if _QUANTITY.fullmatch(str(value))}
