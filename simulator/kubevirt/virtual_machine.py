"""VMs, as far as they ask for GPUs: manifests of KubeVirt and of Cozystack.

Cozystack's chart puts each of its `gpus` under `domain.devices.gpus`, so a VM of its own never has `hostDevices`. Its kind
is VMInstance; older releases had VirtualMachine. Devices of an instance type, and DRA claims, are left out.

Source: kubevirt v1.8.4 staging/src/kubevirt.io/api/core/v1/schema.go; cozystack v1.6.2
packages/apps/vm-instance/templates/vm.yaml.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simulator.reading import InputError, Place, parse_documents, read_text

KUBEVIRT: Final = "kubevirt.io"
COZYSTACK: Final = "apps.cozystack.io"
VM: Final = "VirtualMachine"
VMI: Final = "VirtualMachineInstance"
_PREFIXES: Final = {"VMInstance": "vm-instance-", VM: "virtual-machine-"}
"""Cozystack's kind -> what the VM's own name begins with."""
_TEMPLATED: Final = (VM, "VirtualMachineInstanceReplicaSet")


@dataclass(frozen=True, slots=True)
class VirtualMachine:
    """A VM by the names of the resources it asks for, one for each device.

    `kind` is the object that is sent to KubeVirt's webhook. `host_devices` None: the field is not there.
    """

    name: str
    namespace: str = "default"
    kind: str = VM
    gpus: tuple[str, ...] = ()
    host_devices: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def asks(self) -> Counter[str]:
        """Resource -> how many."""
        return Counter((*self.gpus, *(self.host_devices or ())))


def read_virtual_machines(path: Path) -> tuple[VirtualMachine, ...]:
    """Every VM of a file; other objects are passed over. Raises InputError, also if there is none."""
    name = str(path)
    found = tuple(vm for document in parse_documents(read_text(path), name) for vm in virtual_machines(document))
    if not found:
        mend = f"name a file with a {VM} or {VMI} of {KUBEVIRT}, or a VMInstance of {COZYSTACK}"
        raise InputError(name, "", "holds no VM", mend)
    return found


def virtual_machines(document: Place) -> Iterator[VirtualMachine]:
    """The VMs of a document, which may be a List. Raises InputError."""
    document.mapping()
    kind = document.need("kind", f"write {VM}").text()
    if kind.endswith("List") and document.has("items"):
        for item in document.elements("items"):
            yield from virtual_machines(item)
        return
    group = document.need("apiVersion", f"write {KUBEVIRT}/v1").text().partition("/")[0]
    if group == KUBEVIRT and kind == VMI:
        yield _kubevirt(document, VMI, _spec(document))
    elif group == KUBEVIRT and kind in _TEMPLATED:
        template = _spec(document).need("template", "write spec.template.spec")
        template.mapping()
        yield _kubevirt(document, kind, template.need("spec", "write spec.template.spec"))
    elif group == COZYSTACK and kind in _PREFIXES:
        yield _cozystack(document, kind)


def _spec(document: Place) -> Place:
    spec = document.need("spec", "write spec")
    spec.mapping()
    return spec


def _metadata(document: Place) -> tuple[str, str]:
    """Name and namespace."""
    metadata = document.need("metadata", "write metadata.name")
    metadata.mapping()
    namespace = metadata.get("namespace")
    name = metadata.get("name") or metadata.get("generateName") or metadata.need("name", "write name")
    return name.text(), namespace.text() if namespace is not None else "default"


def _kubevirt(document: Place, kind: str, spec: Place) -> VirtualMachine:
    name, namespace = _metadata(document)
    devices = spec
    for key in ("domain", "devices"):
        devices.mapping()
        below = devices.get(key)
        if below is None:
            return VirtualMachine(name, namespace, kind)
        devices = below
    devices.mapping()
    gpus = tuple(_device_names(devices, "gpus"))
    host_devices = tuple(_device_names(devices, "hostDevices")) if devices.get("hostDevices") is not None else None
    return VirtualMachine(name, namespace, kind, gpus, host_devices)


def _device_names(devices: Place, key: str) -> Iterator[str]:
    """The device names of a list; those that a DRA claim provides have none."""
    for item in devices.elements(key):
        item.mapping()
        if item.get("claimName") is None:
            yield item.need("deviceName", "write deviceName: vendor.com/name").text()


def _cozystack(document: Place, kind: str) -> VirtualMachine:
    name, namespace = _metadata(document)
    gpus: list[str] = []
    if (spec := document.get("spec")) is not None:
        spec.mapping()
        for item in spec.elements("gpus"):
            item.mapping()
            gpus.append(item.need("name", "write name: vendor.com/name").text())
    return VirtualMachine(_PREFIXES[kind] + name, namespace, VM, tuple(gpus))
