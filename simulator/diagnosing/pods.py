"""Pods that a run of driver-manager waits for, or does not see."""

from __future__ import annotations

from collections.abc import Iterator

from simulator import labels
from simulator.cluster.objects import Pod, pod_document
from simulator.diagnosing.commands import delete_pod, drop_pod_label, label_node, select_nodes
from simulator.diagnosing.finding import Finding
from simulator.diagnosing.gpu_operator import DRAIN_SKIP
from simulator.diagnosing.situation import Situation, is_finished
from simulator.manager.kubernetes import requests_gpu
from simulator.manager.releases import is_since
from simulator.manager.v0_12_0 import DRA_DRIVER
from simulator.predicting.gpu_pods import claims_of

_KNOWS_CLAIMS, _KNOWS_CLIENTS = "v0.12.0", "v0.12.0"


def find(situation: Situation) -> Iterator[Finding]:
    """Findings about pods."""
    if stuck := [pod for pod in situation.pods if pod.terminating]:
        yield _stuck(situation, stuck)
    skipping = [pod for pod in situation.pods if pod.labels.get(DRAIN_SKIP) == "true" and uses_gpu(situation, pod)]
    if skipping and situation.is_upgrade_policy_on:
        yield _skipping(skipping)
    if invisible := [pod for pod in situation.pods if pod.full_name in situation.holders and not _is_seen(situation, pod)]:
        yield _invisible(situation, invisible)
    waiting = [pod for pod in situation.pods if not is_finished(pod) and holds_claim(situation, pod)]
    if waiting and not situation.is_driver_loaded and not situation.host_check:
        yield _claims(waiting)


def _names(pods: list[Pod]) -> str:
    return ", ".join(pod.full_name for pod in pods)


def _stuck(situation: Situation, pods: list[Pod]) -> Finding:
    if situation.is_upgrade_policy_on:
        why = (
            "By the upgrade policy driver-manager evicts nobody: it does not wait for the pod, and fails as long as the pod holds the"
            " driver."
        )
    else:
        waits = " The run in " + situation.running_manager + " waits for it." if situation.running_manager else ""
        why = (
            "A run of driver-manager that has told a GPU pod to go waits until it is gone; without DRAIN_TIMEOUT_SECONDS for ever,"
            f" with the node cordoned and the operands paused.{waits}"
        )
    finalized = [pod for pod in pods if pod.finalizers]
    kept = "".join(f" {pod.full_name} is kept by {' and '.join(pod.finalizers)}." for pod in finalized)
    forced = tuple(delete_pod(pod.namespace, pod.name, force=True) for pod in pods if not pod.finalizers)
    risks = []
    if finalized:
        risks.append(
            "A finalizer goes when whoever set it has done its work: see that this controller runs, and why it does not end. To delete"
            " the pod by force does not help; to take the finalizer away by hand skips that work."
        )
    if forced:
        risks.append(
            "By force the object goes, not the processes: they may still hold the GPU or write to a volume. A StatefulSet starts its"
            " next pod meanwhile. Look first at what keeps the pod: a volume, a node that does not answer."
        )
    return Finding(
        "pod-stuck-terminating",
        f"{_names(pods)} {'is' if len(pods) == 1 else 'are'} Terminating.",
        f"{why}{kept}",
        forced,
        " ".join(risks),
        (
            *(f"pod {pod.full_name} is terminating" for pod in pods),
            *(f"finalizer {name} of {pod.full_name}" for pod in finalized for name in pod.finalizers),
        ),
    )


def _skipping(pods: list[Pod]) -> Finding:
    return Finding(
        "drain-skipped-by-gpu-pod",
        f"{_names(pods)} {'uses a GPU and is' if len(pods) == 1 else 'use a GPU and are'} left by the upgrade controller's drain.",
        "With the upgrade annotation driver-manager evicts nobody itself, so the pod keeps the driver, and the init container fails"
        " until it has ended.",
        tuple(drop_pod_label(pod.namespace, pod.name, DRAIN_SKIP) for pod in pods),
        "The next drain evicts it. What owns the pod gives its successor the label again: mend the template too.",
        tuple(f"pod {pod.full_name} has the label {DRAIN_SKIP}=true" for pod in pods),
    )


