"""Tables as the API server prints them: what `kubectl get` shows.

A cell is a JSONPath of its column, or a function here for the columns of Kubernetes' own kinds that are computed. A
document may be as odd as a client made it: what is not there, or of another type, is shown as if it were not there.

Source: k8s.io/kubernetes/pkg/printers/internalversion/printers.go; k8s.io/apimachinery/pkg/util/duration;
k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from simulator.cluster.kinds import CONFIG_MAP, DAEMON_SET, EVENT, NODE, POD, RESOURCE_CLAIM, Column, Kind

_NONE: Final = "<none>"
_UNKNOWN: Final = "<unknown>"
_TERMINAL: Final = frozenset({"Succeeded", "Failed"})

Document = Mapping[str, Any]
_Cell = Callable[[Document, datetime.datetime], Any]


def table(
    kind: Kind,
    items: Sequence[Document],
    metadata: Document,
    now: datetime.datetime,
    *,
    version: str = "v1",
    include: str = "Metadata",
) -> dict[str, Any]:
    """The Table of these objects. `include` says what each row carries: Metadata, Object or None."""
    columns = kind.columns if any(column.name == "Name" for column in kind.columns) else (_NAME, *kind.columns)
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata,
        "columnDefinitions": [
            {
                "name": column.name,
                "type": _TYPES.get(column.type, column.type),
                "format": "name" if column.name == "Name" else "",
                "description": "",
                "priority": column.priority,
            }
            for column in columns
        ],
        "rows": [
            {"cells": [_cell(kind, column, item, now) for column in columns], **_row_object(item, version, include)}
            for item in items
        ],
    }


_NAME: Final = Column("Name", ".metadata.name")
_TYPES: Final = {"date": "string"}
"""Column type -> the type of its cells, where it is another."""


def partial(item: Document, version: str = "v1") -> dict[str, Any]:
    """An object's metadata alone."""
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": item.get("metadata", {})}


def _row_object(item: Document, version: str, include: str) -> dict[str, Any]:
    match include:
        case "None":
            return {}
        case "Object":
            return {"object": item}
        case _:
            return {"object": partial(item, version)}


def _cell(kind: Kind, column: Column, item: Document, now: datetime.datetime) -> Any:
    if not column.path:
        return _COMPUTED[kind, column.name](item, now)
    found = _value(item, column.path)
    if column.type == "date":
        return age(found, now)
    return found if isinstance(found, str | int | float | bool | None) else str(found)


# --- JSONPath -----------------------------------------------------------------------------------------------------

_STEP: Final = re.compile(r"\.(?P<key>[\w-]+)|\[(?P<index>\d+)\]|\[\?\(@\.(?P<field>\w+)=='(?P<value>[^']*)'\)\]")


@lru_cache(maxsize=256)
def _steps(path: str) -> tuple[tuple[str | None, str | None, str | None, str | None], ...]:
    """The steps of a JSONPath: keys, indices and filters on one field. Raises ValueError for any other."""
    matches = list(_STEP.finditer(path))
    if "".join(match[0] for match in matches) != path:
        raise ValueError(f"{path} is no JSONPath that is known here")
    return tuple((match["key"], match["index"], match["field"], match["value"]) for match in matches)


def _find(value: Any, steps: Sequence[tuple[str | None, str | None, str | None, str | None]]) -> Iterator[Any]:
    if not steps:
        if value is not None:
            yield value
        return
    (key, index, field, wanted), rest = steps[0], steps[1:]
    if key is not None:
        found = [value[key]] if isinstance(value, Mapping) and key in value else []
    elif not isinstance(value, list):
        found = []
    elif index is not None:
        found = value[int(index) : int(index) + 1]
    else:
        found = [item for item in value if isinstance(item, Mapping) and item.get(field) == wanted]
    for item in found:
        yield from _find(item, rest)


@lru_cache(maxsize=256)
def _keys(path: str) -> tuple[str, ...]:
    """The steps of a path that is of keys alone, () for any other."""
    keys = tuple(key for key, *_ in _steps(path) if key is not None)
    return keys if len(keys) == len(_steps(path)) else ()


def _value(item: Document, path: str) -> Any:
    """The first value at a path, None if there is none."""
    keys = _keys(path)
    if not keys:
        return next(_find(item, _steps(path)), None)
    value: Any = item
    for key in keys:
        if type(value) is not dict and not isinstance(value, Mapping):  # the first is the quicker question
            return None
        value = value.get(key)
    return value


def _text(item: Document, path: str) -> str:
    found = _value(item, path)
    return found if isinstance(found, str) else ""


def _number(item: Document, path: str) -> int:
    found = _value(item, path)
    return found if isinstance(found, int) else 0


def _mapping(item: Document, path: str) -> Document:
    found = _value(item, path)
    return found if isinstance(found, Mapping) else {}


