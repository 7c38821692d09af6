"""From a card to a running VM: each way it breaks, and which program says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.host.spec import File, HostSpec, PciFunction
from simulator.kubevirt.configuration import Configuration, PermittedDevice, PermittedHostDevices, read_kubevirt
from simulator.kubevirt.cozystack import cozystack
from simulator.kubevirt.devices import NodeDevices, bound_later, has_virtual, idle_node, is_virtual, start_plugin, variable
from simulator.kubevirt.starting import start
from simulator.kubevirt.virtual_machine import VMI, VirtualMachine, read_virtual_machines, virtual_machines
from simulator.reading import InputError, Place, parse_documents

A10 = "nvidia.com/GA102GL_A10"
RELEASE = "v1.5.0"


def card(device="2236", address="0000:3b:00.0", driver="vfio-pci", group=27, class_="0x030200"):
    return PciFunction(address, "0x10de", f"0x{device}", class_, driver, iommu_group=group)


def node(*functions, release=RELEASE, **others):
    return start_plugin(HostSpec("gpu-1", pci=functions), release, **others)


def configuration(*devices, gates=("HostDevices",)):
    return Configuration(frozenset(gates), PermittedHostDevices(devices))


def external(resource=A10, selector="10DE:2236"):
    return PermittedDevice(selector, resource, external=True)


def internal(resource=A10, selector="10DE:2236"):
    return PermittedDevice(selector, resource)


def vm(*gpus, host_devices=None, **others):
    return VirtualMachine("gpu", "tenant-example", gpus=gpus, host_devices=host_devices, **others)


def said(machine, permitted, *nodes):
    found = start(machine, permitted, nodes).said
    assert found is not None
    return found


def insufficient(*resources, nodes=1):
    reasons = ", ".join(f"{nodes} Insufficient {resource}" for resource in resources)
    available = f"0/{nodes} nodes are available"
    helpful = f"{nodes} Preemption is not helpful for scheduling."
    return f"{available}: {reasons}. no new claims to deallocate, preemption: {available}: {helpful}"


@pytest.mark.parametrize("release", ["v1.4.0", "v1.5.0", "v1.6.0"])
def test_a_card_of_the_table_reaches_its_vm(release):
    """Two cards, a VM that asks for both: by whichever release of the plugin."""
    cards = node(card(), card(address="0000:86:00.0", group=44), release=release)
    table = configuration(
        *(
            PermittedDevice(entry["pciVendorSelector"], entry["resourceName"], external=True)
            for entry in cozystack().pci_host_devices
        )
    )
    assert cards.allocatable(table) == {A10: 2}
    started = start(vm(A10, A10), table, [cards])
    assert started.is_running
    assert (started.node, started.addresses) == ("gpu-1", ("0000:3b:00.0", "0000:86:00.0"))
    assert started.variables == {"PCI_RESOURCE_NVIDIA_COM_GA102GL_A10": "0000:3b:00.0,0000:86:00.0"}


def test_one_card_too_few():
    """Is the scheduler's to say."""
    found = said(vm(A10, A10), configuration(external()), node(card()))
    assert (found.component, found.on, found.reason) == (
        "kube-scheduler",
        "Pod tenant-example/virt-launcher-gpu",
        "FailedScheduling",
    )
    assert found.message == insufficient(A10)


def test_an_unknown_id():
    """The card has its id for a name; the name that people expect is on no node."""
    cards = node(card("2bb9"))
    assert cards.allocatable(configuration()) == {"nvidia.com/2bb9": 1}
    assert not cards.is_named(cards.functions[0])
    expected = "nvidia.com/GB202GL_RTX_PRO_6000"
    assert said(vm(expected), configuration(external(expected)), cards).message == insufficient(expected)
    assert start(vm("nvidia.com/2bb9"), configuration(external("nvidia.com/2bb9", "10DE:2BB9")), [cards]).is_running


