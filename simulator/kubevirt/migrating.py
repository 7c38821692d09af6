"""From a KubeVirt CR that was edited by hand to values of the platform that make the same of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from simulator.kubevirt.configuration import (
    HOST_DEVICES_GATE,
    MEDIATED,
    Configuration,
    PermittedDevice,
    PermittedHostDevices,
    as_documents,
)
from simulator.kubevirt.cozystack import Cozystack
from simulator.kubevirt.packages import KUBEVIRT
from simulator.node.pci_ids import bundled
from simulator.node.plugin.names import device_name, resource_name

VARIANTS: Final = ("default", "vgpu")


@dataclass(frozen=True, slots=True)
class Migration:
    """The values, and what people want to know about them. `values` empty: the defaults do.

    `covered`: entries that the platform's table has. `replaced`: entries that the first reconciliation takes away if no values
    are written. `left`: what no values can say; `renamed`: entry -> what the sandbox device plugin calls the card;
    `widened`: resources that become permitted beside the CR's own.
    """

    values: dict[str, Any]
    covered: tuple[PermittedDevice, ...] = ()
    replaced: tuple[PermittedDevice, ...] = ()
    left: tuple[str, ...] = ()
    renamed: tuple[tuple[PermittedDevice, str], ...] = ()
    widened: tuple[str, ...] = ()


def migrate(configuration: Configuration, release: Cozystack, variant: str = "default", pci_ids: str | None = None) -> Migration:
    """What to write before the platform takes the CR over."""
    permitted = configuration.permitted or PermittedHostDevices()
    table = _table(release) if variant == "default" else ()
    known = {_key(device) for device in table}
    selectors = {device.selector.lower() for device in table}
    covered = tuple(device for device in permitted.pci if _key(device) in known)
    others = tuple(device for device in permitted.pci if _key(device) not in known)
    replaces = any(device.selector.lower() in selectors for device in others)
    own = tuple(permitted.pci) if replaces else others
    mediated = permitted.mediated if variant == "vgpu" else ()
    documents = as_documents(PermittedHostDevices(own, mediated))
    gpu = {**({"replaceDefaults": True} if replaces else {}), **({"permittedHostDevices": documents} if documents else {})}
    wider = () if replaces else sorted({device.resource for device in table} - permitted.resources())
    return Migration(
        {"gpu": gpu} if gpu else {},
        () if replaces else covered,
        (*others, *mediated),
        tuple(_left(configuration, release, variant)),
        tuple(_renamed(permitted.pci, bundled() if pci_ids is None else pci_ids)),
        tuple(wider),
    )


def _table(release: Cozystack) -> tuple[PermittedDevice, ...]:
    return tuple(
        PermittedDevice(entry["pciVendorSelector"], entry["resourceName"], external=entry["externalResourceProvider"])
        for entry in release.pci_host_devices
    )


def _key(device: PermittedDevice) -> tuple[str, str, bool]:
    return device.selector.lower(), device.resource, device.external


def _left(configuration: Configuration, release: Cozystack, variant: str) -> Iterable[str]:
    """What the values of the platform have no place for."""
    for gate in sorted(configuration.feature_gates - {*release.feature_gates, HOST_DEVICES_GATE}):
        yield f"the gate {gate}: it is taken away; only a hand-made Package {KUBEVIRT} can keep it (extraFeatureGates)"
    permitted = configuration.permitted
    if permitted is None:
        return
    for resource in permitted.usb:
        yield f"the USB device {resource}: the platform never writes that list, so it stays as it is, and is nobody's"
    if variant == "default":
        for device in permitted.mediated:
            yield f"{MEDIATED} {device.selector}: the variant default never writes that list, so it stays, and is nobody's"


def _renamed(devices: Iterable[PermittedDevice], pci_ids: str) -> Iterable[tuple[PermittedDevice, str]]:
    """Entries whose name is not what the sandbox device plugin announces."""
    for device in devices:
        if device.device_id:
            name = resource_name(device_name(pci_ids, device.device_id, lambda _: None) or device.device_id)
            if name != device.resource or not device.external:
                yield device, name
