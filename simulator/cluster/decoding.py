"""How an API server decodes an object into Go's structs, as far as anybody here reads their fields.

A value of another type is refused, null is as if it were not there, and the spec and status of Kubernetes' own kinds are
always there. So whoever reads an object of the store finds what it expects, whatever a client has sent.

Source: k8s.io/api/core/v1, apps/v1 and resource/v1 (types.go), k8s.io/apimachinery/pkg/apis/meta/v1/types.go;
encoding/json (`UnmarshalTypeError`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from simulator.cluster.kinds import Kind
from simulator.cluster.status import bad_request

_STRUCTS: Final[Mapping[str, Mapping[str, str]]] = {
    "ObjectMeta": {
        "name": "string",
        "generateName": "string",
        "namespace": "string",
        "uid": "string",
        "resourceVersion": "string",
        "creationTimestamp": "string",
        "deletionTimestamp": "string",
        "labels": "map[string]string",
        "annotations": "map[string]string",
        "finalizers": "[]string",
        "ownerReferences": "[]v1.OwnerReference",
    },
    "OwnerReference": {"apiVersion": "string", "kind": "string", "name": "string", "uid": "string", "controller": "bool"},
    "NodeSpec": {"unschedulable": "bool"},
    "PodSpec": {
        "nodeName": "string",
        "nodeSelector": "map[string]string",
        "containers": "[]v1.Container",
        "initContainers": "[]v1.Container",
        "volumes": "[]v1.Volume",
        "resourceClaims": "[]v1.PodResourceClaim",
    },
    "Container": {"name": "string", "image": "string", "resources": "v1.ResourceRequirements"},
    "ResourceRequirements": {"limits": "v1.ResourceList", "requests": "v1.ResourceList"},
    "PodResourceClaim": {"name": "string", "resourceClaimName": "string", "resourceClaimTemplateName": "string"},
    "PodStatus": {"phase": "string", "resourceClaimStatuses": "[]v1.PodResourceClaimStatus"},
    "PodResourceClaimStatus": {"name": "string", "resourceClaimName": "string"},
    "DaemonSetSpec": {},
    "NamespaceSpec": {},
    "ResourceClaimSpec": {},
    "ResourceClaimStatus": {"allocation": "v1.AllocationResult"},
    "AllocationResult": {"devices": "v1.DeviceAllocationResult"},
    "DeviceAllocationResult": {"results": "[]v1.DeviceRequestAllocationResult"},
    "DeviceRequestAllocationResult": {"driver": "string"},
}
"""Struct -> the Go types of those of its fields that are read here. One that does not stand here is any JSON object, and a kind
whose spec does not stand here need not have one."""
_SCALARS: Final = {"string": str, "bool": bool}


def decoded(kind: Kind, document: Mapping[str, Any]) -> dict[str, Any]:
    """The object as the server has it. Raises Refused."""
    parts = {name: f"v1.{kind.kind}{name.title()}" for name in ("spec", "status")}
    out = _struct(document, kind.kind, {"metadata": "v1.ObjectMeta", **parts}, "")
    always = ("metadata", *parts) if f"{kind.kind}Spec" in _STRUCTS else ("metadata",)
    return {**{name: {} for name in always}, **out}


def decoded_part(struct: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """A part of an object that is of a struct. Raises Refused."""
    return _struct(document, struct, _STRUCTS.get(struct, {}), "")


def _struct(found: Mapping[str, Any], name: str, fields: Mapping[str, str], path: str) -> dict[str, Any]:
    out = dict(found)
    for field, kind in fields.items():
        if out.get(field) is not None:
            out[field] = _value(out[field], kind, name, f"{path}.{field}" if path else field)
        else:
            out.pop(field, None)
    return out


def _value(value: Any, kind: str, struct: str, path: str) -> Any:
    """A value of a Go type. `struct` and `path` are the field's: Go names the innermost struct and the whole path."""
    if kind in _SCALARS:
        if not isinstance(value, _SCALARS[kind]):
            raise _mistyped(value, struct, path, kind)
        return value
    if kind.startswith("[]"):
        if not isinstance(value, list):
            raise _mistyped(value, struct, path, kind)
        return [_value(_zero(item, kind[2:]), kind[2:], struct, path) for item in value]
    if not isinstance(value, Mapping):
        raise _mistyped(value, struct, path, kind)
    if kind.startswith("map[string]"):
        inner = kind.removeprefix("map[string]")
        return {key: _value(_zero(item, inner), inner, struct, path) for key, item in value.items()}
    name = kind.removeprefix("v1.")
    return _struct(value, name, _STRUCTS.get(name, {}), path)


def _zero(item: Any, kind: str) -> Any:
    """An element that is null is Go's zero value."""
    return _SCALARS.get(kind, dict)() if item is None else item


def _mistyped(value: Any, struct: str, path: str, expected: str) -> Exception:
    return bad_request(f"json: cannot unmarshal {_go_type(value)} into Go struct field {struct}.{path} of type {expected}")


def _go_type(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
