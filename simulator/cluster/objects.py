"""A cluster, described: one node and what is on it, read from YAML or made from a recording's input.

Frozen values, and the Kubernetes documents made from them. What the API server does with them is `cluster.store`'s
business, what happens by itself `cluster.reactions`'.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from simulator.reading import Place, read_format
from simulator.selectors import label_key_errors, label_value_errors, subdomain_errors

DROP: Final = "drop"
_DEFAULT_API_VERSIONS: Final = {"Job": "batch/v1", "CronJob": "batch/v1", "Node": "v1", "ReplicationController": "v1"}


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner reference."""

    kind: str
    name: str
    controller: bool = True
    api_version: str = "apps/v1"


@dataclass(frozen=True, slots=True)
class Container:
    """A container's resources, by name; quantities as text."""

    limits: Mapping[str, str] = field(default_factory=dict)
    requests: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Budget:
    """A disruption budget's effect: how many evictions it blocks (None = all), and its Retry-After in seconds."""

    blocked_attempts: int | None
    retry_after: int | None = None


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod. `termination` is how long it takes to go once it must, in seconds; None means it never does."""

    namespace: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    node_name: str | None = None
    """None: the cluster's node."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    phase: str = "Running"
    owner: Owner | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    empty_dir: bool = False
    termination: float | None = 1.0
    terminating: bool = False
    budget: Budget | None = None
    resource_claims: tuple[Mapping[str, Any], ...] = ()
    resource_claim_statuses: tuple[Mapping[str, Any], ...] = ()

    @property
    def full_name(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ResourceClaim:
    """A claim, and the drivers of its allocated devices; None: not allocated."""

    namespace: str
    name: str
    drivers: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Fault:
    """Requests that are answered otherwise: which, after how many, how often, and with what."""

    method: str = ""
    path: str = ""
    query: str = ""
    body: str = ""
    """Regular expressions, searched for; the body is the compact JSON that was sent."""
    skip: int = 0
    times: int | None = None
    status: int | str = 500
    retry_after: int | None = None
    causes: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """The node object."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    unschedulable: bool = False


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A whole cluster."""

    name: str
    node: Node | None
    pods: tuple[Pod, ...] = ()
    daemonsets: frozenset[tuple[str, str]] = frozenset()
    resource_claims: tuple[ResourceClaim, ...] = ()
    faults: tuple[Fault, ...] = ()
    api_down: bool = False
    eviction: str | None = "policy/v1"
    """Group version of pods/eviction; None: the server has no such subresource."""
    page_size: int | None = None
    validates: bool = True
    """Are label values checked as a real API server checks them? Recordings' servers did not."""
    description: str = ""


KEYS: Final = (
    "format",
    "description",
    "node",
    "pods",
    "daemonsets",
    "resource_claims",
    "faults",
    "api_down",
    "eviction",
    "page_size",
    "validates",
)


def read_cluster(place: Place, name: str, node_name: str = "") -> ClusterSpec:
    """A cluster from its document. `node_name` names the node where the document does not. Raises InputError."""
    place.mapping(KEYS)
    read_format(place)
    node = place.get("node")
    pods = tuple(read_pod(item) for item in place.elements("pods"))
    for full_name, times in Counter(pod.full_name for pod in pods).items():
        if times > 1:
            place.fail(f'has the pod "{full_name}" twice', "pods of one namespace have different names")
    listed = frozenset((item.namespace, item.name) for item in map(_named, place.elements("daemonsets")))
    page_size, api_down, validates = place.get("page_size"), place.get("api_down"), place.get("validates")
    return ClusterSpec(
        name=name,
        description=found.text() if (found := place.get("description")) else "",
        node=read_node(node, node_name) if node else (Node(node_name) if not place.has("node") else None),
        pods=pods,
        daemonsets=listed if place.has("daemonsets") else derived_daemonsets(pods),
        resource_claims=tuple(_claim(item) for item in place.elements("resource_claims")),
        faults=tuple(read_fault(item) for item in place.elements("faults")),
        api_down=api_down.boolean() if api_down else False,
        eviction=_eviction(place),
        page_size=page_size.integer(1, 10**6) if page_size else None,
        validates=validates.boolean() if validates else True,
    )


def derived_daemonsets(pods: Iterable[Pod]) -> frozenset[tuple[str, str]]:
    """The DaemonSets of a cluster that lists none: those that own its pods, by namespace and name."""
    return frozenset((pod.namespace, pod.owner.name) for pod in pods if pod.owner and pod.owner.kind == "DaemonSet")


def read_node(place: Place, name: str = "") -> Node:
    """The node."""
    place.mapping(("name", "labels", "annotations", "unschedulable"))
    given, cordoned = place.get("name"), place.get("unschedulable")
    return Node(
        _object_name(given) if given else name,
        read_labels(place.get("labels")),
        _annotations(place.get("annotations")),
        cordoned.boolean() if cordoned else False,
    )


def read_labels(place: Place | None) -> dict[str, str]:
    """Labels whose keys and values an API server would take. Raises InputError."""
    out: dict[str, str] = {}
    for key, item in place.items() if place else ():
        for problem in label_key_errors(key):
            item.fail(f'has an impossible label key "{key}": {problem}')
        value = item.text()
        for problem in label_value_errors(value):
            item.fail(f'"{value}" is an impossible label value: {problem}')
        out[key] = value
    return out


def _annotations(place: Place | None) -> dict[str, str]:
    return {key: item.text() for key, item in place.items()} if place else {}


def _object_name(place: Place) -> str:
    value = place.text()
    if not value:
        place.fail("is empty", "write a name")
    for problem in subdomain_errors(value):
        place.fail(f'"{value}" is no name: {problem}')
    return value


_POD_KEYS: Final = (
    "namespace",
    "name",
    "labels",
    "annotations",
    "node_name",
    "node_selector",
    "phase",
    "owner",
    "containers",
    "init_containers",
    "empty_dir",
    "termination_s",
    "terminating",
    "budget",
    "resource_claims",
    "resource_claim_statuses",
)


def read_pod(place: Place) -> Pod:
    """A pod. Raises InputError."""
    place.mapping(_POD_KEYS)
    namespace, node_name, phase, owner = (place.get(key) for key in ("namespace", "node_name", "phase", "owner"))
    empty_dir, terminating, budget = (place.get(key) for key in ("empty_dir", "terminating", "budget"))
    return Pod(
        namespace=_object_name(namespace) if namespace else "default",
        name=_object_name(place.need("name", "write a name")),
        labels=read_labels(place.get("labels")),
        annotations=_annotations(place.get("annotations")),
        node_name=_object_name(node_name) if node_name else None,
        node_selector=read_labels(place.get("node_selector")),
        phase=phase.choice("Pending", "Running", "Succeeded", "Failed", "Unknown") if phase else "Running",
        owner=_owner(owner) if owner else None,
        containers=tuple(_container(item) for item in place.elements("containers")),
        init_containers=tuple(_container(item) for item in place.elements("init_containers")),
        empty_dir=empty_dir.boolean() if empty_dir else False,
        termination=_termination(place),
        terminating=terminating.boolean() if terminating else False,
        budget=_budget(budget) if budget else None,
        resource_claims=tuple(_free(item) for item in place.elements("resource_claims")),
        resource_claim_statuses=tuple(_free(item) for item in place.elements("resource_claim_statuses")),
    )


def _termination(place: Place) -> float | None:
    if place.has("termination_s") and place.value["termination_s"] is None:
        return None
    item = place.get("termination_s")
    return item.seconds() if item else 1.0


def _owner(place: Place) -> Owner:
    place.mapping(("kind", "name", "controller", "api_version"))
    kind = place.need("kind", "write kind: ReplicaSet").text()
    controller, version = place.get("controller"), place.get("api_version")
    return Owner(
        kind,
        _object_name(place.need("name", "write the owner's name")),
        controller.boolean() if controller else True,
        version.text() if version else default_api_version(kind),
    )


def default_api_version(kind: str) -> str:
    """The usual apiVersion of an owner's kind."""
    return _DEFAULT_API_VERSIONS.get(kind, "apps/v1")


def _container(place: Place) -> Container:
    place.mapping(("name", "limits", "requests"))
    return Container(_quantities(place, "limits"), _quantities(place, "requests"))


def _quantities(place: Place, key: str) -> dict[str, str]:
    out = {}
    for name, item in place.entries(key):
        value = item.value
        if not isinstance(value, str | int) or isinstance(value, bool) or not re.fullmatch(r"[0-9.]+[A-Za-z]*", str(value)):
            item.fail(f"{value!r} is no quantity", 'write "1"')
        out[name] = str(value)
    return out


def _budget(place: Place) -> Budget:
    place.mapping(("blocked_attempts", "retry_after"))
    blocked, retry = place.get("blocked_attempts"), place.get("retry_after")
    return Budget(blocked.integer(0, 10**6) if blocked else None, retry.integer(0, 10**6) if retry else None)


def _free(place: Place) -> Mapping[str, Any]:
    place.mapping()
    return place.value  # type: ignore[no-any-return]  # a document, as in the Pod API


def _named(place: Place) -> _Named:
    place.mapping(("namespace", "name"))
    namespace = place.get("namespace")
    return _Named(_object_name(namespace) if namespace else "default", _object_name(place.need("name", "write a name")))


@dataclass(frozen=True, slots=True)
class _Named:
    namespace: str
    name: str


def _claim(place: Place) -> ResourceClaim:
    place.mapping(("namespace", "name", "drivers"))
    namespace, drivers = place.get("namespace"), place.get("drivers")
    return ResourceClaim(
        _object_name(namespace) if namespace else "default",
        _object_name(place.need("name", "write a name")),
        drivers.texts() if drivers else None,
    )


def read_fault(place: Place) -> Fault:
    """A fault. Raises InputError."""
    place.mapping(("method", "path", "query", "body", "skip", "times", "status", "retry_after", "causes"))
    method, skip, times, retry = (place.get(key) for key in ("method", "skip", "times", "retry_after"))
    status = place.need("status", 'write an HTTP code, or "drop"')
    return Fault(
        method=method.choice("GET", "POST", "PUT", "PATCH", "DELETE") if method else "",
        path=_pattern(place, "path"),
        query=_pattern(place, "query"),
        body=_pattern(place, "body"),
        skip=skip.integer(0, 10**6) if skip else 0,
        times=times.integer(0, 10**6) if times else None,
        status=DROP if status.value == DROP else status.integer(400, 599),
        retry_after=retry.integer(0, 10**6) if retry else None,
        causes=tuple(_texts(item) for item in place.elements("causes")),
    )


def _texts(place: Place) -> dict[str, str]:
    return {key: item.text() for key, item in place.items()}


def _pattern(place: Place, key: str) -> str:
    item = place.get(key)
    if item is None:
        return ""
    value = item.text()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # Python's plans for sets in expressions are not the reader's
            re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        item.fail(f'"{value}" is no regular expression: {error}')
    return value


def _eviction(place: Place) -> str | None:
    item = place.get("eviction")
    if item is None:
        return None if place.has("eviction") else "policy/v1"
    return item.choice("policy/v1", "policy/v1beta1")


# --- documents ----------------------------------------------------------------------------------------------------


def node_document(node: Node) -> dict[str, Any]:
    """The node as the API has it."""
    document: dict[str, Any] = {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": node.name,
            "uid": f"node-{node.name}",
            "resourceVersion": "1",
            "labels": dict(node.labels),
            "annotations": dict(node.annotations),
        },
        "spec": {},
        "status": {},
    }
    if node.unschedulable:
        document["spec"]["unschedulable"] = True
    return document


