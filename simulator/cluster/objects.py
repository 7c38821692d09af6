"""A cluster, described: one node and what is on it, read from YAML or made from a recording's input.

Frozen values, and the Kubernetes documents made from them. What the API server does with them is `cluster.store`'s
business, what happens by itself `cluster.reactions`'.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from simulator.cluster.decoding import decoded, decoded_part
from simulator.cluster.kinds import BY_NAME, DAEMON_SET, KINDS, NODE, POD, RESOURCE_CLAIM
from simulator.cluster.patterns import pattern
from simulator.cluster.status import Refused
from simulator.cluster.validation import metadata as metadata_of
from simulator.reading import Place, read_format
from simulator.selectors import label_key_errors, label_value_errors, subdomain_errors

DROP: Final = "drop"
"""The server closes the connection without an answer, and does nothing."""
LOST: Final = "lost"
"""The server does what it is asked, and closes the connection without an answer."""
REFUSE: Final = "refuse"
"""There is no connection: nothing listens."""
TIMEOUT: Final = "timeout"
"""There is no connection: nothing answers."""
BROKEN: Final = (DROP, LOST, REFUSE, TIMEOUT)
"""What a fault may do in place of an answer with an HTTP code."""

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
    finalizers: tuple[str, ...] = ()
    """What keeps the object after its deletion. That they are removed in time is taken for granted: `termination` decides."""
    budget: Budget | None = None
    resource_claims: tuple[Mapping[str, Any], ...] = ()
    resource_claim_statuses: tuple[Mapping[str, Any], ...] = ()
    status: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the Pod API's status that take the place of what the phase makes of them."""

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
    status: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the Node API's status that take the place of a ready node's."""


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A whole cluster."""

    name: str
    node: Node | None
    pods: tuple[Pod, ...] = ()
    daemonsets: frozenset[tuple[str, str]] = frozenset()
    resource_claims: tuple[ResourceClaim, ...] = ()
    objects: tuple[Mapping[str, Any], ...] = ()
    """Documents of further kinds (`kinds.KINDS`), each with apiVersion, kind and metadata.name."""
    faults: tuple[Fault, ...] = ()
    api_down: bool = False
    eviction: str | None = "policy/v1"
    """Group version of pods/eviction; None: the server has no such subresource."""
    page_size: int | None = None
    validates: bool = True
    """Are label values checked as a real API server checks them? Recordings' servers did not."""
    addresses: frozenset[str] = frozenset()
    """host:port pairs at which the API server listens, in plain HTTP; empty: wherever it is asked."""
    description: str = ""


KEYS: Final = (
    "format",
    "description",
    "node",
    "pods",
    "daemonsets",
    "resource_claims",
    "objects",
    "faults",
    "api_down",
    "eviction",
    "page_size",
    "validates",
    "addresses",
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
        objects=_objects(place),
        faults=tuple(read_fault(item) for item in place.elements("faults")),
        api_down=api_down.boolean() if api_down else False,
        eviction=_eviction(place),
        page_size=page_size.integer(1, 10**6) if page_size else None,
        validates=validates.boolean() if validates else True,
        addresses=frozenset(_address(item) for item in place.elements("addresses")),
    )


def _address(place: Place) -> str:
    text = place.text()
    if not re.fullmatch(r"(\[[0-9a-f:.]+\]|[^\s/:@]+):[0-9]{1,5}", text):
        place.fail(f'"{text}" is no address', 'write "127.0.0.1:6443"')
    return text


def derived_daemonsets(pods: Iterable[Pod]) -> frozenset[tuple[str, str]]:
    """The DaemonSets of a cluster that lists none: those that own its pods, by namespace and name."""
    return frozenset((pod.namespace, pod.owner.name) for pod in pods if pod.owner and pod.owner.kind == "DaemonSet")


def read_node(place: Place, name: str = "") -> Node:
    """The node."""
    place.mapping(("name", "labels", "annotations", "unschedulable", "status"))
    given, cordoned, status = (place.get(key) for key in ("name", "unschedulable", "status"))
    return Node(
        object_name(given) if given else name,
        read_labels(place.get("labels")),
        _annotations(place.get("annotations")),
        cordoned.boolean() if cordoned else False,
        _part(status, "NodeStatus") if status else {},
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


def object_name(place: Place) -> str:
    """A name that an object can have."""
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
    "finalizers",
    "budget",
    "resource_claims",
    "resource_claim_statuses",
    "status",
)


