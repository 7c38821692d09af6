"""What happened on a node, what is left over, and the exact commands that mend it. Nothing is ever executed.

Reads a world file, or a bundle: a folder or archive of saved `kubectl get ... -o yaml`, or of a must-gather. What happened is
told by driver-manager's logs, if the bundle has any. Exits 1 if something was found.

Example:
  dmsim diagnose stuck-node.yaml
  dmsim diagnose must-gather.tar.gz --chart v26.3.2 -o markdown
  dmsim diagnose stuck-node.yaml -o json
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from simulator.cli import colour
from simulator.cli.arguments import add_chart, add_output, add_release, release_of
from simulator.diagnosing.findings import diagnose, judged_for
from simulator.explaining.explanation import explain
from simulator.manager.releases import DEFAULT
from simulator.predicting.modes import WORKLOADS, Mode, mode_of
from simulator.reading import printable
from simulator.report.diagnosis import Diagnosis, diagnosis_document, diagnosis_lines, diagnosis_markdown
from simulator.snapshot.bundle import read_world_or_bundle


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "path", metavar="WORLD|BUNDLE", help="a world file; or a folder, archive or file of what was saved of a node"
    )
    parser.add_argument("--node", metavar="NAME", default="", help="which node, where a bundle has several")
    add_release(parser, default=None, otherwise=f"the world's own, else {DEFAULT}")
    add_chart(parser)
    add_output(parser, "json", "markdown")


def run(options: argparse.Namespace) -> int:
    """Print the findings. Exits 1 if there are any."""
    bundle = read_world_or_bundle(Path(options.path), node=options.node)
    node = bundle.scenario.world.cluster.node
    mode = mode_of(node.labels if node else {})
    daemonset = WORKLOADS[mode].daemonset
    release = release_of(options, judged_for(bundle), daemonset)
    happened = {name: explain(text, daemonset="" if mode == Mode.CONTAINER else daemonset) for name, text in bundle.logs.items()}
    diagnosis = Diagnosis(bundle, release, diagnose(bundle, release), happened)
    if options.output == "json":
        sys.stdout.write(json.dumps(diagnosis_document(diagnosis), indent=2) + "\n")
    elif options.output == "markdown":
        sys.stdout.writelines(f"{printable(line)}\n" for line in diagnosis_markdown(diagnosis).splitlines())
    else:
        colour.write(map(printable, diagnosis_lines(diagnosis)), colour.DIAGNOSIS, options)
    return 1 if diagnosis.findings else 0
