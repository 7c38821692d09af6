"""All findings of a bundle, in the order of their kinds."""

from __future__ import annotations

from typing import Final

from simulator.diagnosing import driver_traces, failures, gpus, host_drivers, operand_labels, pods, settings, upgrades
from simulator.diagnosing.finding import KINDS, Finding, Kind
from simulator.diagnosing.situation import Situation
from simulator.manager.releases import DEFAULT, modelled
from simulator.snapshot.bundle import Bundle

_DETECTORS: Final = (
    failures.find,
    host_drivers.find,
    operand_labels.find,
    upgrades.find,
    driver_traces.find,
    gpus.find,
    pods.find,
    settings.find,
)


def judged_for(bundle: Bundle) -> str:
    """The modelled release that a bundle's world is of; the default one if it does not say, or says one that is not known."""
    return modelled(bundle.scenario.release) or DEFAULT


def diagnose(bundle: Bundle, release: str = "") -> tuple[Finding, ...]:
    """What is left over on the node, or keeps it from working, for a modelled release: the world's own where none is named.

    Nothing is executed, and nothing is found that a release does not have. Raises KeyError for a release that is not modelled.
    """
    situation = Situation(bundle, release or judged_for(bundle))
    if bundle.scenario.world.cluster.node is None:
        return ()
    found = (finding for find in _DETECTORS for finding in find(situation))
    order = list(KINDS)
    return tuple(
        sorted(
            (finding for finding in found if _counts(KINDS[finding.kind], situation)),
            key=lambda finding: order.index(finding.kind),
        )
    )


def _counts(kind: Kind, situation: Situation) -> bool:
    """Does the release have it, and was seen what it rests on?"""
    return situation.release in kind.releases and (situation.bundle.is_host_seen or not kind.of_host)


__all__ = ["Finding", "diagnose", "judged_for"]