def read_pod(place: Place) -> Pod:
    """A pod. Raises InputError."""
    place.mapping(_POD_KEYS)
    namespace, node_name, phase, owner = (place.get(key) for key in ("namespace", "node_name", "phase", "owner"))
    empty_dir, terminating, budget, status = (place.get(key) for key in ("empty_dir", "terminating", "budget", "status"))
    return Pod(
        namespace=object_name(namespace) if namespace else "default",
        name=object_name(place.need("name", "write a name")),
        labels=read_labels(place.get("labels")),
        annotations=_annotations(place.get("annotations")),
        node_name=object_name(node_name) if node_name else None,
        node_selector=read_labels(place.get("node_selector")),
        phase=phase.choice("Pending", "Running", "Succeeded", "Failed", "Unknown") if phase else "Running",
        owner=_owner(owner) if owner else None,
        containers=tuple(_container(item) for item in place.elements("containers")),
        init_containers=tuple(_container(item) for item in place.elements("init_containers")),
        empty_dir=empty_dir.boolean() if empty_dir else False,
        termination=_termination(place),
        terminating=terminating.boolean() if terminating else False,
        finalizers=finalizers.texts() if (finalizers := place.get("finalizers")) else (),
        budget=_budget(budget) if budget else None,
        resource_claims=tuple(_part(item, "PodResourceClaim") for item in place.elements("resource_claims")),
        resource_claim_statuses=tuple(_part(item, "PodResourceClaimStatus") for item in place.elements("resource_claim_statuses")),
        status=_part(status, "PodStatus") if status else {},
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
        object_name(place.need("name", "write the owner's name")),
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


def _part(place: Place, struct: str) -> Mapping[str, Any]:
    """A part of an object as the API has it. Raises InputError for what JSON cannot say and for a field of another type."""
    place.mapping()
    _check_json(place)
    try:
        return decoded_part(struct, place.value)
    except Refused as refused:
        place.fail(f"is not as the API has it: {refused}")


def _check_json(place: Place) -> None:
    value = place.value
    if isinstance(value, dict):
        for _, item in place.items():  # noqa: PERF102  # a Place is no dict
            _check_json(item)
    elif isinstance(value, list):
        for item in place.list():
            _check_json(item)
    elif not isinstance(value, str | int | float | None) or (isinstance(value, float) and not math.isfinite(value)):
        place.fail(f"is {value!r}, which is nothing that JSON can say", "write a text or a number")


def _named(place: Place) -> _Named:
    place.mapping(("namespace", "name"))
    namespace = place.get("namespace")
    return _Named(object_name(namespace) if namespace else "default", object_name(place.need("name", "write a name")))


@dataclass(frozen=True, slots=True)
class _Named:
    namespace: str
    name: str


_WRITTEN_OTHERWISE: Final = {NODE: "node", POD: "pods", DAEMON_SET: "daemonsets", RESOURCE_CLAIM: "resource_claims"}


def _objects(place: Place) -> tuple[Mapping[str, Any], ...]:
    """Documents of further kinds, as `kubectl get -o yaml` shows them."""
    seen: set[tuple[str, ...]] = set()
    out = []
    for item in place.elements("objects"):
        item.mapping()
        _check_json(item)
        version, kind_name = item.need("apiVersion", "write apiVersion: nvidia.com/v1"), item.need("kind", "write the kind")
        kind = BY_NAME.get((version.text(), kind_name.text()))
        if kind is None:
            known = [f"{found.api_version} {found.kind}" for found in KINDS if found not in _WRITTEN_OTHERWISE]
            item.fail(f'"{version.value} {kind_name.value}" is no kind that is known', "known: " + ", ".join(known))
        if kind in _WRITTEN_OTHERWISE:
            item.fail(f"is a {kind.kind}", f"write it under {_WRITTEN_OTHERWISE[kind]}")
        metadata = item.need("metadata", "write metadata: {name: ...}")
        metadata.mapping()
        name = object_name(metadata.need("name", "write a name"))
        namespace = ""
        if kind.namespaced:
            given = metadata.get("namespace")
            namespace = object_name(given) if given else "default"
        labels = read_labels(metadata.get("labels"))
        try:
            document = decoded(kind, item.value)
            metadata_of(document)
        except Refused as refused:
            item.fail(f"is not as the API has it: {refused}")
        if (kind.resource, namespace, name) in seen:
            item.fail(f'is the second {kind.kind} named "{name}"', "objects of one kind and namespace have different names")
        seen.add((kind.resource, namespace, name))
        placed = {
            **document["metadata"],
            **({"namespace": namespace} if namespace else {}),
            **({"labels": labels} if labels else {}),
        }
        out.append({**document, "metadata": placed})
    return tuple(out)


def _claim(place: Place) -> ResourceClaim:
    place.mapping(("namespace", "name", "drivers"))
    namespace, drivers = place.get("namespace"), place.get("drivers")
    return ResourceClaim(
        object_name(namespace) if namespace else "default",
        object_name(place.need("name", "write a name")),
        drivers.texts() if drivers else None,
    )


def read_fault(place: Place) -> Fault:
    """A fault. Raises InputError."""
    place.mapping(("method", "path", "query", "body", "skip", "times", "status", "retry_after", "causes"))
    method, skip, times, retry = (place.get(key) for key in ("method", "skip", "times", "retry_after"))
    path, query, body = (pattern(item) if (item := place.get(key)) else "" for key in ("path", "query", "body"))
    status = place.need("status", f"write an HTTP code, or one of {', '.join(BROKEN)}")
    return Fault(
        method=method.choice("GET", "POST", "PUT", "PATCH", "DELETE") if method else "",
        path=path,
        query=query,
        body=body,
        skip=skip.integer(0, 10**6) if skip else 0,
        times=times.integer(0, 10**6) if times else None,
        status=status.choice(*BROKEN) if isinstance(status.value, str) else status.integer(400, 599),
        retry_after=retry.integer(0, 10**6) if retry else None,
        causes=tuple(_texts(item) for item in place.elements("causes")),
    )


def _texts(place: Place) -> dict[str, str]:
    return {key: item.text() for key, item in place.items()}


def _eviction(place: Place) -> str | None:
    item = place.get("eviction")
    if item is None:
        return None if place.has("eviction") else "policy/v1"
    return item.choice("policy/v1", "policy/v1beta1")


# --- documents ----------------------------------------------------------------------------------------------------

EPOCH: Final = "2026-01-01T00:00:00Z"
"""When a cluster begins, where nothing else is said."""


@lru_cache(maxsize=16)
def _ready_node(created: str) -> Mapping[str, Any]:
    """The status of a node that is ready. What depends on its host (OS image, kernel) is left out: a cluster does not know it."""
    return {
        "capacity": {"cpu": "64", "memory": "528280952Ki", "pods": "110"},
        "allocatable": {"cpu": "64", "memory": "528178552Ki", "pods": "110"},
        "conditions": [
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": created,
                "lastTransitionTime": created,
            }
            for kind, status, reason, message in (
                ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            )
        ],
        "nodeInfo": {"architecture": "amd64", "operatingSystem": "linux", "kubeletVersion": "v1.34.0"},
    }


