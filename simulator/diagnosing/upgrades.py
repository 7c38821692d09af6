"""The upgrade controller's marks, and who cordoned the node."""

from __future__ import annotations

from collections.abc import Iterator

from simulator import labels
from simulator.diagnosing.commands import drop_annotations, label_node, uncordon
from simulator.diagnosing.finding import Finding
from simulator.diagnosing.gpu_operator import (
    CORDONED_IN,
    IN_UPGRADE,
    INITIAL_CORDON,
    UPGRADE_DONE,
    UPGRADE_FAILED,
    UPGRADE_NOTES,
    UPGRADE_REQUESTED,
    UPGRADE_REQUIRED,
    UPGRADE_SKIP,
)
from simulator.diagnosing.operand_labels import paused_by_manager_alone
from simulator.diagnosing.situation import Situation
from simulator.labels import UPGRADE_STATE
from simulator.predicting.modes import Mode


def find(situation: Situation) -> Iterator[Finding]:
    """Findings about upgrades and the cordon."""
    state = situation.node.labels.get(UPGRADE_STATE, "")
    reason = _no_controller(situation)
    if state == UPGRADE_FAILED and not reason:
        yield _failed(situation)
    elif state not in {"", UPGRADE_DONE} and (reason or state not in IN_UPGRADE):
        yield _stale_state(situation, state, reason)
    if situation.is_upgrade_policy_on and reason:
        yield _stale_annotation(situation, reason)
    notes = [key for key in UPGRADE_NOTES if key in situation.node.annotations]
    if notes and (reason or state not in {*IN_UPGRADE, UPGRADE_FAILED}):
        yield _stale_notes(situation, notes)
    if situation.node.annotations.get(UPGRADE_REQUESTED) == "true" and reason:
        yield _stale_request(situation, reason)
    if situation.node.labels.get(UPGRADE_SKIP) == "true":
        yield _skipped(situation)
    if situation.node.unschedulable:
        yield _cordon(situation, "" if reason else state)


def _no_controller(situation: Situation) -> str:
    """Why no upgrade controller takes care of this node; "" if one does, as far as can be seen."""
    if situation.of_policy("spec", "driver", "enabled") is False:
        return "the ClusterPolicy has the driver switched off"
    if situation.of_policy("spec", "sandboxWorkloads", "enabled") is True:
        return "sandboxWorkloads is on, with which the controller does nothing"
    if situation.of_policy("spec", "driver", "upgradePolicy", "autoUpgrade") is False:
        return "autoUpgrade is off in the ClusterPolicy"
    if situation.mode != Mode.CONTAINER:
        return f"the node's workload type is {situation.mode}, with which the controller does nothing"
    if not situation.is_upgrade_policy_on:
        return f"the annotation {labels.UPGRADE_ANNOTATION} is not true"
    return ""


def _failed(situation: Situation) -> Finding:
    goes_on = (
        "upgrade-done, and leaves the cordon as it found it"
        if INITIAL_CORDON in situation.node.annotations
        else "uncordon-required"
    )
    return Finding(
        "upgrade-failed",
        f"{UPGRADE_STATE} is {UPGRADE_FAILED}: the upgrade controller waits for the driver pod to become Ready.",
        "It evicts nobody any more, and the annotation keeps driver-manager from evicting anybody itself. But it looks at the node each"
        f" time: once the driver pod is of its DaemonSet's newest revision and Ready it goes on to {goes_on}. So mend what keeps that"
        " pod from it, and leave the label alone.",
        (),
        f"To set the label to {UPGRADE_REQUIRED} is not needed: the upgrade would begin anew, with cordon, eviction of GPU pods or a"
        " drain as the upgrade policy says.",
        (f"label {UPGRADE_STATE}={UPGRADE_FAILED}",),
    )


def _stale_state(situation: Situation, state: str, reason: str) -> Finding:
    why = f"{reason[0].upper()}{reason[1:]}." if reason else "It is no state that the controller knows."
    return Finding(
        "upgrade-state-stale",
        f"{UPGRADE_STATE} is {state}, and no upgrade controller is at work.",
        f"{why} Nobody goes on from this state, and a cordon that belongs to it is lifted by nobody.",
        (label_node(situation.node.name, {UPGRADE_STATE: None}),),
        "If the upgrade policy is switched on again the controller looks at the node anew, and upgrades it if its driver pod is out"
        " of date.",
        (f"label {UPGRADE_STATE}={state}", reason or "unknown state"),
    )


