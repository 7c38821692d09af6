"""The story of upstream's issue #191 on one screen: each line is computed by the model as it is told.

A host has a driver of its own, so driver-manager refuses to free its GPUs for virtual machines; FORCE_REINSTALL does not help;
the override that the issue proposes helps some hosts.

Example:
  dmsim demo
  dmsim demo --release v0.12.0
"""

from __future__ import annotations

import argparse

from simulator.cli import colour
from simulator.cli.arguments import add_release
from simulator.naming import check_release, check_what_if
from simulator.report.demo import WHAT_IF, lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_release(parser)


def run(options: argparse.Namespace) -> int:
    """Tell it. Always exits 0. Raises InputError for a release that the what-if is not of."""
    release = check_release(options.release)
    check_what_if(WHAT_IF, release)
    colour.write(lines(release), colour.DEMO, options)
    return 0
