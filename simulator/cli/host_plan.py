"""What to remove from a host so that its GPUs are free for vfio-pci: the reviewed list, as commands.

The list has exact names, made of what is installed: never a pattern. It says what must stay and why (RDMA, the platform's
own packages, kernels), what comes back after a reboot if it is left, what to check before and after, and what the
description does not show. Nothing is run.

Example:
  dmsim host plan converged-gpu-rdma
  dmsim host plan my-host.yaml -o markdown > runbook.md
  dmsim hosts import / -o my-host.yaml && dmsim host plan my-host.yaml
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
from simulator.scenario import find, load_host, names, read_scenario
from simulator.snapshot.bundle import read_world_or_bundle


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "host", metavar="HOST", help="a named host, a host file, a world file, or a bundle that dmsim snapshot reads"
    )
    add_output(parser, "markdown", "json")


def run(options: argparse.Namespace) -> int:
    """Print it. Exits 0, also where nothing is to be removed."""
    made = plan(*_host(options.host))
    if options.output == "json":
        sys.stdout.write(json.dumps(report.document(made), indent=2) + "\n")
        return 0
    lines = report.markdown(made) if options.output == "markdown" else report.text(made)
    for line in "\n".join(lines).split("\n"):
        sys.stdout.write(printable(line) + "\n")
    return 0


def _host(reference: str) -> tuple[HostSpec, tuple[str, ...]]:
    """The host, and what of it could not be seen. Raises InputError."""
    if reference in names("hosts"):
        return load_host(reference), ()
    path = Path(reference)
    if not reference or path.suffix in {".yaml", ".yml", ".json"} or not path.exists():
        place = read_document(find(reference, "hosts", "host"))
        if place.has("host"):
            return read_scenario(place, path.parent).world.host, ()
        if not place.has("apiVersion"):
            return load_host(reference), ()
    bundle = read_world_or_bundle(path)
    return bundle.scenario.world.host, bundle.unseen
