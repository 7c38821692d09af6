"""Objects of the Kubernetes API -> the document of a cluster, as cluster files have it. Only what a run can see is taken.

Of a pod that is: where it belongs, labels, owner, what its containers ask for, claims, emptyDir, phase. No environment, no
arguments, no images, no annotations but NVIDIA's. Of driver-manager's container, how often and how it ended.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from simulator.kube.drain import MIRROR_POD
from simulator.manager.charts import DRIVER_MANAGER_CONTAINER
from simulator.reading import FORMAT, InputError, nearest
from simulator.selectors import label_key_errors, label_value_errors, subdomain_errors
from simulator.snapshot.contents import TABLE, Contents
from simulator.snapshot.findings import Findings
from simulator.snapshot.policy import policy_without_secrets
from simulator.snapshot.secrets import is_secret_name, looks_like_secret
from simulator.snapshot.values import elements, flag, mapping, text, texts

_KEPT_ANNOTATIONS: Final = re.compile(r"([\w.-]+\.)?nvidia\.com/.*")
_RESOURCE: Final = re.compile(r"nvidia\.com/[A-Za-z0-9._-]{1,63}")
"""The resources that driver-manager looks at."""
_KIND: Final = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")
_API_VERSION: Final = re.compile(r"([a-z0-9.-]{1,253}/)?v\d{1,4}((alpha|beta)\d{1,4})?")
_QUANTITY: Final = re.compile(r"[0-9.]+[A-Za-z]*")
_GPU_LABEL: Final = re.compile(r"feature\.node\.kubernetes\.io/pci-(030[02]_)?10de(_.*)?\.present|nvidia\.com/gpu\.present")
_PHASES: Final = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_EVICTION: Final = "pods/eviction"
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")
"""The init container that runs driver-manager."""
_MOST_PODS, _MOST_LABELS = 5_000, 30_000
"""So many pods a node has, and labels it and they have, at most: ten times what is usual."""
_MOST_COMPARED: Final = 300_000
"""Pods times disruption budgets: about a second. A node has some hundred pods."""
_STUCK: Final = "it is terminating, and the time it had is over: it never goes"


@dataclass(frozen=True, slots=True)
class Scene:
    """One node and the objects around it, as the API has them."""

    node: dict[str, Any]
    pods: tuple[dict[str, Any], ...]
    """Those on the node."""
    daemonsets: tuple[dict[str, Any], ...]
    policy: dict[str, Any] | None
    """The ClusterPolicy."""
    charts: tuple[str, ...] = ()
    """The versions of the GPU Operator's chart that are named somewhere."""
    unsaved_gpus: int = 0
    """So many GPUs are allocated to pods whose requests were not saved."""

    @property
    def name(self) -> str:
        """The node's name."""
        return text(self.node, "metadata", "name")

    @property
    def labels(self) -> dict[str, str]:
        """The node's labels."""
        return texts(self.node, "metadata", "labels")


def find_scene(found: Contents, name: str, findings: Findings) -> Scene:
    """The objects of one node: the one that is named, else the only one, else the only one with GPUs. Raises InputError."""
    nodes: dict[str, dict[str, Any]] = {}
    for place in found.of("Node"):
        other = text(place.value, "metadata", "name")
        if len(mapping(place.value)) >= len(nodes.get(other, {})):  # a whole object tells more than a description
            nodes[other] = place.value
    nodes.pop("", None)
    if not nodes:
        raise _no_node(found)
    node = nodes[_choose(found.name, nodes, name)]
    name = text(node, "metadata", "name")
    if problems := subdomain_errors(name):
        mend = "save the node again"
        raise InputError(found.name, "", f'holds a node whose name "{name}" is impossible: {problems[0]}', mend)
    pods: dict[str, dict[str, Any]] = {}
    for place in found.of("Pod", name):
        pod = place.value
        key = full_name(pod)
        if text(pod, "spec", "nodeName") == name and (key not in pods or not pod.get("isListed")):
            pods[key] = pod
    labels = sum(
        len(texts(each, "metadata", "labels")) + len(texts(each, "spec", "nodeSelector")) for each in (node, *pods.values())
    )
    if len(pods) > _MOST_PODS or labels > _MOST_LABELS:
        mend = "save the objects of one real node"
        raise InputError(found.name, "", f"holds {len(pods)} pods of node {name} with {labels} labels: more than are read", mend)
    if not pods:
        findings.unseen("pods: none of this node's was found")
        findings.assumed("no pod is on the node, so nothing is evicted")
    daemonsets = tuple(place.value for place in found.of("DaemonSet"))
    unsaved = _note_listed(pods, _allocated(found, name), _operators_namespaces((*pods.values(), *daemonsets)), findings)
    policies = [place.value for place in found.of("ClusterPolicy")]
    return Scene(
        node,
        tuple(pods.values()),
        daemonsets,
        policy_without_secrets(policies[0]) if policies else None,
        tuple(found.charts),
        unsaved,
    )


