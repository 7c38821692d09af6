"""Three columns: what the nodes announce, what KubeVirt permits, what the VMs ask for; and each mismatch, by its cause.

A VM is started in the model. Where it does not get to run, what it is told is put to the cause that is known already; it
becomes a finding of its own only where there is none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from simulator.kubevirt.configuration import Configuration, PermittedDevice
from simulator.kubevirt.cozystack import Cozystack
from simulator.kubevirt.devices import NodeDevices, has_virtual, is_virtual
from simulator.kubevirt.findings import Finding
from simulator.kubevirt.linting import entry_text, lint_entries, lint_values
from simulator.kubevirt.starting import ADMISSION, LAUNCHING, RENDERING, SCHEDULING, Said, admitted, rendered, start
from simulator.kubevirt.template import RenderError
from simulator.kubevirt.values import PlatformValues
from simulator.kubevirt.virtual_machine import VirtualMachine
from simulator.node.plugin.names import devices, resource_name, sanitized
from simulator.reading import Place

_MIG: Final = "nvidia.com/mig-"
_MOST: Final = 8
_LATER: Final = "when the VM starts anew after that upgrade"


@dataclass(frozen=True, slots=True)
class Passthrough:
    """What is checked. `kubevirt` is the live CR's configuration; without it that which the values make holds.

    `block` is where the CR's permittedHostDevices stand. `nodes` empty: nobody knows what they announce.
    """

    release: Cozystack
    platform: PlatformValues | None = None
    kubevirt: Configuration | None = None
    block: Place | None = None
    nodes: tuple[NodeDevices, ...] = ()
    vms: tuple[VirtualMachine, ...] = ()
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A resource in three columns. `announced` None: nobody knows. `selectors` None: there is no block, all is permitted."""

    resource: str
    announced: int | None
    addresses: tuple[str, ...]
    selectors: tuple[str, ...] | None
    asked: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """The table, and what is wrong."""

    rows: tuple[Row, ...] = ()
    findings: tuple[Finding, ...] = ()
    assumed: tuple[str, ...] = ()


@dataclass
class _Findings:
    """The causes so far, to which what VMs are told is put."""

    all: list[Finding] = field(default_factory=list)

    def add(self, found: Iterable[Finding]) -> None:
        self.all += found

    def kinds(self) -> set[str]:
        return {finding.kind for finding in self.all}

    def put(self, said: Said, index: int) -> None:
        before = self.all[index]
        self.all[index] = replace(before, said=(*before.said, said))

    def find(self, resources: Iterable[str], kinds: Iterable[str] = ()) -> int | None:
        """The first cause that is of one of these kinds, or about one of these resources."""
        wanted, of_kind = set(resources), set(kinds)
        for index, finding in enumerate(self.all):
            if finding.kind in of_kind or wanted & set(finding.resources):
                return index
        return None


def check(given: Passthrough) -> Checked:
    """Everything that can be told from what is given. Raises InputError."""
    found = _Findings()
    expected: Configuration | None = None
    if given.platform is not None:
        try:
            found.add(list(lint_values(given.platform, given.release)))
            expected = given.platform.configuration(given.release) or Configuration()
        except RenderError as error:
            finding = Finding("helm-refuses", given.platform.place.file, error.text, "mend the values there")
            return Checked((), (finding,), given.assumed)
    elif given.block is not None:
        found.add(lint_entries(given.block))
    configuration = given.kubevirt or expected or Configuration()
    found.add(_differing(given, expected))
    found.add(_block(configuration, found.kinds()))
    for node in given.nodes:
        found.add(_node(node, configuration, found))
    for vm in given.vms:
        _vm(vm, given, configuration, found)
        _later(vm, given, expected, found)
    return Checked(tuple(_rows(given, configuration)), tuple(found.all), given.assumed)


# --- KubeVirt ----------------------------------------------------------------------------------------------------


def _differing(given: Passthrough, expected: Configuration | None) -> Iterator[Finding]:
    """A live CR that the release's next upgrade will change."""
    if expected is None or given.kubevirt is None:
        return
    live, wanted = _entries(given.kubevirt), _entries(expected)
    lost = [text for text in live if text not in wanted]
    new = [text for text in wanted if text not in live]
    if (given.kubevirt.permitted is None) is not (expected.permitted is None) and not lost and not new:
        (lost if expected.permitted is None else new).append("permittedHostDevices")
    gates = expected.feature_gates - given.kubevirt.feature_gates
    new += [f"the gate {gate}" for gate in sorted(gates)]
    if not lost and not new:
        return
    parts = [
        f"the next upgrade of the release kubevirt {word} {', '.join(texts)}"
        for word, texts in (("takes away", lost), ("brings", new))
        if texts
    ]
    mend = "write what is to stay into gpu.permittedHostDevices: dmsim passthrough migrate prints it"
    yield Finding("cr-differs", "KubeVirt", "; ".join(parts), mend if lost else "wait until Flux has reconciled the release")


