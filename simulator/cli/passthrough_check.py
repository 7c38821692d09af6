"""Three names of a card that have to be one: the node's, KubeVirt's, the VM's; and each mismatch with its mend.

FILEs of values are those of Cozystack's platform, bare or in its Package, with hand-made Packages beside them. A node is
described as a host (the GPU Operator's pods are started on it), or by what `lspci -nnk` prints there. Without --kubevirt the
CR is what the values make. VMs are manifests of KubeVirt or of Cozystack. Exits 1 on a mismatch.

Example:
  dmsim passthrough check --values values.yaml --lspci node.txt --vm vm.yaml
  dmsim passthrough check --values values.yaml --host clean -o markdown
  dmsim passthrough check --kubevirt kubevirt.yaml --lspci node.txt --pci-ids pci.ids --vm a.yaml b.yaml
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

from simulator.cli import colour
from simulator.cli.arguments import add_output
from simulator.host.spec import HostSpec
from simulator.kubevirt.checking import Passthrough, check
from simulator.kubevirt.configuration import Configuration, read_kubevirt
from simulator.kubevirt.cozystack import cozystack
from simulator.kubevirt.devices import NodeDevices, start_plugin
from simulator.kubevirt.hosts import CHART, node_of_host
from simulator.kubevirt.lspci import read_lspci
from simulator.kubevirt.values import PlatformValues, read_values
from simulator.kubevirt.virtual_machine import read_virtual_machines
from simulator.node.plugin.names import VENDOR, devices
from simulator.node.plugin.releases import plugin_release
from simulator.reading import InputError, Place, printable, read_bytes, read_document
from simulator.report.passthrough import checked_document, checked_lines, checked_markdown
from simulator.scenario import load_host

_ON: Final = {
    "system": {"enabled": True, "variant": "isp-full"},
    "iaas": {"enabled": True},
    "enabledPackages": ["cozystack.gpu-operator"],
}
"""The bundles that are taken to be set where the values say nothing of bundles."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--values", metavar="FILE", help="values of Cozystack's platform, or its Package")
    parser.add_argument("--kubevirt", metavar="FILE", help="the KubeVirt CR as it stands in the cluster")
    parser.add_argument("--host", metavar="NAME|FILE", action="append", default=[], help="a node: a named host, or a host file")
    parser.add_argument("--lspci", metavar="FILE", action="append", default=[], help="a node: what `lspci -nnk` prints on it")
    parser.add_argument("--pci-ids", metavar="FILE", help="the device plugin's pci.ids (default: its own)")
    parser.add_argument("--vm", metavar="FILE", nargs="+", action="extend", default=[], help="manifests of VMs")
    add_output(parser, "json", "markdown")


def run(options: argparse.Namespace) -> int:
    """Print the check. Exits 1 on a mismatch."""
    checked = check(_given(options))
    if options.output == "json":
        sys.stdout.write(json.dumps(checked_document(checked), indent=2) + "\n")
    elif options.output == "markdown":
        sys.stdout.writelines(f"{printable(line)}\n" for line in checked_markdown(checked))
    else:
        colour.write(map(printable, checked_lines(checked)), colour.CHECKED, options)
    return 1 if checked.findings else 0


def _given(options: argparse.Namespace) -> Passthrough:
    """What the arguments name. Raises InputError."""
    if options.values is None and options.kubevirt is None:
        raise InputError("", "", "neither --values nor --kubevirt is given", "name a file of the platform's values")
    assumed: list[str] = []
    platform = _values(options.values, assumed) if options.values is not None else None
    configuration, block = _kubevirt(options.kubevirt) if options.kubevirt is not None else (None, None)
    if options.host and platform is not None and _is_vgpu(platform.place.value):
        problem = "the values are of the variant vgpu, and what a host announces then is not modelled"
        raise InputError(platform.place.file, "", problem, "say what the node has with --lspci")
    pci_ids = _pci_ids(options.pci_ids) if options.pci_ids is not None else None
    nodes = [node_of_host(load_host(name), pci_ids) for name in options.host]
    nodes += [_listed_node(Path(name), pci_ids, assumed) for name in options.lspci]
    vms = [vm for name in options.vm for vm in read_virtual_machines(Path(name))]
    return Passthrough(cozystack(), platform, configuration, block, tuple(nodes), tuple(vms), tuple(dict.fromkeys(assumed)))


def _values(name: str, assumed: list[str]) -> PlatformValues:
    platform = read_values(Path(name))
    if "bundles" in platform.place.value or platform.hand_made:
        return platform
    assumed.append("bundles.system and bundles.iaas are enabled, and so is the GPU Operator: the values say nothing of bundles")
    return PlatformValues(Place({**platform.place.value, "bundles": _ON}, platform.place.file, platform.place.path))


def _is_vgpu(values: Any) -> bool:
    """Is it that variant? Of values that may be of any form yet."""
    for key in ("bundles", "iaas", "gpuOperatorVariant"):
        values = values.get(key) if isinstance(values, dict) else None
    return bool(values == "vgpu")


def _kubevirt(name: str) -> tuple[Configuration, Place | None]:
    document = read_document(Path(name))
    configuration = read_kubevirt(document)
    place: Place | None = document
    for key in ("spec", "configuration", "permittedHostDevices"):
        place = place.get(key) if place is not None else None
    return configuration, place


def _pci_ids(name: str) -> str:
    text = read_bytes(Path(name)).decode("utf-8", "surrogateescape")
    if not any(True for _ in devices(text)):
        raise InputError(name, "", f"has no device of vendor {VENDOR}", "name a pci.ids file")
    return text


def _listed_node(path: Path, pci_ids: str | None, assumed: list[str]) -> NodeDevices:
    listing = read_lspci(path)
    assumed += [f"{path}: {text}" for text in listing.assumed]
    return start_plugin(HostSpec(path.name, pci=listing.functions), plugin_release(CHART), pci_ids)
