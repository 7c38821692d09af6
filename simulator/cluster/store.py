"""The fake API server's state and semantics: objects, and what each request does to them.

One node and what is on it. Reads with selectors and paging, patches with validation, deletion and eviction, errors worded
as by a real API server. Documents are handed out as they are, never copied: a caller must not change them.

Source: k8s.io/apiserver, k8s.io/kubernetes/pkg/registry/core; apimachinery `StatusError` texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from simulator import selectors
from simulator.cluster import patch as patches
from simulator.cluster.objects import ClusterSpec, Pod, claim_document, node_document, pod_document
from simulator.gocompat import GoError, quote
from simulator.ports import Request, Response

REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
"""HTTP code -> the reason a Status carries."""

_BUDGET_TEXT: Final = "Cannot evict pod as it would violate the pod's disruption budget."


@dataclass(slots=True)
class LivePod:
    """A pod that exists: its description, its document, how often its eviction was blocked."""

    spec: Pod
    document: dict[str, Any]
    blocked: int = 0

    @property
    def terminating(self) -> bool:
        """Has it been told to go?"""
        return "deletionTimestamp" in self.document["metadata"]


def status_document(code: int, message: str, **details: Any) -> dict[str, Any]:
    """A `Status` failure."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": REASONS.get(code, ""),
        "details": details,
        "code": code,
    }


def failure(code: int, message: str, *, retry_after: int | None = None, **details: Any) -> Response:
    """An error answer."""
    return Response(code, status_document(code, message, **details), retry_after)


