"""The fake API server's state and semantics: objects, and what each request does to them.

One node and what is on it, and whatever a client adds. Reads with selectors and paging, creation, replacement, patches
with validation, deletion and eviction, errors worded as by a real API server. Documents are handed out as they are, never
copied, and a change makes a new document: a caller must not change them.

Simulated runs and the HTTP server share it. What only a server's clients ask for (DaemonSets, namespaces, claims) is made
when it is first asked for.

Source: k8s.io/apiserver/pkg/endpoints/handlers, pkg/registry/generic; k8s.io/kubernetes/pkg/registry/core.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from simulator.cluster import discovery, status, validation
from simulator.cluster import patch as patches
from simulator.cluster.decoding import decoded
from simulator.cluster.kinds import (
    BY_NAME,
    BY_PLURAL,
    DAEMON_SET,
    NAMESPACE,
    NODE,
    POD,
    RESOURCE_CLAIM,
    Kind,
)
from simulator.cluster.objects import (
    ClusterSpec,
    Pod,
    claim_document,
    daemonset_document,
    daemonset_status,
    namespace_document,
    node_document,
    pod_document,
)
from simulator.cluster.selecting import Selection, selection
from simulator.cluster.status import Refused, bad_request
from simulator.gocompat import GoError
from simulator.ports import AS_PROTOBUF, Request, Response

_BUDGET_TEXT: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_NO_CONTAINERS: Final = "no container runs in this cluster (dmsim serve), so there is nothing to {}"
_NEEDS_CONTAINERS: Final = {
    "log": "read logs of",
    "exec": "execute a command in",
    "attach": "attach to",
    "portforward": "forward a port to",
}
_ALWAYS_THERE: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_REMEMBERED: Final = 10_000
"""How many changes a watch can go back."""

Document = Mapping[str, Any]


@dataclass(slots=True)
class Life:
    """What a pod does that its document does not say: its description, and how often its eviction was blocked."""

    spec: Pod
    blocked: int = 0


class Change(NamedTuple):
    """One change of an object: the version it made, the object before (None: it is new) and after (None: it is gone)."""

    version: int
    kind: Kind
    before: Document | None
    after: Document | None


class Target(NamedTuple):
    """What a path names: a kind, a namespace ("" for all, or none), an object ("" for all), a subresource."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> str:
        """The object's key in the store."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@lru_cache(maxsize=1024)
def target(path: str) -> Target | None:
    """The objects that a path names; None if it names none."""
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            return None
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2 and rest[2] not in NAMESPACE.subresources:
        _, namespace, *rest = rest
    if not 1 <= len(rest) <= 3 or "" in path.strip("/").split("/"):
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    kind = BY_PLURAL.get((group, version, plural))
    if kind is None or ((namespace != "") != kind.namespaced and (name or namespace)):
        return None
    return Target(kind, namespace, name, subresource)


class Store:
    """The objects. `terminate` is told of a pod that must go, `node_changed` of every accepted change of a node."""

    def __init__(
        self,
        spec: ClusterSpec,
        created: str,
        moment: Callable[[], str],
        terminate: Callable[[str], None],
        node_changed: Callable[[str], None],
    ) -> None:
        self.spec = spec
        self.version = 1
        """The latest resourceVersion."""
        self.changes: deque[Change] = deque(maxlen=_REMEMBERED)
        self.watchers: list[Callable[[Change], None]] = []
        self.node_name = spec.node.name if spec.node else ""
        self.pods: dict[str, dict[str, Any]] = {
            pod.full_name: pod_document(pod, self.node_name, f"pod-{index}", created) for index, pod in enumerate(spec.pods)
        }
        self.lives: dict[str, Life] = {pod.full_name: Life(pod) for pod in spec.pods}
        nodes = {self.node_name: node_document(spec.node, created)} if spec.node else {}
        self._objects: dict[Kind, dict[str, dict[str, Any]]] = {NODE: nodes, POD: self.pods}
        self._created = created
        self._moment = moment
        self._terminate = terminate
        self._node_changed = node_changed

    @property
    def node(self) -> dict[str, Any] | None:
        """The cluster's own node."""
        return self._objects[NODE].get(self.node_name)

    def objects(self, kind: Kind) -> dict[str, dict[str, Any]]:
        """The objects of a kind by key: namespace/name, or the name of one that has no namespace."""
        found = self._objects.get(kind)
        if found is None:
            found = self._objects[kind] = {_key(document): document for document in self._first(kind)}
        return found

    def _first(self, kind: Kind) -> Iterable[dict[str, Any]]:
        """The objects of a kind that the cluster began with, whenever they are first asked for; only what counts pods counts anew."""
        spec, created = self.spec, self._created
        if kind is RESOURCE_CLAIM:
            return [claim_document(claim, created) for claim in spec.resource_claims]
        if kind is DAEMON_SET:
            return [
                daemonset_document(namespace, name, self._described(namespace, name), self._pods_of(namespace, name), created)
                for namespace, name in sorted(spec.daemonsets)
            ]
        placed: Iterable[dict[str, Any]] = ()
        if kind is NAMESPACE:
            names = {
                *_ALWAYS_THERE,
                *(pod.namespace for pod in spec.pods),
                *(namespace for namespace, _ in spec.daemonsets),
            }
            names |= {claim.namespace for claim in spec.resource_claims}
            names |= {document["metadata"]["namespace"] for document in spec.objects if "namespace" in document["metadata"]}
            placed = [namespace_document(name, created) for name in sorted(names)]
        described = [
            {
                **document,
                "metadata": {
                    "uid": f"{kind.singular}-{index}",
                    "resourceVersion": "1",
                    "creationTimestamp": created,
                    **document["metadata"],
                },
            }
            for index, document in enumerate(spec.objects)
            if BY_NAME[document["apiVersion"], document["kind"]] is kind
        ]
        return [*placed, *described]

    def _described(self, namespace: str, name: str) -> Pod | None:
        """The first pod that a DaemonSet had, if it had any."""
        return next(
            (
                pod
                for pod in self.spec.pods
                if pod.namespace == namespace and pod.owner and (pod.owner.kind, pod.owner.name) == (DAEMON_SET.kind, name)
            ),
            None,
        )

    def _pods_of(self, namespace: str, name: str) -> list[dict[str, Any]]:
        return [
            pod
            for pod in self.pods.values()
            if pod["metadata"]["namespace"] == namespace
            and any(owner["kind"] == DAEMON_SET.kind and owner["name"] == name for owner in _owners(pod))
        ]

    # --- changes ----------------------------------------------------------------------------------------------

    def put(self, kind: Kind, document: Document) -> dict[str, Any]:
        """An object is as the document says from now on; gives it with its new resourceVersion."""
        self.version += 1
        written = {**document, "metadata": {**document["metadata"], "resourceVersion": str(self.version)}}
        objects, key = self.objects(kind), _key(written)
        before, objects[key] = objects.get(key), written
        self._note(Change(self.version, kind, before, written))
        return written

    def remove(self, kind: Kind, key: str) -> None:
        """The object is gone, if it was there."""
        gone = self.objects(kind).pop(key, None)
        if gone is None:
            return
        self.version += 1
        self._note(Change(self.version, kind, gone, None))
        if kind is POD:
            del self.lives[key]
            if DAEMON_SET in self._objects:
                self._count(gone)

    def _note(self, change: Change) -> None:
        self.changes.append(change)
        for tell in self.watchers:
            tell(change)

    def _count(self, pod: Document) -> None:
        """The DaemonSet of a pod that went counts its pods again."""
        namespace = pod["metadata"]["namespace"]
        for owner in _owners(pod):
            daemonset = self._objects[DAEMON_SET].get(f"{namespace}/{owner['name']}")
            if daemonset is not None and owner["kind"] == DAEMON_SET.kind:
                counted = daemonset_status(self._pods_of(namespace, owner["name"]))
                self.put(DAEMON_SET, {**daemonset, "status": {**daemonset.get("status", {}), **counted}})

    # --- requests ---------------------------------------------------------------------------------------------

    def answer(self, request: Request) -> Response:
        """Do what a request asks."""
        try:
            found = target(request.path)
            if found is None:
                return Response(200, self._document(request))
            if found.subresource:
                return self._subresource(request, found)
            if found.name:
                return self._one(request, found)
            return self._all(request, found)
        except Refused as refused:
            return refused.response

    def _document(self, request: Request) -> Mapping[str, Any]:
        """What the API server says of itself."""
        document = discovery.document(request.path, self.spec.eviction)
        if document is None:
            raise status.no_such_path()
        if request.method != "GET":
            raise status.not_allowed()
        return document

    def _all(self, request: Request, found: Target) -> Response:
        match request.method:
            case "GET":
                return self._list(request, found)
            case "POST" if found.namespace or not found.kind.namespaced:
                return self._create(request, found)
            case "DELETE" if found.namespace or not found.kind.namespaced:
                return self._delete_all(request, found)
            case _:
                raise status.not_allowed()

    def _one(self, request: Request, found: Target) -> Response:
        if request.method == "PATCH" and request.content_type == patches.APPLY and found.key not in self.objects(found.kind):
            return self._create(request, found)
        document = self._existing(found)
        match request.method:
            case "GET":
                return Response(200, document)
            case "PATCH":
                return Response(200, self._update(request, found, document, self._patched(request, found.kind, document)))
            case "PUT":
                return Response(200, self._update(request, found, document, _body(request, found.kind)))
            case "DELETE":
                return Response(200, self._delete(request, found.kind, document))
            case _:
                raise status.not_allowed()

    def _subresource(self, request: Request, found: Target) -> Response:
        if found.subresource not in found.kind.subresources or (found.subresource == "eviction" and not self.spec.eviction):
            raise status.no_such_path()
        document = self._existing(found)
        match found.subresource, request.method:
            case "status", "GET":
                return Response(200, document)
            case "status", "PATCH":
                return Response(200, self._update(request, found, document, self._patched(request, found.kind, document)))
            case "status", "PUT":
                return Response(200, self._update(request, found, document, _body(request, found.kind)))
            case "eviction", "POST":
                return self._evict(request, found.key)
            case ("log" | "exec" | "attach" | "portforward") as name, _:
                raise bad_request(_NO_CONTAINERS.format(_NEEDS_CONTAINERS[name]))
            case _:
                raise status.not_allowed()

    def _existing(self, found: Target) -> dict[str, Any]:
        document = self.objects(found.kind).get(found.key)
        if document is None:
            raise status.not_found(found.kind, found.name)
        return document

    # --- reading ----------------------------------------------------------------------------------------------

    def select(self, chosen: Selection) -> list[dict[str, Any]]:
        """The objects that a selection means, in the order in which they came."""
        return [document for document in self.objects(chosen.kind).values() if chosen.matches(document)]

    def _list(self, request: Request, found: Target) -> Response:
        query = request.query
        items = self.select(selection(found.kind, found.namespace, query))
        metadata: dict[str, Any] = {"resourceVersion": str(self.version)}
        limit = _number(query, "limit")
        if limit:
            size = min(limit, self.spec.page_size or limit)
            start = _number(query, "continue")
            if start + size < len(items):
                metadata["continue"] = str(start + size)
                metadata["remainingItemCount"] = len(items) - start - size
            items = items[start : start + size]
        return Response(200, _list_document(found.kind, metadata, items))

    # --- writing ----------------------------------------------------------------------------------------------

    def _create(self, request: Request, found: Target) -> Response:
        kind, document = found.kind, decoded(found.kind, _body(request, found.kind))
        metadata = validation.metadata(document)
        if found.namespace != metadata.setdefault("namespace", found.namespace):
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if not found.namespace:
            del metadata["namespace"]
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = f"{metadata['generateName']}{self.version + 1:05d}"
        name = metadata.get("name", "")
        if found.name and found.name != name:
            raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({found.name})")
        validation.check_new(kind, {**document, "metadata": metadata}, labels=self.spec.validates)
        if found.namespace and found.namespace not in self.objects(NAMESPACE):
            raise status.not_found(NAMESPACE, found.namespace)
        key = f"{found.namespace}/{name}" if found.namespace else name
        if key in self.objects(kind):
            raise status.already_exists(kind, name)
        metadata |= {"uid": f"{kind.singular}-{self.version + 1}", "creationTimestamp": self._moment()}
        for owned in ("deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"):
            metadata.pop(owned, None)
        created = {**document, "kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        if "status" in kind.subresources and kind is not NODE:
            created.pop("status", None)
            if kind in _BEGINS_AS:
                created["status"] = _BEGINS_AS[kind]
        if _is_dry_run(request):
            return Response(201, created)
        written = self.put(kind, created)
        if kind is POD:
            self.lives[key] = Life(Pod(found.namespace, name, owner=None))
        return Response(201, written)

    def _patched(self, request: Request, kind: Kind, document: Document) -> Document:
        accepted = patches.CONTENT_TYPES if not kind.custom else tuple(t for t in patches.CONTENT_TYPES if t != patches.STRATEGIC)
        content_type = request.content_type or patches.STRATEGIC
        if content_type not in accepted:
            raise status.unsupported_media_type(accepted)
        if content_type == patches.APPLY:
            content_type = patches.MERGE if kind.custom else patches.STRATEGIC
        try:
            return patches.apply(content_type, document, request.body)
        except GoError as error:
            raise bad_request(str(error)) from None

    def _update(self, request: Request, found: Target, current: Document, proposed: Document) -> Document:
        """The object as it is proposed, as far as the request may change it."""
        kind, old, proposed = found.kind, current["metadata"], decoded(found.kind, proposed)
        new = validation.metadata(proposed)
        if new.get("name", found.name) != found.name:
            raise bad_request(f"the name of the object ({new['name']}) does not match the name on the URL ({found.name})")
        if new.get("namespace", found.namespace) != found.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if new.get("uid", old["uid"]) != old["uid"]:
            text = f"Precondition failed: UID in precondition: {new['uid']}, UID in object meta: {old['uid']}"
            raise status.conflict(kind, found.name, text)
        if new.get("resourceVersion", old["resourceVersion"]) not in {old["resourceVersion"], ""}:
            raise status.conflict(kind, found.name)
        if found.subresource == "status":
            changed = {**current, "status": proposed.get("status", {})}
        else:
            kept = {name: old[name] for name in _KEPT if name in old}
            changed = {**proposed, "kind": kind.kind, "apiVersion": kind.api_version}
            changed["metadata"] = {**{name: value for name, value in new.items() if name not in _KEPT}, **kept}
            if "status" in kind.subresources:
                changed.pop("status", None)
                if "status" in current:
                    changed["status"] = current["status"]
            validation.check_changed(kind, changed, labels=self.spec.validates)
        if _is_dry_run(request):
            return changed
        written = current if changed == current else self.put(kind, changed)
        if kind is NODE:
            self._node_changed(found.name)
        if kind is not POD and "deletionTimestamp" in old and not written["metadata"].get("finalizers"):
            self.remove(kind, found.key)
        return written

    # --- deletion ---------------------------------------------------------------------------------------------

    def _delete_all(self, request: Request, found: Target) -> Response:
        items = self.select(selection(found.kind, found.namespace, request.query))
        for document in items:
            self._delete(request, found.kind, document)
        return Response(200, _list_document(found.kind, {"resourceVersion": str(self.version)}, items))

    def _delete(self, request: Request, kind: Kind, document: Document) -> Document:
        """Let an object go, at once or in its time; gives what the server answers."""
        options = _optional(request.body, "DeleteOptions")
        self._check_preconditions(kind, document, options)
        grace = options.get("gracePeriodSeconds")
        if grace is None and "gracePeriodSeconds" in request.query:
            grace = _number(request.query, "gracePeriodSeconds")
        if not _is_dry_run(request, options):
            self._let_go(kind, _key(document), grace)
        if kind is POD:
            return self.pods.get(_key(document), document)
        return status.success(kind, document["metadata"]["name"], document["metadata"]["uid"])

    def _let_go(self, kind: Kind, key: str, grace: Any) -> None:
        document = self.objects(kind)[key]
        if kind is POD:
            if grace == 0 or not document["spec"].get("nodeName"):
                self.remove(POD, key)
            else:
                self._terminate(key)
        elif document["metadata"].get("finalizers"):
            self.mark_deleted(kind, key)
        else:
            self.remove(kind, key)
            if kind is NAMESPACE:
                self._empty(key)

    def mark_deleted(self, kind: Kind, key: str) -> None:
        """The object is to go, and says so from now on."""
        document = self.objects(kind)[key]
        if "deletionTimestamp" not in document["metadata"]:
            self.put(kind, {**document, "metadata": {**document["metadata"], "deletionTimestamp": self._moment()}})

    def _empty(self, namespace: str) -> None:
        """Everything in a namespace goes with it."""
        for kind in BY_NAME.values():
            for key in [key for key in self.objects(kind) if kind.namespaced and key.startswith(f"{namespace}/")]:
                self.remove(kind, key)

    @staticmethod
    def _check_preconditions(kind: Kind, document: Document, options: Mapping[str, Any]) -> None:
        metadata = document["metadata"]
        expected = _optional(options.get("preconditions"), "Preconditions")
        for field, word in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            if expected.get(field, metadata[field]) != metadata[field]:
                text = f"Precondition failed: {word} in precondition: {expected[field]}, {word} in object meta: {metadata[field]}"
                raise status.conflict(kind, metadata["name"], text)

    def _evict(self, request: Request, key: str) -> Response:
        options = _optional(_optional(request.body, "Eviction").get("deleteOptions"), "DeleteOptions")
        is_dry_run = _is_dry_run(request, options)
        life = self.lives[key]
        budget = life.spec.budget
        if budget and (budget.blocked_attempts is None or life.blocked < budget.blocked_attempts):
            life.blocked += not is_dry_run
            return status.failure(429, _BUDGET_TEXT, retry_after=budget.retry_after, causes=[{"reason": "DisruptionBudget"}])
        self._check_preconditions(POD, self.pods[key], options)
        if not is_dry_run:
            self._let_go(POD, key, options.get("gracePeriodSeconds"))
        return Response(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})


