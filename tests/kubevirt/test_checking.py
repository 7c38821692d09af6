"""Planted faults: each file of `passthrough/` has one, or none, and the check finds it and no other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simulator.cli.main import main
from simulator.host.spec import File, HostSpec, PciFunction
from simulator.kubevirt.checking import Passthrough, check
from simulator.kubevirt.configuration import Configuration, PermittedDevice, PermittedHostDevices
from simulator.kubevirt.cozystack import cozystack
from simulator.kubevirt.devices import NodeDevices, start_plugin
from simulator.kubevirt.findings import KINDS
from simulator.kubevirt.virtual_machine import VirtualMachine
from simulator.reading import read_document

CASES = sorted((Path(__file__).parent / "passthrough").glob("*.yaml"))
FILES = {"values": "--values", "kubevirt": "--kubevirt", "lspci": "--lspci", "pci_ids": "--pci-ids", "vms": "--vm"}


def arguments(case, folder):
    """The case's files, written, and how they are named to the program."""
    out = ["passthrough", "check"]
    for key, option in FILES.items():
        if key in case:
            path = folder / f"{key}.yaml"
            path.write_text(case[key])
            out += [option, str(path)]
    return out


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_the_planted_fault_and_no_other(path, tmp_path, capsys):
    """And, where the case says so, in the words of the program that says it."""
    case = read_document(path).value
    code = main([*arguments(case, tmp_path), "-o", "json"])
    document = json.loads(capsys.readouterr().out)
    found = [finding["kind"] for finding in document["findings"]]
    assert found == case["finds"], json.dumps(document["findings"], indent=1)
    assert code == (1 if found else 0)
    if "says" in case:
        assert main(arguments(case, tmp_path)) == 1
        assert f"  says: {case['says']}\n" in capsys.readouterr().out


def test_there_are_enough_of_them():
    """Made up, and shaped like field reports; together they have every kind of finding that a file can plant."""
    reports = [path for path in CASES if path.stem.startswith("report-")]
    assert len(reports) >= 5
    assert len(CASES) - len(reports) >= 10
    planted = {kind for path in CASES for kind in read_document(path).value["finds"]}
    assert set(KINDS) - planted == {"nothing-announced", "vm-no-address"}


VALUES = """\
bundles:
  system: {enabled: true, variant: isp-full}
  iaas: {enabled: true}
  enabledPackages: [cozystack.gpu-operator]
"""
A10 = "3b:00.0 3D controller [0302]: NVIDIA Corporation GA102GL [A10] [10de:2236] (rev a1)\n"
VM = """\
apiVersion: apps.cozystack.io/v1alpha1
kind: VMInstance
metadata: {name: gpu}
spec: {gpus: [{name: nvidia.com/GA102GL_A10}]}
"""
HAND_MADE = """\
---
apiVersion: cozystack.io/v1alpha1
kind: Package
metadata: {name: cozystack.kubevirt}
spec: {components: {kubevirt: {values: %s}}}
"""
TOLD = '{extraFeatureGates: [HostDevices], permittedHostDevices: {pciHostDevices: [{pciVendorSelector: "10DE:2236", resourceName: nvidia.com/GA102GL_A10, externalResourceProvider: true}]}}'


def run(capsys, folder, *more, **files):
    """The findings of a check of these files."""
    code = main([*arguments(files, folder), *more, "-o", "json"])
    printed = capsys.readouterr()
    assert code in {0, 1}, printed.err
    return json.loads(printed.out)


def kinds(document):
    return [finding["kind"] for finding in document["findings"]]


def test_a_host_of_the_models_own(tmp_path, capsys):
    """The operator's pods are started on it; where a driver of its own is in the way, nothing is announced, and that is why."""
    document = run(capsys, tmp_path, "--host", "clean", values=VALUES, vms=VM)
    assert document["resources"] == [
        {
            "name": "nvidia.com/GA102GL_A10",
            "announced": 2,
            "devices": ["0000:18:00.0", "0000:3b:00.0"],
            "permitted_by": ["10DE:2236"],
            "asked_by": [{"vm": "default/vm-instance-gpu", "count": 1}],
        }
    ]
    assert kinds(document) == []
    document = run(capsys, tmp_path, "--host", "ubuntu-24.04-driver-580-open", values=VALUES, vms=VM)
    assert kinds(document) == ["nothing-announced"]
    (finding,) = document["findings"]
    assert "driver is pre-installed on host" in finding["what"]
    assert [said["component"] for said in finding["said"]] == ["kube-scheduler"]