def _entries(configuration: Configuration) -> list[str]:
    if configuration.permitted is None:
        return []
    devices = (*configuration.permitted.pci, *configuration.permitted.mediated)
    return [f"{device.selector} {device.resource}{'' if device.external else ' (internal)'}" for device in devices]


def _block(configuration: Configuration, known: set[str]) -> Iterator[Finding]:
    """No block at all, or an empty one. Where the GPU Operator is off the former follows from that."""
    if configuration.permitted is None and "gpu-operator-off" not in known:
        yield Finding(
            "no-permitted-block",
            "KubeVirt",
            "spec.configuration.permittedHostDevices is not there, so KubeVirt compares nothing: any VM may ask for any resource",
            "write the cards that VMs may have into gpu.permittedHostDevices.pciHostDevices",
        )
    if configuration.permitted is not None and not configuration.permitted.resources():
        yield Finding(
            "empty-permitted-block",
            "KubeVirt",
            "spec.configuration.permittedHostDevices is there and empty, so every GPU VM is refused",
            "write the cards that VMs may have into it",
        )


# --- nodes -------------------------------------------------------------------------------------------------------


def _node(node: NodeDevices, configuration: Configuration, found: _Findings) -> list[Finding]:
    cards = [function for function in node.functions if function.is_gpu]
    if node.idle:
        resources = tuple(dict.fromkeys(node.resource_of(card) for card in cards))
        mend = "dmsim predict says what is in the way on this host, dmsim host plan what to remove from it"
        return [Finding("nothing-announced", node.name, node.idle, mend, resources)]
    out = list(_bindings(node))
    out += _shared(node)
    unbound = {resource for finding in out for resource in finding.resources if finding.kind == "not-bound"}
    known = {"empty-permitted-block"} & found.kinds()
    for resource in dict.fromkeys(node.resource_of(card) for card in cards):
        card = next(card for card in cards if node.resource_of(card) == resource)
        if not known and resource not in unbound and found.find((resource,)) is None:
            device_id = card.device.removeprefix("0x")
            out += _named(node, configuration, device_id, resource, is_named=node.is_named(card))
    if not known:
        out += _mediated(node, configuration)
    return out


def _bindings(node: NodeDevices) -> Iterator[Finding]:
    """GPUs that the plugin passes by, and those that QEMU could not open."""
    drivers = node.plugin.drivers if node.plugin is not None else frozenset()
    for card in node.functions:
        resource = node.resource_of(card)
        is_shared = is_virtual(card, node.functions) or has_virtual(card, node.functions)
        if not card.is_gpu or (is_shared and card.driver not in drivers):
            continue  # a card with virtual functions, and those that make vGPUs, stay on their own driver
        where = f"{node.name} {card.address}"
        if card.driver not in drivers:
            what = f"{resource} is on {card.driver}" if card.driver else f"{resource} has no driver"
            mend = (
                "label the node nvidia.com/gpu.workload.config=vm-passthrough; what holds the card, dmsim vfio and dmsim run tell"
            )
            yield Finding("not-bound", where, f"{what}, so the plugin does not announce it", mend, (resource,))
        elif group := node.not_viable(card.address):
            others = [
                f"{one.address} ({one.driver})"
                for one in node.functions
                if one.iommu_group == card.iommu_group
                and one.driver
                and "vfio" not in one.driver
                and not one.class_.startswith("0x06")
            ]
            what = f"IOMMU group {group} also holds {', '.join(others)}; {resource} is announced all the same"
            mend = f"bind {' and '.join(text.partition(' ')[0] for text in others)} to vfio-pci too"
            yield Finding("group-not-viable", where, what, mend, (resource,))


def _shared(node: NodeDevices) -> Iterator[Finding]:
    """One name for two ids: a card of one of them is never given out."""
    contested = node.plugin.contested() if node.plugin is not None else {}
    for resource, ids in contested.items():
        what = f"{' and '.join(ids)} are both {resource}: of one of them the kubelet knows nothing, and which one is chance"
        yield Finding("one-name-two-ids", node.name, what, "put cards of one id into a node only", (resource,))


