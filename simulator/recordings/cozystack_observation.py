"""What Cozystack's charts render, in the recordings' own form."""

from __future__ import annotations

from typing import Any, Final

from simulator.kubevirt.cozystack import cozystack, releases
from simulator.kubevirt.custom_resource import cluster_policy, kubevirt_configuration
from simulator.kubevirt.packages import GPU_OPERATOR, KUBEVIRT, Package
from simulator.kubevirt.platform import render
from simulator.kubevirt.template import RenderError
from simulator.reading import InputError
from simulator.recordings.form import COZYSTACK_INPUT, check
from simulator.recordings.layout import Recording

HELM_4: Final = "observed_helm_v4.2.3"
"""Under which name a recording has what Helm 4 says, where that is something else."""


def cozystack_observation(recording: Recording) -> dict[str, Any]:
    """What Helm 3 makes of a case. Raises InputError for an input of another form."""
    return _observations(recording)[0]


def cozystack_others(recording: Recording) -> dict[str, Any]:
    """What Helm 4 makes of it, where that is something else."""
    first, second = _observations(recording)
    return {} if first == second else {HELM_4: second}


def _observations(recording: Recording) -> tuple[dict[str, Any], dict[str, Any]]:
    if recording.release not in releases():
        raise InputError(recording.file, "", f"is of {recording.release}, which is not known", f"known: {', '.join(releases())}")
    release = cozystack(recording.release)
    check(recording.input, COZYSTACK_INPUT, recording.file, "input")
    if "variant" in recording.input:
        package = Package(GPU_OPERATOR, recording.input["variant"])
        policy = {"kinds": list(release.gpu_operator_objects), "cluster_policy": cluster_policy(package, release)}
        return policy, policy
    try:
        packages = render(recording.input.get("values") or {}, release)
    except RenderError as error:
        return {"error": error.text}, {"error": error.helm_4}
    observed: dict[str, Any] = {
        "packages": {name: packages[name].spec() for name in (KUBEVIRT, GPU_OPERATOR) if name in packages},
        "package_names": sorted(packages),
    }
    if KUBEVIRT in packages:
        observed["kubevirt_cr"] = kubevirt_configuration(packages[KUBEVIRT], release)
    return observed, observed
