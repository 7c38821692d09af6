"""Named hosts: list them, show one in full, or set what the host check says beside what is true.

True is what the host's description says: does the host's own driver own a GPU, or could it take one?

Example:
  dmsim hosts
  dmsim hosts half-purged-blacklisted
  dmsim hosts --verdict --release v0.12.0
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Any

from simulator.cli import colour
from simulator.cli.arguments import add_output, add_release
from simulator.manager.releases import DEFAULT
from simulator.naming import check_release
from simulator.reading import InputError, printable
from simulator.report import hosts as report
from simulator.scenario import load_host


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("host", metavar="NAME|FILE", nargs="?", help="a named host, or a host file: show this one")
    parser.add_argument(
        "--verdict", action="store_true", help="what the host check says of each, what is true, where the two differ"
    )
    add_release(parser, default=None, otherwise=DEFAULT)
    add_output(parser, "json")


def run(options: argparse.Namespace) -> int:
    """Print it. With --verdict, exits 1 if the default release's host check contradicts a host's file."""
    release = check_release(options.release) if options.release is not None else DEFAULT
    if options.verdict:
        chosen = report.named_hosts() if options.host is None else [load_host(options.host)]
        judgements = [report.judge(host, release) for host in chosen]
        _print(options, report.verdicts(judgements, release), report.verdicts_document(judgements, release))
        return 1 if release == DEFAULT and not all(judgement.is_expected for judgement in judgements) else 0
    if options.host is not None:
        judgement = report.judge(load_host(options.host), release)
        _print(options, report.details(judgement, release), report.details_document(judgement, release))
        return 0
    if options.release is not None:
        raise InputError("", "", "--release goes with --verdict or the name of a host", "add one of them")
    hosts = report.named_hosts()
    _print(options, report.listing(hosts), report.listing_document(hosts))
    return 0


def _print(options: argparse.Namespace, lines: Iterable[str], document: dict[str, Any]) -> None:
    if options.output == "json":
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return
    colour.write(map(printable, lines), colour.HOSTS, options)
