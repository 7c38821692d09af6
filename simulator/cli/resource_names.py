"""What the sandbox device plugin calls each NVIDIA device of a pci.ids file: id, name, resource, separated by tabs.

The names are those of the file, not of the machine: the plugin's image brings its own, and without --pci-ids that one is
read (2025.07.11, in v1.4.0 to v1.6.0). A device that the file does not know is called by its id: nvidia.com/2bb9. Two
devices of one name are a problem: the kubelet counts only those of the one that registered last; --shared shows them.

Example:
  dmsim resource-names
  dmsim resource-names --pci-ids /usr/share/misc/pci.ids --shared
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Final

from simulator.cli.arguments import add_output
from simulator.node.plugin.names import VENDOR, device_name, devices, resource_name
from simulator.reading import InputError, printable, read_bytes
from simulator.scenario import fixtures

FORMAT: Final = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--pci-ids", metavar="FILE", help="a pci.ids file (default: the plugin's own)")
    parser.add_argument("--shared", action="store_true", help="only devices whose resource another one has too")
    add_output(parser, "json")


def run(options: argparse.Namespace) -> int:
    """Print them."""
    path = Path(options.pci_ids) if options.pci_ids is not None else fixtures() / "pci.ids"
    text = read_bytes(path).decode("utf-8", "surrogateescape")
    rows = [(device_id, name, resource_name(_device_name(text, device_id))) for device_id, name in devices(text)]
    if not rows:
        raise InputError(str(path), "", f"has no device of vendor {VENDOR}", "name a pci.ids file")
    if options.shared:
        times = Counter(resource for _, _, resource in rows)
        rows = sorted((row for row in rows if times[row[2]] > 1), key=lambda row: (row[2], row[0]))
    if options.output == "json":
        found = [{"id": device_id, "name": printable(name), "resource": resource} for device_id, name, resource in rows]
        lines = json.dumps({"format": FORMAT, "devices": found}, indent=2) + "\n"
    else:
        lines = "".join("\t".join(map(printable, row)) + "\n" for row in rows)
    sys.stdout.write(lines)
    return 0


def _device_name(text: str, device_id: str) -> str:
    return device_name(text, device_id, lambda _: None) or device_id