def pod_document(pod: Pod, node_name: str, uid: str) -> dict[str, Any]:
    """A pod as the API has it."""
    metadata: dict[str, Any] = {
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": uid,
        "resourceVersion": "1",
        "labels": dict(pod.labels),
        "annotations": dict(pod.annotations),
    }
    if pod.owner:
        metadata["ownerReferences"] = [
            {
                "apiVersion": pod.owner.api_version,
                "kind": pod.owner.kind,
                "name": pod.owner.name,
                "uid": f"owner-{pod.owner.name}",
                "controller": pod.owner.controller,
            }
        ]
    spec: dict[str, Any] = {
        "nodeName": pod.node_name if pod.node_name is not None else node_name,
        "containers": [_container_document(container, f"main-{index}") for index, container in enumerate(pod.containers)],
    }
    if pod.init_containers:
        spec["initContainers"] = [
            _container_document(container, f"init-{index}") for index, container in enumerate(pod.init_containers)
        ]
    if pod.node_selector:
        spec["nodeSelector"] = dict(pod.node_selector)
    if pod.empty_dir:
        spec["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    if pod.resource_claims:
        spec["resourceClaims"] = list(pod.resource_claims)
    status: dict[str, Any] = {"phase": pod.phase}
    if pod.resource_claim_statuses:
        status["resourceClaimStatuses"] = list(pod.resource_claim_statuses)
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": status}


def _container_document(container: Container, name: str) -> dict[str, Any]:
    resources = {
        kind: dict(amounts) for kind, amounts in (("limits", container.limits), ("requests", container.requests)) if amounts
    }
    return {"name": name, "resources": resources}


def claim_document(claim: ResourceClaim) -> dict[str, Any]:
    """A claim as the API has it."""
    document: dict[str, Any] = {
        "kind": "ResourceClaim",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": claim.name, "namespace": claim.namespace, "uid": f"claim-{claim.namespace}-{claim.name}"},
        "spec": {},
        "status": {},
    }
    if claim.drivers is not None:
        document["status"]["allocation"] = {"devices": {"results": [{"driver": driver} for driver in claim.drivers]}}
    return document
