"""What a node announces for VMs: by the sandbox device plugin, and by KubeVirt's own plugin in virt-handler.

The first is NVIDIA's program, which calls a card what its pci.ids file calls it. The second announces what the KubeVirt CR
has an entry for that is not `externalResourceProvider`; it takes cards whose driver is vfio-pci and no other, and counts
IOMMU groups. If both know a card, the kubelet has it twice. What holds a card is left out: everything is free. So are
mediated devices that KubeVirt announces itself.

Source: kubevirt v1.8.4 pkg/virt-handler/device-manager/device_controller.go, pci_device.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from simulator.host.spec import File, HostSpec, PciFunction
from simulator.kubevirt.configuration import Configuration
from simulator.node.pci_ids import bundled
from simulator.node.plugin.names import PCI_IDS, device_name, resource_name
from simulator.node.plugin.releases import PLUGINS
from simulator.node.plugin.v1_4_0 import VFIO_PCI, DevicePlugin
from simulator.runners.vfio import host_world, make_host

_BRIDGE: Final = "0x06"
_ENV: Final = ("PCI_RESOURCE", "MDEV_PCI_RESOURCE")
"""What a launcher looks its addresses up by: `v1.PCIResourcePrefix`, `v1.MDevResourcePrefix`."""


class Silent:
    """A device plugin's log that nobody reads."""

    def log(self, message: str) -> None:
        """A line of Go's log."""

    def klog(self, line: int, message: str) -> None:
        """A line of klog's."""


def variable(prefix: str, resource: str) -> str:
    """`ResourceNameToEnvVar`: the variable that a launcher looks for."""
    return f"{prefix}_{resource.upper().replace('/', '_').replace('.', '_')}"


@dataclass(frozen=True)
class NodeDevices:
    """A node's NVIDIA functions, and what the sandbox device plugin made of them when it started.

    `plugin` None: it has not started, for the reason `idle` gives. `others` are resources that further plugins announce.
    """

    name: str
    functions: tuple[PciFunction, ...] = ()
    pci_ids: str = ""
    plugin: DevicePlugin | None = field(default=None, compare=False)
    idle: str = ""
    others: Mapping[str, int] = field(default_factory=dict)

    def resource_of(self, function: PciFunction) -> str:
        """What the plugin calls a function, whether or not it has it."""
        device_id = function.device.removeprefix("0x")
        return resource_name(device_name(self.pci_ids, device_id, lambda _: None) or device_id)

    def is_named(self, function: PciFunction) -> bool:
        """Does the plugin's file know it?"""
        return bool(device_name(self.pci_ids, function.device.removeprefix("0x"), lambda _: None))

    @cached_property
    def by_plugin(self) -> dict[str, tuple[str, ...]]:
        """Resource -> the kubelet's devices: addresses, or IOMMU groups up to v1.4.0. Of a contested one, the last."""
        found = self.plugin.registrations if self.plugin is not None else ()
        return {one.resource: tuple(device.address for device in one.devices) for one in found}

    def by_kubevirt(self, configuration: Configuration) -> dict[str, dict[str, tuple[str, ...]]]:
        """Resource -> IOMMU group -> addresses that virt-handler's plugin has; a group's last one is handed out."""
        permitted = configuration.permitted
        wanted = permitted.internal() if permitted is not None else {}
        found: dict[str, dict[str, tuple[str, ...]]] = {}
        for function in self.functions:
            resource = wanted.get(f"{function.vendor.removeprefix('0x')}:{function.device.removeprefix('0x')}")
            if resource is not None and function.driver == VFIO_PCI and function.iommu_group is not None:
                groups = found.setdefault(resource, {})
                group = str(function.iommu_group)
                groups[group] = (*groups.get(group, ()), function.address)
        return found

    def allocatable(self, configuration: Configuration) -> dict[str, int]:
        """Resource -> how many. Where two programs announce one name, those of virt-handler, as if it had come last."""
        plugin = {resource: len(devices) for resource, devices in self.by_plugin.items()}
        own = {resource: len(groups) for resource, groups in self.by_kubevirt(configuration).items()}
        return {**self.others, **plugin, **own}

    def twice(self, configuration: Configuration) -> dict[str, tuple[str, ...]]:
        """Card's address -> the resources under which the kubelet has it, where both programs announce it."""
        own = {
            address: resource
            for resource, groups in self.by_kubevirt(configuration).items()
            for addresses in groups.values()
            for address in addresses
        }
        announced = set(self.by_plugin)
        cards = {function.address: self.resource_of(function) for function in self.functions}
        return {address: (cards[address], resource) for address, resource in sorted(own.items()) if cards[address] in announced}

    def allocate(self, configuration: Configuration, resource: str, count: int) -> dict[str, str]:
        """The variables that a launcher gets with so many of a resource; none from a plugin that passes no addresses through.

        Raises GoError where the plugin refuses.
        """
        own = self.by_kubevirt(configuration).get(resource)
        if own is not None:
            addresses = [addresses[-1] for addresses in list(own.values())[:count]]
            return {variable(_ENV[0], resource): ",".join(addresses)}
        if self.vgpu_type(resource):
            return {variable(_ENV[1], resource): ",".join(self.by_plugin[resource][:count])}
        if resource in self.by_plugin and self.plugin is not None:
            name = resource.partition("/")[2]
            (answer,) = self.plugin.allocate(name, [self.by_plugin[resource][:count]])
            return dict(answer.env)
        return {}

    def vgpu_type(self, resource: str) -> str:
        """The type of the mediated devices that the plugin announces under this name; "" if it is no such name.

        A type is called by itself, blanks as underscores: `NVIDIA A10-24Q` is nvidia.com/NVIDIA_A10-24Q.
        """
        vgpus = self.plugin.found.vgpus if self.plugin is not None else {}
        return next((one for one in vgpus if resource_name(one) == resource), "")

    def not_viable(self, address: str) -> str:
        """The IOMMU group of a function, where another one in it has a driver that is not vfio's; "" if all is well.

        A function without a driver does no harm, and neither does a bridge. A mediated device has a group to itself.
        """
        function = next((one for one in self.functions if one.address == address), None)
        for other in self.functions:
            if (
                function is not None
                and function.iommu_group is not None
                and other.iommu_group == function.iommu_group
                and not other.class_.startswith(_BRIDGE)
                and other.driver
                and "vfio" not in other.driver
            ):
                return str(function.iommu_group)
        return ""


