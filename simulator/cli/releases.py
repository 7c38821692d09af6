"""The supported releases: dates, GPU Operator charts, named changes, quirks; or one release as it resolves.

Example:
  dmsim releases
  dmsim releases --flow v0.12.0
  dmsim releases -o json
"""

from __future__ import annotations

import argparse
import json
import sys

from simulator.cli.arguments import add_output
from simulator.naming import check_release
from simulator.reading import InputError
from simulator.report.release_page import flow_document, flow_lines, page, release_lines, releases_document


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--flow", metavar="R", help="every step of this release, and the named change that it comes from")
    add_output(parser, "json", "markdown")


def run(options: argparse.Namespace) -> int:
    """Print. Always exits 0."""
    if options.flow is not None:
        tag = check_release(options.flow)
        if options.output == "markdown":
            raise InputError("", "", "--flow has no Markdown", "leave -o out, or write -o json")
        if options.output == "json":
            sys.stdout.write(json.dumps(flow_document(tag), indent=2) + "\n")
        else:
            sys.stdout.writelines(f"{line}\n" for line in flow_lines(tag))
    elif options.output == "json":
        sys.stdout.write(json.dumps(releases_document(), indent=2) + "\n")
    elif options.output == "markdown":
        sys.stdout.write(page())
    else:
        sys.stdout.writelines(f"{line}\n" for line in release_lines())
    return 0
