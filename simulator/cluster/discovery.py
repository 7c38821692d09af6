"""What the API server says of itself: version, groups, resources, and as much OpenAPI as kubectl asks for.

The OpenAPI documents name no fields, so a client that validates against them finds nothing to object to; they do say which
query parameters a PATCH takes, which is what kubectl looks up before it sends one.

Source: k8s.io/api/apidiscovery/v2; k8s.io/apimachinery/pkg/apis/meta/v1 (APIGroup, APIResource);
github.com/google/gnostic-models/openapiv2/OpenAPIv2.proto.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from simulator.cluster.kinds import KINDS, POD, Kind

VERSION: Final = {
    "major": "1",
    "minor": "34",
    "gitVersion": "v1.34.0+dmsim",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "linux/amd64",
}
"""The version of Kubernetes whose words are spoken here."""

AGGREGATED: Final = "APIGroupDiscoveryList"
OPENAPI_V2_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""What kubectl asks for."""
OPENAPI_V2_ANSWERED: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""What it is answered with, as by a real server: Go reads no media type with an @ in it."""
_VERBS: Final = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_STATUS_VERBS: Final = ["get", "patch", "update"]
_POLICY: Final = "policy"

Document = Mapping[str, Any]


@lru_cache(maxsize=256)
def document(path: str, eviction: str | None) -> Document | None:
    """The document at a path; None if there is none. `eviction` is the group version of pods/eviction, if there is one."""
    match path.strip("/").split("/"):
        case ["version"]:
            return VERSION
        case ["api"]:
            return {
                "kind": "APIVersions",
                "apiVersion": "v1",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": [],
            }
        case ["apis"]:
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name, eviction) for name in _groups(eviction)]}
        case ["apis", group] if group in _groups(eviction):
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, eviction)}
        case ["api", "v1"]:
            return _resource_list("v1", eviction)
        case ["apis", group, version] if version in _versions(group, eviction):
            return _resource_list(f"{group}/{version}", eviction)
        case ["openapi", "v2"]:
            return {"swagger": "2.0", "info": _INFO, "paths": {}}
        case ["openapi", "v3"]:
            paths = {_root(version): {"serverRelativeURL": f"/openapi/v3/{_root(version)}"} for version in _group_versions()}
            return {"paths": paths}
        case ["openapi", "v3", *rest]:
            return next((_openapi_v3(version) for version in _group_versions() if _root(version) == "/".join(rest)), None)
        case [""]:
            return {
                "paths": ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
            }
        case _:
            return None


@lru_cache(maxsize=16)
def aggregated(path: str, version: str, eviction: str | None) -> Document | None:
    """Everything below /api or /apis in one document (`APIGroupDiscoveryList`), None elsewhere."""
    names = {"/api": [""], "/apis": _groups(eviction)}.get(path.rstrip("/"))
    if names is None:
        return None
    items = [
        {
            "metadata": {"name": name} if name else {},
            "versions": [
                {
                    "version": each,
                    "freshness": "Current",
                    "resources": [_aggregated(kind, eviction) for kind in KINDS if (kind.group, kind.version) == (name, each)],
                }
                for each in (_versions(name, eviction) if name else ["v1"])
            ],
        }
        for name in names
    ]
    return {"kind": AGGREGATED, "apiVersion": f"apidiscovery.k8s.io/{version}", "metadata": {}, "items": items}


def _aggregated(kind: Kind, eviction: str | None) -> dict[str, Any]:
    out: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": _VERBS,
    }
    if kind.short_names:
        out["shortNames"] = list(kind.short_names)
    if kind.categories:
        out["categories"] = list(kind.categories)
    subresources = [
        {
            "subresource": entry["name"].partition("/")[2],
            "responseKind": {
                "group": entry.get("group", kind.group),
                "version": entry.get("version", kind.version),
                "kind": entry["kind"],
            },
            "verbs": entry["verbs"],
        }
        for entry in _subresources(kind, eviction)
    ]
    return {**out, "subresources": subresources} if subresources else out


def _groups(eviction: str | None) -> list[str]:
    names = {kind.group for kind in KINDS if kind.group}
    return sorted(names | {_POLICY} if eviction else names)


def _versions(group: str, eviction: str | None) -> list[str]:
    versions = {kind.version for kind in KINDS if kind.group == group}
    if group == _POLICY and eviction:
        versions.add(eviction.partition("/")[2])
    return sorted(versions)


def _group_versions() -> Iterable[str]:
    return dict.fromkeys(kind.api_version for kind in KINDS)


def _group(name: str, eviction: str | None) -> dict[str, Any]:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in _versions(name, eviction)]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource_list(group_version: str, eviction: str | None) -> dict[str, Any]:
    resources: list[dict[str, Any]] = []
    for kind in KINDS:
        if kind.api_version == group_version:
            entry: dict[str, Any] = {
                "name": kind.plural,
                "singularName": kind.singular,
                "namespaced": kind.namespaced,
                "kind": kind.kind,
                "verbs": _VERBS,
            }
            if kind.short_names:
                entry["shortNames"] = list(kind.short_names)
            if kind.categories:
                entry["categories"] = list(kind.categories)
            resources += [entry, *_subresources(kind, eviction)]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}


def _subresources(kind: Kind, eviction: str | None) -> list[dict[str, Any]]:
    out = []
    for name in kind.subresources:
        entry: dict[str, Any] = {"name": f"{kind.plural}/{name}", "singularName": "", "namespaced": kind.namespaced}
        match name:
            case "status":
                entry |= {"kind": kind.kind, "verbs": _STATUS_VERBS}
            case "eviction" if eviction:
                group, _, version = eviction.partition("/")
                entry |= {"group": group, "version": version, "kind": "Eviction", "verbs": ["create"]}
            case "eviction":
                continue
            case "log":
                entry |= {"kind": POD.kind, "verbs": ["get"]}
            case _:
                entry |= {"kind": f"Pod{name.title()}Options", "verbs": ["create", "get"]}
        out.append(entry)
    return out


# --- OpenAPI ------------------------------------------------------------------------------------------------------

_INFO: Final = {"title": "Kubernetes", "version": VERSION["gitVersion"]}
_PATCH_PARAMETERS: Final = [
    {"name": name, "in": "query", "schema": {"type": "string"}} for name in ("dryRun", "fieldManager", "fieldValidation", "force")
]


def _root(group_version: str) -> str:
    return f"apis/{group_version}" if "/" in group_version else f"api/{group_version}"


def _openapi_v3(group_version: str) -> dict[str, Any]:
    paths = {}
    for kind in KINDS:
        if kind.api_version == group_version:
            middle = "/namespaces/{namespace}" if kind.namespaced else ""
            paths[f"/{_root(group_version)}{middle}/{kind.plural}/{{name}}"] = {
                "patch": {
                    "parameters": _PATCH_PARAMETERS,
                    "responses": {"200": {"description": "OK"}},
                    "x-kubernetes-action": "patch",
                    "x-kubernetes-group-version-kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
                }
            }
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": {}}}


def openapi_v2_protobuf() -> bytes:
    """The OpenAPI v2 document as kubectl before 1.27 reads it: `Document{swagger, info, paths, definitions}`."""
    info = _field(1, _INFO["title"].encode()) + _field(2, _INFO["version"].encode())
    return _field(1, b"2.0") + _field(2, info) + _field(8, b"") + _field(9, b"")


def _field(number: int, value: bytes) -> bytes:
    assert len(value) < 0x80  # one byte of length is enough here
    return bytes([number << 3 | 2, len(value)]) + value