def start_plugin(host: HostSpec, release: str, pci_ids: str | None = None, name: str = "") -> NodeDevices:
    """A node on which the sandbox device plugin starts now: it sees what is bound now. Raises KeyError for the release."""
    text = bundled() if pci_ids is None else pci_ids
    files = (*host.container_files, File(PCI_IDS, text))
    plugin = PLUGINS[release](make_host(host_world(replace(host, container_files=files), (), {})), Silent())
    plugin.initiate()
    return NodeDevices(name or host.name, host.pci, text, plugin)


def idle_node(host: HostSpec, why: str, pci_ids: str | None = None, name: str = "") -> NodeDevices:
    """A node on which the plugin does not get as far as to look."""
    text = bundled() if pci_ids is None else pci_ids
    return NodeDevices(name or host.name, host.pci, text, idle=why)


def bound_later(node: NodeDevices, host: HostSpec) -> NodeDevices:
    """The node when cards have been bound since: the plugin has looked, and does not look again."""
    return replace(node, functions=host.pci)


def is_virtual(function: PciFunction, functions: Iterable[PciFunction]) -> bool:
    """Is it taken to be a virtual function: a GPU on the bus of one with the same id, behind it?"""
    return function.is_gpu and any(_is_behind(function, one) for one in functions)


def has_virtual(function: PciFunction, functions: Iterable[PciFunction]) -> bool:
    """Is it taken to be a card with virtual functions?"""
    return function.is_gpu and any(one.is_gpu and _is_behind(one, function) for one in functions)


def _is_behind(function: PciFunction, first: PciFunction) -> bool:
    bus = function.address.rpartition(":")[0]
    is_alike = first.is_gpu and first.device == function.device and first.address.rpartition(":")[0] == bus
    return is_alike and first.address < function.address
