"""Named clusters: list them, or show the node, its labels and the names of its pods of one.

Example:
  dmsim clusters
  dmsim clusters container-node
  dmsim clusters clusters/ours.yaml -o json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Any

from simulator.cli.arguments import add_output
from simulator.reading import printable
from simulator.report.clusters import details, details_document, listing, listing_document
from simulator.scenario import load_cluster, names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("cluster", metavar="NAME|FILE", nargs="?", help="a named cluster, or a cluster file: show this one")
    add_output(parser, "json")


def run(options: argparse.Namespace) -> int:
    """Print it. Raises InputError."""
    if options.cluster is None:
        clusters = [load_cluster(name) for name in names("clusters")]
        _print(options, listing(clusters), listing_document(clusters))
    else:
        cluster = load_cluster(options.cluster)
        _print(options, details(cluster), details_document(cluster))
    return 0


def _print(options: argparse.Namespace, lines: Iterable[str], document: dict[str, Any]) -> None:
    if options.output == "json":
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return
    sys.stdout.writelines(f"{printable(line)}\n" for line in lines)
