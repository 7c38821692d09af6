"""The KubeVirt CR as far as GPUs go: feature gates, and which host devices VMs may ask for.

Source: kubevirt v1.8.4 staging/src/kubevirt.io/api/core/v1/types.go, pkg/virt-config.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from simulator.reading import Place

HOST_DEVICES_GATE: Final = "HostDevices"
GPUS_WITH_DRA_GATE: Final = "GPUsWithDRA"
PCI: Final = "pciHostDevices"
MEDIATED: Final = "mediatedDevices"
SELECTORS: Final = {PCI: "pciVendorSelector", MEDIATED: "mdevNameSelector"}
"""A list of devices -> the key that says which."""


@dataclass(frozen=True, slots=True)
class PermittedDevice:
    """An entry. `selector` as it is written; `external`: another program than KubeVirt announces the resource."""

    selector: str
    resource: str
    external: bool = False

    @property
    def device_id(self) -> str:
        """The PCI device id that is meant, in lower case; "" if the selector is of another form, or vendor."""
        vendor, _, device_id = self.selector.lower().partition(":")
        return device_id if vendor == "10de" else ""


@dataclass(frozen=True, slots=True)
class PermittedHostDevices:
    """The block. An empty one permits nothing; where there is none at all, KubeVirt asks nothing."""

    pci: tuple[PermittedDevice, ...] = ()
    mediated: tuple[PermittedDevice, ...] = ()
    usb: tuple[str, ...] = ()

    def resources(self) -> frozenset[str]:
        """What VMs may ask for. Compared as it stands, letter by letter; selectors play no part."""
        return frozenset(device.resource for device in (*self.pci, *self.mediated)) | frozenset(self.usb)

    def internal(self) -> dict[str, str]:
        """Selector in lower case -> the resource that virt-handler's own plugin announces: of two entries the last."""
        return {device.selector.lower(): device.resource for device in self.pci if not device.external}


@dataclass(frozen=True, slots=True)
class Configuration:
    """`spec.configuration`. `permitted` None: no block."""

    feature_gates: frozenset[str] = frozenset()
    permitted: PermittedHostDevices | None = None

    def permits(self, resource: str) -> bool:
        """May a VM ask for it?"""
        return self.permitted is None or resource in self.permitted.resources()


def read_kubevirt(document: Place) -> Configuration:
    """A KubeVirt CR, as it is applied or as `kubectl get -o yaml` shows it. Raises InputError."""
    document.mapping()
    document.need("kind", "write KubeVirt").choice("KubeVirt")
    spec = document.get("spec")
    if spec is None:
        return Configuration()
    spec.mapping()
    configuration = spec.get("configuration")
    return read_configuration(configuration) if configuration is not None else Configuration()


def read_configuration(place: Place) -> Configuration:
    """`spec.configuration`. Raises InputError."""
    place.mapping()
    gates: tuple[str, ...] = ()
    if (developer := place.get("developerConfiguration")) is not None:
        developer.mapping()
        if (listed := developer.get("featureGates")) is not None:
            gates = listed.texts()
    block = place.get("permittedHostDevices")
    return Configuration(frozenset(gates), read_permitted(block) if block is not None else None)


def read_permitted(place: Place) -> PermittedHostDevices:
    """`permittedHostDevices`. Raises InputError for what the CRD's schema refuses."""
    place.mapping((PCI, MEDIATED, "usb"))
    return PermittedHostDevices(
        tuple(_devices(place, PCI)),
        tuple(_devices(place, MEDIATED)),
        tuple(_resource(item) for item in place.elements("usb")),
    )


def _resource(place: Place) -> str:
    place.mapping()
    return place.need("resourceName", "write resourceName: vendor.com/name").text()


def _devices(place: Place, key: str) -> Iterator[PermittedDevice]:
    for item in place.elements(key):
        item.mapping()
        selector = item.need(SELECTORS[key], f'write {SELECTORS[key]}: "..."').text()
        external = item.get("externalResourceProvider")
        yield PermittedDevice(selector, _resource(item), external.boolean() if external is not None else False)


def as_documents(permitted: PermittedHostDevices) -> dict[str, list[Mapping[str, Any]]]:
    """The block as a document, without USB devices."""
    return {
        key: [
            {
                SELECTORS[key]: device.selector,
                "resourceName": device.resource,
                **({"externalResourceProvider": True} if device.external else {}),
            }
            for device in devices
        ]
        for key, devices in ((PCI, permitted.pci), (MEDIATED, permitted.mediated))
        if devices
    }
