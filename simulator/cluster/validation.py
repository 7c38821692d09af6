"""What an API server checks of an object before it takes it: types, names, labels, a pod's containers.

Far from everything a real one checks: what the fake itself relies on, and the mistakes people make.

Source: k8s.io/apimachinery/pkg/api/validation/objectmeta.go; k8s.io/kubernetes/pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from simulator.cluster.kinds import POD, Kind
from simulator.cluster.status import Problem, bad_request, invalid
from simulator.gocompat import quote
from simulator.selectors import label_key_errors, label_value_errors, subdomain_errors

_INVALID: Final = "FieldValueInvalid"
_REQUIRED: Final = "FieldValueRequired"
_TEXTS: Final = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
)


def metadata(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """An object's metadata, its types checked; null is as if it were not there. Raises Refused."""
    found = document.get("metadata") or {}
    if not isinstance(found, Mapping):
        raise bad_request(f"cannot restore struct from: {_go_type(found)}")
    out = {key: value for key, value in found.items() if value is not None}
    for name in _TEXTS:
        if not isinstance(out.get(name, ""), str):
            raise _mistyped(out[name], name, "string")
    for name in ("labels", "annotations"):
        texts = out.get(name, {})
        if not isinstance(texts, Mapping):
            raise _mistyped(texts, name, "map[string]string")
        for value in texts.values():
            if not isinstance(value, str):
                raise _mistyped(value, name, "string")
    if not _is_list_of(out.get("finalizers", []), str):
        raise _mistyped(out["finalizers"], "finalizers", "[]string")
    owners = out.get("ownerReferences", [])
    if not _is_list_of(owners, Mapping) or not all(isinstance(owner.get(key), str) for owner in owners for key in ("kind", "name")):
        raise _mistyped(owners, "ownerReferences", "[]v1.OwnerReference")
    return out


def _is_list_of(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


def _mistyped(value: Any, name: str, expected: str) -> Exception:
    return bad_request(
        f"json: cannot unmarshal {_go_type(value)} into Go struct field ObjectMeta.metadata.{name} of type {expected}"
    )


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


def check_parts(kind: Kind, document: Mapping[str, Any]) -> None:
    """Spec and status are objects. Raises Refused."""
    for name in ("spec", "status"):
        part = document.get(name, {})
        if not isinstance(part, Mapping):
            raise bad_request(
                f"json: cannot unmarshal {_go_type(part)} into Go struct field {kind.kind}.{name} of type {kind.kind}{name.title()}"
            )


def check_changed(kind: Kind, document: Mapping[str, Any], *, labels: bool = True) -> None:
    """An object that is to replace one: its types, and its labels' syntax if that is asked for. Raises Refused."""
    check_parts(kind, document)
    if kind is POD:
        _check_containers(document.get("spec") or {})
    problems = _label_problems(document["metadata"].get("labels") or {}) if labels else []
    if problems:
        raise invalid(kind, document["metadata"]["name"], problems)


def check_new(kind: Kind, document: Mapping[str, Any], *, labels: bool = True) -> None:
    """An object that is to be made, its labels' syntax if that is asked for. Raises Refused."""
    check_parts(kind, document)
    found = document["metadata"]
    name = found.get("name", "")
    problems = []
    if not name:
        problems.append(Problem("metadata.name", _REQUIRED, "Required value: name or generateName is required"))
    else:
        problems += [Problem("metadata.name", _INVALID, f"Invalid value: {quote(name)}: {text}") for text in subdomain_errors(name)]
    problems += _label_problems(found.get("labels") or {}) if labels else []
    if kind is POD:
        problems += _container_problems(document.get("spec") or {})
    if problems:
        raise invalid(kind, name, problems)


def _label_problems(labels: Mapping[str, str]) -> list[Problem]:
    return [problem for label in sorted(labels.items()) for problem in _problems_of(*label)]


@lru_cache(maxsize=4096)
def _problems_of(key: str, value: str) -> tuple[Problem, ...]:
    """What is wrong with one label. The same labels are checked with every change of an object."""
    return tuple(
        Problem("metadata.labels", _INVALID, f"Invalid value: {quote(text)}: {wrong}")
        for text, wrongs in ((key, label_key_errors(key)), (value, label_value_errors(value)))
        for wrong in wrongs
    )


def _check_containers(spec: Mapping[str, Any]) -> None:
    for name in ("containers", "initContainers"):
        if not _is_list_of(spec.get(name) or [], Mapping):
            raise bad_request(f"json: cannot unmarshal into Go struct field PodSpec.spec.{name} of type []v1.Container")


def _container_problems(spec: Mapping[str, Any]) -> list[Problem]:
    _check_containers(spec)
    if not spec.get("containers"):
        return [Problem("spec.containers", _REQUIRED, "Required value")]
    return [
        Problem(f"spec.containers[{index}].{key}", _REQUIRED, "Required value")
        for index, container in enumerate(spec["containers"])
        for key in ("name", "image")
        if not container.get(key)
    ]
