"""From a CR that was edited by hand to values: what they keep, and what nothing can."""

from __future__ import annotations

import json

import yaml
from hypothesis import given
from hypothesis import strategies as st

from simulator.cli.main import main
from simulator.kubevirt.configuration import Configuration, PermittedDevice, PermittedHostDevices
from simulator.kubevirt.cozystack import cozystack
from simulator.kubevirt.migrating import migrate
from simulator.kubevirt.values import PlatformValues
from simulator.reading import Place

BUNDLES = {
    "system": {"enabled": True, "variant": "isp-full"},
    "iaas": {"enabled": True},
    "enabledPackages": ["cozystack.gpu-operator"],
}
A10 = PermittedDevice("10DE:2236", "nvidia.com/GA102GL_A10", external=True)
L20 = PermittedDevice("10DE:26BA", "nvidia.com/AD102GL_L20", external=True)


def configuration(*pci, gates=("HostDevices",), mediated=(), usb=()):
    return Configuration(frozenset(gates), PermittedHostDevices(pci, mediated, usb))


def made_of(values, variant="default"):
    """The configuration that values make."""
    bundles = {**BUNDLES, "iaas": {"enabled": True, "gpuOperatorVariant": variant}}
    return PlatformValues(Place({**values, "bundles": bundles}, "values")).configuration(cozystack())


def test_what_the_table_has_need_not_be_written():
    """In whichever case its selector is."""
    lower = PermittedDevice("10de:2236", A10.resource, external=True)
    found = migrate(configuration(lower), cozystack())
    assert (found.values, found.covered, found.replaced, found.left, found.renamed) == ({}, (lower,), (), (), ())
    assert len(found.widened) == 18


def test_a_card_of_ones_own_is_added():
    """Beside the table."""
    found = migrate(configuration(A10, L20), cozystack())
    entry = {"pciVendorSelector": "10DE:26BA", "resourceName": L20.resource, "externalResourceProvider": True}
    assert found.values == {"gpu": {"permittedHostDevices": {"pciHostDevices": [entry]}}}
    assert (found.covered, found.replaced) == ((A10,), (L20,))


def test_another_name_for_a_card_of_the_table_replaces_it():
    """Else the card would have two entries. That no node announces the name is said."""
    mine = PermittedDevice("10DE:2236", "nvidia.com/MY_A10", external=True)
    found = migrate(configuration(mine, L20), cozystack())
    assert found.values["gpu"]["replaceDefaults"] is True
    assert [entry["resourceName"] for entry in found.values["gpu"]["permittedHostDevices"]["pciHostDevices"]] == [
        mine.resource,
        L20.resource,
    ]
    assert (found.covered, found.widened) == ((), ())
    assert found.renamed == ((mine, A10.resource),)


def test_kubevirts_own_provider_is_named():
    """It would announce the card beside the sandbox device plugin."""
    internal = PermittedDevice("10DE:26BA", L20.resource)
    assert migrate(configuration(internal), cozystack()).renamed == ((internal, L20.resource),)


def test_what_no_values_can_say():
    """Gates, USB devices, and mediated ones in the variant default."""
    mediated = PermittedDevice("NVIDIA A10-24Q", "nvidia.com/A10-24Q", external=True)
    old = configuration(A10, gates=("HostDevices", "GPU", "Sidecar"), mediated=(mediated,), usb=("kubevirt.io/key",))
    gate, usb, mdev = migrate(old, cozystack()).left
    assert gate.startswith("the gate Sidecar: it is taken away")
    assert usb.startswith("the USB device kubevirt.io/key")
    assert mdev.startswith("mediatedDevices NVIDIA A10-24Q")
    vgpu = migrate(old, cozystack(), "vgpu")
    assert len(vgpu.left) == 2
    assert made_of(vgpu.values, "vgpu").permitted == PermittedHostDevices((A10,), (mediated,))


TABLE = [(entry["pciVendorSelector"], entry["resourceName"]) for entry in cozystack().pci_host_devices]
PAIRS = st.one_of(
    st.sampled_from(TABLE),
    st.tuples(
        st.sampled_from([selector for selector, _ in TABLE] + ["10DE:26BA", "1002:7408"]), st.sampled_from(["a/b", "nvidia.com/X"])
    ),
)
ENTRIES = st.builds(lambda pair, external: PermittedDevice(*pair, external=external), PAIRS, st.booleans())


@given(st.lists(ENTRIES, max_size=5))
def test_the_values_keep_every_entry(entries):
    """Each, with its provider, and the order of those that share a selector."""
    made = made_of(migrate(configuration(*entries), cozystack()).values).permitted.pci
    assert set(entries) <= set(made)
    for selector in {entry.selector for entry in entries}:
        own = [entry for entry in entries if entry.selector == selector]
        assert [entry for entry in made if entry.selector == selector] == own or set(own) <= {
            PermittedDevice(*pair, external=True) for pair in TABLE
        }


def test_the_command(tmp_path, capsys):
    """Prints values that can be read again, with what there is to say above them."""
    path = tmp_path / "kubevirt.yaml"
    entries = [
        {"pciVendorSelector": one.selector, "resourceName": one.resource, "externalResourceProvider": True} for one in (A10, L20)
    ]
    document = {"kind": "KubeVirt", "spec": {"configuration": {"permittedHostDevices": {"pciHostDevices": entries}}}}
    path.write_text(json.dumps(document))
    assert main(["passthrough", "migrate", "--kubevirt", str(path)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("# Of the platform's own table:\n#   10DE:2236 nvidia.com/GA102GL_A10\n# Taken away by the first")
    assert yaml.safe_load(printed) == {"gpu": {"permittedHostDevices": {"pciHostDevices": [entries[1]]}}}
    assert main(["passthrough", "migrate", "--kubevirt", str(path), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["replaced"] == [
        {"selector": "10DE:26BA", "resource": L20.resource, "external": True}
    ]
    document["spec"]["configuration"]["permittedHostDevices"]["pciHostDevices"] = [
        {"pciVendorSelector": "10DE:2236", "resourceName": "nvidia.com/MY_A10"}
    ]
    document["spec"]["configuration"]["developerConfiguration"] = {"featureGates": ["Sidecar"]}
    path.write_text(json.dumps(document))
    assert main(["passthrough", "migrate", "--kubevirt", str(path)]) == 1
    printed = capsys.readouterr().out
    assert (
        "10DE:2236 nvidia.com/MY_A10 (internal provider): the sandbox device plugin announces nvidia.com/GA102GL_A10; set ext"
        in printed
    )
    assert "# What no values can say:\n#   the gate Sidecar" in printed
    path.write_text("kind: KubeVirt\n")
    assert main(["passthrough", "migrate", "--kubevirt", str(path)]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == {}
