"""Every sentence that a scenario may use, with what it says; or those in which a word stands. Needs the extra [pytest].

`{name}` stands for one word, `"{name}"` for anything between quotes, `{name:number}` for a number, `{name:rest}` for the rest of the
line, `{name=a|b}` for one of these; `(this|that)` is either, `[ this]` may be left out.

Example:
  dmsim vocabulary
  dmsim vocabulary pod
  dmsim vocabulary "exit code"
"""

from __future__ import annotations

import argparse
import importlib
import sys
import textwrap

from simulator.reading import InputError, printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("text", metavar="TEXT", nargs="?", default="", help="only sentences in which, or of which, TEXT is said")


def run(options: argparse.Namespace) -> int:
    """Print them. Raises InputError where none holds the text, or pytest-bdd is not installed."""
    try:
        vocabulary = importlib.import_module("simulator.bdd.vocabulary")  # of an extra, which the command line does without
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("simulator"):
            raise
        raise InputError("", "", f"{error.name} is not installed", "pip install 'driver-manager-simulator[pytest]'") from None
    sought = options.text.lower()
    found = [one for one in vocabulary.definitions() if sought in f"{one.keyword} {one.sentence} {one.doc}".lower()]
    if not found:
        raise InputError("", "", f'no sentence holds "{options.text}"', "leave it out to see all of them")
    for one in found:
        sys.stdout.write(f"{one.keyword.capitalize()} {one.sentence}\n{textwrap.indent(printable_lines(one.doc), '    ')}\n")
    return 0


def printable_lines(text: str) -> str:
    """A text of several lines, each of them printable."""
    return "\n".join(map(printable, text.splitlines()))
