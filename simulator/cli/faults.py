"""Single faults: for every request and host operation of a run, the runs in which just this one fails; the worst first.

A fault is a status, an errno, a broken connection, a time-out, a program that fails, or a signal at that moment. Each row can be
written out as a world file that `dmsim run --world` replays. The page "If just one thing fails"
of the documentation says what can fail where, and what counts as damage.

Columns: "exit" is the exit code under the fault; "heals" says whether a restart of the pod mends the damage: "yes", by the restart
that Kubernetes makes by itself; "late", by the next start, which does not come by itself, since the init container succeeded or
still runs; "no", not even then; "-", there is nothing to heal, or no end to restart after.

Example:
  dmsim faults --host container-driver-loaded --release v0.11.0
  dmsim faults --host container-driver-loaded --show 1 > worst.yaml
  dmsim faults --world my-node.yaml --write rows/
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from simulator.cli import colour
from simulator.cli.arguments import add_output, add_world, choose_world, whole_number
from simulator.faults.planning import Place
from simulator.faults.table import Table, tabulate
from simulator.progress import progress
from simulator.reading import InputError
from simulator.report.faults import fault_lines, faults_document, row_world
from simulator.writing import write_file

_MOST_ROWS: Final = 1_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_world(parser, sets_node_name=True)
    parser.add_argument("--all", action="store_true", help="also the faults that do no damage")
    add_output(parser, "json")
    written = parser.add_mutually_exclusive_group()
    written.add_argument("--show", metavar="N", type=whole_number(1, _MOST_ROWS), help="print the world file of row N instead")
    written.add_argument(
        "--write", metavar="DIR", help="also write the world file of each row that does damage (with --all: of every row)"
    )


def run(options: argparse.Namespace) -> int:
    """Print the table. Exits 0 whatever is in it."""
    chosen = choose_world(options, sets_node_name=True)
    folder = None if options.write is None else _new_folder(options.write)
    table = tabulate(chosen.world, chosen.release, what_if=chosen.what_if, over=_watched)
    if options.show is not None:
        if options.show > len(table.rows):
            raise InputError("", "", f"--show {options.show}: the table has {len(table.rows)} rows", "name one of these")
        sys.stdout.write(row_world(table, options.show))
        return 0
    if folder is not None:
        _write_rows(folder, table, harmless=options.all)
    if options.output == "json":
        sys.stdout.write(json.dumps(faults_document(table), indent=2) + "\n")
    else:
        colour.write(fault_lines(table, harmless=options.all), colour.FAULTS, options)
    return 0


def _watched(places: Sequence[Place]) -> Iterator[Place]:
    """The places, with a bar on standard error where it takes long."""
    with progress("faults", len(places)) as bar:
        yield from bar.over(places)


def _new_folder(path: str) -> Path:
    """A folder that is made, or is there and empty. Raises InputError."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InputError(path, "", "is not empty", "name a new folder")
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(path, "", f"cannot be made: {getattr(error, 'strerror', None) or error}", "name another folder") from None
    return folder


def _write_rows(folder: Path, table: Table, *, harmless: bool) -> None:
    rows = [number for number, row in enumerate(table.rows, 1) if harmless or row.damages]
    width = len(str(len(table.rows)))
    for number in rows:
        write_file(str(folder / f"row-{number:0{width}}.yaml"), row_world(table, number))
