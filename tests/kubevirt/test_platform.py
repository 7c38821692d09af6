"""The platform's rendering: what no recording asks. The texts were held against Helm v3.20.0 and v4.2.3."""

from __future__ import annotations

import copy
import re

import pytest

from simulator.kubevirt.cozystack import cozystack, releases
from simulator.kubevirt.custom_resource import cluster_policy, kubevirt_configuration
from simulator.kubevirt.packages import GPU_OPERATOR, KUBEVIRT, Package, in_force, read_package
from simulator.kubevirt.platform import render
from simulator.kubevirt.template import RenderError, coalesced, to_int
from simulator.node.plugin.names import device_name, resource_name
from simulator.reading import InputError, Place
from simulator.recordings.plugin_observation import bundled

VALUES = {
    "bundles": {
        "system": {"enabled": True, "variant": "isp-full"},
        "iaas": {"enabled": True},
        "enabledPackages": [GPU_OPERATOR],
    }
}
OWN = {"pciVendorSelector": "10DE:26BA", "resourceName": "nvidia.com/AD102GL_L20", "externalResourceProvider": True}


def values(**changes):
    """The values with some set: `bundles__iaas__enabled=False`."""
    out = copy.deepcopy(VALUES)
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = out
        for name in parents:
            place = place.setdefault(name, {})
        place[last] = value
    return out


def kubevirt(**changes):
    return render(values(**changes))[KUBEVIRT].values("kubevirt")


def error(**changes):
    with pytest.raises(RenderError) as found:
        render(values(**changes))
    return found.value


def test_the_table_is_that_of_the_plugin():
    """Each of the 19 resources is what the device plugin calls that device, by its own pci.ids."""
    table = cozystack().pci_host_devices
    assert len(table) == 19
    assert releases() == ("v1.6.2",)
    for entry in table:
        vendor, device_id = entry["pciVendorSelector"].split(":")
        assert vendor == "10DE"
        assert entry["externalResourceProvider"] is True
        assert resource_name(device_name(bundled(), device_id.lower(), lambda _: None)) == entry["resourceName"]


def test_the_table_names_no_id_twice():
    """Neither an id nor a resource."""
    table = cozystack().pci_host_devices
    assert len({entry["pciVendorSelector"] for entry in table}) == len({entry["resourceName"] for entry in table}) == 19


def test_own_entries_follow_the_table_or_take_its_place():
    """And an empty list of one's own takes the whole block away."""
    table = list(cozystack().pci_host_devices)
    own = {"gpu__permittedHostDevices__pciHostDevices": [OWN]}
    assert kubevirt(**own)["permittedHostDevices"] == {"pciHostDevices": [*table, OWN]}
    assert kubevirt(**own, gpu__replaceDefaults=True)["permittedHostDevices"] == {"pciHostDevices": [OWN]}
    assert "permittedHostDevices" not in kubevirt(gpu__replaceDefaults=True)
    assert kubevirt(gpu__replaceDefaults=False)["permittedHostDevices"] == {"pciHostDevices": table}


def test_disabled_wins():
    """For the Package, and for what KubeVirt is told of GPUs."""
    packages = render(values(bundles__disabledPackages=[GPU_OPERATOR]))
    assert GPU_OPERATOR not in packages
    assert packages[KUBEVIRT].values("kubevirt") == {"cpuAllocationRatio": 10}


@pytest.mark.parametrize(
    ("manager", "kept"),
    [
        ({"repository": "r"}, True),
        ({"version": "1"}, True),
        ({"imagePullSecrets": ["s"]}, True),
        ({"image": "other"}, True),
        ({"image": ""}, True),
        ({"image": "vgpu-manager"}, False),
        ({"image": None}, False),
        ({"other": 5}, False),
    ],
)
def test_the_vgpu_manager_is_forwarded_if_anything_is_set(manager, kept):
    """Whole, with the defaults of the rest."""
    package = render(values(bundles__iaas__gpuOperatorVariant="vgpu", gpu__vgpuManager=manager))[GPU_OPERATOR]
    assert bool(package.components) is kept
    if kept:
        defaults = cozystack().values["gpu"]["vgpuManager"]
        assert package.values("gpu-operator")["gpu-operator"] == {"vgpuManager": {**defaults, **manager}}