def _stale_annotation(situation: Situation, reason: str) -> Finding:
    return Finding(
        "upgrade-annotation-stale",
        f"{labels.UPGRADE_ANNOTATION} is true, and no upgrade controller is at work.",
        f"With it driver-manager evicts nobody, drains nothing and leaves the cordon alone, whatever ENABLE_GPU_POD_EVICTION and"
        f" ENABLE_AUTO_DRAIN say; and {reason}. GPU pods then keep the driver, and the init container fails until they are gone.",
        (drop_annotations(situation.node.name, (labels.UPGRADE_ANNOTATION,)),),
        "ENABLE_GPU_POD_EVICTION and ENABLE_AUTO_DRAIN count again: the next run may cordon the node and evict its GPU pods.",
        (f"annotation {labels.UPGRADE_ANNOTATION}=true", reason),
    )


def _stale_notes(situation: Situation, notes: list[str]) -> Finding:
    cordoned = " The next upgrade would leave the node cordoned at its end." if INITIAL_CORDON in notes else ""
    return Finding(
        "upgrade-notes-stale",
        "Annotations of an upgrade are left, and no upgrade is under way.",
        f"The controller reads them in its next upgrade as if they were of that one.{cordoned}",
        (drop_annotations(situation.node.name, notes),),
        "None, as long as no upgrade begins meanwhile.",
        tuple(f"annotation {key}={situation.node.annotations[key]}" for key in notes),
    )


def _stale_request(situation: Situation, reason: str) -> Finding:
    return Finding(
        "upgrade-request-stale",
        f"{UPGRADE_REQUESTED} asks for an upgrade that nobody will make.",
        f"{reason[0].upper()}{reason[1:]}. If a controller comes to work here it upgrades the node at once.",
        (drop_annotations(situation.node.name, (UPGRADE_REQUESTED,)),),
        "The upgrade that was asked for does not happen.",
        (f"annotation {UPGRADE_REQUESTED}=true", reason),
    )


def _skipped(situation: Situation) -> Finding:
    return Finding(
        "upgrade-skipped",
        f"{UPGRADE_SKIP} keeps the upgrade controller away from this node.",
        "A new driver or driver-manager reaches it only when the driver pod is deleted by hand, and then nobody evicts the GPU"
        " pods first if the upgrade annotation is true.",
        (label_node(situation.node.name, {UPGRADE_SKIP: None}),),
        "If its driver pod is out of date the node is upgraded at once: cordon, eviction, restart.",
        (f"label {UPGRADE_SKIP}=true",),
    )


def _cordon(situation: Situation, state: str) -> Finding:
    node = situation.node
    seen = ("the node is unschedulable",)
    begun_anew = state == UPGRADE_REQUIRED and INITIAL_CORDON not in node.annotations
    if state in CORDONED_IN or state == UPGRADE_FAILED or begun_anew:
        kept = " It will leave it cordoned, as it found it." if INITIAL_CORDON in node.annotations else ""
        when = "once the driver pod is Ready" if state == UPGRADE_FAILED else "after uncordon-required"
        waits = kept or f" It lifts it {when}; driver-manager never does meanwhile."
        return Finding(
            "cordon-of-upgrade-controller",
            f"The node is cordoned, and the upgrade controller has it in the state {state}.",
            f"The cordon is the controller's.{waits}",
            (uncordon(node.name),),
            "New pods come to a node whose driver is about to be replaced, and are evicted or keep it busy. Only where the upgrade"
            " hangs for good is this the mend.",
            (*seen, f"label {UPGRADE_STATE}={state}"),
        )
    if situation.is_cordoned_by_manager:
        is_mended = bool(paused_by_manager_alone(situation))
        waits = f" It is still running, in {situation.running_manager}." if situation.running_manager else ""
        return Finding(
            "cordon-of-driver-manager",
            "The node is cordoned and operands are paused, as a run of driver-manager leaves both that was cut off or waits.",
            f"It cordons before it evicts, and uncordons at its end.{waits} The next run that comes to its end lifts the cordon.",
            () if is_mended else (uncordon(node.name),),
            "If the run goes on, pods come to the node that it wants empty.",
            (*seen, *(f"label {key}={node.labels[key]}" for key in situation.paused)),
            "operands-paused" if is_mended else "",
        )
    return Finding(
        "cordon-of-another",
        "The node is cordoned, by neither driver-manager nor the upgrade controller.",
        "An administrator or another controller did it."
        + (
            " Eviction or drain is on here, so driver-manager lifts it all the same at the end of its next run, unless that keeps the"
            " driver."
            if situation.touches_cordon
            else " driver-manager leaves it alone here."
        ),
        (uncordon(node.name),),
        "Whoever cordoned it may be at work on it: ask first.",
        seen,
    )
