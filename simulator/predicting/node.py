"""The node object before and after: cordon, operand labels."""

from __future__ import annotations

from typing import Final

from simulator import labels
from simulator.predicting.answers import CordonAnswer, LabelAnswer, LabelsAnswer
from simulator.predicting.events import policy_owns_eviction
from simulator.predicting.reading import node_patches
from simulator.predicting.run import Run

PAUSE: Final = "paused-for-"
"""How a pause begins in a label's value, whoever paused the operand."""


def cordon_answer(run: Run) -> CordonAnswer:
    """Is the node unschedulable before and after, and by whom?"""
    before, after = run.outcome.before.node, run.outcome.after.node
    if before is None or after is None:
        return CordonAnswer(None, None, cordoned=False, uncordoned=False, foreign_lifted=False, note="there is no such node")
    changes = [
        bool(request.body["spec"]["unschedulable"])
        for request in node_patches(run.outcome)
        if request.body and "unschedulable" in request.body.get("spec", {})
    ]
    cordoned, uncordoned = True in changes, False in changes
    lifted = before.unschedulable and not after.unschedulable
    return CordonAnswer(
        before.unschedulable,
        after.unschedulable,
        cordoned,
        uncordoned,
        foreign_lifted=lifted,
        note=_cordon_note(run, before=before.unschedulable, after=after.unschedulable, cordoned=cordoned),
    )


def _cordon_note(run: Run, *, before: bool, after: bool, cordoned: bool) -> str:
    whose = "the cordon that was there before"
    if labels.UPGRADE_STATE in run.node_labels:
        whose += f" (the upgrade controller's, if {labels.UPGRADE_STATE}={run.node_labels[labels.UPGRADE_STATE]} made it)"
    if before and not after:
        return (
            f"{whose} is lifted, whoever made it: the release uncordons wherever eviction or auto-drain is on; it stays where the"
            " upgrade policy owns both, or both are off"
        )
    if before:
        owner = "; the upgrade controller lifts its own" if policy_owns_eviction(run.world) else ""
        return f"{whose} stays{owner}"
    if after and cordoned:
        return "this run cordons the node and does not get to uncordon it"
    return "cordoned while it runs, and uncordoned" if cordoned else "not touched"


def kind_of(value: str | None) -> str:
    """What a label's value says of its operand."""
    match value:
        case None:
            return "absent"
        case "":
            return "blank"
        case "true":
            return "deployed"
        case "false":
            return "disabled"
        case labels.PRE_INSTALLED:
            return "pre-installed"
    if labels.PAUSED in value:
        return "paused"
    return "foreign pause" if PAUSE in value else "other"


def labels_answer(run: Run) -> LabelsAnswer:
    """The operand labels that the node has, that the release knows, or that somebody's setting names."""
    before = run.outcome.before.node.labels if run.outcome.before.node else {}
    after = run.outcome.after.node.labels if run.outcome.after.node else {}
    meanwhile: dict[str, list[str]] = {}
    for request in node_patches(run.outcome):
        for key, value in ((request.body or {}).get("metadata", {}).get("labels") or {}).items():
            meanwhile.setdefault(key, []).append(value)
    shown = [labels.DRIVER, *run.known_labels]
    shown += [key for key in (*before, *after) if key.startswith(labels.PREFIX)]
    answers = tuple(
        LabelAnswer(
            key,
            before.get(key),
            tuple(_on_the_way(meanwhile.get(key, []), before.get(key), after.get(key))),
            after.get(key),
            kind_of(before.get(key)),
            kind_of(after.get(key)),
        )
        for key in dict.fromkeys(shown)
        if key in before or key in after or key == run.custom_label
    )
    return LabelsAnswer(
        answers,
        created_blank=tuple(one.key for one in answers if one.before is None and one.after == ""),
        left_paused=tuple(one.key for one in answers if one.kind_after == "paused"),
        foreign=tuple(one.key for one in answers if one.kind_after == "foreign pause"),
    )


def _on_the_way(values: list[str], before: str | None, after: str | None) -> list[str]:
    """The values that are neither the first nor the last."""
    return [value for value in dict.fromkeys(values) if value not in {before, after}]
