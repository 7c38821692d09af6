"""What driver-manager asks of the API server, one method per function of upstream's internal/kubernetes/client.go.

As of v0.9.0; what later releases changed is in `manager.releases`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import ClassVar, Final

from simulator import messages as m
from simulator.gocompat import MINUTE, NIL_POINTER, SECOND, Duration, GoError, GoPanic, wrapping
from simulator.kube import drain
from simulator.kube.clientset import Clientset, Object
from simulator.kube.drain import Helper, PodStatus, full_name, run_cordon_or_uncordon
from simulator.kube.rest import Waiting, drive
from simulator.kube.waiting import deadline, poll
from simulator.manager.log import Log
from simulator.ports import Chance, Clock, Output
from simulator.selectors import Requirement, Selector

POLL_INTERVAL: Final = 5 * SECOND
GRACE_PERIOD: Final = 5 * MINUTE
"""How long an operand's pods are waited for."""

GPU_RESOURCES: Final = ("nvidia.com/gpu", "nvidia.com/mig-")
"""A pod that requests a resource whose name begins so is a GPU pod."""


class DrainOptions:
    """`kube.DrainOptions`: what the settings say about draining."""

    def __init__(self, *, force: bool, delete_emptydir_data: bool, timeout: Duration, pod_selector: str) -> None:
        self.force = force
        self.delete_emptydir_data = delete_emptydir_data
        self.timeout = timeout
        self.pod_selector = pod_selector


class KubeClient:
    """`kube.Client`. Methods raise GoError with upstream's text."""

    drain_ignores_daemonsets: ClassVar[bool] = False
    drain_has_writers: ClassVar[bool] = False
    drain_grace_period: ClassVar[int] = 0
    drain_cordons: ClassVar[bool] = False
    """How the full drain is set up."""

    def __init__(self, clientset: Clientset, clock: Clock, output: Output, chance: Chance, log: Log) -> None:
        self.clientset = clientset
        self.clock = clock
        self.output = output
        self.chance = chance
        self.log = log

    def _get_node(self, node_name: str) -> Object:
        with wrapping(m.FAILED_TO_GET_NODE % node_name):
            return drive(self.clock, self.clientset.get_node(node_name))

    def get_node_label_value(self, node_name: str, label: str) -> str:
        """The value of a label, "" if the node lacks it."""
        return str(self._get_node(node_name)["metadata"].get("labels", {}).get(label, ""))

    def get_node_annotation_value(self, node_name: str, annotation: str) -> str:
        """The value of an annotation, "" if the node lacks it."""
        return str(self._get_node(node_name)["metadata"].get("annotations", {}).get(annotation, ""))

    def update_node_labels(self, node_name: str, labels: Mapping[str, str]) -> None:
        """Strategic merge patch of labels, one attempt."""
        with wrapping(m.FAILED_TO_UPDATE_LABELS % node_name):
            drive(self.clock, self.clientset.patch_node(node_name, labels_patch(labels)))

    def cordon_node(self, node_name: str) -> None:
        """Make the node unschedulable, if it is not so already."""
        self.log.info(m.CORDONING % node_name)
        node = self._get_node(node_name)
        drive(self.clock, run_cordon_or_uncordon(self.clientset, node, desired=True))

    def uncordon_node(self, node_name: str) -> None:
        """Make the node schedulable, whoever cordoned it."""
        self.log.info(m.UNCORDONING % node_name)
        node = self._get_node(node_name)
        drive(self.clock, run_cordon_or_uncordon(self.clientset, node, desired=False))

    def wait_for_pod_termination(self, app: str, namespace: str, node_name: str, timeout: Duration) -> None:
        """Poll until the node has no pod with label `app`; any error of a list ends the wait."""
        selector = str(Selector((Requirement("app", "=", (app,)),)))

        def none_left() -> Waiting[bool]:
            found = yield from self.clientset.list_pods(
                namespace, {"labelSelector": selector, "fieldSelector": self.on_node(node_name)}
            )
            return not found["items"]

        drive(self.clock, poll(self.clock, POLL_INTERVAL, deadline(self.clock, timeout), none_left))

    def on_node(self, node_name: str) -> str:
        """The field selector for a node's pods in waits, the name put in as it is."""
        return f"spec.nodeName={node_name}"

    def drain_node(self, node_name: str, options: DrainOptions) -> None:
        """The full drain. The helper gets no writers and does not ignore DaemonSets: see the quirks."""
        self.log.info(m.DRAINING % node_name)
        if self.drain_cordons:
            node = drive(self.clock, self.clientset.get_node(node_name))
            with suppress(GoError):
                drive(self.clock, run_cordon_or_uncordon(self.clientset, node, desired=True))
        drive(self.clock, self.node_helper(options).run_node_drain(node_name))

    def node_helper(self, options: DrainOptions) -> Helper:
        """The drain helper of the full drain."""
        return Helper(
            self.clientset,
            self.clock,
            output=self.output if self.drain_has_writers else None,
            force=options.force,
            grace_period_seconds=self.drain_grace_period,
            ignore_all_daemonsets=self.drain_ignores_daemonsets,
            delete_emptydir_data=options.delete_emptydir_data,
            timeout=options.timeout,
            pod_selector=options.pod_selector,
        )

    def delete_or_evict_pods(self, node_name: str, options: DrainOptions) -> None:
        """Evict the pods that hold GPUs; nothing at all if not every one of them can go."""
        self.log.info(m.DRAINING_OF_GPU_PODS % node_name)
        helper = self.gpu_pod_helper(options)
        self.log.info(m.IDENTIFYING_GPU_PODS)
        with wrapping(m.FAILED_TO_LIST_PODS):
            listed = drive(self.clock, self.clientset.list_pods("", {"fieldSelector": f"spec.nodeName={node_name}"}))
        to_delete = sum(self.uses_gpu_or_fail(pod) for pod in listed["items"])
        if not to_delete:
            self.log.info(m.NO_GPU_PODS)
            return
        judged, errors = drive(self.clock, helper.get_pods_for_deletion(node_name))
        if judged is None:
            raise GoPanic(NIL_POINTER)
        pods = judged.pods()
        if len(pods) != to_delete:
            self.log.error(m.CANNOT_DELETE_ALL)
            for failure in errors:
                self.log.error(m.DRAIN_HELPER_ERROR % failure)
            raise GoError(m.FAILED_TO_DELETE_ALL)
        for pod in pods:
            self.log.info(m.GPU_POD % full_name(pod))
        self.log.info(m.DELETING_GPU_PODS)
        with wrapping(m.FAILED_TO_DELETE_ALL):
            drive(self.clock, helper.delete_or_evict_pods(pods))

    def gpu_pod_helper(self, options: DrainOptions) -> Helper:
        """The drain helper of GPU-pod eviction."""
        return Helper(
            self.clientset,
            self.clock,
            self.output,
            force=options.force,
            grace_period_seconds=-1,
            ignore_all_daemonsets=True,
            timeout=options.timeout,
            delete_emptydir_data=options.delete_emptydir_data,
            chunk_size=drain.CHUNK_SIZE,
            additional_filters=(self.custom_drain_filter,),
        )

    def custom_drain_filter(self, pod: Object) -> Waiting[PodStatus]:
        """The filter that leaves pods without a GPU alone."""
        try:
            uses_gpu = yield from self.pod_uses_gpu(pod)
        except GoError as failure:
            return drain.error(str(failure))
        return drain.OKAY if uses_gpu else drain.SKIP

    def uses_gpu_or_fail(self, pod: Object) -> bool:
        """As `pod_uses_gpu`, waited for."""
        return drive(self.clock, self.pod_uses_gpu(pod))

    def pod_uses_gpu(self, pod: Object) -> Waiting[bool]:
        """Does a container ask for a GPU (`gpuPodSpecFilter`)? By prefix of the resource's name; init containers do not count."""
        yield from ()
        return requests_gpu(pod)


def requests_gpu(pod: Object) -> bool:
    """Has a container a limit or request whose name begins with `nvidia.com/gpu` or `nvidia.com/mig-`, of any quantity?"""
    return any(
        name.startswith(GPU_RESOURCES)
        for container in pod["spec"].get("containers", ())
        for kind in ("limits", "requests")
        for name in container.get("resources", {}).get(kind, {})
    )


def labels_patch(labels: Mapping[str, str]) -> dict[str, dict[str, dict[str, str]]]:
    """The patch document, keys sorted as Go's encoder does."""
    return {"metadata": {"labels": dict(sorted(labels.items()))}}
