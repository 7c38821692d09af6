"""What can be seen to be wrong in the values alone, or in the entries of a KubeVirt CR."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from simulator.kubevirt.configuration import HOST_DEVICES_GATE, MEDIATED, PCI, SELECTORS
from simulator.kubevirt.cozystack import Cozystack
from simulator.kubevirt.findings import Finding
from simulator.kubevirt.packages import GPU_OPERATOR, KUBEVIRT
from simulator.kubevirt.template import truth
from simulator.kubevirt.values import PlatformValues
from simulator.reading import Place, nearest
from simulator.selectors import label_key_errors

EXTERNAL: Final = "externalResourceProvider"
_SELECTOR: Final = re.compile(r"[0-9a-fA-F]{4}:[0-9a-fA-F]{4}")
_NVIDIA: Final = "10de:"


def entry_text(selector: str, resource: str) -> str:
    """An entry as it stands in the values."""
    return f'- {{pciVendorSelector: "{selector}", resourceName: {resource}, {EXTERNAL}: true}}'


def place_text(place: Place) -> str:
    """Where something stands."""
    return f"{place.file}: {place.path}" if place.path else place.file


def lint_values(platform: PlatformValues, release: Cozystack) -> Iterator[Finding]:
    """The GPU settings of values that Helm does not refuse. Raises InputError for entries that are none."""
    yield from _switched_on(platform, release)
    yield from _keys(platform.place, release)
    gpu = platform.place.get("gpu")
    block = gpu.get("permittedHostDevices") if gpu is not None else None
    if block is None or platform.is_hand_made(KUBEVIRT):
        return
    if platform.variant == "default" and block.elements(MEDIATED):
        yield Finding(
            "ignored-in-variant",
            place_text(block.child(MEDIATED)),
            "mediated devices are looked at in the variant vgpu only",
            "set bundles.iaas.gpuOperatorVariant: vgpu, or take the list away",
        )
    defaults = (
        release.pci_host_devices if platform.variant == "default" and not truth(gpu and gpu.value.get("replaceDefaults")) else ()
    )
    yield from lint_entries(block, defaults)


def _switched_on(platform: PlatformValues, release: Cozystack) -> Iterator[Finding]:
    """Is the GPU Operator there, and KubeVirt told?"""
    packages = platform.packages(release).packages
    where, bundles = platform.place.file, platform.place.value.get("bundles") or {}
    is_told = KUBEVIRT in packages and HOST_DEVICES_GATE in (packages[KUBEVIRT].values("kubevirt").get("extraFeatureGates") or ())
    if GPU_OPERATOR in packages and is_told:
        return
    if platform.is_hand_made(KUBEVIRT) and not is_told:
        what = f"the Package {KUBEVIRT} is made by hand, counts whole, and does not switch the gate HostDevices on"
        mend = "write extraFeatureGates: [HostDevices] and permittedHostDevices below its spec.components.kubevirt.values"
    elif GPU_OPERATOR in packages:
        what = f"the Package {GPU_OPERATOR} is made by hand, so the platform tells KubeVirt nothing of GPUs"
        mend = f"make a Package {KUBEVIRT} too, with extraFeatureGates: [HostDevices] and permittedHostDevices"
    elif GPU_OPERATOR in _listed(bundles, "disabledPackages"):
        what = f"bundles.disabledPackages names {GPU_OPERATOR}, which wins over bundles.enabledPackages"
        mend = "take it out of bundles.disabledPackages"
    elif KUBEVIRT not in packages:
        what = f"there is no Package {KUBEVIRT}"
        mend = "set bundles.system.enabled and bundles.iaas.enabled, in a variant isp-full or isp-full-generic"
    else:
        what = f"bundles.enabledPackages does not name {GPU_OPERATOR}"
        mend = f"add {GPU_OPERATOR} to bundles.enabledPackages"
    yield Finding("gpu-operator-off", where, what, mend)


def _listed(bundles: Mapping[str, Any], key: str) -> list[Any]:
    return bundles.get(key) or []


def _keys(values: Place, release: Cozystack) -> Iterator[Finding]:
    """Keys of the `gpu` block that the chart does not read: Helm says nothing of them."""
    known = release.values["gpu"]
    for key, place in values.items():
        if key in known:
            yield Finding("unknown-key", place_text(place), f'"{key}" is not read here', f"write it below gpu: gpu.{key}")
    gpu = values.get("gpu")
    if gpu is None:
        return
    yield from _unknown(gpu, known)
    for key in ("permittedHostDevices", "vgpuDeviceManager"):
        if (block := gpu.get(key)) is not None:
            yield from _unknown(block, known[key])


def _unknown(place: Place, known: Iterable[str]) -> Iterator[Finding]:
    for key, child in place.items():
        if key not in known:
            yield Finding("unknown-key", place_text(child), f'"{key}" is not read by anything', nearest(key, known))


def lint_entries(block: Place, defaults: Iterable[Mapping[str, Any]] = ()) -> Iterator[Finding]:
    """The entries of a `permittedHostDevices`, after those of the platform's table."""
    seen = {entry["pciVendorSelector"].lower(): ("the platform's table", entry["resourceName"]) for entry in defaults}
    for item in block.elements(PCI):
        item.mapping()
        selector = item.need(SELECTORS[PCI], 'write pciVendorSelector: "10DE:2236"').text()
        resource = item.need("resourceName", "write resourceName: nvidia.com/GA102GL_A10").text()
        where = place_text(item)
        yield from _unknown(item, (SELECTORS[PCI], "resourceName", EXTERNAL))
        if not _SELECTOR.fullmatch(selector):
            mend = 'write vendor and device in four digits each: "10DE:2236"'
            yield Finding("selector-form", where, f'the selector "{selector}" is no vendor:device', mend, (resource,))
        yield from _resource_form(where, resource)
        external = item.get(EXTERNAL)
        if selector.lower().startswith(_NVIDIA) and not (external is not None and external.boolean()):
            yield Finding(
                "two-providers",
                where,
                f"{resource} is announced by virt-handler too: {EXTERNAL} is not true",
                f"set {EXTERNAL}: true",
                (resource,),
            )
        before = seen.get(selector.lower())
        if before is not None:
            place, other = before
            yield Finding("duplicate-selector", where, _duplicate(selector, place, other, resource), _DUPLICATE, (other, resource))
        seen[selector.lower()] = (where, resource)
    for item in block.elements(MEDIATED):
        item.mapping()
        yield from _unknown(item, (SELECTORS[MEDIATED], "resourceName", EXTERNAL))
        yield from _resource_form(place_text(item), item.need("resourceName", "write resourceName: nvidia.com/A10-24Q").text())


_DUPLICATE: Final = (
    "leave one entry: where the other is of the platform's table, set gpu.replaceDefaults: true and write the whole list"
)


def _duplicate(selector: str, place: str, other: str, resource: str) -> str:
    names = f"{other} and {resource}" if other != resource else other
    return f"{selector} has an entry in {place} already: {names} are permitted, and a node announces one name at most"


def _resource_form(where: str, resource: str) -> Iterator[Finding]:
    """Extended resources are qualified names with a domain of their own."""
    if "/" in resource and not label_key_errors(resource):
        return
    mend = f"write nvidia.com/{resource}" if "/" not in resource else "write letters, digits, - _ and . after the domain"
    yield Finding("resource-form", where, f'"{resource}" is no name of an extended resource', mend, (resource,))