# --- who holds the driver and is not seen ---------------------------------------------------------------------------


def uses_gpu(situation: Situation, pod: Pod) -> bool:
    """Has it asked for a GPU, or does it hold a module of the driver?"""
    return requests_gpu(pod_document(pod, situation.node.name, "")) or pod.full_name in situation.holders


def _is_seen(situation: Situation, pod: Pod) -> bool:
    """Is it told to go by a run: as a GPU pod, or as an operand whose label is paused?"""
    if requests_gpu(pod_document(pod, situation.node.name, "")):
        return True
    knows_claims = is_since(situation.release, _KNOWS_CLAIMS)
    if knows_claims and holds_claim(situation, pod):
        return True
    paused = {*labels.ALWAYS, *labels.IF_DEPLOYED, situation.eviction_label}
    if knows_claims:
        paused |= {labels.CLIENT, labels.DRA_DRIVER, labels.DRA_VALIDATOR, labels.DRA_DCGM, labels.DRA_DCGM_EXPORTER}
    placed_by = {key for key in pod.node_selector if situation.node.labels.get(key)}
    return is_daemon(pod) and bool(placed_by & paused)


def is_daemon(pod: Pod) -> bool:
    """Is it a DaemonSet's?"""
    return pod.owner is not None and pod.owner.kind == "DaemonSet"


def _invisible(situation: Situation, pods: list[Pod]) -> Finding:
    knows_clients = is_since(situation.release, _KNOWS_CLIENTS)
    commands = []
    if knows_clients and any(map(is_daemon, pods)) and situation.node.labels.get(labels.CLIENT) != "true":
        commands.append(label_node(situation.node.name, {labels.CLIENT: "true"}))
    for pod in pods:
        if is_daemon(pod) and knows_clients and pod.owner is not None:
            commands.append(select_nodes(pod.namespace, pod.owner.name, {labels.CLIENT: "true"}))
        else:
            commands.append(delete_pod(pod.namespace, pod.name))
    return Finding(
        "gpu-user-invisible",
        f"{_names(pods)} {'holds' if len(pods) == 1 else 'hold'} the driver, and no run of driver-manager tells it to go.",
        "It counts who asks for nvidia.com/gpu or nvidia.com/mig-* in a container"
        + (", or holds a claim of gpu.nvidia.com" if knows_clients else "")
        + ". A pod that got the GPU otherwise (runtime class, privileged, an init container's request) is left, and the unload"
        " fails with 'driver is in use'.",
        tuple(commands),
        "Its work ends. What owns it makes another pod, here unless the node is cordoned: let the driver pod restart at once."
        + (
            f" A DaemonSet that selects on {labels.CLIENT} has pods only on nodes that carry the label (set by charts from v26.7.0 on)."
            if knows_clients
            else ""
        ),
        tuple(f"pod {pod.full_name} holds a module and asks for no GPU" for pod in pods),
    )


# --- claims ---------------------------------------------------------------------------------------------------------


def holds_claim(situation: Situation, pod: Pod) -> bool:
    """Has the pod a resource claim that NVIDIA's DRA driver has allocated?"""
    claims = claims_of(situation.bundle.scenario.world.cluster, pod)
    return any(driver == DRA_DRIVER for _, driver in claims)


def _claims(pods: list[Pod]) -> Finding:
    return Finding(
        "claims-wait-for-driver",
        f"{_names(pods)} {'holds a claim' if len(pods) == 1 else 'hold claims'} of {DRA_DRIVER}, and no driver is loaded.",
        "As after a reboot. A run evicts them, but they cannot end without the DRA plugin, which waits for the driver, which waits"
        " for the run. The labels flap, the node stays cordoned. v0.12.0 evicts nobody where no driver is loaded.",
        tuple(delete_pod(pod.namespace, pod.name, force=True) for pod in pods),
        "The objects go; a claim that was not unprepared may stay reserved until its pod's owner or the plugin clears it.",
        tuple(f"pod {pod.full_name} has an allocated claim" for pod in pods),
    )