_KEPT: Final = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
"""Metadata that no client changes."""
_BEGINS_AS: Final[Mapping[Kind, Mapping[str, Any]]] = {
    POD: {"phase": "Pending"},
    NAMESPACE: {"phase": "Active"},
    DAEMON_SET: {},
    RESOURCE_CLAIM: {},
}
"""Kind -> the status of a new one, whatever its client wrote."""


def _key(document: Document) -> str:
    metadata = document["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def _owners(pod: Document) -> list[Mapping[str, Any]]:
    return pod["metadata"].get("ownerReferences") or []


def _list_document(kind: Kind, metadata: Mapping[str, Any], items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata, "items": items}


def _body(request: Request, kind: Kind) -> Mapping[str, Any]:
    """A document of the kind, without the note of how it travelled. Raises Refused."""
    body = {name: value for name, value in _mapping(request.body, kind.kind).items() if name not in AS_PROTOBUF}
    for field, expected in (("kind", kind.kind), ("apiVersion", kind.api_version)):
        given = body.get(field, expected)
        if given != expected:
            raise bad_request(f"{field} in the data ({given}) does not match the expected one ({expected})")
    return body


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise bad_request(f"the object provided is unrecognized: no {what}")
    return value


def _optional(value: Any, what: str) -> Mapping[str, Any]:
    return {} if value is None else _mapping(value, what)


def _number(query: Mapping[str, str], name: str) -> int:
    """A whole number of a query, 0 if it is not there. Raises Refused."""
    text = query.get(name) or "0"
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise bad_request(f'{name}: Invalid value: "{text}": not a whole number')
    return int(text)


def _is_dry_run(request: Request, options: Mapping[str, Any] | None = None) -> bool:
    return bool(request.query.get("dryRun") or (options and options.get("dryRun")))
