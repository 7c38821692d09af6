"""The DaemonSet controller for one node: a pod for each DaemonSet whose selector the node's labels match.

A pod whose node no longer matches is told to go by `cluster.reactions`; another one comes when it is gone and the labels
match. Cordons do not count: the controller's pods tolerate them. Leaves out updates of a template: an operator's change
of a DaemonSet meets the next pod.

Source: k8s.io/kubernetes pkg/controller/daemon/daemon_controller.go.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from simulator.clock import VirtualClock
from simulator.cluster.kinds import DAEMON_SET, NAMESPACE, NODE, POD
from simulator.cluster.objects import Owner, Pod, namespace_document
from simulator.cluster.store import Change, Life, Store
from simulator.node.kubelet import Containers

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Kubernetes' alphabet for names that it makes up."""


@dataclass(frozen=True, slots=True)
class DaemonSet:
    """A DaemonSet: its name, its pods' label `app`, the label its node needs, its containers."""

    name: str
    label: str
    containers: Containers
    env: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Container -> its environment."""
    value: str = "true"

    @property
    def selector(self) -> dict[str, str]:
        """The nodeSelector."""
        return {self.label: self.value}


class DaemonSets:
    """The DaemonSets of a namespace, and their pods on the node. `seed` decides the pods' names."""

    def __init__(
        self, store: Store, clock: VirtualClock, date: Callable[[], datetime.datetime], namespace: str, seed: int = 0
    ) -> None:
        self.store = store
        self.clock = clock
        self.namespace = namespace
        self._date = date
        self._sets: dict[str, DaemonSet] = {}
        self._random = random.Random(seed)  # noqa: S311  # names, not secrets
        self._planned = False
        if namespace not in store.objects(NAMESPACE):
            store.put(NAMESPACE, namespace_document(namespace, self._text()))
        store.watchers.append(self._hears)

    def _text(self) -> str:
        return f"{self._date():%Y-%m-%dT%H:%M:%SZ}"

    def apply(self, wanted: Iterable[DaemonSet]) -> None:
        """These DaemonSets are there from now on, and no others of this namespace that were applied here."""
        before, self._sets = self._sets, {each.name: each for each in wanted}
        for name in before.keys() - self._sets.keys():
            self.store.remove(DAEMON_SET, f"{self.namespace}/{name}")
            for pod in self._pods(name):
                self._delete(pod)
        for each in self._sets.values():
            self._write(each)
        self._sync_soon()

    def containers_of(self, pod: Mapping[str, Any]) -> Containers | None:
        """What runs in a pod; None if it is of no DaemonSet here."""
        if pod["metadata"]["namespace"] != self.namespace:
            return None
        owners = pod["metadata"].get("ownerReferences") or ()
        found = next((self._sets[owner["name"]] for owner in owners if owner["name"] in self._sets), None)
        return found.containers if found else None

    def unavailable(self) -> list[str]:
        """The DaemonSets that miss a pod, or whose pod is not ready."""
        documents = self.store.objects(DAEMON_SET)
        return [name for name in self._sets if documents[f"{self.namespace}/{name}"]["status"]["numberUnavailable"]]

    # --- what happens by itself ----------------------------------------------------------------------------------

    def _hears(self, change: Change) -> None:
        if change.kind is NODE or (change.kind is POD and (change.before is None or change.after is None)):
            self._sync_soon()
        elif change.kind is POD and change.after is not None:
            for owner in change.after["metadata"].get("ownerReferences") or ():
                if owner["name"] in self._sets:
                    self._write_status(self._sets[owner["name"]])

    def _sync_soon(self) -> None:
        if not self._planned:
            self._planned = True
            self.clock.plan(self.clock.now, self._sync)

    def _sync(self) -> None:
        self._planned = False
        for each in self._sets.values():
            if not self._pods(each.name) and self._is_wanted(each):
                self._create(each)
            self._write_status(each)

    def _is_wanted(self, each: DaemonSet) -> bool:
        node = self.store.node
        labels = (node["metadata"].get("labels") or {}) if node else {}
        return bool(labels.get(each.label) == each.value)

    def _pods(self, name: str) -> list[Mapping[str, Any]]:
        return [
            pod
            for pod in self.store.pods.values()
            if pod["metadata"]["namespace"] == self.namespace
            and any(owner["name"] == name for owner in pod["metadata"].get("ownerReferences") or ())
        ]

    # --- documents -----------------------------------------------------------------------------------------------

    def _create(self, each: DaemonSet) -> None:
        store = self.store
        name, key = self._new_name(each)
        owner = Owner("DaemonSet", each.name)
        store.lives[key] = Life(Pod(self.namespace, name, node_selector=each.selector, owner=owner, termination=None))
        waiting = {"waiting": {"reason": "PodInitializing" if each.containers.init else "ContainerCreating"}}
        template = self._template(each)
        store.put(
            POD,
            {
                "kind": "Pod",
                "apiVersion": "v1",
                "metadata": {
                    "name": name,
                    "namespace": self.namespace,
                    "uid": f"pod-{store.version + 1}",
                    "creationTimestamp": self._text(),
                    "labels": {"app": each.name},
                    "ownerReferences": [
                        {
                            "apiVersion": "apps/v1",
                            "kind": "DaemonSet",
                            "name": each.name,
                            "uid": f"owner-{each.name}",
                            "controller": True,
                        }
                    ],
                },
                "spec": {"nodeName": store.node_name, **template},
                "status": {
                    "phase": "Pending",
                    **{
                        field: [
                            {
                                "name": container["name"],
                                "ready": False,
                                "restartCount": 0,
                                "image": "",
                                "imageID": "",
                                "state": waiting,
                            }
                            for container in template.get(part, ())
                        ]
                        for part, field in (("initContainers", "initContainerStatuses"), ("containers", "containerStatuses"))
                    },
                },
            },
        )

    def _new_name(self, each: DaemonSet) -> tuple[str, str]:
        """A name that no pod has, and its key."""
        while True:
            name = f"{each.name}-{''.join(self._random.choices(_LETTERS, k=5))}"
            if (key := f"{self.namespace}/{name}") not in self.store.pods:
                return name, key

    def _template(self, each: DaemonSet) -> dict[str, Any]:
        parts = {"initContainers": each.containers.init, "containers": each.containers.main}
        return {
            "nodeSelector": each.selector,
            **{
                part: [
                    {
                        "name": container.name,
                        "env": [{"name": key, "value": value} for key, value in each.env.get(container.name, {}).items()],
                    }
                    for container in containers
                ]
                for part, containers in parts.items()
                if containers
            },
        }

    def _write(self, each: DaemonSet) -> None:
        key = f"{self.namespace}/{each.name}"
        known = self.store.objects(DAEMON_SET).get(key)
        labels = {"app": each.name}
        spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": self._template(each)}}
        if known is not None and known["spec"] == spec:
            return
        metadata = known["metadata"] if known else {"creationTimestamp": self._text(), "uid": f"owner-{each.name}"}
        document = {
            "kind": "DaemonSet",
            "apiVersion": "apps/v1",
            "metadata": {**metadata, "name": each.name, "namespace": self.namespace},
            "spec": spec,
            "status": known["status"] if known else self._status(each),
        }
        self.store.put(DAEMON_SET, document)

    def _status(self, each: DaemonSet) -> dict[str, Any]:
        wanted = int(self._is_wanted(each))
        pods = self._pods(each.name)
        ready = sum(_is_ready(pod) for pod in pods) if wanted else 0
        return {
            "desiredNumberScheduled": wanted,
            "currentNumberScheduled": len(pods) if wanted else 0,
            "numberReady": ready,
            "updatedNumberScheduled": len(pods) if wanted else 0,
            "numberAvailable": ready,
            "numberUnavailable": wanted - ready,
            "numberMisscheduled": 0 if wanted else len(pods),
            "observedGeneration": 1,
        }

    def _write_status(self, each: DaemonSet) -> None:
        document = self.store.objects(DAEMON_SET)[f"{self.namespace}/{each.name}"]
        status = self._status(each)
        if document["status"] != status:
            self.store.put(DAEMON_SET, {**document, "status": status})

    def _delete(self, pod: Mapping[str, Any]) -> None:
        self.store.mark_deleted(POD, f"{self.namespace}/{pod['metadata']['name']}")


def _is_ready(pod: Mapping[str, Any]) -> bool:
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in pod["status"].get("conditions", ()))
