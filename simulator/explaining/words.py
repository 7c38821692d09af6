"""An explanation in plain words: what was decided and why, how the node is now, what comes next, what a person can do.

The sentences are tables, beside the code that uses them: (step, answer) -> sentence, failed step -> advice. A step of the script
has the name that its Go function has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from simulator import labels
from simulator.explaining.search import Candidate
from simulator.explaining.steering import Decision, Effects
from simulator.gocompat import errno_text

_SAME: Final = {
    "host_driver": "is_host_driver",
    "give_way_to_host_driver": "disable_containerized_driver",
    "fetch_policy": "fetch_auto_upgrade_annotation",
    "evict_required_gpu_operator_components": "evict_all_gpu_operator_components",
    "cordon_k8s_node": "cordon_node",
    "uncordon_k8s_node": "uncordon_node",
    "nvdrain_k8s_node": "nv_drain_node",
    "drain_k8s_node": "drain_node",
    "driver_loaded": "is_driver_loaded",
    "gpu_direct_rdma_enabled": "is_gpu_direct_rdma_enabled",
    "nouveau_loaded": "is_nouveau_loaded",
    "exit_failed": "cleanup_on_failure",
}
"""Step of the script -> step of the Go program that does the same."""

_SENTENCES: Final[Mapping[tuple[str, str], str]] = {
    ("is_host_driver", "yes"): "The host has a driver of its own: nvidia-smi ran in the host's root and answered.",
    ("is_host_driver", "no"): "The host has no driver of its own: nvidia-smi does not run in its root, fails, or prints nothing.",
    ("disable_containerized_driver", "done"): "So the container driver gave way: the node's driver label became pre-installed.",
    ("disable_containerized_driver", "failed"): "The node's driver label could not be set to pre-installed.",
    ("fetch_current_labels", "done"): "The operands' labels were read from the node.",
    ("fetch_current_labels", "failed"): "A label of the node could not be read.",
    ("fetch_auto_upgrade_annotation", "done"): "The upgrade policy's annotation was read from the node.",
    ("fetch_auto_upgrade_annotation", "failed"): "The upgrade policy's annotation could not be read.",
    ("evict_all_gpu_operator_components", "done"): "The operands were paused by their labels, and their pods went.",
    ("evict_all_gpu_operator_components", "failed"): "The operands could not all be stopped.",
    ("wait_for_operand", "failed"): "The pods of {subject} did not go within their time, or could not be listed.",
    ("should_skip_uninstall", "yes"): "The loaded driver is the desired one (the digest is the stored one), so it stays.",
    ("should_skip_uninstall", "no"): "The driver has to go: another is desired, or a reinstall is forced, or that cannot be told.",
    (
        "is_gpu_pod_eviction_enabled",
        "yes",
    ): "Pods that use GPUs are to be evicted (ENABLE_GPU_POD_EVICTION is on, no upgrade policy takes over).",
    (
        "is_gpu_pod_eviction_enabled",
        "no",
    ): "Pods that use GPUs are not evicted: ENABLE_GPU_POD_EVICTION is off, or the upgrade policy does that.",
    (
        "is_auto_drain_enabled",
        "yes",
    ): "A drain of the whole node is allowed (ENABLE_AUTO_DRAIN is on, no upgrade policy takes over).",
    (
        "is_auto_drain_enabled",
        "no",
    ): "A drain of the whole node is not allowed: ENABLE_AUTO_DRAIN is off, or the upgrade policy does that.",
    ("cordon_node", "done"): "The node was cordoned.",
    ("cordon_node", "failed"): "The node could not be cordoned.",
    ("nv_drain_node", "done"): "No pod that uses a GPU is left on the node.",
    ("nv_drain_node", "failed"): "Not every pod that uses a GPU could be evicted.",
    ("nv_drain_node", "panicked"): "The program panicked while it looked for the pods to evict.",
    ("drain_node", "done"): "The whole node was drained.",
    ("drain_node", "failed"): "The drain of the whole node failed.",
    (
        "drain_node",
        "panicked",
    ): "The program panicked in the drain of the whole node: it has nowhere to write (a bug of these releases).",
    ("is_driver_loaded", "yes"): "The nvidia module is loaded.",
    ("is_driver_loaded", "no"): "The nvidia module is not loaded.",
    ("driver_busy", "yes"): "The nvidia module is loaded and in use.",
    ("driver_busy", "no"): "The nvidia module is not in use.",
    ("before_unloading", "failed"): "Something still holds the GPUs through DRA, so the modules were left alone.",
    ("evict_kubelet_plugin", "failed"): "The DRA kubelet plugin did not go.",
    ("unload_driver", "done"): "The kernel modules were unloaded.",
    ("unload_driver", "failed"): "The kernel modules could not all be unloaded: something still uses them.",
    ("unmount_rootfs", "failed"): "The driver's root could not be unmounted.",
    ("cleanup_driver", "done"): "The driver is gone: modules unloaded, its root unmounted.",
    ("unbind_vfio_pci", "done"): "vfio-manage took no GPU to keep for passthrough.",
    ("unbind_vfio_pci", "failed"): "vfio-manage could not unbind the GPUs from vfio-pci.",
    ("is_gpu_direct_rdma_enabled", "yes"): "GPUDirect RDMA is on and there is a Mellanox card.",
    ("wait_for_mofed_driver", "done"): "MOFED is there.",
    ("uncordon_node", "done"): "The node was uncordoned, whoever had cordoned it.",
    ("uncordon_node", "failed"): "The node could not be uncordoned.",
    ("reschedule_gpu_operator_components", "done"): "The operands' labels were restored.",
    ("reschedule_gpu_operator_components", "failed"): "The operands' labels could not be restored.",
    ("cleanup_on_failure", "done"): "After the failure it tidied up as far as it may.",
    ("is_nouveau_loaded", "yes"): "nouveau is loaded, which would block the driver.",
    ("unload_nouveau", "done"): "nouveau was unloaded.",
    ("unload_nouveau", "failed"): "nouveau could not be unloaded.",
    ("preflight_check", "done"): "A preflight check does nothing but say so.",
    ("main", "failed"): "The settings were refused before anything was done.",
    ("new_driver_manager", "failed"): "No client for the API server could be made, so nothing was done.",
}

_ADVICE: Final[Mapping[str, str]] = {
    "is_host_driver": "Remove the host's driver, or let the operator use it: driver.enabled=false.",
    "fetch_current_labels": "See that the node exists under this name, that the API server can be reached, and that driver-manager may get nodes.",
    "fetch_auto_upgrade_annotation": "See that the API server can be reached and that driver-manager may get nodes.",
    "disable_containerized_driver": "See that driver-manager may patch nodes; then set the label by hand: kubectl label node NODE nvidia.com/gpu.deploy.driver=pre-installed --overwrite",
    "evict_all_gpu_operator_components": "Look for operand pods that hang in Terminating (kubectl get pods -n gpu-operator -o wide) and delete them.",
    "wait_for_operand": "Look for pods of {subject} that hang in Terminating and delete them: kubectl get pods -A -o wide --field-selector spec.nodeName=NODE",
    "cordon_node": "See that driver-manager may patch nodes. The operands stay paused until a run succeeds.",
    "nv_drain_node": "End the GPU pods that stay, by hand; or set DRAIN_USE_FORCE=true (pods without a controller), DRAIN_DELETE_EMPTYDIR_DATA=true (pods with local data).",
    "drain_node": "Do not rely on ENABLE_AUTO_DRAIN: it fails on every node with DaemonSets. Set it to false and drain with kubectl drain --ignore-daemonsets.",
    "before_unloading": "End the pods that hold GPU claims: kubectl get resourceclaims -A",
    "evict_kubelet_plugin": "Look why the DRA kubelet plugin's pod does not end.",
    "unload_driver": "Find who uses the modules, on the node: lsmod | grep nvidia; fuser -v /dev/nvidia*; then end it, or reboot the node.",
    "unmount_rootfs": "On the node: see what uses /run/nvidia/driver (fuser -vm /run/nvidia/driver), then umount -R -l /run/nvidia/driver.",
    "unbind_vfio_pci": "On the node: end the virtual machines that hold the GPUs, and see lspci -nnk -d 10de:.",
    "uncordon_node": "kubectl uncordon NODE",
    "reschedule_gpu_operator_components": "Restore the paused labels: kubectl label node NODE KEY=true --overwrite for each nvidia.com/gpu.deploy.* that holds paused-for-driver-upgrade.",
    "unload_nouveau": "Blacklist nouveau on the host and reboot it.",
    "main": "Correct the setting that the last line names.",
    "new_driver_manager": "Mend the kubeconfig, or run in a pod with a service account.",
}

_HOST_DRIVER_STAYS: Final = "Remove the host's driver: as long as it is there each run in this pod ends so, whatever the operator's settings and the labels say."

_DOING: Final[Mapping[str, str]] = {
    "is_host_driver": "is about to give way to the host's driver",
    "disable_containerized_driver": "is setting the driver's label to pre-installed",
    "fetch_current_labels": "is reading the node's labels",
    "fetch_auto_upgrade_annotation": "is reading the upgrade policy's annotation",
    "evict_all_gpu_operator_components": "is stopping the operands",
    "wait_for_operand": "waits for the pods of {subject} to go, five minutes at most",
    "wait_for_pods": "waits for an operand's pods to go, five minutes at most",
    "cordon_node": "is cordoning the node",
    "uncordon_node": "is uncordoning the node",
    "nv_drain_node": "is evicting the pods that use GPUs",
    "drain_node": "is draining the whole node",
    "cleanup_driver": "is removing the driver",
    "unload_driver": "is unloading the kernel modules",
    "unmount_rootfs": "is unmounting the driver's root",
    "unbind_vfio_pci": "is taking the GPUs from vfio-pci",
    "wait_for_mofed_driver": "waits for MOFED, as long as it takes",
    "reschedule_gpu_operator_components": "is restoring the operands' labels",
    "cleanup_on_failure": "is tidying up after a failure",
    "unload_nouveau": "is unloading nouveau",
    "evict_kubelet_plugin": "is draining the DRA kubelet plugin",
    "preflight_check": "is doing its preflight check",
}


class Account(NamedTuple):
    """One story of a log: the candidates that tell it, and their words."""

    releases: tuple[str, ...]
    exit_code: int | None
    decided: tuple[str, ...]
    state: tuple[str, ...]
    comes_next: str
    advice: tuple[str, ...]


def accounts(candidates: Sequence[Candidate], *, from_beginning: bool, daemonset: str = "") -> tuple[Account, ...]:
    """The stories, releases that tell the same one together. `daemonset`: whose init container it was, "" for the driver's."""
    stories: dict[tuple[object, ...], list[Candidate]] = {}
    for candidate in candidates:
        told = tuple(_decided(candidate, daemonset))
        stories.setdefault((candidate.exit_code, told, tuple(state(candidate, daemonset))), []).append(candidate)
    return tuple(_account(each, daemonset, from_beginning=from_beginning) for each in stories.values())