def test_two_ids_of_one_name():
    """The kubelet has only the cards of the one that registered last."""
    resource = "nvidia.com/GA100_A100_PCIE_40GB"
    cards = node(card("20b1"), card("20f1", "0000:86:00.0", group=44))
    assert cards.plugin.contested() == {resource: ("20b1", "20f1")}
    assert cards.allocatable(configuration()) == {resource: 1}
    assert said(vm(resource, resource), configuration(external(resource)), cards).component == "kube-scheduler"


def test_the_table_and_the_plugin_disagree():
    """The name of the table is permitted and nowhere; the node's is there and not permitted."""
    old = "10de  NVIDIA Corporation\n\t2236  GA102 [RTX A10]\nffff  Illegal\n"
    cards = node(card(), pci_ids=old)
    table = configuration(external())
    assert said(vm(A10), table, cards).message == insufficient(A10)
    found = said(vm("nvidia.com/GA102_RTX_A10"), table, cards)
    assert (found.component, found.on, found.reason) == ("virt-controller", f"{VMI} tenant-example/gpu", "FailedCreate")
    assert found.message == (
        "failed to render launch manifest: GPU nvidia.com/GA102_RTX_A10 is not permitted in permittedHostDevices configuration"
    )


def test_no_block_permits_everything():
    """KubeVirt asks nothing: a resource that no node has is the scheduler's business."""
    nothing = Configuration()
    assert start(vm(A10), nothing, [node(card())]).is_running
    assert said(vm("nvidia.com/none"), nothing, node(card())).component == "kube-scheduler"


def test_an_empty_block_permits_nothing():
    """Every name of every kind is refused, in one message; the VM object itself was admitted."""
    found = said(vm(A10, "a/b", host_devices=("c/d",)), configuration(), node(card()))
    assert found.component == "virt-controller"
    assert found.message == (
        "failed to render launch manifest: "
        f"GPU {A10} is not permitted in permittedHostDevices configuration "
        "GPU a/b is not permitted in permittedHostDevices configuration "
        "HostDevice c/d is not permitted in permittedHostDevices configuration"
    )
    assert found.blamed == (A10, "a/b", "c/d")


def test_the_gate_is_for_host_devices_only():
    """Without it the webhook refuses a VM that has `hostDevices`, even an empty list; `gpus` do not need it."""
    no_gate = configuration(external(), gates=("GPU",))
    assert start(vm(A10), no_gate, [node(card())]).is_running
    for kind, webhook in (("VirtualMachine", "virtualmachine-validator"), (VMI, "virtualmachineinstances-create-validator")):
        found = said(vm(host_devices=(A10,), kind=kind), no_gate, node(card()))
        assert (found.component, found.reason) == ("virt-api", "")
        assert found.message == (
            f'admission webhook "{webhook}.kubevirt.io" denied the request: Host Devices feature gate is not enabled in kubevirt-config'
        )
    assert said(vm(A10, host_devices=()), no_gate, node(card())).component == "virt-api"
    assert start(vm(host_devices=(A10,)), configuration(external()), [node(card())]).addresses == ("0000:3b:00.0",)


def test_case_matters_in_names_and_not_in_selectors():
    """Names are compared as they stand; a selector is put into small letters first."""
    assert said(vm("nvidia.com/GA102GL_a10"), configuration(external()), node(card())).component == "virt-controller"
    for selector in ("10DE:2236", "10de:2236", "10dE:2236"):
        assert node(card(driver="vfio-pci")).by_kubevirt(configuration(internal(selector=selector))) == {
            A10: {"27": ("0000:3b:00.0",)}
        }


def test_dra_gate():
    """With it KubeVirt no longer compares the names of GPUs; those of host devices it still does."""
    loose = configuration(gates=("HostDevices", "GPUsWithDRA"))
    assert start(vm(A10), loose, [node(card())]).is_running
    assert said(vm(host_devices=(A10,)), loose, node(card())).component == "virt-controller"


