"""One run of a release against a host and a cluster: upstream's log as `kubectl logs` shows it, then what changed.

Example:
  dmsim run --host ubuntu-24.04-driver-580-open --release v0.10.0 --env NODE_NAME=gpu-1 --env FORCE_REINSTALL=true
  dmsim run --world stuck-node.yaml -o json
  dmsim run --host-image my-node-image:latest
"""

from __future__ import annotations

import argparse
import json
import sys

from simulator.cli import colour
from simulator.cli.arguments import add_output, add_world, choose_world, read_start
from simulator.report.document import outcome_document
from simulator.report.text import log_text, summary
from simulator.runners.simulated import START, simulate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_world(parser)
    parser.add_argument(
        "--start", metavar="DATE", default=None, help=f"when the program starts (default {START:%Y-%m-%dT%H:%M:%SZ})"
    )
    parser.add_argument("--exit-code", action="store_true", help="exit with the program's exit code")
    add_output(parser, "json")


def run(options: argparse.Namespace) -> int:
    """Run it. Exits 0 if the simulation worked, whatever the program did."""
    start = read_start(options.start) if options.start is not None else START
    chosen = choose_world(options)
    outcome = simulate(chosen.world, chosen.release, what_if=chosen.what_if, start=start)
    if options.output == "json":
        sys.stdout.write(json.dumps(outcome_document(outcome), indent=2) + "\n")
    else:
        sys.stdout.write(log_text(outcome, start))
        colour.write(summary(outcome), colour.CHANGES, options)
    if not options.exit_code:
        return 0
    code = outcome.exit_code
    return 1 if code is None else code if code >= 0 else 128 - code