def test_without_a_node(tmp_path, capsys):
    """Nobody knows what is announced, and only KubeVirt is asked."""
    document = run(capsys, tmp_path, values=VALUES, vms=VM)
    assert kinds(document) == []
    assert document["resources"][0]["announced"] is None
    assert kinds(run(capsys, tmp_path, values=VALUES, vms=VM.replace("_A10", "_a10"))) == ["vm-spelling"]


def test_a_second_node_is_enough(tmp_path, capsys):
    """One card in each of two nodes: neither has two."""
    (tmp_path / "other.txt").write_text(A10)
    two = VM.replace("]}", ", {name: nvidia.com/GA102GL_A10}]}")
    document = run(capsys, tmp_path, "--lspci", str(tmp_path / "other.txt"), values=VALUES, lspci=A10, vms=two)
    assert document["resources"][0]["announced"] == 2
    assert kinds(document) == ["vm-too-many"]
    assert "no node has more than 1" in document["findings"][0]["what"]


def test_what_is_assumed_is_said(tmp_path, capsys):
    """Of bundles, of drivers, of groups."""
    document = run(capsys, tmp_path, values="gpu: {}\n", lspci=A10, vms=VM)
    assert kinds(document) == []
    first, second, third = document["assumed"]
    assert first.startswith("bundles.system and bundles.iaas are enabled")
    assert second.endswith("lspci was run without -k")
    assert third.endswith("lspci was run without -v")


@pytest.mark.parametrize(
    ("packages", "found"),
    [
        (HAND_MADE % TOLD, []),
        (HAND_MADE % "{}", ["gpu-operator-off"]),
        (HAND_MADE % TOLD.replace("HostDevices]", "Other]"), ["gpu-operator-off"]),
    ],
)
def test_a_hand_made_package_counts_whole(tmp_path, capsys, packages, found):
    """The platform's table is none of its."""
    assert kinds(run(capsys, tmp_path, values=VALUES + packages, lspci=A10, vms=VM)) == found


