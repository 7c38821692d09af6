"""A log of driver-manager explained: which releases print it, what was decided and why, how the node is now, what comes next.

The log may be cut at either end, wrapped, coloured, with time stamps, in docker's or the CRI's form, with other containers' lines
between. Exits 0 if something fits, 1 if nothing does.

Example:
  kubectl logs -n gpu-operator nvidia-driver-daemonset-c6b9x -c k8s-driver-manager | dmsim explain -
  dmsim explain driver-manager.log --release v0.10.0
"""

from __future__ import annotations

import argparse
import codecs
import json
import sys
from pathlib import Path
from typing import Final

from simulator.cli import colour
from simulator.cli.arguments import add_output
from simulator.explaining.explanation import explain
from simulator.manager.releases import RELEASES
from simulator.naming import check_release
from simulator.reading import InputError
from simulator.report.document import FORMAT
from simulator.report.explanation import explanation_document, explanation_lines

_LARGEST: Final = 64 * 2**20
"""Bytes of a log that are read."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("log", metavar="LOG", help="the log's file, - for standard input")
    parser.add_argument("--release", metavar="R", help=f"only this release: {', '.join(RELEASES)} (default: all)")
    add_output(parser, "json")


def run(options: argparse.Namespace) -> int:
    """Explain. 0: something fits, 1: nothing does. Raises InputError."""
    releases = RELEASES if options.release is None else (check_release(options.release),)
    found = explain(_read(options.log), releases=releases)
    if options.output == "json":
        sys.stdout.write(json.dumps(explanation_document(found, FORMAT), indent=2) + "\n")
    else:
        colour.write(explanation_lines(found), colour.EXPLANATION, options)
    return 0 if found.fits else 1


def _read(name: str) -> str:
    """The log's text; bytes that are no UTF-8 are kept as they can be shown. Raises InputError."""
    if name == "-":
        content = sys.stdin.buffer.read(_LARGEST + 1)
        name = "standard input"
    else:
        try:
            path = Path(name)
            if not path.is_file() and not path.is_fifo():
                problem = "is no file" if path.exists() else "does not exist"
                raise InputError(name, "", problem, "name a log, or - for standard input")
            with path.open("rb") as file:
                content = file.read(_LARGEST + 1)
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or str(error)
            raise InputError(name, "", f"cannot be read: {problem}", "name a log, or - for standard input") from None
    if len(content) > _LARGEST:
        raise InputError(name, "", f"is larger than {_LARGEST // 2**20} MiB", "cut it: tail -n 10000")
    encoding = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"  # PowerShell's
    text = content.decode(encoding, "replace")
    if not text.strip():
        raise InputError(name, "", "is empty", "name a log of driver-manager")
    return text