def node_document(node: Node, created: str = EPOCH) -> dict[str, Any]:
    """The node as the API has it."""
    document: dict[str, Any] = {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": node.name,
            "uid": f"node-{node.name}",
            "resourceVersion": "1",
            "creationTimestamp": created,
            "labels": dict(node.labels),
            "annotations": dict(node.annotations),
        },
        "spec": {},
        "status": {**_ready_node(created), **node.status} if node.status else _ready_node(created),
    }
    if node.unschedulable:
        document["spec"]["unschedulable"] = True
    return document


def pod_document(pod: Pod, node_name: str, uid: str, created: str = EPOCH) -> dict[str, Any]:
    """A pod as the API has it. One whose containers are not described has one."""
    metadata: dict[str, Any] = {
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": uid,
        "resourceVersion": "1",
        "creationTimestamp": created,
        "labels": dict(pod.labels),
        "annotations": dict(pod.annotations),
    }
    if pod.finalizers:
        metadata["finalizers"] = [*pod.finalizers]
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
    containers, statuses = _containers(pod.containers or _ONE, "main", pod.phase, created)
    spec: dict[str, Any] = {"nodeName": pod.node_name if pod.node_name is not None else node_name, "containers": containers}
    status: dict[str, Any] = {"phase": pod.phase}
    if statuses:
        status["containerStatuses"] = statuses
    if pod.init_containers:
        done = "Succeeded" if statuses else pod.phase
        spec["initContainers"], statuses = _containers(pod.init_containers, "init", done, created)
        if statuses:
            status["initContainerStatuses"] = statuses
    if pod.node_selector:
        spec["nodeSelector"] = dict(pod.node_selector)
    if pod.empty_dir:
        spec["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    if pod.resource_claims:
        spec["resourceClaims"] = list(pod.resource_claims)
    if pod.resource_claim_statuses:
        status["resourceClaimStatuses"] = list(pod.resource_claim_statuses)
    if pod.status:
        status.update(pod.status)
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": status}


_ONE: Final = (Container(),)
_CONTAINER_STATES: Final[Mapping[str, tuple[bool, str, Mapping[str, Any]]]] = {
    "Running": (True, "running", {}),
    "Succeeded": (False, "terminated", {"exitCode": 0, "reason": "Completed"}),
    "Failed": (False, "terminated", {"exitCode": 1, "reason": "Error"}),
}
"""Phase -> what its containers are like: ready, their state, the state's details."""


def _containers(
    containers: tuple[Container, ...], word: str, phase: str, started: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The containers of a pod, and what its status says of each."""
    if containers is _ONE:
        return _one_container(phase, started)
    documents = [_container_document(container, f"{word}-{index}") for index, container in enumerate(containers)]
    if phase not in _CONTAINER_STATES:
        return documents, []
    ready, name, details = _CONTAINER_STATES[phase]
    state = {name: {"startedAt": started, **details}}
    return documents, [
        {"name": document["name"], "ready": ready, "restartCount": 0, "image": "", "imageID": "", "state": state}
        for document in documents
    ]


@lru_cache(maxsize=16)
def _one_container(phase: str, started: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    return _containers((Container(),), "main", phase, started)


def _container_document(container: Container, name: str) -> dict[str, Any]:
    resources = {
        kind: dict(amounts) for kind, amounts in (("limits", container.limits), ("requests", container.requests)) if amounts
    }
    return {"name": name, "resources": resources}


def claim_document(claim: ResourceClaim, created: str = EPOCH) -> dict[str, Any]:
    """A claim as the API has it."""
    document: dict[str, Any] = {
        "kind": "ResourceClaim",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {
            "name": claim.name,
            "namespace": claim.namespace,
            "uid": f"claim-{claim.namespace}-{claim.name}",
            "resourceVersion": "1",
            "creationTimestamp": created,
        },
        "spec": {},
        "status": {},
    }
    if claim.drivers is not None:
        document["status"]["allocation"] = {"devices": {"results": [{"driver": driver} for driver in claim.drivers]}}
    return document


def daemonset_document(
    namespace: str, name: str, described: Pod | None, pods: Sequence[Mapping[str, Any]], created: str = EPOCH
) -> dict[str, Any]:
    """A DaemonSet as the API has it: its template is what the first pod described as its own shows of it, its status counts pods."""
    labels: dict[str, str] = {"app": name}
    template: dict[str, Any] = {"containers": []}
    if described:
        labels = dict(described.labels)
        template["containers"], _ = _containers(described.containers or _ONE, "main", described.phase, created)
        if described.node_selector:
            template["nodeSelector"] = dict(described.node_selector)
    return {
        "kind": "DaemonSet",
        "apiVersion": "apps/v1",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"owner-{name}",
            "resourceVersion": "1",
            "creationTimestamp": created,
            "generation": 1,
        },
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": template}},
        "status": daemonset_status(pods),
    }


def daemonset_status(pods: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What a DaemonSet's status says of its pods."""
    count = len(pods)
    ready = sum(pod["status"].get("phase") == "Running" for pod in pods)
    return {
        "desiredNumberScheduled": count,
        "currentNumberScheduled": count,
        "numberReady": ready,
        "updatedNumberScheduled": count,
        "numberAvailable": ready,
        "numberMisscheduled": 0,
        "observedGeneration": 1,
    }


def namespace_document(name: str, created: str = EPOCH) -> dict[str, Any]:
    """A namespace as the API has it."""
    return {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "uid": f"namespace-{name}",
            "resourceVersion": "1",
            "creationTimestamp": created,
            "labels": {"kubernetes.io/metadata.name": name},
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }
