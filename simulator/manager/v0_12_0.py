"""What v0.12.0 changed (2026-08-19): DRA, nodes without a loaded driver, custom GPU clients; client-go and kubectl v0.36.3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from simulator import labels
from simulator import messages as m
from simulator.gocompat import GoError, quote, wrap, wrapping
from simulator.kube.clientset import Object
from simulator.kube.drain import controller_of, full_name, is_finished
from simulator.kube.rest import Waiting, drive, is_not_found
from simulator.kube.waiting import deadline, poll
from simulator.manager.change import Change
from simulator.manager.kubernetes import GRACE_PERIOD, POLL_INTERVAL, KubeClient, requests_gpu
from simulator.manager.steps import DriverManager
from simulator.selectors import escape_field

DRA_DRIVER: Final = "gpu.nvidia.com"
_KUBELET_PLUGIN: Final = labels.Wait("dra-driver", "nvidia-dra-driver-kubelet-plugin")


class _SkipsEvictionWithoutDriver(DriverManager):
    def done_without_driver(self) -> bool:
        if self.is_driver_loaded():
            return False
        self.log.info(m.NO_DRIVER_LOADED)
        with wrapping(m.FAILED_TO_EVICT_KUBELET_PLUGIN):
            self.evict_kubelet_plugin()
        with wrapping(m.FAILED_TO_UNMOUNT_STALE):
            self.unmount_rootfs()
        self.remove_pid_file()
        if self.is_nouveau_loaded():
            self.remove_nouveau()
        with wrapping(m.FAILED_TO_UNBIND):
            try:
                self.unbind_vfio_pci()
            except GoError:
                self.log.error(m.UNBIND_FAILED)
                raise
        self.wait_for_rdma()
        self.uncordon()
        self.reschedule_or_go_on()
        return True


class _EvictsFirstWithDra(DriverManager):
    def gpu_pods_must_go(self) -> bool:
        return super().gpu_pods_must_go() or (bool(self.components.get(labels.DRA_DRIVER)) and self.is_auto_drain_enabled())


class _ChecksClaimHolders(DriverManager):
    def before_unloading(self) -> None:
        if self.components.get(labels.DRA_DRIVER):
            with wrapping(m.FAILED_TO_CHECK_CLAIM_HOLDERS), self.cleaning_up():
                holders = get_gpu_resource_claim_holders(self.kube, self.config.node_name)
            if holders:
                self.cleanup_on_failure()
                raise GoError(m.CLAIMS_STILL_HELD % ", ".join(holders))
        super().before_unloading()


class _DrainsKubeletPlugin(DriverManager):
    def evict_kubelet_plugin(self) -> None:
        """`evictKubeletPlugin`."""
        value = self.components.get(labels.DRA_DRIVER, "")
        if not value:
            return
        self.log.info(m.DRAINING_KUBELET_PLUGIN)
        self.kube.update_node_labels(self.config.node_name, {labels.DRA_DRIVER: labels.pause(value)})
        self.wait_for_operand(_KUBELET_PLUGIN)

    def before_keeping_driver(self) -> None:
        super().before_keeping_driver()
        with wrapping(m.FAILED_TO_EVICT_KUBELET_PLUGIN), self.cleaning_up():
            self.evict_kubelet_plugin()

    def before_unloading(self) -> None:
        super().before_unloading()
        with wrapping(m.FAILED_TO_EVICT_KUBELET_PLUGIN), self.cleaning_up():
            self.evict_kubelet_plugin()


class _UnmountsWithoutModules(DriverManager):
    def driver_is_not_loaded(self) -> None:
        with wrapping(m.FAILED_TO_UNMOUNT_STALE_DRIVER), self.cleaning_up():
            self.unmount_rootfs()
        self.remove_pid_file()


class _UnloadsOnceAfterDrain(DriverManager):
    def after_fallback_drain(self) -> None:
        pass


class _WaitsForGpuClients(DriverManager):
    def wait_for_pods_to_terminate(self) -> None:
        super().wait_for_pods_to_terminate()
        if not self.components.get(labels.CLIENT):
            return
        self.log.info(m.WAITING_FOR_CLIENTS % labels.CLIENT)
        try:
            wait_for_pods_with_node_selector(self.kube, self.config.node_name, labels.CLIENT)
        except GoError as failure:
            self.log.error(m.FAILED_TO_WAIT_FOR_CLIENTS % failure)
            raise


class _EscapesNodeName(KubeClient):
    def on_node(self, node_name: str) -> str:
        return f"spec.nodeName={escape_field(node_name)}"


class _CountsClaims(KubeClient):
    def pod_uses_gpu(self, pod: Object) -> Waiting[bool]:
        if requests_gpu(pod):
            return True
        return (yield from pod_has_gpu_resource_claim(self, pod))

    def uses_gpu_or_fail(self, pod: Object) -> bool:
        with wrapping(m.FAILED_TO_CHECK_GPU_USAGE % full_name(pod)):
            return super().uses_gpu_or_fail(pod)


def wait_for_pods_with_node_selector(kube: KubeClient, node_name: str, key: str) -> None:
    """`WaitForPodsWithNodeSelector`: until no DaemonSet's pod on the node has `key` in its node selector."""
    ends = deadline(kube.clock, GRACE_PERIOD)

    def none_left() -> Waiting[bool]:
        try:
            listed = yield from kube.clientset.list_pods("", {"fieldSelector": kube.on_node(node_name)}, ends)
        except GoError as failure:
            raise wrap(m.FAILED_TO_LIST_PODS_ON_NODE % node_name, failure) from None
        count = sum(
            (controller_of(pod) or {}).get("kind") == "DaemonSet" and key in pod["spec"].get("nodeSelector", {})
            for pod in listed["items"]
        )
        if count:
            kube.log.info(m.WAITING_FOR_CLIENT_PODS % (count, quote(key)))
        return not count

    drive(kube.clock, poll(kube.clock, POLL_INTERVAL, ends, none_left))


def get_gpu_resource_claim_holders(kube: KubeClient, node_name: str) -> list[str]:
    """`GetGPUResourceClaimHolders`: the node's unfinished pods with a claim allocated by NVIDIA's DRA driver."""
    with wrapping(m.FAILED_TO_LIST_PODS_ON_NODE % node_name):
        listed = drive(kube.clock, kube.clientset.list_pods("", {"fieldSelector": kube.on_node(node_name)}))
    return [
        full_name(pod)
        for pod in listed["items"]
        if not is_finished(pod) and drive(kube.clock, pod_has_gpu_resource_claim(kube, pod))
    ]


def pod_has_gpu_resource_claim(kube: KubeClient, pod: Object) -> Waiting[bool]:
    """`podHasGPUResourceClaim`: one GET for each claim the pod refers to; a claim that is gone does not count."""
    namespace = pod["metadata"]["namespace"]
    for reference in pod["spec"].get("resourceClaims") or ():
        name = resolve_resource_claim_name(pod, reference)
        if not name:
            continue
        try:
            claim = yield from kube.clientset.get_resource_claim(namespace, name)
        except GoError as failure:
            if is_not_found(failure):
                continue
            raise wrap(m.FAILED_TO_GET_CLAIM % (namespace, name), failure) from None
        if is_allocated_nvidia_gpu_claim(claim):
            return True
    return False


def resolve_resource_claim_name(pod: Object, reference: Mapping[str, Any]) -> str:
    """`resolveResourceClaimName`: named directly, or made from a template and noted in the pod's status."""
    if reference.get("resourceClaimName") is not None:
        return str(reference["resourceClaimName"])
    for status in pod.get("status", {}).get("resourceClaimStatuses") or ():
        if status.get("name") == reference.get("name") and status.get("resourceClaimName") is not None:
            return str(status["resourceClaimName"])
    return ""


def is_allocated_nvidia_gpu_claim(claim: Object) -> bool:
    """`isAllocatedNvidiaGPUClaim`: has NVIDIA's DRA driver given it a device?"""
    allocation = claim.get("status", {}).get("allocation")
    results = ((allocation or {}).get("devices") or {}).get("results") or ()
    return any(result.get("driver") == DRA_DRIVER for result in results)


CHANGES: Final = (
    Change(
        name="gpu-client-label",
        upstream="commit a1c42d70, pull request #205",
        summary="The label nvidia.com/gpu.deploy.client is paused, waited for and restored where the node has it.",
        notice="DaemonSets of one's own that select on that label are stopped and started with the operands.",
        steps=_WaitsForGpuClients,
        fetched=(labels.CLIENT,),
        if_deployed=(labels.CLIENT,),
    ),
    Change(
        name="dra-labels",
        upstream="commits ae1abae5 and 98f41d65, pull requests #203 and #222",
        summary="The labels of the DRA driver and its validator are read and restored, the validator's paused with the operands.",
        notice="Two more labels on the node, empty where they were absent.",
        fetched=(labels.DRA_DRIVER, labels.DRA_VALIDATOR),
        always=(labels.DRA_VALIDATOR,),
        restored=(labels.DRA_DRIVER, labels.DRA_VALIDATOR),
    ),
    Change(
        name="dra-gpu-pods-evicted-first",
        upstream="commit ae1abae5, pull request #203",
        summary="On a DRA node GPU pods are evicted up front also where only auto-drain is on.",
        notice="With ENABLE_GPU_POD_EVICTION=false and auto-drain on, a DRA node is cordoned and its GPU pods go at once.",
        action="Turn ENABLE_AUTO_DRAIN off too where GPU pods on DRA nodes have to stay.",
        steps=_EvictsFirstWithDra,
    ),
    Change(
        name="dra-claim-holders-block",
        upstream="commit ae1abae5, pull request #203",
        summary="On a DRA node the run fails while a pod still holds a claim allocated by gpu.nvidia.com.",
        notice="The init container exits 1, with clean-up, and names the pods that hold GPU claims.",
        action="Let driver-manager read resourceclaims, and end claim-holding pods that the upgrade policy leaves.",
        steps=_ChecksClaimHolders,
    ),
    Change(
        name="dra-kubelet-plugin-drained",
        upstream="commit ae1abae5, pull request #203",
        summary="On a DRA node the kubelet plugin is paused and waited for last, before the driver's root is unmounted.",
        notice="The plugin's pod is restarted across each driver restart, also where the driver stays.",
        steps=_DrainsKubeletPlugin,
    ),
    Change(
        name="dra-dcgm-labels",
        upstream="commit 98f41d65, pull request #222",
        summary="The DRA variants of dcgm and dcgm-exporter are paused, waited for and restored.",
        notice="Two more labels on the node, empty where they were absent, and two more waits.",
        fetched=(labels.DRA_DCGM, labels.DRA_DCGM_EXPORTER),
        always=(labels.DRA_DCGM, labels.DRA_DCGM_EXPORTER),
        restored=(labels.DRA_DCGM, labels.DRA_DCGM_EXPORTER),
        waited_for=tuple(labels.Wait(app, app) for app in ("nvidia-dcgm-exporter-dra", "nvidia-dcgm-dra")),
    ),
    Change(
        name="dra-claims-count-as-gpu",
        upstream="commit 92e57cf0, pull request #204",
        summary="A pod with a claim allocated by gpu.nvidia.com counts as a GPU pod.",
        notice="DRA workloads are evicted too; more requests, for their claims.",
        client=_CountsClaims,
    ),
    Change(
        name="no-eviction-without-driver",
        upstream="commit 57291491, pull request #219",
        summary="Where no NVIDIA module is loaded, operands and workloads are left alone.",
        notice="After a reboot nothing is paused or evicted; failures on this path leave labels and cordon as they are.",
        steps=_SkipsEvictionWithoutDriver,
    ),
    Change(
        name="rootfs-unmounted-without-modules",
        upstream="commit 89f72a3c, pull request #201",
        summary="A driver root that is still mounted is unmounted also where the modules are already gone.",
        notice="Operands no longer come back on a stale driver root.",
        steps=_UnmountsWithoutModules,
    ),
    Change(
        name="one-unload-after-fallback-drain",
        upstream="commit ae1abae5, pull request #203",
        summary="After a fallback drain the driver is unloaded once, not twice.",
        notice="Fewer log lines after a drain.",
        steps=_UnloadsOnceAfterDrain,
    ),
    Change(
        name="node-name-escaped",
        upstream="commit a1c42d70, pull request #205",
        summary="A node name with a comma, an equals sign or a backslash is escaped in the field selectors of waits.",
        notice="Nothing: such names cannot be nodes.",
        client=_EscapesNodeName,
    ),
    Change(
        name="unmanaged-pods-worded-once",
        upstream="commit 18bf075b, pull request #184 (kubectl v0.36, filters.go)",
        summary="The reason why a pod without a controller stays no longer says `cannot delete` twice.",
        notice="Other words in the log.",
        libraries={"unmanaged_fatal": "Pods that declare no controller (use --force to override)"},
    ),
    Change(
        name="klog-lines-v0.36",
        upstream="commit 18bf075b, pull request #184 (client-go v0.36)",
        summary="klog's warnings about the in-cluster configuration name other source lines.",
        notice="Other line numbers in the first lines of the log.",
        libraries={"version": "v0.36.3", "in_cluster_line": 683, "fallback_line": 689},
    ),
    Change(
        name="busybox-on-path",
        upstream="commit 48acfb36, pull request #188",
        summary="The image brings a static busybox of its own, and its PATH ends with /busybox.",
        notice="An nvidia-smi in the host's /busybox, found nowhere else, now counts as a driver.",
        container_path=("/busybox",),
    ),
)