def _list(item: Document, path: str) -> list[Any]:
    found = _value(item, path)
    return found if isinstance(found, list) else []


def _mappings(item: Document, path: str) -> list[Document]:
    return [value for value in _list(item, path) if isinstance(value, Mapping)]


# --- ages ---------------------------------------------------------------------------------------------------------


def age(timestamp: Any, now: datetime.datetime) -> str:
    """How long ago a timestamp was (`translateTimestampSince`)."""
    try:
        moment = datetime.datetime.fromisoformat(timestamp)
    except (TypeError, ValueError):
        return _UNKNOWN
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return duration(int((now - moment).total_seconds()))


def duration(seconds: int) -> str:
    """A span in the two units that matter (`duration.HumanDuration`)."""
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    if minutes < 10:
        return _pair(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _pair(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"


# --- nodes --------------------------------------------------------------------------------------------------------


def _node_status(node: Document, _: datetime.datetime) -> str:
    ready = _text(node, ".status.conditions[?(@.type=='Ready')].status")
    words = [{"": "Unknown", "True": "Ready"}.get(ready, "NotReady")]
    if _value(node, ".spec.unschedulable") is True:
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(node: Document, _: datetime.datetime) -> str:
    labels, prefix = _mapping(node, ".metadata.labels"), "node-role.kubernetes.io/"
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix)}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    return ",".join(sorted(roles - {""})) or _NONE


def _node_address(kind: str) -> _Cell:
    return lambda node, _: _text(node, f".status.addresses[?(@.type=='{kind}')].address") or _NONE


def _node_info(name: str) -> _Cell:
    return lambda node, _: _text(node, f".status.nodeInfo.{name}") or _UNKNOWN


# --- pods ---------------------------------------------------------------------------------------------------------


def _sidecars(pod: Document) -> set[Any]:
    """The names of init containers that go on running."""
    containers = _mappings(pod, ".spec.initContainers")
    return {_text(container, ".name") for container in containers if container.get("restartPolicy") == "Always"}


def _counted(pod: Document) -> list[Document]:
    """The statuses of the containers that count for READY: the pod's own, and those init containers that go on running."""
    sidecars = _sidecars(pod)
    initial = [status for status in _mappings(pod, ".status.initContainerStatuses") if _text(status, ".name") in sidecars]
    return [*initial, *_mappings(pod, ".status.containerStatuses")]


def _pod_ready(pod: Document, _: datetime.datetime) -> str:
    ready = sum(status.get("ready") is True and _value(status, ".state.running") is not None for status in _counted(pod))
    return f"{ready}/{len(_list(pod, '.spec.containers')) + len(_sidecars(pod))}"


def _ended(state: Document, prefix: str = "") -> str:
    """Why a container ended, if it did."""
    ended = _value(state, ".terminated")
    if ended is None:
        return ""
    if reason := _text(state, ".terminated.reason"):
        return prefix + reason
    if signal := _number(state, ".terminated.signal"):
        return f"{prefix}Signal:{signal}"
    return f"{prefix}ExitCode:{_number(state, '.terminated.exitCode')}"


def _initializing(pod: Document) -> str:
    """What a pod waits for whose init containers are not done; "" if they are."""
    sidecars = _sidecars(pod)
    for index, status in enumerate(_mappings(pod, ".status.initContainerStatuses")):
        state = _mapping(status, ".state")
        if _value(state, ".terminated") is not None:
            if _number(state, ".terminated.exitCode") != 0:
                return _ended(state, "Init:")
            continue
        if _text(status, ".name") in sidecars and status.get("started") is True:
            continue
        reason = _text(state, ".waiting.reason")
        if reason and reason != "PodInitializing":
            return f"Init:{reason}"
        return f"Init:{index}/{len(_list(pod, '.spec.initContainers'))}"
    return ""


def _pod_status(pod: Document, initializing: str) -> str:
    phase = _text(pod, ".status.phase")
    reason = _text(pod, ".status.reason") or phase
    if initializing:
        reason = initializing
    else:
        running = False
        for status in reversed(_mappings(pod, ".status.containerStatuses")):
            state = _mapping(status, ".state")
            if waiting := _text(state, ".waiting.reason"):
                reason = waiting
            elif ended := _ended(state):
                reason = ended
            elif status.get("ready") is True and _value(state, ".running") is not None:
                running = True
        if reason == "Completed" and running:
            ready = _text(pod, ".status.conditions[?(@.type=='Ready')].status") == "True"
            reason = "Running" if ready else "NotReady"
    if _value(pod, ".metadata.deletionTimestamp") is not None:
        if _text(pod, ".status.reason") == "NodeLost":
            return "Unknown"
        if phase not in _TERMINAL:
            return "Terminating"
    return reason


