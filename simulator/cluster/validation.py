"""What an API server checks of an object before it takes it: names, labels, a pod's containers.

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


def metadata(document: Mapping[str, Any]) -> dict[str, Any]:
    """A decoded object's metadata; null is as if it were not there. Raises Refused for an owner without kind or name."""
    out = {key: value for key, value in document["metadata"].items() if value is not None}
    for owner in out.get("ownerReferences", ()):
        for name in ("kind", "name"):
            if not owner.get(name):
                raise bad_request(f"metadata.ownerReferences.{name}: Required value: must not be empty")
    return out


def check_changed(kind: Kind, document: Mapping[str, Any], *, labels: bool = True) -> None:
    """An object that is to replace one: its labels' syntax if that is asked for. Raises Refused."""
    problems = _label_problems(document["metadata"].get("labels") or {}) if labels else []
    if problems:
        raise invalid(kind, document["metadata"]["name"], problems)


def check_new(kind: Kind, document: Mapping[str, Any], *, labels: bool = True) -> None:
    """An object that is to be made, its labels' syntax if that is asked for. Raises Refused."""
    found = document["metadata"]
    name = found.get("name", "")
    problems = []
    if not name:
        problems.append(Problem("metadata.name", _REQUIRED, "Required value: name or generateName is required"))
    else:
        problems += [Problem("metadata.name", _INVALID, f"Invalid value: {quote(name)}: {text}") for text in subdomain_errors(name)]
    problems += _label_problems(found.get("labels") or {}) if labels else []
    if kind is POD:
        problems += _container_problems(document["spec"])
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


def _container_problems(spec: Mapping[str, Any]) -> list[Problem]:
    if not spec.get("containers"):
        return [Problem("spec.containers", _REQUIRED, "Required value")]
    return [
        Problem(f"spec.containers[{index}].{key}", _REQUIRED, "Required value")
        for index, container in enumerate(spec["containers"])
        for key in ("name", "image")
        if not container.get(key)
    ]
