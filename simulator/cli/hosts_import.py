"""A host file from a container image, a root directory or a tar archive: what the host check would find there.

An image is exported, not run; a directory or an archive is only looked at. What no file can tell (GPUs, what a longer script
prints) is assumed; the assumptions stand at the top of the host file.

Example:
  dmsim hosts import my-node-image:latest -o host.yaml
  dmsim hosts import /mnt/root -o host.yaml; dmsim hosts host.yaml
"""

from __future__ import annotations

import argparse
import sys

from simulator.importing.sources import import_named
from simulator.writing import host_document, write_file, yaml_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "reference",
        metavar="REF|DIR|FILE.tar",
        help="a container image that the engine has, a root directory, or an archive of one",
    )
    parser.add_argument("-o", "--output", metavar="FILE", default=None, help="write the host file here (default: print it)")


def run(options: argparse.Namespace) -> int:
    """Write it."""
    imported = import_named(options.reference)
    text = yaml_text(host_document(imported.host), imported.comments)
    if options.output is None:
        sys.stdout.write(text)
    else:
        write_file(options.output, text)
    return 0
