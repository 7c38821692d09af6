"""Patches as the API server applies them: strategic merge, JSON merge (RFC 7386), JSON patch (RFC 6902).

Pure: a document and a patch give a new document; neither is changed. Strategic merge knows the merge keys of the lists
that nodes and pods have; other lists are replaced.

Source: k8s.io/apimachinery/pkg/util/strategicpatch; k8s.io/api/core/v1 (patchMergeKey tags).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from simulator.gocompat import GoError

STRATEGIC: Final = "application/strategic-merge-patch+json"
MERGE: Final = "application/merge-patch+json"
JSON: Final = "application/json-patch+json"
APPLY: Final = "application/apply-patch+yaml"
"""Server-side apply. Who owns which field is not kept here: the caller merges."""
CONTENT_TYPES: Final = (JSON, MERGE, STRATEGIC, APPLY)

_MERGE_KEYS: Final = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "ports": "containerPort",
    "resourceClaims": "name",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
_MERGED_PRIMITIVES: Final = frozenset({"finalizers", "podCIDRs"})


def apply(content_type: str, document: Mapping[str, Any], patch: Any) -> dict[str, Any]:
    """Apply a patch of a content type. Raises GoError for one that cannot be applied."""
    if content_type == JSON:
        return _json_patch(document, patch)
    if not isinstance(patch, Mapping):
        raise GoError("the patch is no JSON object")
    if content_type == MERGE:
        return _merge(document, patch)
    return _strategic(document, patch)


def _merge(document: Any, patch: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(document) if isinstance(document, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, Mapping):
            out[key] = _merge(out.get(key), value)
        else:
            out[key] = value
    return out


def _strategic(document: Any, patch: Mapping[str, Any]) -> dict[str, Any]:
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):  # what a client sends may be no key of a set
        raise GoError(f"unknown patch directive {directive}")
    out = dict(document) if isinstance(document, Mapping) else {}
    if "$retainKeys" in patch:
        retained = _list(patch, "$retainKeys")
        out = {key: value for key, value in out.items() if key in retained}
    for key, value in patch.items():
        if key in {"$patch", "$retainKeys"} or key.startswith("$setElementOrder/"):
            continue
        if key.startswith("$deleteFromPrimitiveList/"):
            name, gone, before = key.partition("/")[2], _list(patch, key), out.get(key.partition("/")[2])
            out[name] = [item for item in before if item not in gone] if isinstance(before, list) else []
        elif value is None:
            out.pop(key, None)
        elif isinstance(value, Mapping):
            out[key] = _strategic(out.get(key), value)
        elif isinstance(value, list):
            out[key] = _strategic_list(key, out.get(key), value)
        else:
            out[key] = value
    return out


def _list(patch: Mapping[str, Any], directive: str) -> list[Any]:
    value = patch[directive]
    if not isinstance(value, list):
        raise GoError(f"the directive {directive} is no list")
    return value


def _strategic_list(name: str, current: Any, patch: list[Any]) -> list[Any]:
    before = list(current) if isinstance(current, list) else []
    if name in _MERGED_PRIMITIVES:
        return before + [item for item in patch if item not in before]
    merge_key = _MERGE_KEYS.get(name)
    if merge_key is None or not all(isinstance(item, Mapping) for item in (*before, *patch)):
        return list(patch)
    if any(item.get("$patch") == "replace" and len(item) == 1 for item in patch):
        return [item for item in patch if "$patch" not in item]
    for item in patch:
        if merge_key not in item:
            raise GoError(f"map: {dict(item)} does not contain declared merge key: {merge_key}")
        found = next((index for index, old in enumerate(before) if old.get(merge_key) == item[merge_key]), None)
        if item.get("$patch") == "delete":
            if found is not None:
                del before[found]
        elif found is None:
            before.append({key: value for key, value in item.items() if key != "$patch"})
        else:
            before[found] = _strategic(before[found], item)
    return before


def _json_patch(document: Mapping[str, Any], operations: Any) -> dict[str, Any]:
    if not isinstance(operations, list):
        raise GoError("a JSON patch is a list of operations")
    out: Any = copy.deepcopy(dict(document))
    for operation in operations:
        out = _operate(out, operation)
    if not isinstance(out, dict):
        raise GoError("the patch leaves no JSON object")
    return out


def _operate(document: Any, operation: Any) -> Any:
    if not isinstance(operation, Mapping) or not isinstance(operation.get("path"), str):
        raise GoError("an operation of a JSON patch lacks its path")
    name, path = operation.get("op"), operation["path"]
    if name in ("add", "replace", "test") and "value" not in operation:  # it may be no key of a set
        raise GoError(f"the operation {name} at {path} lacks its value")
    match name:
        case "add":
            return _put(document, path, copy.deepcopy(operation["value"]), insert=True)
        case "replace":
            _get(document, path)
            return _put(document, path, copy.deepcopy(operation["value"]), insert=False)
        case "remove":
            return _drop(document, path)
        case "test":
            if _get(document, path) != operation["value"]:
                raise GoError(f"testing value {path} failed: test failed")
            return document
        case "move" | "copy":
            source = operation.get("from")
            if not isinstance(source, str):
                raise GoError(f"the operation {name} at {path} lacks its from")
            value = copy.deepcopy(_get(document, source))
            if name == "move":
                document = _drop(document, source)
            return _put(document, path, value, insert=True)
        case _:
            raise GoError(f"unexpected kind: {name}")


def _tokens(path: str) -> list[str]:
    if path == "":
        return []
    if not path.startswith("/"):
        raise GoError(f"{path} is no JSON pointer")
    return [token.replace("~1", "/").replace("~0", "~") for token in path[1:].split("/")]


def _get(document: Any, path: str) -> Any:
    for token in _tokens(path):
        document = document[_index(document, token, path)] if isinstance(document, list) else _member(document, token, path)
    return document


def _member(document: Any, token: str, path: str) -> Any:
    if not isinstance(document, dict) or token not in document:
        raise GoError(f"there is nothing at {path}")
    return document[token]


def _index(document: list[Any], token: str, path: str, *, end: bool = False) -> int:
    if end and token == "-":
        return len(document)
    if not token.isascii() or not token.isdigit() or len(token) > 9 or int(token) >= len(document) + end:
        raise GoError(f"there is no element {token} at {path}")
    return int(token)


def _parent(document: Any, path: str) -> tuple[Any, str]:
    tokens = _tokens(path)
    parent = document
    for token in tokens[:-1]:
        parent = parent[_index(parent, token, path)] if isinstance(parent, list) else _member(parent, token, path)
    return parent, tokens[-1]


def _put(document: Any, path: str, value: Any, *, insert: bool) -> Any:
    if path == "":
        return value
    parent, token = _parent(document, path)
    if isinstance(parent, list):
        index = _index(parent, token, path, end=insert)
        if insert:
            parent.insert(index, value)
        else:
            parent[index] = value
    elif isinstance(parent, dict):
        parent[token] = value
    else:
        raise GoError(f"there is nothing at {path}")
    return document


def _drop(document: Any, path: str) -> Any:
    if path == "":
        raise GoError("the whole document cannot be removed")
    _get(document, path)
    parent, token = _parent(document, path)
    if isinstance(parent, list):
        del parent[_index(parent, token, path)]
    else:
        del parent[token]
    return document