def _named(node: NodeDevices, configuration: Configuration, device_id: str, resource: str, *, is_named: bool) -> Iterator[Finding]:
    """A card's own name, held against KubeVirt's list."""
    if configuration.permits(resource) or resource not in node.by_plugin:
        return
    permitted = configuration.permitted.pci if configuration.permitted is not None else ()
    entries = [device for device in permitted if device.device_id == device_id and device.external]
    mend = entry_text(f"10DE:{device_id.upper()}", resource)
    if entries:
        names = ", ".join(device.resource for device in entries)
        what = f"the node announces {resource} for {device_id}, and the entry of {entries[-1].selector} says {names}"
        yield Finding("name-differs", node.name, what, f"replace it by {mend}", (resource, *_resources(entries)))
    elif not is_named:
        what = f"the plugin's pci.ids does not know {device_id}: the node announces {resource}, which is not permitted"
        mend = f"permit it by its id: {mend}; a later plugin may call it otherwise"
        yield Finding("unknown-id", node.name, what, mend, (resource,))
    else:
        what = f"the node announces {resource}, and no entry names it"
        yield Finding("not-permitted", node.name, what, f"add to gpu.permittedHostDevices.pciHostDevices: {mend}", (resource,))


def _mediated(node: NodeDevices, configuration: Configuration) -> Iterator[Finding]:
    """The name of a vGPU's type, held against KubeVirt's list."""
    for resource in node.by_plugin:
        vgpu = node.vgpu_type(resource)
        if not vgpu or configuration.permits(resource):
            continue
        permitted = configuration.permitted.mediated if configuration.permitted is not None else ()
        entries = [device for device in permitted if device.selector.strip().replace(" ", "_") == vgpu and device.external]
        selector = entries[-1].selector if entries else vgpu.replace("_", " ")
        entry = f'- {{mdevNameSelector: "{selector}", resourceName: {resource}, externalResourceProvider: true}}'
        mend = f"write into gpu.permittedHostDevices.mediatedDevices: {entry}"
        if entries:
            names = ", ".join(device.resource for device in entries)
            what = f"the node announces {resource} for this type, and the entry of {selector} says {names}"
            yield Finding("name-differs", node.name, what, mend, (resource, *_resources(entries)))
        else:
            yield Finding("not-permitted", node.name, f"the node announces {resource}, and no entry names it", mend, (resource,))


def _resources(entries: Iterable[PermittedDevice]) -> tuple[str, ...]:
    return tuple(device.resource for device in entries)


# --- VMs ---------------------------------------------------------------------------------------------------------


def _stopped(vm: VirtualMachine, configuration: Configuration, nodes: Sequence[NodeDevices]) -> Said | None:
    if not nodes:
        return admitted(vm, configuration) or rendered(vm, configuration)
    return start(vm, configuration, nodes).said


def _vm(vm: VirtualMachine, given: Passthrough, configuration: Configuration, found: _Findings) -> None:
    """Start it, and put what it is told to its cause."""
    said = _stopped(vm, configuration, given.nodes)
    if said is None:
        return
    if said.component == ADMISSION:
        index = found.find((), ("gpu-operator-off", "no-host-devices-gate"))
    else:
        kinds = ("empty-permitted-block",) if said.component == RENDERING else ()
        index = found.find(said.blamed, kinds)
    if index is None and said.component in {RENDERING, SCHEDULING} and _is_of_no_card(said, given, configuration):
        index = found.find((), ("unknown-id",))
    if index is None:
        found.add([_of_vm(vm, said, given, configuration)])
        index = len(found.all) - 1
    found.put(said, index)


def _later(vm: VirtualMachine, given: Passthrough, expected: Configuration | None, found: _Findings) -> None:
    """A VM that starts as the CR stands now, and no longer when the CR is what the values make of it."""
    if expected is None or given.kubevirt is None or _stopped(vm, given.kubevirt, given.nodes) is not None:
        return
    said = _stopped(vm, expected, given.nodes)
    index = found.find((), ("cr-differs",))
    if said is not None and index is not None:
        found.put(replace(said, when=_LATER), index)


