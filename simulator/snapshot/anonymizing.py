"""A bundle under other names: of the node, its namespaces, pods, owners and claims. The operator's own names stay.

One name becomes the same other name wherever it stands: in objects, settings, sentences, logs. What can hold a name and decides
nothing (labels that driver-manager never looks at, annotations of others) goes. PCI addresses, versions and packages stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from simulator.cluster.objects import ClusterSpec, Pod
from simulator.host.spec import HostSpec
from simulator.predicting.run import CUSTOM_LABEL
from simulator.snapshot.bundle import Bundle
from simulator.snapshot.secrets import REDACTED
from simulator.world import World

_KEPT_NAMESPACES: Final = frozenset({"default", "kube-system"})
_KEPT_LABELS: Final = re.compile(
    r"nvidia\.com/(gpu|cuda|mig|vgpu|mps|gfd|precompiled)[\w.-]*|(beta\.)?kubernetes\.io/(arch|os)|app"
    r"|feature\.node\.kubernetes\.io/(cpu|kernel|memory|network|pci|system|usb)-[\w.-]*"
)
_KEPT_ANNOTATION: Final = re.compile(r"nvidia\.com/gpu-driver-upgrade[\w.-]*|kubernetes\.io/config\.mirror")
_KEPT_FINALIZER: Final = re.compile(r"([\w.-]+\.)?kubernetes\.io/[\w.-]+|foregroundDeletion|orphan")
_KEPT_TEXT: Final = re.compile(
    r"v?\d[\w.+-]{0,63}|true|false|auto|open|proprietary|container|vm-passthrough|vm-vgpu|OnDelete|RollingUpdate|ready|notReady|driver|gpu-operator"
)
_ADDRESS: Final = re.compile(
    r"\b(?:\d{1,3}\.){3}\d{1,3}\b|\b(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}\b|\b(?:[0-9a-f]{1,4}:){1,6}:(?:[0-9a-f]{1,4}\b)?"
)
_WORD: Final = re.compile(r"[A-Za-z0-9](?:[\w./-]*[A-Za-z0-9])?")
_OPERATORS: Final = frozenset({"in", "notin", "exists"})
_SELECTOR: Final = "DRAIN_POD_SELECTOR_LABEL"


class _Names:
    """Names and their pseudonyms: of one kind numbered in alphabetical order."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}

    def add(self, names: Iterable[str], word: str) -> None:
        """Names of a kind."""
        for name in sorted({name for name in names if name} - self.known.keys()):
            count = sum(other.startswith(f"{word}-") for other in self.known.values())
            self.known[name] = f"{word}-{count + 1}"

    def of(self, name: str) -> str:
        """The pseudonym, or the name itself if it may stay."""
        return self.known.get(name, name)

    def replacer(self) -> Callable[[str], str]:
        """Replaces every known name in a text, and every IP address."""
        names = sorted(self.known, key=lambda name: (-len(name), name))
        either = "|".join(map(re.escape, names))
        pattern = re.compile(rf"(?<![A-Za-z0-9])(?:{either})(?![A-Za-z0-9])") if names else None

        def replaced(text: str) -> str:
            out = pattern.sub(lambda match: self.known[match[0]], text) if pattern is not None else text
            return _ADDRESS.sub("0.0.0.0", out)  # noqa: S104  # no address at all

        return replaced


def anonymized(bundle: Bundle) -> Bundle:
    """The bundle under other names."""
    world = bundle.scenario.world
    operator = {world.env.get("OPERATOR_NAMESPACE", "gpu-operator"), "gpu-operator"}
    names = _collect(world, operator)
    replaced = names.replacer()
    objects = tuple(_plain(item) | {"metadata": {"name": "cluster-policy"}} for item in world.cluster.objects)
    scenario = replace(
        bundle.scenario,
        world=replace(
            world,
            env=_settings(world.env, names),
            cluster=replace(_cluster(world.cluster, names, replaced, operator), objects=objects),
            host=_host(world.host, replaced, names),
        ),
        description=replaced(bundle.scenario.description),
    )
    return Bundle(
        scenario,
        tuple(replaced(sentence) for sentence in bundle.unseen),
        tuple(replaced(sentence) for sentence in bundle.assumed),
        {replaced(name): replaced(log) for name, log in bundle.logs.items()},
        bundle.unsaved_gpus,
    )


def _collect(world: World, operator: set[str]) -> _Names:
    """The names that must not stay."""
    names = _Names()
    cluster = world.cluster
    node = cluster.node
    hostname = node.labels.get("kubernetes.io/hostname", "") if node else ""
    nodes = {node.name if node else "", world.env.get("NODE_NAME", ""), hostname, *(pod.node_name or "" for pod in cluster.pods)}
    names.add({*nodes, *(name.partition(".")[0] for name in nodes)}, "node")
    foreign = [pod for pod in cluster.pods if pod.namespace not in operator]
    names.add({pod.namespace for pod in foreign} | {claim.namespace for claim in cluster.resource_claims}, "namespace")
    for kept in (*_KEPT_NAMESPACES, *operator):
        names.known.pop(kept, None)
    names.add((pod.name for pod in foreign), "pod")
    names.add((pod.owner.name for pod in foreign if pod.owner), "owner")
    names.add((name for namespace, name in cluster.daemonsets if namespace not in operator), "owner")
    names.add((claim.name for claim in cluster.resource_claims), "claim")
    references = [
        value for pod in cluster.pods for claim in (*pod.resource_claims, *pod.resource_claim_statuses) for value in claim.values()
    ]
    names.add((str(value) for value in references), "claim")
    names.add(_words(world.env.get(_SELECTOR, "")), "label")
    custom = world.env.get(CUSTOM_LABEL, "")
    names.add({custom} if custom and not _KEPT_LABELS.fullmatch(custom) else (), "label")
    return names


