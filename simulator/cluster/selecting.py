"""Which objects a list or a watch is about: namespace, label selector, field selector.

Source: the strategies' `MatchX` and `ToSelectableFields` in k8s.io/kubernetes/pkg/registry; pkg/apis/core/v1/conversion.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from simulator import selectors
from simulator.cluster.kinds import EVENT, NAMESPACE, NODE, POD, Kind
from simulator.cluster.status import bad_request
from simulator.gocompat import GoError

_Field = Callable[[Mapping[str, Any]], str]


def _path(*steps: str, default: str = "") -> _Field:
    def read(document: Mapping[str, Any]) -> str:
        value: Any = document
        for step in steps:
            value = value.get(step) if isinstance(value, Mapping) else None
        if isinstance(value, bool):
            return "true" if value else "false"
        return default if value is None else str(value)

    return read


_NAME: Final = {"metadata.name": _path("metadata", "name")}
_NAMESPACE: Final = {"metadata.namespace": _path("metadata", "namespace")}
_FIELDS: Final[Mapping[Kind, Mapping[str, _Field]]] = {
    POD: {
        "metadata.name": lambda pod: str(pod["metadata"]["name"]),
        "metadata.namespace": lambda pod: str(pod["metadata"]["namespace"]),
        "spec.nodeName": lambda pod: str(pod["spec"].get("nodeName", "")),
        "spec.restartPolicy": _path("spec", "restartPolicy", default="Always"),
        "spec.schedulerName": _path("spec", "schedulerName", default="default-scheduler"),
        "spec.serviceAccountName": _path("spec", "serviceAccountName"),
        "spec.hostNetwork": _path("spec", "hostNetwork", default="false"),
        "status.phase": lambda pod: str(pod["status"].get("phase", "")),
        "status.podIP": _path("status", "podIP"),
        "status.nominatedNodeName": _path("status", "nominatedNodeName"),
    },
    NODE: {**_NAME, "spec.unschedulable": _path("spec", "unschedulable", default="false")},
    NAMESPACE: {**_NAME, "status.phase": _path("status", "phase")},
    EVENT: {
        **_NAME,
        **_NAMESPACE,
        **{
            f"involvedObject.{name}": _path("involvedObject", name)
            for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        },
        "reason": _path("reason"),
        "reportingComponent": _path("reportingComponent"),
        "source": _path("source", "component"),
        "type": _path("type"),
    },
}


class Selection(NamedTuple):
    """Objects of one kind: those of a namespace ("" = all) that both selectors match."""

    kind: Kind
    namespace: str
    by_label: selectors.Selector
    by_field: tuple[tuple[_Field, bool, str], ...]

    def matches(self, document: Mapping[str, Any]) -> bool:
        """Is the object meant?"""
        metadata = document["metadata"]
        return (
            (not self.namespace or metadata.get("namespace") == self.namespace)
            and self.by_label.matches(metadata.get("labels") or {})
            and all((read(document) == value) == equal for read, equal, value in self.by_field)
        )


def selection(kind: Kind, namespace: str, query: Mapping[str, str]) -> Selection:
    """What a request's query selects. Raises Refused."""
    return _selection(kind, namespace, query.get("labelSelector", ""), query.get("fieldSelector", ""))


@lru_cache(maxsize=256)
def _selection(kind: Kind, namespace: str, label_selector: str, field_selector: str) -> Selection:
    fields = _FIELDS.get(kind) or ({**_NAME, **_NAMESPACE} if kind.namespaced else _NAME)
    try:
        by_label = selectors.parse(label_selector)
        by_field = selectors.parse_fields(field_selector)
    except GoError as error:
        raise bad_request(str(error)) from None
    unknown = next((path for path, _, _ in by_field if path not in fields), None)
    if unknown is not None:
        raise bad_request(f"field label not supported: {unknown}")
    return Selection(kind, namespace, by_label, tuple((fields[path], equal, value) for path, equal, value in by_field))