# --- pods of which only the name is known ---------------------------------------------------------------------------


def _note_listed(pods: dict[str, dict[str, Any]], allocated: Counter[str], operators: set[str], findings: Findings) -> int:
    """Tell of the pods of which only the name is known, and of the GPUs that are allocated to pods that were not saved.

    If only one pod can have them, it is given them. Gives how many they are.
    """
    listed = [key for key, pod in pods.items() if pod.get("isListed")]
    for pod in pods.values():
        if text(pod, "status", "phase") not in {"Succeeded", "Failed"}:
            allocated.subtract(_requests(pod))
    left = +allocated
    if left:
        amounts = ", ".join(f"{count} {resource}" for resource, count in sorted(left.items()))
        likely = [key for key in listed if key.partition("/")[0] not in operators]
        if len(likely) == 1:
            who = f"{likely[0]}, it seems"
        else:
            who = f"perhaps of {', '.join(likely[:5])}{', ...' * (len(likely) > 5)}" if likely else "none is named"
        findings.unseen(f"pods that ask for {amounts}: the node has allocated them to pods that were not saved ({who})")
        if len(likely) == 1:
            resources = {resource: str(count) for resource, count in left.items()}
            pods[likely[0]]["spec"]["containers"] = [{"resources": {"limits": resources, "requests": resources}}]
            findings.assumed(f"pod {likely[0]} asks for {amounts}: no other pod of the node is known that could")
    if listed:
        findings.unseen(
            f"what {len(listed)} pods ask for: only their names are listed ({', '.join(listed[:3])}{', ...' * (len(listed) > 3)})"
        )
        findings.assumed("pods of which only the name is known have no owner" + ("" if left else " and ask for no GPU"))
    return left.total()


def _allocated(found: Contents, node: str) -> Counter[str]:
    """What of NVIDIA's resources the node has allocated, as far as its description says so."""
    for place in found.of("Node"):
        if text(place.value, "metadata", "name") == node and (given := texts(place.value, "status", "allocated")):
            kept = {resource: count for resource, count in given.items() if not looks_like_secret(resource)}
            return Counter({resource: int(count) for resource, count in kept.items() if re.fullmatch(r"\d{1,4}", count)})
    return Counter()


def _requests(pod: Mapping[str, Any]) -> Counter[str]:
    """What a pod's containers ask for of NVIDIA's resources, together."""
    out = Counter[str]()
    for container in elements(pod, "spec", "containers"):
        asked = {**_quantities(container, "limits"), **_quantities(container, "requests")}
        out.update({resource: int(count) for resource, count in asked.items() if re.fullmatch(r"\d{1,4}", count)})
    return out


def _operators_namespaces(items: Iterable[Mapping[str, Any]]) -> set[str]:
    """Namespaces whose pods do no work on GPUs: Kubernetes' own, and those in which driver-manager runs."""
    ours = {
        text(item, "metadata", "namespace")
        for item in items
        for spec in (mapping(item, "spec"), mapping(item, "spec", "template", "spec"))
        if any(text(container, "name") == DRIVER_MANAGER_CONTAINER for container in elements(spec, "initContainers"))
    }
    return {"kube-system", "gpu-operator", *ours}


def full_name(pod: Mapping[str, Any]) -> str:
    """namespace/name."""
    return f"{text(pod, 'metadata', 'namespace') or 'default'}/{text(pod, 'metadata', 'name')}"


def _no_node(found: Contents) -> InputError:
    """What is there instead tells what to do."""
    if found.tables:
        return InputError(found.tables[0], "", TABLE, "add -o yaml")
    if found.skipped:
        return InputError(found.name, "", f"holds no node that can be read ({found.skipped[0]})", "save it again")
    if found.logs and not found.objects:
        return InputError(found.name, "", "holds a log and no node", "ask what the log says: dmsim explain")
    return InputError(found.name, "", "holds no node", "add what `kubectl get node NAME -o yaml` prints")