def test_one_selector_twice_under_an_external_provider():
    """The selector is not looked at: both names are permitted, and only the plugin's is on the node."""
    both = configuration(external(), external("nvidia.com/MY_A10"))
    assert start(vm(A10), both, [node(card())]).is_running
    assert said(vm("nvidia.com/MY_A10"), both, node(card())).message == insufficient("nvidia.com/MY_A10")


def test_one_selector_twice_under_the_internal_provider():
    """The last entry wins, always; the other name is permitted and nowhere."""
    host = HostSpec("gpu-1", pci=(card(),))
    for first, second in (("nvidia.com/A", "nvidia.com/B"), ("nvidia.com/B", "nvidia.com/A")):
        both = configuration(internal(first), internal(second, "10de:2236"))
        cards = idle_node(host, "no plugin")
        assert cards.allocatable(both) == {second: 1}
        started = start(vm(second), both, [cards])
        assert started.variables == {variable("PCI_RESOURCE", second): "0000:3b:00.0"}
        assert said(vm(first), both, cards).component == "kube-scheduler"


def test_a_card_under_two_providers_is_there_twice():
    """The kubelet gives it out under both names."""
    own = configuration(internal("nvidia.com/MY_A10"), external())
    cards = node(card())
    assert cards.allocatable(own) == {A10: 1, "nvidia.com/MY_A10": 1}
    assert cards.twice(own) == {"0000:3b:00.0": (A10, "nvidia.com/MY_A10")}
    assert start(vm(A10), own, [cards]).addresses == start(vm("nvidia.com/MY_A10"), own, [cards]).addresses


def test_kubevirts_own_plugin_wants_vfio_pci_and_counts_groups():
    """nvgrace's driver is not enough for it; of two functions in one group the last is handed out."""
    two = HostSpec("n", pci=(card(), card(address="0000:3b:00.1")))
    own = configuration(internal())
    assert idle_node(two, "").allocatable(own) == {A10: 1}
    assert start(vm(A10), own, [idle_node(two, "")]).addresses == ("0000:3b:00.1",)
    grace = HostSpec("n", pci=(card(driver="nvgrace_gpu_vfio_pci"),))
    assert idle_node(grace, "").allocatable(own) == {}
    assert node(*grace.pci).allocatable(configuration()) == {A10: 1}


def test_a_card_that_is_bound_after_the_plugin_started():
    """Is not announced until the plugin's pod restarts."""
    unbound = HostSpec("gpu-1", pci=(card(driver="nvidia"),))
    bound = replace(unbound, pci=(card(),))
    late = bound_later(start_plugin(unbound, RELEASE), bound)
    assert late.functions[0].driver == "vfio-pci"
    assert said(vm(A10), configuration(external()), late).message == insufficient(A10)
    assert start(vm(A10), configuration(external()), [start_plugin(bound, RELEASE)]).is_running


def test_only_one_of_several_auxiliary_functions_is_bound():
    """The card is announced and allocated; QEMU finds that its group is not viable."""
    audio = card("1aef", "0000:3b:00.1", "vfio-pci", class_="0x040300")
    usb = PciFunction("0000:3b:00.2", "0x10de", "0x1ad8", "0x0c0330", "xhci_hcd", iommu_group=27)
    bridge = PciFunction("0000:3a:00.0", "0x8086", "0x2030", "0x060400", "pcieport", iommu_group=27)
    found = said(vm(A10), configuration(external()), node(card(), audio, usb, bridge))
    assert (found.component, found.reason) == ("virt-launcher", "Synchronizing with the Domain failed.")
    assert found.message == (
        'server error. command SyncVMI failed: "vfio 0000:3b:00.0: group 27 is not viable\\n'
        "Please ensure all devices within the iommu_group are bound to their vfio bus driver."
    )
    for harmless in ("vfio-pci", ""):
        assert start(vm(A10), configuration(external()), [node(card(), audio, replace(usb, driver=harmless), bridge)]).is_running