def test_forms(tmp_path, capsys):
    """Text and Markdown say the same."""
    files = arguments({"values": VALUES, "lspci": A10, "vms": VM.replace("_A10", "_a10")}, tmp_path)
    assert main(files) == 1
    text = capsys.readouterr().out
    assert text.startswith("RESOURCE                NODE ANNOUNCES    KUBEVIRT PERMITS  VM ASKS\n")
    assert "\n1 mismatch\n\nvm-spelling: VirtualMachine default/vm-instance-gpu\n  what: it asks for nvidia.com/GA102GL_a10" in text
    assert main([*files, "-o", "markdown"]) == 1
    markdown = capsys.readouterr().out
    assert markdown.startswith("**1 mismatch**\n\n| RESOURCE | NODE ANNOUNCES |")
    assert "| `nvidia.com/GA102GL_A10` | `1 (0000:3b:00.0)` | `10DE:2236` | `-` |" in markdown
    assert "  - mend: `ask for nvidia.com/GA102GL_A10`" in markdown


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({}, "neither --values nor --kubevirt is given"),
        ({"values": "- a\n"}, "holds a list where a mapping belongs"),
        ({"values": "\n"}, "is empty"),
        ({"values": "kind: Secret\n"}, 'kind is "Secret"; write "Package"'),
        ({"values": "a: 1\n---\nb: 1\n"}, "holds the platform's values twice"),
        (
            {"values": "gpu: {permittedHostDevices: {pciHostDevices: [{pciVendorSelector: 10DE}]}}\n"},
            'lacks the key "resourceName"',
        ),
        (
            {"values": "gpu: {permittedHostDevices: {pciHostDevices: [{pciVendorSelector: 5, resourceName: a/b}]}}\n"},
            "is the number 5, not text",
        ),
        ({"kubevirt": "kind: Secret\n"}, 'kind is "Secret"; write "KubeVirt"'),
        ({"values": VALUES, "lspci": "3b:00.0 3D controller: NVIDIA\n"}, 'line 1 says nothing of the ids of "3b:00.0"'),
        ({"values": VALUES, "lspci": "hello\n"}, "line 1 is no line of lspci"),
        ({"values": VALUES, "lspci": "\tKernel driver in use: a\n"}, "belongs to no PCI function"),
        ({"values": VALUES, "lspci": "\n"}, "lists no PCI function"),
        ({"values": VALUES, "lspci": A10 * 2}, "lists 0000:3b:00.0 twice"),
        ({"values": VALUES, "lspci": A10, "pci_ids": "x\n"}, "has no device of vendor 10de"),
        ({"values": VALUES, "vms": "kind: Pod\napiVersion: v1\n"}, "holds no VM"),
    ],
)
def test_bad_input(tmp_path, capsys, files, problem):
    """Is one message, and exit code 2."""
    assert main(arguments(files, tmp_path)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert problem in printed.err
    assert printed.err.count("\n") == 1


def test_verbose_lspci(tmp_path, capsys):
    """With a domain, groups and other vendors' functions."""
    listing = """\
0000:3a:00.0 PCI bridge [0604]: Intel Corporation Sky Lake-E [8086:2030] (rev 04) (prog-if 00 [Normal decode])
\tFlags: bus master, fast devsel, latency 0, IRQ 30, NUMA node 0, IOMMU group 27
\tKernel driver in use: pcieport

0000:3b:00.0 3D controller [0302]: NVIDIA Corporation GA102GL [A10] [10de:2236] (rev a1)
\tSubsystem: NVIDIA Corporation GA102GL [A10] [10de:1482]
\tIOMMU group: 27
\tKernel driver in use: vfio-pci
\tKernel modules: nvidiafb, nouveau
0000:3c:00.0 Ethernet controller [0200]: Intel Corporation I350 [8086:1521] (rev 01)
\tIOMMU group: 27
\tKernel driver in use: igb
"""
    document = run(capsys, tmp_path, values=VALUES, lspci=listing, vms=VM)
    assert document["assumed"] == []
    assert kinds(document) == ["group-not-viable"]
    assert "IOMMU group 27 also holds 0000:3c:00.0 (igb)" in document["findings"][0]["what"]


def test_one_mismatch_a_cause(tmp_path, capsys):
    """Several VMs that fail by one cause are one finding, each with what it is told."""
    vms = (VM + "---\n" + VM.replace("gpu}", "other}")).replace("GA102GL_A10", "GB202GL_RTX_PRO_6000")
    (finding,) = run(capsys, tmp_path, values=VALUES, lspci=A10.replace("2236", "2bb9"), vms=vms)["findings"]
    assert finding["kind"] == "unknown-id"
    stopped = [said["on"] for said in finding["said"]]
    assert stopped == ["VirtualMachineInstance default/vm-instance-gpu", "VirtualMachineInstance default/vm-instance-other"]


def checked(node, *mediated, asks=()):
    """The findings of one node, by what is permitted of mediated devices."""
    permitted = Configuration(
        permitted=PermittedHostDevices((PermittedDevice("10DE:26BA", "nvidia.com/AD102GL_L20", external=True),), mediated)
    )
    vms = (VirtualMachine("gpu", gpus=asks),) if asks else ()
    return [
        (finding.kind, finding.resources, len(finding.said))
        for finding in check(Passthrough(cozystack(), None, permitted, None, (node,), vms)).findings
    ]


def test_types_of_mediated_devices():
    """Are held against the list of their own, by the type's name with blanks as underscores."""
    below = "/sys/devices/pci0000:3a/0000:3b:00.0/uuid"
    host = HostSpec(
        "gpu-1",
        pci=(PciFunction("0000:3b:00.0", "0x10de", "0x26ba", "0x088000", "nvidia"),),
        files=(File(f"{below}/mdev_type/name", "NVIDIA A10-24Q\n"),),
        links={"/sys/bus/mdev/devices/uuid": "../../../devices/pci0000:3a/0000:3b:00.0/uuid"},
    )
    node, name, other = start_plugin(host, "v1.5.0"), "nvidia.com/NVIDIA_A10-24Q", "nvidia.com/A10-24Q"
    assert checked(node) == [("not-permitted", (name,), 0)]
    assert checked(node, PermittedDevice("NVIDIA A10-24Q", name, external=True), asks=(name,)) == []
    assert checked(node, PermittedDevice("NVIDIA A10-24Q", other, external=True), asks=(other,)) == [
        ("name-differs", (name, other), 1)
    ]


def test_a_resource_of_a_plugin_for_containers():
    """Is announced, may be permitted, and has no address."""
    node = NodeDevices("gpu-1", others={"nvidia.com/gpu": 1})
    permitted = Configuration(permitted=PermittedHostDevices((PermittedDevice("10DE:2236", "nvidia.com/gpu", external=True),)))
    given = Passthrough(cozystack(), None, permitted, None, (node,), (VirtualMachine("gpu", gpus=("nvidia.com/gpu",)),))
    assert [finding.kind for finding in check(given).findings] == ["vm-no-address"]


@pytest.mark.parametrize(
    ("values", "mend"),
    [
        (VALUES.replace("iaas: {enabled: true}", "iaas: {enabled: false}"), "set bundles.system.enabled and bundles.iaas.enabled"),
        (VALUES.replace("cozystack.gpu-operator", "cozystack.hami"), "add cozystack.gpu-operator to bundles.enabledPackages"),
        (HAND_MADE % TOLD, "add cozystack.gpu-operator to bundles.enabledPackages"),
        ((HAND_MADE % "{}").replace("cozystack.kubevirt", "cozystack.gpu-operator"), "make a Package cozystack.kubevirt too"),
    ],
)
def test_what_is_not_switched_on(tmp_path, capsys, values, mend):
    """Is one finding, whatever follows from it."""
    (finding,) = run(capsys, tmp_path, values=values, lspci=A10, vms=VM)["findings"]
    assert finding["kind"] == "gpu-operator-off"
    assert finding["mend"].startswith(mend)


CR = """kind: KubeVirt
spec:
  configuration:
    developerConfiguration: {featureGates: [HotplugVolumes, ExpandDisks, LiveMigration, AutoResourceLimitsGate, CPUManager, GPU, VMExport%s]}
"""


def test_a_cr_that_lacks_what_the_values_make(tmp_path, capsys):
    """The table, the gate: nothing is lost, and what is to come is said."""
    document = run(capsys, tmp_path, values=VALUES, kubevirt=CR % "", lspci=A10, vms=VM)
    assert kinds(document) == ["cr-differs", "no-permitted-block"]
    what = document["findings"][0]["what"]
    assert what.startswith("the next upgrade of the release kubevirt brings 10DE:2335 nvidia.com/GH100_H200_SXM_141GB, ")
    assert what.endswith(", the gate HostDevices")
    assert document["findings"][0]["mend"] == "wait until Flux has reconciled the release"


def test_an_empty_block_that_no_values_make(tmp_path, capsys):
    """Is a difference too, though there is no entry in it."""
    empty = CR % ", HostDevices" + "    permittedHostDevices: {}\n"
    document = run(capsys, tmp_path, values=VALUES + "gpu: {replaceDefaults: true}\n", kubevirt=empty, lspci=A10, vms=VM)
    assert kinds(document) == ["cr-differs", "empty-permitted-block"]
    assert "takes away permittedHostDevices" in document["findings"][0]["what"]
    same = CR % ", HostDevices"
    assert kinds(run(capsys, tmp_path, values=VALUES + "gpu: {replaceDefaults: true}\n", kubevirt=same, lspci=A10)) == [
        "no-permitted-block"
    ]


def test_a_verdict_in_a_line(tmp_path, capsys):
    """Of none, and of several."""
    files = arguments({"values": VALUES, "lspci": A10, "vms": VM}, tmp_path)
    assert main(files) == 0
    assert "\nno mismatch\n" in capsys.readouterr().out
    both = VM.replace("_A10", "_a10") + "---\n" + VM.replace("nvidia.com/GA102GL_A10", "nvidia.com/mig-1g.5gb")
    assert main(arguments({"values": VALUES, "lspci": A10, "vms": both}, tmp_path)) == 1
    assert "\n2 mismatches\n" in capsys.readouterr().out


def test_a_host_in_the_vgpu_variant_is_not_modelled(tmp_path, capsys):
    """What lspci prints of a node is read in either."""
    vgpu = VALUES.replace("iaas: {enabled: true}", "iaas: {enabled: true, gpuOperatorVariant: vgpu}")
    files = arguments({"values": vgpu}, tmp_path)
    assert main([*files, "--host", "clean"]) == 2
    assert "the variant vgpu, and what a host announces then is not modelled" in capsys.readouterr().err
    assert kinds(run(capsys, tmp_path, values=vgpu, lspci=A10)) == ["no-permitted-block"]
    assert main([*arguments({"values": "bundles: 5\n"}, tmp_path), "--host", "clean"]) == 1
    assert "helm-refuses" in capsys.readouterr().out
