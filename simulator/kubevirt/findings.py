"""What is wrong between a card and its VM: one finding for one cause, with its mend."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from simulator.kubevirt.starting import Said

KINDS: Final = {
    "helm-refuses": "the platform's chart cannot be rendered with these values",
    "gpu-operator-off": "the GPU Operator's Package is not there, and KubeVirt is told nothing of GPUs",
    "unknown-key": "a key that nothing reads",
    "ignored-in-variant": "a list that this variant does not look at",
    "selector-form": "a selector that no card can match",
    "resource-form": "a name that no resource can have",
    "duplicate-selector": "one card with two entries",
    "two-providers": "KubeVirt's own device plugin announces what the sandbox device plugin announces too",
    "no-permitted-block": "there is no permittedHostDevices: KubeVirt permits everything",
    "empty-permitted-block": "permittedHostDevices is empty: KubeVirt permits nothing",
    "no-host-devices-gate": "the gate HostDevices is off",
    "cr-differs": "the KubeVirt CR is not what the values make of it",
    "nothing-announced": "the device plugin does not start on the node",
    "not-bound": "a GPU is not on a vfio driver",
    "group-not-viable": "another function of a GPU's IOMMU group is not on a vfio driver",
    "one-name-two-ids": "two device ids have one name",
    "unknown-id": "the plugin's pci.ids does not know a card",
    "name-differs": "an entry calls a card otherwise than the node does",
    "not-permitted": "a card that no VM may ask for",
    "vm-spelling": "a VM spells a resource otherwise",
    "vm-mig": "a VM asks for a MIG device",
    "vm-not-permitted": "a VM asks for what is not permitted",
    "vm-not-announced": "a VM asks for what no node announces",
    "vm-too-many": "a VM asks for more than a node has",
    "vm-no-address": "a VM asks for a resource that comes without a PCI address",
}
"""Kind -> what it means."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause. `where` is a place in a file, a node's function or a VM; `resources` are the names that it is about.

    `said` is what the programs print for the VMs that it stops: nothing, as long as no VM asks.
    """

    kind: str
    where: str
    what: str
    mend: str
    resources: tuple[str, ...] = ()
    said: tuple[Said, ...] = field(default=())

    def __post_init__(self) -> None:
        assert self.kind in KINDS, self.kind
