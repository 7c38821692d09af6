"""A VM on its way from the manifest to a running guest, as far as a GPU can stop it; and who says so.

Four programs are asked, one after the other. virt-api looks at the `HostDevices` gate, and at nothing else of this:
permittedHostDevices is not its business, so the VM object is made. virt-controller compares names before it makes a pod.
kube-scheduler looks for a node with enough of each resource. virt-launcher looks its addresses up in variables, and QEMU
opens them. Every node is taken to be fit for VMs otherwise, and its cards to be free.

Source: kubevirt v1.8.4, kubernetes v1.34; each text's own is in `messages`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from simulator.kubevirt import messages as m
from simulator.kubevirt.configuration import GPUS_WITH_DRA_GATE, HOST_DEVICES_GATE, Configuration
from simulator.kubevirt.devices import NodeDevices, variable
from simulator.kubevirt.virtual_machine import VM, VMI, VirtualMachine

ADMISSION: Final = "virt-api"
RENDERING: Final = "virt-controller"
SCHEDULING: Final = "kube-scheduler"
LAUNCHING: Final = "virt-launcher"
_WEBHOOKS: Final = {VM: m.VM_WEBHOOK, VMI: m.VMI_WEBHOOK}


@dataclass(frozen=True, slots=True)
class Said:
    """What stopped a VM: the component that says so, on which object, by which reason, in which words.

    `blamed` are the resources it is about. `reason` is "" where the request itself is refused. `when`, if it is not said now.
    """

    component: str
    on: str
    reason: str
    message: str
    blamed: tuple[str, ...] = ()
    when: str = ""


@dataclass(frozen=True, slots=True)
class Start:
    """How it ended: `said` is None for a VM that runs, on `node`, with functions at `addresses`."""

    vm: VirtualMachine
    said: Said | None = None
    node: str = ""
    addresses: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_running(self) -> bool:
        """Does the guest run?"""
        return self.said is None


def start(vm: VirtualMachine, configuration: Configuration, nodes: Sequence[NodeDevices]) -> Start:
    """A new launcher pod for the VM: at its first start, and at each restart."""
    said = admitted(vm, configuration) or rendered(vm, configuration)
    if said is not None:
        return Start(vm, said)
    node = _fitting(vm, configuration, nodes)
    if node is None:
        return Start(vm, _unschedulable(vm, configuration, nodes))
    return _launched(vm, configuration, node)


def admitted(vm: VirtualMachine, configuration: Configuration) -> Said | None:
    """virt-api's webhook. `gpus` need no gate: theirs has been generally available since v1.4.0."""
    if vm.host_devices is None or HOST_DEVICES_GATE in configuration.feature_gates:
        return None
    message = m.DENIED % (_WEBHOOKS.get(vm.kind, m.VM_WEBHOOK), m.NO_HOST_DEVICES_GATE)
    return Said(ADMISSION, f"{vm.kind} {vm}", "", message, vm.host_devices)


def rendered(vm: VirtualMachine, configuration: Configuration) -> Said | None:
    """virt-controller, before it makes the launcher's pod: the VMI stays without one, and it tries again and again."""
    gpus = () if GPUS_WITH_DRA_GATE in configuration.feature_gates else vm.gpus
    asked = [
        *((m.GPU_NOT_PERMITTED, resource) for resource in gpus),
        *((m.HOST_DEVICE_NOT_PERMITTED, resource) for resource in vm.host_devices or ()),
    ]
    refused = [(text % resource, resource) for text, resource in asked if not configuration.permits(resource)]
    if not refused:
        return None
    message = m.NO_LAUNCH_MANIFEST % " ".join(text for text, _ in refused)
    blamed = tuple(dict.fromkeys(resource for _, resource in refused))
    return Said(RENDERING, f"{VMI} {vm}", m.FAILED_CREATE, message, blamed)


def _fitting(vm: VirtualMachine, configuration: Configuration, nodes: Sequence[NodeDevices]) -> NodeDevices | None:
    return next((node for node in nodes if not any(_lacking(vm, node.allocatable(configuration)))), None)


def _lacking(vm: VirtualMachine, allocatable: Mapping[str, int]) -> Iterator[str]:
    """The resources of which a node has too few."""
    return (resource for resource, count in vm.asks.items() if allocatable.get(resource, 0) < count)


def _unschedulable(vm: VirtualMachine, configuration: Configuration, nodes: Sequence[NodeDevices]) -> Said:
    """kube-scheduler's event. A node that never has enough is none on which preemption would help."""
    lacking = [tuple(_lacking(vm, node.allocatable(configuration))) for node in nodes]
    counted = Counter(resource for resources in lacking for resource in resources)
    available = m.NODES_AVAILABLE % len(nodes)
    reasons = ", ".join(sorted(f"{count} {m.INSUFFICIENT % resource}" for resource, count in counted.items()))
    preemption = m.NO_PREEMPTION % f"{available}: {len(nodes)} {m.NOT_HELPFUL}."
    pod = f"Pod {vm.namespace}/virt-launcher-{vm.name}"
    return Said(SCHEDULING, pod, m.FAILED_SCHEDULING, f"{available}: {reasons}. {preemption}", tuple(sorted(counted)))


def _launched(vm: VirtualMachine, configuration: Configuration, node: NodeDevices) -> Start:
    """virt-launcher: as many addresses as devices, each address once; then QEMU opens their groups."""
    variables: dict[str, str] = {}
    for resource, count in vm.asks.items():
        variables |= node.allocate(configuration, resource, count)
    taken: list[str] = []
    for resources, text in ((vm.host_devices or (), m.HOST_DEVICES_DO_NOT_MATCH), (vm.gpus, m.GPUS_DO_NOT_MATCH)):
        own: list[str] = []
        for resource in resources:
            offered = [
                address
                for prefix in ("PCI_RESOURCE", "MDEV_PCI_RESOURCE")
                for address in variables.get(variable(prefix, resource), "").split(",")
            ]
            own += [address for address in offered if address and address not in own][:1]
        if len(own) != len(resources):
            missing = tuple(
                resource for resource in dict.fromkeys(resources) if variable("PCI_RESOURCE", resource) not in variables
            )
            return Start(vm, _not_synchronized(vm, text, missing or tuple(resources)), node.name, (), variables)
        taken += own
    for address in taken:
        if group := node.not_viable(address):
            said = _not_synchronized(vm, m.GROUP_NOT_VIABLE % (address, group), tuple(vm.asks))
            return Start(vm, said, node.name, tuple(taken), variables)
    return Start(vm, None, node.name, tuple(taken), variables)


def _not_synchronized(vm: VirtualMachine, text: str, blamed: tuple[str, ...]) -> Said:
    """The VMI's condition Synchronized is False. What follows the text in the real message is left out."""
    return Said(LAUNCHING, f"{VMI} {vm}", m.NOT_SYNCHRONIZED, m.SYNC_FAILED % text, blamed)