@pytest.mark.parametrize(
    ("changes", "place", "problem"),
    [
        ({"gpu__permittedHostDevices__pciHostDevices": "x"}, "iaas.yaml:82:11", "error calling concat: Cannot concat type string as list"),
        ({"gpu__permittedHostDevices": ["x"]}, "iaas.yaml:50:41", "can't evaluate field pciHostDevices in type []interface {}"),
        ({"gpu": 5}, "iaas.yaml:50:41", "can't evaluate field permittedHostDevices in type float64"),
        ({"bundles__iaas__gpuOperatorVariant": True}, "iaas.yaml:33:16", "error calling eq: incompatible types for comparison: bool and string"),
        ({"bundles__system": None}, "system.yaml:1:14", "nil pointer evaluating interface {}.enabled"),
        ({"bundles__system": "x"}, "system.yaml:1:14", "can't evaluate field enabled in type interface {}"),
        ({"bundles__system__variant": 5}, "system.yaml:4:7", "error calling eq: incompatible types for comparison: float64 and string"),
        ({"authentication__oidc": None}, "system.yaml:109:14", "nil pointer evaluating interface {}.enabled"),
        ({"authentication__oidc__enabled": "x"}, "system.yaml:181:96", "wrong type for value; expected bool; got string"),
        ({"authentication__oidc__enabled": None}, "system.yaml:181:96", "wrong type for value; expected bool; got interface {}"),
        ({"publishing": None}, "system.yaml:145:23", "nil pointer evaluating interface {}.proxyProtocol"),
        ({"resources": None}, "iaas.yaml:6:14", "nil pointer evaluating interface {}.cpuAllocationRatio"),
        ({"resources": None, "bundles__iaas__enabled": False}, "apps.yaml:146:38", "nil pointer evaluating interface {}.cpuAllocationRatio"),
        ({"publishing": 5, "bundles__system__enabled": False}, "apps.yaml:6:24", "can't evaluate field host in type interface {}"),
        ({"bundles__paas": None}, "paas.yaml:1:18", "nil pointer evaluating interface {}.enabled"),
        ({"bundles__naas": 5}, "naas.yaml:1:18", "can't evaluate field enabled in type interface {}"),
    ],
)  # fmt: skip
def test_values_of_a_wrong_type(changes, place, problem):
    """Fail where the template meets them."""
    found = error(**changes)
    assert re.match(rf"template: cozy-platform/templates/(bundles/)?{re.escape(place)}: executing ", found.text)
    assert found.text.endswith(f">: {problem}")
    if problem.startswith("error calling"):
        assert found.helm_4 == found.text
    else:
        assert re.fullmatch(rf".*{re.escape(place)}\n  executing .*:\n    {re.escape(problem)}", found.helm_4)


@pytest.mark.parametrize(
    ("changes", "place", "problem"),
    [
        ({"gpu__permittedHostDevices__pciHostDevices": 5}, "98:11", "Cannot concat type float64 as list"),
        ({"gpu__permittedHostDevices__mediatedDevices": {"a": 1}}, "99:12", "Cannot concat type map as list"),
        ({"gpu__mediatedDevicesConfiguration": ["a"]}, "100:45", "expected map[string]interface {}; got []interface {}"),
        ({"gpu__vgpuManager": "x"}, "137:36", "expected map[string]interface {}; got string"),
        ({"gpu__vgpuManager__image": 5}, "137:55", "error calling ne: incompatible types for comparison: float64 and string"),
        ({"gpu__vgpuDeviceManager": "x"}, "93:48", "can't evaluate field enabled in type string"),
    ],
)
def test_values_of_a_wrong_type_in_the_vgpu_variant(changes, place, problem):
    """Fail where the template meets them, and in the other variant not at all, where that does not look."""
    found = error(bundles__iaas__gpuOperatorVariant="vgpu", **changes)
    assert f"iaas.yaml:{place}: " in found.text
    assert found.text.endswith(problem)
    if place != "98:11":
        assert GPU_OPERATOR in render(values(**changes))


@pytest.mark.parametrize(
    ("changes", "chain"),
    [
        ({}, ["system.yaml:25:2", "_helpers.tpl:10:12"]),
        ({"bundles__system__variant": "isp-hosted", "bundles__iaas__enabled": False}, ["system.yaml:32:2", "_helpers.tpl:10:12"]),
        ({"bundles__system__variant": "isp-full-generic"}, ["system.yaml:92:2", "_helpers.tpl:10:12"]),
        ({"bundles__system__variant": "distro-full"}, ["system.yaml:114:2", "_helpers.tpl:10:12"]),
        ({"bundles__system__variant": "distro-full", "authentication__oidc__enabled": True}, ["system.yaml:110:2", "_helpers.tpl:10:12"]),
        ({"bundles__system__enabled": False, "bundles__paas__enabled": True}, ["paas.yaml:5:2", "_helpers.tpl:30:4", "_helpers.tpl:10:12"]),
        ({"bundles__system__enabled": False, "bundles__naas__enabled": True}, ["naas.yaml:5:2", "_helpers.tpl:30:4", "_helpers.tpl:10:12"]),
        ({"bundles__system__enabled": False}, ["iaas.yaml:24:93"]),
        ({"bundles__system__enabled": False, "bundles__enabledPackages": None}, ["iaas.yaml:120:2", "_helpers.tpl:10:12"]),
    ],
)  # fmt: skip
def test_a_list_of_disabled_packages_that_is_none(changes, chain):
    """Fails at the first package that asks."""
    text = error(bundles__disabledPackages="x", **changes).text
    assert re.findall(r"template: cozy-platform/templates/(?:bundles/)?(\S+): executing", text) == chain
    assert text.endswith("error calling has: Cannot find has on type string")