def _of_vm(vm: VirtualMachine, said: Said, given: Passthrough, configuration: Configuration) -> Finding:
    """A cause that lies in the VM itself."""
    where, resource = f"{vm.kind} {vm}", said.blamed[0] if said.blamed else ""
    announced = _announced(given.nodes, configuration)
    if said.component == ADMISSION:
        mend = "add HostDevices to the CR's featureGates, or ask for the card under gpus, which needs no gate"
        return Finding("no-host-devices-gate", where, "it has hostDevices, and the gate HostDevices is off", mend)
    if said.component == LAUNCHING:
        what = f"{resource} comes without a PCI address: what announces it is no plugin for VMs"
        return Finding("vm-no-address", where, what, f"ask for one of: {_listed(announced)}", (resource,))
    if resource.startswith(_MIG):
        what = f"{resource} is a MIG device, which is no PCI function: vfio-pci cannot take it"
        return Finding("vm-mig", where, what, "ask for a whole GPU, or for a vGPU on top of MIG", (resource,))
    if close := _close(resource, given, configuration):
        what = f"it asks for {resource}, and the name is {close}; names are compared letter by letter"
        return Finding("vm-spelling", where, what, f"ask for {close}", (resource,))
    if said.component == RENDERING:
        what = f"{resource} is not permitted, and no card that is known here has that name"
        mend = f"ask for one of: {_listed(_permitted(configuration, announced))}"
        return Finding("vm-not-permitted", where, what, mend, (resource,))
    if announced[resource]:
        most = max(node.allocatable(configuration).get(resource, 0) for node in given.nodes)
        what = f"it asks for {vm.asks[resource]} of {resource}, and no node has more than {most}"
        return Finding("vm-too-many", where, what, "ask for fewer, or put more cards of this id into one node", (resource,))
    what = f"{resource} is permitted, and no node announces it"
    return Finding("vm-not-announced", where, what, f"ask for one of: {_listed(announced)}", (resource,))


def _announced(nodes: Iterable[NodeDevices], configuration: Configuration) -> Counter[str]:
    """Resource -> how many of it all nodes have."""
    out: Counter[str] = Counter()
    for node in nodes:
        out.update(node.allocatable(configuration))
    return out


def _permitted(configuration: Configuration, announced: Iterable[str]) -> list[str]:
    """What a VM may ask for: if anything of it is announced, that."""
    permitted = configuration.permitted.resources() if configuration.permitted is not None else frozenset()
    return sorted(permitted & set(announced)) or sorted(permitted)


def _listed(resources: Iterable[str]) -> str:
    names = sorted(resources)
    return ", ".join([*names[:_MOST], *(["..."] if len(names) > _MOST else [])]) or "(there is none)"


def _close(resource: str, given: Passthrough, configuration: Configuration) -> str:
    """A name that is announced or permitted, and is this one but for case, punctuation or the domain."""
    known = [*sorted(_announced(given.nodes, configuration)), *_permitted(configuration, ())]
    return next((name for name in known if name != resource and _letters(name) == _letters(resource)), "")


def _letters(resource: str) -> str:
    return re.sub(r"[^a-z0-9]", "", resource.rpartition("/")[2].lower())


def _is_of_no_card(said: Said, given: Passthrough, configuration: Configuration) -> bool:
    """Is it a name that no card has by the plugin's file? Then it may be that of a card which the file does not know."""
    resource = said.blamed[0]
    if resource.startswith(_MIG) or _close(resource, given, configuration):
        return False
    return not any(resource in _names(node.pci_ids) for node in given.nodes)


@lru_cache(maxsize=8)
def _names(pci_ids: str) -> frozenset[str]:
    return frozenset(resource_name(sanitized(name)) for _, name in devices(pci_ids))


# --- the table ---------------------------------------------------------------------------------------------------


def _rows(given: Passthrough, configuration: Configuration) -> Iterator[Row]:
    """A row for what is announced, for what is asked for, and for the entries that are not the platform's own."""
    announced = _announced(given.nodes, configuration)
    asked: dict[str, list[tuple[str, int]]] = {}
    for vm in given.vms:
        for resource, count in vm.asks.items():
            asked.setdefault(resource, []).append((str(vm), count))
    own = {entry["resourceName"] for entry in (*given.release.pci_host_devices, *given.release.mediated_devices)}
    entries: dict[str, list[str]] = {}
    if configuration.permitted is not None:
        for device in (*configuration.permitted.pci, *configuration.permitted.mediated):
            entries.setdefault(device.resource, []).append(device.selector)
    for resource in sorted({*announced, *asked, *(entries.keys() - own)}):
        addresses = tuple(address for node in given.nodes for address in node.by_plugin.get(resource, ()))
        selectors = None if configuration.permitted is None else tuple(entries.get(resource, ()))
        yield Row(resource, announced[resource] if given.nodes else None, addresses, selectors, tuple(asked.get(resource, ())))