def _account(told: Sequence[Candidate], daemonset: str, *, from_beginning: bool) -> Account:
    first = told[0]
    decided = tuple(_decided(first, daemonset))
    if not from_beginning:
        decided = ("The log begins in the middle: what was decided before its first line is a guess.", *decided)
    return Account(
        tuple(dict.fromkeys(each.release for each in told)),
        first.exit_code,
        decided,
        tuple(state(first, daemonset)),
        _next(first),
        tuple(_advice(first, daemonset)),
    )


def _step(decision: Decision) -> str:
    return _SAME.get(decision.step, decision.step)


def sentence(decision: Decision) -> str:
    """A decision in words, "" for one that tells nobody anything."""
    answer, _, cause = decision.answer.partition(": ")
    text = _SENTENCES.get((_step(decision), answer), "").format(subject=decision.subject)
    return f"{text} Cause: {_in_a_line(cause)}" if text and cause and answer == "failed" else text


def _in_a_line(cause: str) -> str:
    """An error's text: its lines once each, without their white space."""
    return "; ".join(dict.fromkeys(" ".join(line.split()) for line in cause.splitlines() if line.strip()))


def _decided(candidate: Candidate, daemonset: str) -> Iterator[str]:
    told = set()
    for decision in candidate.decisions:
        text = sentence(decision)
        if daemonset and (_step(decision), decision.answer) == ("disable_containerized_driver", "done"):
            text = "So it gave way: the node's driver label became pre-installed."
        if text and text not in told:
            told.add(text)
            yield text


