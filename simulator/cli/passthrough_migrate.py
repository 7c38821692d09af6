"""The values that keep what a KubeVirt CR permits, when Cozystack's platform begins to write that CR itself.

Prints them as YAML, with what the platform's own table covers already, what the first reconciliation takes away without
them, names that nodes announce otherwise, and what no values can say. Exits 1 if there is anything of the last kind.

Example:
  kubectl -n cozy-kubevirt get kubevirt kubevirt -o yaml > kubevirt.yaml
  dmsim passthrough migrate --kubevirt kubevirt.yaml
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from simulator.cli.arguments import add_output
from simulator.kubevirt.configuration import read_kubevirt
from simulator.kubevirt.cozystack import cozystack
from simulator.kubevirt.migrating import VARIANTS, migrate
from simulator.reading import printable, read_document
from simulator.report.passthrough import migration_document, migration_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--kubevirt", metavar="FILE", required=True, help="the KubeVirt CR as it stands in the cluster")
    parser.add_argument(
        "--variant", choices=VARIANTS, default=VARIANTS[0], help="bundles.iaas.gpuOperatorVariant (default default)"
    )
    add_output(parser, "json")


def run(options: argparse.Namespace) -> int:
    """Print the values. Exits 1 if they cannot say everything."""
    migration = migrate(read_kubevirt(read_document(Path(options.kubevirt))), cozystack(), options.variant)
    if options.output == "json":
        text = json.dumps(migration_document(migration), indent=2)
    else:
        text = "\n".join(map(printable, migration_lines(migration)))
    sys.stdout.write(text + "\n")
    return 1 if migration.left else 0