@pytest.mark.parametrize("bundle", ["paas", "naas", "iaas"])
def test_a_bundle_that_the_system_does_not_carry(bundle):
    """Says which systems do."""
    found = error(**{f"bundles__{bundle}__enabled": True, "bundles__system__variant": "distro-full"})
    assert found.text == found.helm_4
    assert found.text.startswith(
        f"execution error at (cozy-platform/templates/bundles/{bundle}.yaml:2:4): bundles.{bundle}.enabled can"
    )


@pytest.mark.parametrize(("given", "ratio"), [(4, 4), (3.7, 3), ("7", 7), ("0x10", 16), ("x", 0), (["a"], 0), (True, 1)])
def test_the_cpu_ratio_is_made_whole(given, ratio):
    """And one of 0 is not in the CR."""
    package = render(values(resources__cpuAllocationRatio=given))[KUBEVIRT]
    assert to_int(given) == package.values("kubevirt")["cpuAllocationRatio"] == ratio
    found = kubevirt_configuration(package, cozystack())["developerConfiguration"]
    assert found.get("cpuAllocationRatio", 0) == ratio
    assert "cpuAllocationRatio" not in kubevirt(resources__cpuAllocationRatio=0)


def test_nulls_take_defaults_away():
    """At any depth; a null without a default stays."""
    assert coalesced({"a": None, "b": {"c": None}, "x": None}, {"a": 1, "b": {"c": 1, "d": 2}, "e": 3}) == {
        "b": {"d": 2},
        "x": None,
        "e": 3,
    }
    assert coalesced({"a": 1, "b": {"c": 1}}, {"a": {"b": 1}, "b": 2}) == {"a": 1, "b": {"c": 1}}


def test_a_hand_made_package_counts_whole():
    """Nothing of the rendered one is merged into it, and that both exist is told."""
    rendered = render(values()).values()
    own = Package(KUBEVIRT, components={"kubevirt": {"values": {"permittedHostDevices": {"pciHostDevices": [OWN]}}}})
    found = in_force(rendered, [own])
    assert found.contested == (KUBEVIRT,)
    assert found.packages[GPU_OPERATOR].variant == "default"
    configuration = kubevirt_configuration(found.packages[KUBEVIRT], cozystack())
    assert configuration["permittedHostDevices"] == {"pciHostDevices": [OWN]}
    assert "HostDevices" not in configuration["developerConfiguration"]["featureGates"]
    assert in_force(render(values(bundles__disabledPackages=[KUBEVIRT])).values(), [own]).contested == ()


def test_a_hand_made_package_of_the_gpu_operator():
    """May have the variant that the bundle refuses, and values that it does not forward."""
    own = Package(
        GPU_OPERATOR,
        "container",
        {"gpu-operator": {"values": {"gpu-operator": {"toolkit": {"enabled": True, "version": ""}, "driver": {"version": "1"}}}}},
    )
    policy = cluster_policy(own, cozystack())
    assert policy["sandboxWorkloads"] == {"enabled": False, "defaultWorkload": "container", "mode": "kubevirt"}
    assert policy["toolkit"]["enabled"] is True
    assert "version" not in policy["toolkit"]
    assert policy["toolkit"]["image"] == "container-toolkit"
    assert policy["driver"]["version"] == "1"
    assert policy["driver"]["enabled"] is False
    with pytest.raises(KeyError):
        cluster_policy(Package(GPU_OPERATOR, "passthrough"), cozystack())


def package(**changes):
    document = {"apiVersion": "cozystack.io/v1alpha1", "kind": "Package", "metadata": {"name": KUBEVIRT}, **changes}
    return read_package(Place(document, "package.yaml"))


def test_packages_are_read():
    """As people write them."""
    components = {"kubevirt": {"values": {"extraFeatureGates": ["HostDevices"]}}}
    assert package(spec={"variant": "default", "components": components}) == Package(KUBEVIRT, "default", components)
    assert package() == package(spec={}) == Package(KUBEVIRT)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"apiVersion": "v1"}, r'package\.yaml: apiVersion is "v1"; write cozystack\.io/v1alpha1'),
        ({"kind": "Pod"}, 'kind is "Pod"'),
        ({"metadata": {}}, 'lacks the key "name"'),
        ({"spec": {"values": {}}}, r"spec\.values is not looked at; write it below spec\.components\.NAME\.values"),
        ({"spec": {"components": {"kubevirt": {"values": 5}}}}, r"kubevirt\.values is the number 5"),
        ({"spec": {"components": {"kubevirt": 5}}}, r"components\.kubevirt is the number 5"),
        ({"spec": {"variant": 5}}, r"spec\.variant is the number 5"),
    ],
)
def test_a_package_of_another_form(changes, problem):
    """Is one error."""
    with pytest.raises(InputError, match=problem):
        package(**changes)