def test_a_resource_of_another_device_plugin():
    """nvidia.com/gpu is counted like any, but no address comes with it."""
    cards = NodeDevices("gpu-1", others={"nvidia.com/gpu": 1})
    found = said(vm("nvidia.com/gpu"), Configuration(), cards)
    assert found.component == "virt-launcher"
    assert found.message == (
        'server error. command SyncVMI failed: "failed to create GPU host-devices: '
        "the number of device plugin GPU/s do not match the number of devices:"
    )
    found = said(vm(host_devices=("nvidia.com/gpu",)), configuration(external("nvidia.com/gpu")), cards)
    assert "failed to create generic host-devices: the number of device plugin HostDevice/s do not match" in found.message


def test_several_nodes():
    """The first that has enough; where none has, each is counted for each resource it lacks."""
    first, second = node(card("1eb8")), replace(node(card()), name="gpu-2")
    table = configuration(external(), external("nvidia.com/TU104GL_TESLA_T4", "10DE:1EB8"))
    assert start(vm(A10), table, [first, second]).node == "gpu-2"
    assert said(vm(A10, "nvidia.com/TU104GL_TESLA_T4"), table, first, second).message == (
        f"0/2 nodes are available: 1 Insufficient {A10}, 1 Insufficient nvidia.com/TU104GL_TESLA_T4. "
        "no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )


MANIFESTS = """\
apiVersion: apps.cozystack.io/v1alpha1
kind: VMInstance
metadata: {name: one, namespace: tenant-a}
spec: {gpus: [{name: nvidia.com/A}, {name: nvidia.com/A}]}
---
apiVersion: v1
kind: Secret
metadata: {name: other}
---
apiVersion: apps.cozystack.io/v1alpha1
kind: VirtualMachine
metadata: {name: old}
---
apiVersion: kubevirt.io/v1
kind: List
items:
- apiVersion: kubevirt.io/v1
  kind: VirtualMachine
  metadata: {name: two}
  spec: {template: {spec: {domain: {devices: {gpus: [{name: g, deviceName: nvidia.com/B}], hostDevices: []}}}}}
- apiVersion: kubevirt.io/v1
  kind: VirtualMachineInstance
  metadata: {name: three}
  spec: {domain: {devices: {hostDevices: [{name: h, deviceName: c/d}, {name: i, claimName: x, requestName: y}]}}}
- apiVersion: kubevirt.io/v1
  kind: VirtualMachineInstance
  metadata: {generateName: four-}
  spec: {domain: {}}
"""


def test_manifests():
    """Of Cozystack and of KubeVirt; other objects are passed over."""
    found = [vm for document in parse_documents(MANIFESTS, "vms.yaml") for vm in virtual_machines(document)]
    assert found == [
        VirtualMachine("vm-instance-one", "tenant-a", gpus=("nvidia.com/A", "nvidia.com/A")),
        VirtualMachine("virtual-machine-old"),
        VirtualMachine("two", gpus=("nvidia.com/B",), host_devices=()),
        VirtualMachine("three", kind=VMI, host_devices=("c/d",)),
        VirtualMachine("four-", kind=VMI),
    ]
    assert found[0].asks == {"nvidia.com/A": 2}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: Secret\napiVersion: v1", "holds no VM"),
        ("a: 1\n---\n- x", "holds a list where a mapping belongs"),
        ("a: 1\n---\nb: 1", r"document 1\): the document lacks the key \"kind\""),
        ("kind: VirtualMachine\napiVersion: kubevirt.io/v1\nmetadata: {name: a}", 'lacks the key "spec"'),
        (
            "kind: VMInstance\napiVersion: apps.cozystack.io/v1\nmetadata: {name: a}\nspec: {gpus: [A10]}",
            r"spec\.gpus\[0\] is text",
        ),
        ("{: a", "no valid YAML"),
    ],
)
def test_bad_manifests(tmp_path, text, problem):
    """Are one message each."""
    path = tmp_path / "vm.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        read_virtual_machines(path)