def _choose(file: str, nodes: Mapping[str, dict[str, Any]], name: str) -> str:
    """The name of the node that is meant. Raises InputError."""
    if name:
        if name not in nodes:
            raise InputError(file, "", f'holds no node "{name}"', nearest(name, nodes))
        return name
    candidates = [other for other, node in nodes.items() if has_gpus(node)] if len(nodes) > 1 else [*nodes]
    if len(candidates) != 1:
        known = ", ".join(sorted(candidates or nodes)[:10])
        raise InputError(file, "", f"holds {len(nodes)} nodes", f"say which one with --node: {known}")
    return candidates[0]


def has_gpus(node: Mapping[str, Any]) -> bool:
    """Do its labels say that there are NVIDIA GPUs?"""
    return any(_GPU_LABEL.fullmatch(label) and value == "true" for label, value in texts(node, "metadata", "labels").items())


# --- the cluster ----------------------------------------------------------------------------------------------------


def cluster_document(found: Contents, scene: Scene, findings: Findings) -> dict[str, Any]:
    """The document of the cluster that has this node."""
    out: dict[str, Any] = {"format": FORMAT, "node": _node(scene.node, findings)}
    now = max((text(condition, "lastHeartbeatTime") for condition in elements(scene.node, "status", "conditions")), default="")
    blocked = _Budgets(found, len(scene.pods), findings)
    out["pods"] = [_pod(pod, now, findings, is_blocked=blocked.hold(pod)) for pod in scene.pods if _is_named(pod, findings)]
    if scene.pods:
        findings.assumed("each pod goes a second after it must; nobody can see how long one takes")
    out["daemonsets"] = _daemonsets(scene, out["pods"])
    claims = [_claim(place.value) for place in found.of("ResourceClaim") if _is_named(place.value, findings)]
    wanted = {(text(pod, "metadata", "namespace") or "default", name) for pod in scene.pods for name in _claims_of(pod)}
    out["resource_claims"] = [claim for claim in claims if (claim["namespace"], claim["name"]) in wanted]
    _note_missing_claims(out, findings)
    versions = [
        text(resource, "version")
        for item in found.objects
        if item.kind == "APIResourceList" and (place := item.read(found.budget))
        for resource in elements(place.value, "resources")
        if text(resource, "name") == _EVICTION
    ]
    if "v1beta1" in versions:
        out["eviction"] = "policy/v1beta1"
    if scene.policy is not None:
        out["objects"] = [scene.policy]
    return out


def _is_named(value: Mapping[str, Any], findings: Findings) -> bool:
    """Has it names that an API server would have taken?"""
    names = (text(value, "metadata", "name"), text(value, "metadata", "namespace") or "default")
    if all(name and not subdomain_errors(name) for name in names):
        return True
    findings.unseen(f'a {text(value, "kind") or "object"} whose name is impossible: "{"/".join(reversed(names))[:80]}"')
    return False


def _node(node: Mapping[str, Any], findings: Findings) -> dict[str, Any]:
    return {
        "name": text(node, "metadata", "name"),
        "labels": _labels(texts(node, "metadata", "labels"), "the node", findings),
        "annotations": _annotations(node),
        "unschedulable": flag(node, "spec", "unschedulable"),
    }


def _labels(labels: Mapping[str, str], whose: str, findings: Findings) -> dict[str, str]:
    """Labels that an API server would have taken, and that hold no secret."""
    out = {}
    for key, value in labels.items():
        if label_key_errors(key) or label_value_errors(value):
            findings.unseen(f'an impossible label of {whose}: "{key[:80]}"')
        elif looks_like_secret(value) or looks_like_secret(key) or is_secret_name(key):
            findings.unseen(f"a label of {whose} that looks like a secret: left out")
        else:
            out[key] = value
    return out


def _annotations(value: Mapping[str, Any]) -> dict[str, str]:
    """NVIDIA's annotations; that of a mirror pod says all by being there."""
    annotations = texts(value, "metadata", "annotations")
    kept = {
        key: item
        for key, item in annotations.items()
        if _KEPT_ANNOTATIONS.fullmatch(key) and not looks_like_secret(item) and not is_secret_name(key)
    }
    return kept | ({MIRROR_POD: ""} if MIRROR_POD in annotations else {})


