"""What to remove from a host so that its GPUs are free for vfio-pci: the reviewed list, as commands.

The list has exact names, made of what is installed: never a pattern. It says what must stay and why (RDMA, the platform's
own packages, kernels), what comes back after a reboot if it is left, what to check before and after, and what the
description does not show. Nothing is run.

Example:
  dmsim host plan converged-gpu-rdma
  dmsim host plan my-host.yaml -o markdown > runbook.md
  dmsim hosts import --image my-node-image -o my-host.yaml && dmsim host plan my-host.yaml
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from simulator.cli.arguments import add_output
from simulator.host.spec import HostSpec
from simulator.node.plan import plan
from simulator.reading import printable, read_document
from simulator.report import host_plan as report
from simulator.scenario import find, load_host, read_scenario


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("host", metavar="NAME|FILE", help="a named host, a host file, or a world file: its host")
    add_output(parser, "markdown", "json")


def run(options: argparse.Namespace) -> int:
    """Print it. Exits 0, also where nothing is to be removed."""
    made = plan(_host(options.host))
    if options.output == "json":
        sys.stdout.write(json.dumps(report.document(made), indent=2) + "\n")
        return 0
    lines = report.markdown(made) if options.output == "markdown" else report.text(made)
    for line in "\n".join(lines).split("\n"):
        sys.stdout.write(printable(line) + "\n")
    return 0


def _host(reference: str) -> HostSpec:
    path: Path = find(reference, "hosts", "host")
    place = read_document(path)
    return read_scenario(place, path.parent).world.host if place.has("host") else load_host(reference)