def test_a_kubevirt_cr():
    """Is read with its gates and its block; an empty block is one."""
    spec = {
        "configuration": {
            "developerConfiguration": {"featureGates": ["HostDevices"]},
            "permittedHostDevices": {
                "pciHostDevices": [{"pciVendorSelector": "10DE:2236", "resourceName": A10}],
                "mediatedDevices": [
                    {"mdevNameSelector": "NVIDIA A10-24Q", "resourceName": "a/b", "externalResourceProvider": True}
                ],
                "usb": [{"resourceName": "u/s", "selectors": []}],
            },
        }
    }
    found = read_kubevirt(Place({"kind": "KubeVirt", "spec": spec}, "cr"))
    assert found.feature_gates == {"HostDevices"}
    assert found.permitted.pci == (internal(),)
    assert found.permitted.mediated == (PermittedDevice("NVIDIA A10-24Q", "a/b", external=True),)
    assert [found.permits(name) for name in (A10, "a/b", "u/s", "x/y")] == [True, True, True, False]
    for empty in ({}, {"spec": {}}, {"spec": {"configuration": {}}}):
        assert read_kubevirt(Place({"kind": "KubeVirt", **empty}, "cr")) == Configuration()
    block = {"kind": "KubeVirt", "spec": {"configuration": {"permittedHostDevices": {}}}}
    assert read_kubevirt(Place(block, "cr")).permitted == PermittedHostDevices()
    with pytest.raises(InputError, match="write resourceName"):
        read_kubevirt(
            Place(
                {
                    "kind": "KubeVirt",
                    "spec": {"configuration": {"permittedHostDevices": {"pciHostDevices": [{"pciVendorSelector": "a"}]}}},
                },
                "cr",
            )
        )


def test_a_virtual_function_is_known_by_its_place():
    """Behind a GPU of its id, on the same bus; two cards are on two buses."""
    first, second = card(), card(address="0000:3b:00.4")
    other = card(address="0000:86:00.0")
    cards = (first, second, other)
    assert [is_virtual(one, cards) for one in cards] == [False, True, False]
    assert [has_virtual(one, cards) for one in cards] == [True, False, False]
    assert not is_virtual(card("10f8", "0000:3b:00.1", class_="0x040300"), cards)


def mediated(*types):
    """A host whose GPU has a mediated device of each type."""
    below = "/sys/devices/pci0000:3a/0000:3b:00.0"
    files = tuple(File(f"{below}/uuid-{number}/mdev_type/name", f"{name}\n") for number, name in enumerate(types))
    links = {
        f"/sys/bus/mdev/devices/uuid-{number}": f"../../../devices/pci0000:3a/0000:3b:00.0/uuid-{number}"
        for number in range(len(types))
    }
    return HostSpec("gpu-1", pci=(card(driver="nvidia"),), files=files, links=links)


def test_the_platforms_table_of_vgpus_is_not_that_of_the_plugin():
    """Unlike its table of cards: each of its eight names lacks the type's first word, which the plugin keeps."""
    table = cozystack().mediated_devices
    cards = start_plugin(mediated(*(entry["mdevNameSelector"] for entry in table)), RELEASE)
    assert len(cards.by_plugin) == len(table) == 8
    assert not {entry["resourceName"] for entry in table} & set(cards.by_plugin)
    assert set(cards.by_plugin) == {entry["resourceName"].replace("/", "/NVIDIA_") for entry in table}


def test_a_vgpu_reaches_its_vm_by_a_variable_of_its_own():
    """With as many ids as it asks for; two of one type are two."""
    cards = start_plugin(mediated("NVIDIA A10-24Q", "NVIDIA A10-24Q", "GRID T4-1Q"), RELEASE)
    resource = "nvidia.com/NVIDIA_A10-24Q"
    assert cards.allocatable(Configuration()) == {resource: 2, "nvidia.com/GRID_T4-1Q": 1}
    started = start(vm(resource, resource), Configuration(), [cards])
    assert started.variables == {"MDEV_PCI_RESOURCE_NVIDIA_COM_NVIDIA_A10-24Q": "uuid-0,uuid-1"}
    assert started.addresses == ("uuid-0", "uuid-1")