def state(candidate: Candidate, daemonset: str = "") -> Iterator[str]:
    """How the run left the node, or has made it so far."""
    yield from _labels(candidate.effects, daemonset)
    yield _cordon(candidate)
    yield from _host(candidate)


def _labels(effects: Effects, daemonset: str) -> Iterator[str]:
    follows = (
        f"the driver DaemonSet has no pod here; {daemonset}'s pod stays." if daemonset else "the driver's pod goes from this node."
    )
    if any(_changed(patch).get(labels.DRIVER) == labels.PRE_INSTALLED for patch in effects.patches):
        yield f"{labels.DRIVER} is {labels.PRE_INSTALLED}: {follows}"
    match operands_after(effects):
        case "paused":
            yield "The operands are paused: their labels hold paused-for-driver-upgrade, their pods do not run here."
        case "restored":
            yield "The operands' labels are restored: their pods come back."
        case "set":
            yield "The operands' labels were set back from what the run had read."
        case _:
            yield "The run has not changed the operands' labels."


def _changed(patch: Mapping[str, Any]) -> Mapping[str, str]:
    changed: Mapping[str, str] = patch.get("metadata", {}).get("labels", {})
    return changed


def operands_after(effects: Effects) -> str:
    """How a run left the operands' labels: "paused", "restored", "set" back to what it had read, "" if it changed none."""
    operands = ""
    for patch in effects.patches:
        changed = _changed(patch)
        if changed and changed.get(labels.DRIVER) != labels.PRE_INSTALLED:
            paused = any(labels.PAUSED in value for value in changed.values())
            operands = "paused" if paused else (operands and "restored") or "set"
    return operands