class Store:
    """The objects. `terminate` is told of a pod that must go, `node_changed` of every accepted change of the node."""

    def __init__(self, spec: ClusterSpec, terminate: Callable[[LivePod], None], node_changed: Callable[[], None]) -> None:
        self.spec = spec
        self.node: dict[str, Any] | None = node_document(spec.node) if spec.node else None
        self.node_name = spec.node.name if spec.node else ""
        self.pods: dict[str, LivePod] = {
            pod.full_name: LivePod(pod, pod_document(pod, self.node_name, f"pod-{index}")) for index, pod in enumerate(spec.pods)
        }
        self.claims = {f"{claim.namespace}/{claim.name}": claim_document(claim) for claim in spec.resource_claims}
        self._terminate = terminate
        self._node_changed = node_changed

    def remove_pod(self, full_name: str) -> None:
        """The pod object goes."""
        self.pods.pop(full_name, None)

    def answer(self, request: Request) -> Response:
        """Do what a request asks."""
        match request.path.strip("/").split("/"):
            case ["api", "v1"] if request.method == "GET":
                return Response(200, self._resources())
            case ["api", "v1", "nodes", name]:
                return self._node(request, name)
            case ["api", "v1", "pods"] if request.method == "GET":
                return self._list_pods(request, "")
            case ["api", "v1", "namespaces", namespace, "pods"] if request.method == "GET":
                return self._list_pods(request, namespace)
            case ["api", "v1", "namespaces", namespace, "pods", name]:
                return self._pod(request, f"{namespace}/{name}")
            case ["api", "v1", "namespaces", namespace, "pods", name, "eviction"] if request.method == "POST":
                return self._evict(request, f"{namespace}/{name}")
            case ["apis", "apps", "v1", "namespaces", namespace, "daemonsets", name] if request.method == "GET":
                return self._daemonset(namespace, name)
            case ["apis", "resource.k8s.io", "v1", "namespaces", namespace, "resourceclaims", name] if request.method == "GET":
                claim = self.claims.get(f"{namespace}/{name}")
                return Response(200, claim) if claim else _not_found("resourceclaims.resource.k8s.io", name)
            case _:
                return failure(404, "the server could not find the requested resource")

    def _resources(self) -> dict[str, Any]:
        resources = [
            {"name": "nodes", "singularName": "node", "namespaced": False, "kind": "Node", "verbs": ["get", "list", "patch"]},
            {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["delete", "get", "list"]},
        ]
        if self.spec.eviction:
            group, _, version = self.spec.eviction.partition("/")
            resources.append(
                {
                    "name": "pods/eviction",
                    "singularName": "",
                    "namespaced": True,
                    "group": group,
                    "version": version,
                    "kind": "Eviction",
                    "verbs": ["create"],
                }
            )
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": resources}

    # --- nodes ------------------------------------------------------------------------------------------------

    def _node(self, request: Request, name: str) -> Response:
        if self.node is None or name != self.node_name:
            return _not_found("nodes", name)
        if request.method == "GET":
            return Response(200, self.node)
        if request.method != "PATCH":
            return failure(405, "the server does not allow this method on the requested resource")
        try:
            changed = patches.apply(request.content_type, self.node, request.body)
        except GoError as error:
            return failure(400, str(error))
        problems = _label_problems(changed["metadata"].get("labels") or {}) if self.spec.validates else []
        if problems:
            text = problems[0] if len(problems) == 1 else "[" + ", ".join(problems) + "]"
            return failure(422, f"Node {quote(name)} is invalid: {text}", name=name, kind="Node")
        self.node = changed
        self._node_changed()
        return Response(200, self.node)

    # --- pods -------------------------------------------------------------------------------------------------

    def _list_pods(self, request: Request, namespace: str) -> Response:
        query = request.query
        try:
            by_label = selectors.parse(query.get("labelSelector", ""))
            by_field = selectors.parse_fields(query.get("fieldSelector", ""))
        except GoError as error:
            return failure(400, str(error))
        unknown = next((path for path, _, _ in by_field if path not in _FIELDS), None)
        if unknown is not None:
            return failure(400, f"field label not supported: {unknown}")
        items = [
            pod.document
            for pod in self.pods.values()
            if (not namespace or pod.spec.namespace == namespace)
            and by_label.matches(pod.document["metadata"]["labels"])
            and all((_FIELDS[path](pod.document) == value) == equal for path, equal, value in by_field)
        ]
        metadata: dict[str, Any] = {"resourceVersion": "1"}
        limit = int(query.get("limit") or 0)
        if limit:
            size = min(limit, self.spec.page_size or limit)
            start = int(query.get("continue") or 0)
            if start + size < len(items):
                metadata["continue"] = str(start + size)
                metadata["remainingItemCount"] = len(items) - start - size
            items = items[start : start + size]
        return Response(200, {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items})

    def _pod(self, request: Request, full_name: str) -> Response:
        pod = self.pods.get(full_name)
        if pod is None:
            return _not_found("pods", full_name.partition("/")[2])
        if request.method == "GET":
            return Response(200, pod.document)
        if request.method != "DELETE":
            return failure(405, "the server does not allow this method on the requested resource")
        self._delete(pod, request.body or {})
        return Response(200, pod.document)

    def _delete(self, pod: LivePod, options: Mapping[str, Any]) -> None:
        if options.get("gracePeriodSeconds") == 0:
            self.remove_pod(pod.spec.full_name)
        else:
            self._terminate(pod)

    def _evict(self, request: Request, full_name: str) -> Response:
        pod = self.pods.get(full_name)
        if pod is None:
            return _not_found("pods", full_name.partition("/")[2])
        budget = pod.spec.budget
        if budget and (budget.blocked_attempts is None or pod.blocked < budget.blocked_attempts):
            pod.blocked += 1
            return failure(429, _BUDGET_TEXT, retry_after=budget.retry_after, causes=[{"reason": "DisruptionBudget"}])
        self._delete(pod, (request.body or {}).get("deleteOptions") or {})
        return Response(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})

    def _daemonset(self, namespace: str, name: str) -> Response:
        if (namespace, name) not in self.spec.daemonsets:
            return _not_found("daemonsets.apps", name)
        return Response(200, {"kind": "DaemonSet", "apiVersion": "apps/v1", "metadata": {"name": name, "namespace": namespace}})


_FIELDS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "metadata.name": lambda pod: str(pod["metadata"]["name"]),
    "metadata.namespace": lambda pod: str(pod["metadata"]["namespace"]),
    "spec.nodeName": lambda pod: str(pod["spec"].get("nodeName", "")),
    "status.phase": lambda pod: str(pod["status"].get("phase", "")),
}


def _not_found(resource: str, name: str) -> Response:
    return failure(404, f"{resource} {quote(name)} not found", name=name, kind=resource.partition(".")[0])


def _label_problems(labels: Mapping[str, str]) -> list[str]:
    problems = []
    for key, value in sorted(labels.items()):
        problems += [f"metadata.labels: Invalid value: {quote(key)}: {text}" for text in selectors.label_key_errors(key)]
        problems += [
            f"metadata.labels: Invalid value: {quote(str(value))}: {text}" for text in selectors.label_value_errors(str(value))
        ]
    return problems
