"""JSON Schemas (draft 7) of the files that people write and of what `-o json` prints. Without a NAME they are listed.

An editor that speaks the YAML language server's protocol completes and checks a file whose first line names a schema:
  # yaml-language-server: $schema=./world.schema.json

Example:
  dmsim schema
  dmsim schema world > world.schema.json
  dmsim schema --write schemas/
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from simulator.reading import InputError, printable
from simulator.recordings.layout import write_whole
from simulator.schemas.catalogue import SCHEMAS, schema


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("schema", metavar="NAME", nargs="?", help="print this schema")
    parser.add_argument("--write", metavar="DIR", help="write all, or the one that is named, as DIR/NAME.schema.json")


def run(options: argparse.Namespace) -> int:
    """List, print or write."""
    if options.schema is None and options.write is None:
        width = max(map(len, SCHEMAS))
        sys.stdout.write("".join(f"{name:<{width}}  {entry.of}\n" for name, entry in SCHEMAS.items()))
        return 0
    texts = {
        name: json.dumps(schema(name), indent=2) + "\n" for name in ([options.schema] if options.schema is not None else SCHEMAS)
    }
    if options.write is None:
        sys.stdout.write(texts[options.schema])
        return 0
    if not options.write:
        raise InputError("", "", "--write names no folder", "write --write schemas/")
    for name, text in texts.items():
        path = Path(options.write) / f"{name}.schema.json"
        write_whole(path, text)
        sys.stderr.write(f"{printable(str(path))}\n")
    return 0
