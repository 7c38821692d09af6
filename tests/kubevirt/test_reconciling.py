"""The KubeVirt CR over time, and the VMs that do not notice."""

from __future__ import annotations

import copy

import pytest

from simulator.host.spec import HostSpec, PciFunction
from simulator.kubevirt.cozystack import cozystack
from simulator.kubevirt.custom_resource import kubevirt_configuration
from simulator.kubevirt.devices import start_plugin
from simulator.kubevirt.packages import GPU_OPERATOR, KUBEVIRT
from simulator.kubevirt.platform import render
from simulator.kubevirt.reconciling import CLIENT_SIDE, SERVER_SIDE, ManagedResource, started
from simulator.kubevirt.virtual_machine import VirtualMachine

L20 = "nvidia.com/AD102GL_L20"
OWN = {"pciVendorSelector": "10DE:26BA", "resourceName": L20, "externalResourceProvider": True}
BOTH = pytest.mark.parametrize("apply", [SERVER_SIDE, CLIENT_SIDE])


def rendered(*own, gpus=True, replace_defaults=False):
    """What the chart makes of values."""
    values = {
        "bundles": {
            "system": {"enabled": True, "variant": "isp-full"},
            "iaas": {"enabled": True},
            "enabledPackages": [GPU_OPERATOR] if gpus else [],
        },
        "gpu": {"replaceDefaults": replace_defaults, "permittedHostDevices": {"pciHostDevices": list(own)}},
    }
    return kubevirt_configuration(render(values)[KUBEVIRT], cozystack())


def edited(document, *entries):
    """The document, with entries put in by hand."""
    out = copy.deepcopy(document)
    out.setdefault("permittedHostDevices", {}).setdefault("pciHostDevices", []).extend(entries)
    return out


def node():
    return start_plugin(
        HostSpec("gpu-1", pci=(PciFunction("0000:3b:00.0", "0x10de", "0x26ba", driver="vfio-pci", iommu_group=1),)), "v1.5.0"
    )


def test_a_hand_edit_is_reverted_by_the_next_upgrade():
    """Server-side, as soon as anything of the release changes; until then nothing happens to it."""
    release = ManagedResource(rendered(), rendered()).edited(edited(rendered(), OWN))
    assert release.reconciled(rendered()) == release
    assert release.configuration().permits(L20)
    after = release.reconciled(rendered(), chart_changed=True)
    assert after.live == rendered()
    assert not after.configuration().permits(L20)


def test_client_side_a_hand_edit_stays_until_that_list_is_rendered_otherwise():
    """The patch is between what was rendered and what is: it never looks at the CR."""
    release = ManagedResource(rendered(), rendered(), CLIENT_SIDE).edited(edited(rendered(), OWN))
    assert release.reconciled(rendered(), chart_changed=True).configuration().permits(L20)
    other = rendered({**OWN, "pciVendorSelector": "10DE:26B3", "resourceName": "nvidia.com/X"})
    assert not release.reconciled(other).configuration().permits(L20)


@BOTH
def test_the_first_reconciliation_replaces_entries_made_by_hand(apply):
    """Where the platform did not write the block before: whole lists, not entry by entry; and the gates."""
    before = rendered(gpus=False)
    assert "permittedHostDevices" not in before
    by_hand = edited(before, OWN)
    by_hand["developerConfiguration"]["featureGates"].append("Sidecar")
    upgraded = ManagedResource(by_hand, before, apply).reconciled(rendered())
    assert upgraded.live == rendered()
    assert upgraded.live["developerConfiguration"]["featureGates"][-1] == "HostDevices"


@BOTH
def test_what_the_platform_does_not_write_stays(apply):
    """Its list of PCI devices is its own; a list of USB devices, or a block that no values make, is nobody's."""
    usb = {**edited(rendered()), "permittedHostDevices": {"usb": [{"resourceName": "kubevirt.io/key"}]}}
    upgraded = ManagedResource(usb, rendered(gpus=False), apply).reconciled(rendered())
    assert upgraded.configuration().permits("kubevirt.io/key")
    by_hand = edited(rendered(gpus=False), OWN)
    nothing = rendered(replace_defaults=True)
    assert ManagedResource(by_hand, rendered(gpus=False), apply).reconciled(nothing).configuration().permits(L20)


@pytest.mark.parametrize(("apply", "stays"), [(SERVER_SIDE, True), (CLIENT_SIDE, False)])
def test_a_list_that_is_rendered_no_more(apply, stays):
    """Client-side it goes; server-side it goes only if nobody else wrote it since."""
    gone = rendered(gpus=False)
    release = ManagedResource(rendered(), rendered(), apply)
    assert "permittedHostDevices" not in release.reconciled(gone).live
    assert ("permittedHostDevices" in release.edited(edited(rendered(), OWN)).reconciled(gone).live) is stays


def test_a_mismatch_is_silent_until_the_vm_restarts():
    """It runs on; a restart is refused by virt-controller; it cannot be migrated at any time."""
    release = ManagedResource(rendered(), rendered()).edited(edited(rendered(), OWN))
    vm = started(VirtualMachine("gpu", gpus=(L20,)), release.configuration(), node())
    assert vm.is_running
    release = release.reconciled(rendered(), chart_changed=True)
    assert vm.is_running
    said = vm.migrating()
    assert (said.component, said.reason, said.message) == (
        "virt-handler",
        "HostDeviceNotLiveMigratable",
        "VMI uses a PCI host devices",
    )
    again = vm.restarted(release.configuration(), node())
    assert not again.is_running
    assert again.last.said.component == "virt-controller"
    release = release.reconciled(rendered(OWN))
    assert again.restarted(release.configuration(), node()).is_running