def _pod(pod: Mapping[str, Any], now: str, findings: Findings, *, is_blocked: bool) -> dict[str, Any]:
    metadata, spec, status = (mapping(pod, key) for key in ("metadata", "spec", "status"))
    namespace, name, phase = text(metadata, "namespace") or "default", text(metadata, "name"), text(status, "phase")
    whose = f"pod {namespace}/{name}"
    out: dict[str, Any] = {"namespace": namespace, "name": name}
    out["labels"] = _labels(texts(metadata, "labels"), whose, findings)
    out["annotations"] = _annotations(pod)
    out["node_selector"] = _labels(texts(spec, "nodeSelector"), whose, findings)
    out["phase"] = phase if phase in _PHASES else "Running"
    if (owner := _owner(pod)) is not None:
        out["owner"] = owner
    out["containers"] = [_container(container) for container in elements(spec, "containers")]
    out["init_containers"] = [_container(container) for container in elements(spec, "initContainers")]
    out["empty_dir"] = any("emptyDir" in volume for volume in elements(spec, "volumes"))
    out["finalizers"] = finalizers = _finalizers(metadata)
    if deleted := text(metadata, "deletionTimestamp"):
        out["terminating"] = True
        if deleted < now:
            out["termination_s"] = None
            held = f" (finalizers: {', '.join(finalizers)})" if finalizers else ""
            findings.assumed(f"{whose}: {_STUCK}{held}")
    if is_blocked:
        out["budget"] = {}
        findings.assumed(f"{whose}: its disruption budget blocks eviction, as it does now, for ever")
    kept = ("name", "resourceClaimName", "resourceClaimTemplateName")
    out["resource_claims"] = [_only(claim, *kept) for claim in elements(spec, "resourceClaims")]
    out["resource_claim_statuses"] = [_only(claim, *kept) for claim in elements(status, "resourceClaimStatuses")]
    if unfinished := [found for item in elements(status, "initContainerStatuses") if (found := _unfinished(item))]:
        out["status"] = {"initContainerStatuses": unfinished}
    return {key: value for key, value in out.items() if value or key in {"termination_s", "budget"}}


def _only(value: Mapping[str, Any], *keys: str) -> dict[str, str]:
    return {key: found for key in keys if (found := text(value, key)) and not subdomain_errors(found)}


def _finalizers(metadata: Mapping[str, Any]) -> list[str]:
    """Those that an API server would have taken, and that hold no secret."""
    given = metadata.get("finalizers")
    names = [item for item in given if isinstance(item, str)] if isinstance(given, list) else []
    return [name for name in names if not label_key_errors(name) and not looks_like_secret(name)]