def _pod_restarts(pod: Document, now: datetime.datetime) -> str:
    counted = _mappings(pod, ".status.initContainerStatuses") if _initializing(pod) else _counted(pod)
    restarts = sum(_number(status, ".restartCount") for status in counted)
    ends = [end for status in counted if (end := _text(status, ".lastState.terminated.finishedAt"))]
    return f"{restarts} ({age(max(ends), now)} ago)" if restarts and ends else str(restarts)


def pod_status(pod: Document) -> tuple[str, int]:
    """The STATUS that `kubectl get pods` shows, and the number of restarts."""
    initializing = _initializing(pod)
    counted = _mappings(pod, ".status.initContainerStatuses") if initializing else _counted(pod)
    return _pod_status(pod, initializing), sum(_number(status, ".restartCount") for status in counted)


def _pod_gates(pod: Document, _: datetime.datetime) -> str:
    gates = _mappings(pod, ".spec.readinessGates")
    conditions = {_text(each, ".type"): each.get("status") for each in _mappings(pod, ".status.conditions")}
    met = sum(conditions.get(_text(gate, ".conditionType")) == "True" for gate in gates)
    return f"{met}/{len(gates)}" if gates else _NONE


def _text_or_none(path: str) -> _Cell:
    return lambda item, _: _text(item, path) or _NONE


# --- events, DaemonSets, claims ------------------------------------------------------------------------------------


def _event_object(event: Document, _: datetime.datetime) -> str:
    kind, name = _text(event, ".involvedObject.kind"), _text(event, ".involvedObject.name")
    return f"{kind.lower()}/{name}" if name else kind.lower()


def _event_source(event: Document, _: datetime.datetime) -> str:
    component = _text(event, ".source.component") or _text(event, ".reportingComponent")
    return ", ".join(part for part in (component, _text(event, ".source.host")) if part)


def _event_seen(*names: str) -> _Cell:
    """The age of the first of these timestamps that is there."""

    def read(event: Document, now: datetime.datetime) -> str:
        return age(next((event[name] for name in names if event.get(name)), None), now)

    return read


def _selector(path: str) -> _Cell:
    def read(item: Document, _: datetime.datetime) -> str:
        return ",".join(f"{key}={value}" for key, value in sorted(_mapping(item, path).items())) or _NONE

    return read


def _container_field(name: str) -> _Cell:
    return lambda item, _: ",".join(
        str(container.get(name) or "") for container in _mappings(item, ".spec.template.spec.containers")
    )


def _claim_state(claim: Document, _: datetime.datetime) -> str:
    states = ["deleted"] if _value(claim, ".metadata.deletionTimestamp") else []
    if _value(claim, ".status.allocation") is None:
        return ",".join(states or ["pending"])
    states.append("allocated")
    if _list(claim, ".status.reservedFor"):
        states.append("reserved")
    return ",".join(states)


_COMPUTED: Final[Mapping[tuple[Kind, str], _Cell]] = {
    (NODE, "Status"): _node_status,
    (NODE, "Roles"): _node_roles,
    (NODE, "Internal-IP"): _node_address("InternalIP"),
    (NODE, "External-IP"): _node_address("ExternalIP"),
    (NODE, "OS-Image"): _node_info("osImage"),
    (NODE, "Kernel-Version"): _node_info("kernelVersion"),
    (NODE, "Container-Runtime"): _node_info("containerRuntimeVersion"),
    (POD, "Ready"): _pod_ready,
    (POD, "Status"): lambda item, _: _pod_status(item, _initializing(item)),
    (POD, "Restarts"): _pod_restarts,
    (POD, "IP"): _text_or_none(".status.podIP"),
    (POD, "Node"): _text_or_none(".spec.nodeName"),
    (POD, "Nominated Node"): _text_or_none(".status.nominatedNodeName"),
    (POD, "Readiness Gates"): _pod_gates,
    (EVENT, "Last Seen"): _event_seen("lastTimestamp", "firstTimestamp", "eventTime"),
    (EVENT, "First Seen"): _event_seen("firstTimestamp", "eventTime"),
    (EVENT, "Object"): _event_object,
    (EVENT, "Source"): _event_source,
    (CONFIG_MAP, "Data"): lambda item, _: len(_mapping(item, ".data")) + len(_mapping(item, ".binaryData")),
    (DAEMON_SET, "Node Selector"): _selector(".spec.template.spec.nodeSelector"),
    (DAEMON_SET, "Containers"): _container_field("name"),
    (DAEMON_SET, "Images"): _container_field("image"),
    (DAEMON_SET, "Selector"): _selector(".spec.selector.matchLabels"),
    (RESOURCE_CLAIM, "State"): _claim_state,
}
"""Kind and column -> what computes its cells."""