def _cordon(candidate: Candidate) -> str:
    cordon, uncordon = "", ""
    for decision in candidate.decisions:
        step, answer = _step(decision), decision.answer.partition(": ")[0]
        if step == "cordon_node" and answer == "done":
            cordon, uncordon = "The node is cordoned, by this run.", ""
        elif step == "uncordon_node":
            uncordon = "The node is schedulable." if answer == "done" else "The node's cordon could not be lifted."
    return uncordon or cordon or "The run has not touched the cordon: the node is as schedulable as it was."


def _host(candidate: Candidate) -> Iterator[str]:
    stay = {name: number for call, name, number in candidate.effects.acts if call == "delete_module" and number}
    gone = [name for call, name, number in candidate.effects.acts if call == "delete_module" and not number]
    for name in gone:
        stay.pop(name, None)
    unloaded = any(_step(decision) == "unload_driver" and decision.answer == "done" for decision in candidate.decisions)
    failed = any(_step(decision) == "unload_driver" and decision.answer != "done" for decision in candidate.decisions)
    if stay:
        listed = ", ".join(f"{name} ({errno_text(number)})" for name, number in stay.items())
        yield f"Still loaded: {listed}. The modules that are not named may be gone."
    elif unloaded:
        yield "The driver's modules are unloaded."
    elif failed:
        yield "The driver's modules are loaded, all or some of them."
    else:
        yield "The run has not unloaded the driver's modules."
    if candidate.effects.gone:
        yield f"Pods that were made to go: {', '.join(dict.fromkeys(candidate.effects.gone))}."


def _next(candidate: Candidate) -> str:
    match candidate.exit_code:
        case 0:
            return "The init container has succeeded (exit code 0): the kubelet starts the driver's container."
        case None:
            doing = next(
                (_DOING[_step(each)].format(subject=each.subject) for each in reversed(candidate.doing) if _step(each) in _DOING),
                "goes on with its next step",
            )
            return (
                f"The log ends before the run does. At its last line driver-manager {doing}."
                " If it was killed there, the kubelet starts it again, from the beginning."
            )
        case _:
            return (
                f"The init container has failed (exit code {candidate.exit_code}): the kubelet starts it again, after a pause that"
                " grows to five minutes, and the run begins anew with the node as it is now."
            )


def _advice(candidate: Candidate, daemonset: str) -> Iterator[str]:
    said = set()
    failed = [each for each in candidate.decisions if each.answer.partition(": ")[0] in {"failed", "panicked"}]
    if any(_step(each) == "is_host_driver" and each.answer == "yes" for each in candidate.decisions):
        yield _HOST_DRIVER_STAYS if daemonset else _ADVICE["is_host_driver"]
    for decision in failed:
        text = _ADVICE.get(_step(decision), "").format(subject=decision.subject)
        if text and text not in said:
            said.add(text)
            yield text
    if candidate.exit_code is None and not failed:
        last = _step(candidate.doing[-1]) if candidate.doing else ""
        if last in {"wait_for_operand", "wait_for_pods", "nv_drain_node"}:
            yield _ADVICE[
                "wait_for_operand"
                if last == "wait_for_operand"
                else "evict_all_gpu_operator_components"
                if last == "wait_for_pods"
                else last
            ].format(subject=candidate.doing[-1].subject)