def _words(selector: str) -> set[str]:
    """The keys and values of a selector that are nobody's but the person's."""
    return {word for word in _WORD.findall(selector) if word not in _OPERATORS and not _KEPT_LABELS.fullmatch(word)}


def _settings(env: Mapping[str, str], names: _Names) -> dict[str, str]:
    """The settings; those that hold names, under other ones."""
    changed: dict[str, Callable[[str], str]] = {
        "NODE_NAME": names.of,
        CUSTOM_LABEL: names.of,
        _SELECTOR: lambda text: _WORD.sub(lambda match: names.of(match[0]), text),
        "KUBECONFIG": lambda path: "/kubeconfig" if path else "",
    }
    return {name: changed.get(name, str)(value) for name, value in env.items()}


def _cluster(cluster: ClusterSpec, names: _Names, replaced: Callable[[str], str], operator: set[str]) -> ClusterSpec:
    node = cluster.node
    if node is not None:
        node = replace(
            node,
            name=names.of(node.name),
            labels=_labels(node.labels, names, replaced),
            annotations={key: replaced(value) for key, value in node.annotations.items() if _KEPT_ANNOTATION.fullmatch(key)},
            status={},
        )
    return replace(
        cluster,
        name="snapshot",
        description=replaced(cluster.description),
        node=node,
        pods=tuple(_pod(pod, names, replaced, is_operators=pod.namespace in operator) for pod in cluster.pods),
        daemonsets=frozenset((names.of(namespace), names.of(name)) for namespace, name in cluster.daemonsets),
        resource_claims=tuple(
            replace(claim, namespace=names.of(claim.namespace), name=names.of(claim.name)) for claim in cluster.resource_claims
        ),
    )


def _labels(labels: Mapping[str, str], names: _Names, replaced: Callable[[str], str], *, with_app: bool = False) -> dict[str, str]:
    """Those that driver-manager may look at; `app` is the operator's own."""
    out = {}
    for key, value in labels.items():
        if key in names.known:
            out[names.of(key)] = names.of(value) if value in names.known or value in {"", "true", "false"} else REDACTED
        elif _KEPT_LABELS.fullmatch(key) and (key != "app" or with_app):
            out[key] = replaced(value)
    return out


def _pod(pod: Pod, names: _Names, replaced: Callable[[str], str], *, is_operators: bool) -> Pod:
    return replace(
        pod,
        namespace=names.of(pod.namespace),
        name=names.of(pod.name),
        labels=_labels(pod.labels, names, replaced, with_app=is_operators),
        annotations={key: replaced(value) for key, value in pod.annotations.items() if _KEPT_ANNOTATION.fullmatch(key)},
        node_name=names.of(pod.node_name) if pod.node_name else None,
        finalizers=tuple(item if _KEPT_FINALIZER.fullmatch(item) else REDACTED for item in pod.finalizers),
        node_selector=_labels(pod.node_selector, names, replaced, with_app=is_operators),
        owner=replace(pod.owner, name=names.of(pod.owner.name)) if pod.owner else None,
        resource_claims=tuple(_renamed(claim, names) for claim in pod.resource_claims),
        resource_claim_statuses=tuple(_renamed(claim, names) for claim in pod.resource_claim_statuses),
        status={key: value for key, value in pod.status.items() if key == "initContainerStatuses"},  # no name but the operator's
    )


def _renamed(claim: Mapping[str, Any], names: _Names) -> dict[str, str]:
    return {key: names.of(str(value)) for key, value in claim.items()}


def _host(host: HostSpec, replaced: Callable[[str], str], names: _Names) -> HostSpec:
    def pods(full_names: Iterable[str]) -> tuple[str, ...]:
        return tuple("/".join(names.of(part) for part in name.split("/")) for name in full_names)

    return replace(
        host,
        name="snapshot",
        description=replaced(host.description),
        modules=tuple(replace(module, pods=pods(module.pods)) for module in host.modules),
        files=tuple(replace(file, text=replaced(file.text)) for file in host.files),
        programs=tuple(
            replace(program, stdout=replaced(program.stdout), stderr=replaced(program.stderr)) for program in host.programs
        ),
    )


def _plain(value: Any) -> Any:
    """A policy with texts of known meaning only."""
    if isinstance(value, Mapping):
        return {key: item if key in {"apiVersion", "kind"} else _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        return value if _KEPT_TEXT.fullmatch(value) else REDACTED
    return value
