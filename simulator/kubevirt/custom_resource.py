"""What the charts of KubeVirt and of the GPU Operator make of a Package: the KubeVirt CR's configuration, and the ClusterPolicy.

Of the ClusterPolicy only what a Package's values set is rendered anew: a value is taken to be copied to its own place, as those
are that Cozystack sets, and an empty one is left out.

Source: cozystack/cozystack v1.6.2 packages/system/kubevirt/templates/kubevirt-cr.yaml,
packages/system/gpu-operator/charts/gpu-operator/templates/clusterpolicy.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulator.kubevirt.cozystack import Cozystack
from simulator.kubevirt.packages import Package
from simulator.kubevirt.template import coalesced, truth


def kubevirt_configuration(package: Package, release: Cozystack) -> dict[str, Any]:
    """The parts of the KubeVirt CR's `spec.configuration` that its Package decides."""
    values = package.values("kubevirt")
    ratio, gates = values.get("cpuAllocationRatio"), values.get("extraFeatureGates") or ()
    return {
        "developerConfiguration": {
            **({"cpuAllocationRatio": ratio} if truth(ratio) else {}),
            "featureGates": [*release.feature_gates, *gates],
        },
        **{key: values[key] for key in ("permittedHostDevices", "mediatedDevicesConfiguration") if truth(values.get(key))},
    }


def cluster_policy(package: Package, release: Cozystack) -> dict[str, Any]:
    """The spec of the ClusterPolicy. Raises KeyError for a variant that the PackageSource has not."""
    own = package.values("gpu-operator").get("gpu-operator") or {}
    values = coalesced(own, release.gpu_operator_variants[package.variant])
    return _laid_over(values, release.cluster_policy)


def _laid_over(values: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """A spec with values over it; what is empty leaves its key out."""
    out = dict(spec)
    for key, value in values.items():
        before = out.get(key)
        if isinstance(value, dict):
            out[key] = _laid_over(value, before if isinstance(before, dict) else {})
        elif value in ("", [], None):
            out.pop(key, None)
        else:
            out[key] = value
    return out
