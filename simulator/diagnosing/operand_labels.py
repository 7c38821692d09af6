"""Operand labels that keep operands away: paused, blank, of a value that nobody selects, or missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simulator import labels
from simulator.diagnosing.commands import label_node, uncordon
from simulator.diagnosing.finding import Finding
from simulator.diagnosing.gpu_operator import OPERANDS, PAUSERS, pauses, unpaused
from simulator.diagnosing.situation import Situation
from simulator.predicting.modes import WORKLOADS
from simulator.predicting.run import CUSTOM_LABEL
from simulator.selectors import label_key_errors

_PAUSABLE: Final = (*labels.ALWAYS, *labels.IF_DEPLOYED)
_PLAIN: Final = frozenset({"", "true", "false"})
_SELECTS: Final = "The operands' DaemonSets select on true, so their pods are not placed on this node."


def find(situation: Situation) -> Iterator[Finding]:
    """Findings about operand labels."""
    custom = situation.eviction_label
    operands = _operands(situation)
    foreign = {key: value for key, value in operands.items() if _is_paused_by_another(value)}
    if only_own := paused_by_manager_alone(situation):
        yield _paused(situation, only_own, [key for key in _PAUSABLE if operands.get(key) == "true"])
    if foreign:
        yield _paused_by_another(situation, foreign)
    if blank := {key: "" for key in WORKLOADS[situation.mode].state_labels if operands.get(key) == ""}:
        yield _blank(situation, blank)
    unknown = {
        key: value
        for key, value in operands.items()
        if (value and unpaused(value) not in _PLAIN) and key != custom and (key, value) != (labels.DRIVER, labels.PRE_INSTALLED)
    }
    if unknown:
        yield _unknown(situation, unknown)
    if custom and not label_key_errors(custom) and not operands.get(custom):
        yield _missing(situation, custom)


def _operands(situation: Situation) -> dict[str, str]:
    custom = situation.eviction_label
    return {
        key: value
        for key, value in situation.node.labels.items()
        if (key.startswith(labels.PREFIX) and key != OPERANDS) or (custom and key == custom)
    }


def _is_paused_by_another(value: str) -> bool:
    return bool(set(pauses(value)) - {labels.PAUSED})


def paused_by_manager_alone(situation: Situation) -> dict[str, str]:
    """The operands' labels that driver-manager has paused, and nobody else."""
    operands = _operands(situation)
    return {key: value for key, value in operands.items() if labels.PAUSED in value and not _is_paused_by_another(value)}


def _told(values: dict[str, str]) -> tuple[str, ...]:
    return tuple(f"label {key}={value}" for key, value in values.items())


def _paused(situation: Situation, paused: dict[str, str], deployed: list[str]) -> Finding:
    if situation.running_manager:
        next_run = f" driver-manager runs in {situation.running_manager}; as long as it does this is in order."
    elif situation.host_check:
        next_run = " The next run does not mend it: it gives way to the host's driver before it reads a label."
    else:
        next_run = _restored(situation, paused)
    mixed = f" Others are not paused ({', '.join(deployed)}), so a patch was lost or somebody restored those." if deployed else ""
    return Finding(
        "operands-paused",
        f"{_count(paused)} {'is' if len(paused) == 1 else 'are'} paused by driver-manager.",
        _SELECTS + next_run + mixed,
        (
            label_node(situation.node.name, {key: unpaused(value) for key, value in paused.items()}),
            *((uncordon(situation.node.name),) if situation.is_cordoned_by_manager else ()),
        ),
        "The operands' pods come back at once. While a run of driver-manager is unloading the driver they keep it busy.",
        _told(paused),
    )


def _restored(situation: Situation, paused: dict[str, str]) -> str:
    """What the next run does to them, by what was seen of the node."""
    outcome = situation.next_run()
    if outcome.after.node is None or any(labels.PAUSED in outcome.after.node.labels.get(key, "") for key in paused):
        return " By what was seen of the node the next run of driver-manager does not restore them."
    if outcome.exit_code == 0:
        return " The next run of driver-manager restores them."
    return " The next run of driver-manager fails, and restores them in its clean-up; each further one pauses them anew."


def _paused_by_another(situation: Situation, paused: dict[str, str]) -> Finding:
    by = sorted({PAUSERS.get(pause, f"whoever writes {pause}") for value in paused.values() for pause in pauses(value)})
    return Finding(
        "operands-paused-by-another",
        f"{_count(paused)} {'is' if len(paused) == 1 else 'are'} paused by {' and '.join(by)}.",
        f"{_SELECTS} driver-manager adds and strips its own suffix only, so none of its runs mends this.",
        (label_node(situation.node.name, {key: unpaused(value) for key, value in paused.items()}),),
        "If a change of MIG or vGPU devices is under way, the operands come back in the middle of it.",
        _told(paused),
    )


def _blank(situation: Situation, blank: dict[str, str]) -> Finding:
    return Finding(
        "operands-blank",
        f"{_count(blank)} {'has' if len(blank) == 1 else 'have'} a label without a value.",
        f"{_SELECTS} driver-manager creates a label empty if the node lacked it when the run began. Before chart v26.7.0 the"
        " operator takes an empty value for a decision and keeps it; from v26.7.0 on it sets true at its next look at the node.",
        (label_node(situation.node.name, {key: situation.deployed(key) for key in blank}),),
        "The operands' pods come; those whose operand is switched off in the ClusterPolicy do not."
        + (" In the driver's pod driver-manager evicts GPU pods and cordons the node meanwhile." if labels.DRIVER in blank else ""),
        _told(blank),
    )


def _unknown(situation: Situation, unknown: dict[str, str]) -> Finding:
    return Finding(
        "operand-value-unknown",
        f"{_count(unknown)} {'has' if len(unknown) == 1 else 'have'} a value that no DaemonSet selects.",
        f"{_SELECTS} The operator honours any value; driver-manager pauses and restores it as it is.",
        (label_node(situation.node.name, {key: situation.deployed(key) for key in unknown}),),
        "Somebody may have chosen the value to keep the operand away: then write false, which says so.",
        _told(unknown),
    )


def _missing(situation: Situation, key: str) -> Finding:
    return Finding(
        "eviction-label-missing",
        f"{CUSTOM_LABEL} names {key}, which the node lacks.",
        "What is not on the node is not paused: pods behind the label keep the driver when it is to be unloaded. A DaemonSet"
        " that selects on the label is not placed here at all.",
        (label_node(situation.node.name, {key: "true"}),),
        "DaemonSets that select on the label come to the node, and from now on leave it while driver-manager works. A DRA plugin"
        " leaves before the pods that hold its claims, which then cannot end (issue #250).",
        (f"{CUSTOM_LABEL}={key}", f"no label {key}" if key not in situation.node.labels else f"label {key} is empty"),
    )


def _count(values: dict[str, str]) -> str:
    return "One operand" if len(values) == 1 else f"{len(values)} operands"