def _unfinished(status: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of an init container that is not over, or was started again: how often, and how it ended. {} of another."""
    restarts, name = status.get("restartCount"), text(status, "name")
    again = restarts if isinstance(restarts, int) and not isinstance(restarts, bool) and 0 <= restarts < 1 << 31 else 0
    if name != DRIVER_MANAGER_CONTAINER or (not again and mapping(status, "state", "terminated").get("exitCode") == 0):
        return {}
    out = {"name": name, "ready": flag(status, "ready"), "restartCount": again}
    return out | {key: state for key in ("state", "lastState") if (state := _state(mapping(status, key)))}


def _state(state: Mapping[str, Any]) -> dict[str, Any]:
    """A container's state, without messages, which may say anything."""
    for kind in ("waiting", "running", "terminated"):
        if isinstance(given := state.get(kind), dict):
            kept: dict[str, Any] = {}
            if re.fullmatch(r"[A-Za-z]{1,64}", reason := text(given, "reason")):
                kept["reason"] = reason
            code = given.get("exitCode")
            if isinstance(code, int) and not isinstance(code, bool) and abs(code) < 1 << 31:
                kept["exitCode"] = code
            kept |= {key: moment for key in ("startedAt", "finishedAt") if _MOMENT.fullmatch(moment := text(given, key))}
            return {kind: kept}
    return {}


def _owner(pod: Mapping[str, Any]) -> dict[str, Any] | None:
    """The owner that decides: the controller, else the first."""
    owners = [
        owner
        for owner in elements(pod, "metadata", "ownerReferences")
        if _KIND.fullmatch(text(owner, "kind"))
        and not looks_like_secret(text(owner, "kind"))
        and not subdomain_errors(text(owner, "name"))
    ]
    if not owners:
        return None
    owner = next((owner for owner in owners if flag(owner, "controller")), owners[0])
    return {
        "kind": text(owner, "kind"),
        "name": text(owner, "name"),
        "controller": flag(owner, "controller"),
        "api_version": version if _API_VERSION.fullmatch(version := text(owner, "apiVersion")) else "",
    }


def _container(container: Mapping[str, Any]) -> dict[str, Any]:
    """What it asks for. Its name, image, environment and arguments are nobody's business."""
    return {kind: amounts for kind in ("limits", "requests") if (amounts := _quantities(container, kind))}


def _quantities(container: Mapping[str, Any], kind: str) -> dict[str, str]:
    amounts: dict[Any, Any] = mapping(container, "resources", kind)
    return {
        name: str(value)
        for name, value in amounts.items()
        if isinstance(name, str)
        and _RESOURCE.fullmatch(name)
        and not looks_like_secret(name)
        and len(str(value)) < 64
        and _QUANTITY.fullmatch(str(value))
    }


def _daemonsets(scene: Scene, pods: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Those that were saved, and those that own a pod of a namespace of which none was saved."""
    saved = {
        (text(item, "metadata", "namespace") or "default", text(item, "metadata", "name"))
        for item in scene.daemonsets
        if not subdomain_errors(text(item, "metadata", "name"))
    }
    namespaces = {namespace for namespace, _ in saved}
    owners = {
        (pod["namespace"], pod["owner"]["name"])
        for pod in pods
        if mapping(pod, "owner").get("kind") == "DaemonSet" and pod["namespace"] not in namespaces
    }
    wanted = {(pod["namespace"], mapping(pod, "owner").get("name")) for pod in pods}
    return [{"namespace": namespace, "name": name} for namespace, name in sorted((saved & wanted) | owners)]


# --- claims and budgets ---------------------------------------------------------------------------------------------


def _claim(claim: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {
        "namespace": text(claim, "metadata", "namespace") or "default",
        "name": text(claim, "metadata", "name"),
    }
    if mapping(claim, "status", "allocation"):
        results = elements(claim, "status", "allocation", "devices", "results")
        out["drivers"] = [driver for result in results if not subdomain_errors(driver := text(result, "driver"))]
    return out


def _claims_of(pod: Mapping[str, Any]) -> set[str]:
    both = (*elements(pod, "spec", "resourceClaims"), *elements(pod, "status", "resourceClaimStatuses"))
    return {name for claim in both if (name := text(claim, "resourceClaimName"))}


def _note_missing_claims(cluster: Mapping[str, Any], findings: Findings) -> None:
    there = {(claim["namespace"], claim["name"]) for claim in cluster["resource_claims"]}
    for pod in cluster["pods"]:
        for reference in (*pod.get("resource_claims", ()), *pod.get("resource_claim_statuses", ())):
            name = reference.get("resourceClaimName")
            if name and (pod["namespace"], name) not in there:
                findings.unseen(f"the resource claim {pod['namespace']}/{name} of pod {pod['name']}")
                findings.assumed("claims that were not seen are gone, so that they hold no GPU")


class _Budgets:
    """Disruption budgets that allow no eviction now."""

    def __init__(self, found: Contents, pods: int, findings: Findings) -> None:
        self._full = [
            place.value
            for place in found.of("PodDisruptionBudget")
            if mapping(place.value, "status").get("disruptionsAllowed") == 0
        ]
        if len(self._full) * pods > _MOST_COMPARED:
            findings.unseen(f"which pods {len(self._full)} disruption budgets hold: there are too many to compare")
            findings.assumed("no disruption budget blocks an eviction")
            self._full = []

    def hold(self, pod: Mapping[str, Any]) -> bool:
        """Does one of them hold this pod?"""
        namespace, labels = text(pod, "metadata", "namespace") or "default", texts(pod, "metadata", "labels")
        return any(
            (text(budget, "metadata", "namespace") or "default") == namespace
            and _selects(mapping(budget, "spec", "selector"), labels)
            for budget in self._full
        )


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Does a label selector, as the API has it, select these labels? An empty one selects all."""
    if any(labels.get(key) != value for key, value in texts(selector, "matchLabels").items()):
        return False
    return all(_meets(expression, labels) for expression in elements(selector, "matchExpressions"))


def _meets(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key = text(expression, "key")
    values = expression.get("values")
    given = values if isinstance(values, list) else []
    match text(expression, "operator"):
        case "In":
            return labels.get(key) in given and key in labels
        case "NotIn":
            return labels.get(key) not in given
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False
