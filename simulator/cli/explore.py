"""Every path of a Go release within bounds, grouped by how it leaves the node: the atlas.

A walk is one way through the release's decisions. Each outcome has a witness, the smallest world found that ends so; its ID names
it. The default bounds take seconds; they multiply, and wide ones take minutes, or more than is worth waiting for (the page "The atlas of
decisions" of the documentation).

Columns: WALKS counts the ways that end so. LABELS are the operands' deploy labels: "as they were", "paused" (set so that the
operands' pods go, and left so), "restored", "pre-installed". CORDON: "foreign cordon lifted" is the node made schedulable again
that somebody else had cordoned. MODULES and MOUNTS are NVIDIA's, of the driver container: "gone", "half unloaded", "stay". PODS
says whether any was evicted or deleted, FAILED whether a step failed on the way, whatever the exit code.

Example:
  dmsim explore --release v0.12.0
  dmsim explore --release v0.12.0 --faults 0 --polls 1
  dmsim explore --release v0.12.0 --faults 0 --outcome "left cordoned"
  dmsim explore --release v0.12.0 --faults 0 --witness 4166a1 --write witness.yaml
  dmsim explore --release v0.12.0 -o html --write atlas.html
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Final

from simulator.cli.arguments import add_release, whole_number
from simulator.explore.atlas import Atlas, atlas, world_of_witness
from simulator.explore.made_up import Bounds
from simulator.explore.walking import walk
from simulator.manager.releases import GO_RELEASES, flow
from simulator.naming import check_release
from simulator.progress import progress
from simulator.reading import InputError, nearest
from simulator.recordings.layout import write_whole
from simulator.report.atlas import atlas_document, atlas_lines, entries_with
from simulator.report.atlas_page import atlas_page
from simulator.writing import world_document, yaml_text

_BOUNDS: Final = {
    "faults": (0, 3, 1, "requests and system calls that fail"),
    "pods": (0, 4, 1, "pods that are no operand's; operands whose pods do not go at once"),
    "polls": (0, 10, 0, "polls until what is waited for is there"),
    "labels": (0, 10, 0, "operand labels that are not as all the others"),
    "odd_pods": (0, 4, 0, "pods that are not what most are"),
    "modules": (0, 6, 1, "modules loaded beside nvidia, mounts below the driver's root"),
}
"""Bound -> smallest, largest, usual, what it is of. The usual ones are walked while one waits."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_release(parser)
    for name, (low, high, default, text) in _BOUNDS.items():
        option = "--" + name.replace("_", "-")
        parser.add_argument(
            option, metavar="N", type=whole_number(low, high), default=default, help=f"so many {text} (default {default})"
        )
    parser.add_argument("--outcome", metavar="TEXT", default="", help="only outcomes that hold TEXT, or the one of this ID")
    parser.add_argument("--witness", metavar="ID", help="print the world file of an outcome's witness, for dmsim run --world")
    parser.add_argument("--write", metavar="FILE", help="write to a file instead of standard output")
    parser.add_argument("-o", "--output", choices=("text", "json", "html"), default="text", help="form (default text)")


def run(options: argparse.Namespace) -> int:
    """Explore. Raises InputError."""
    release = check_release(options.release)
    if release not in GO_RELEASES:
        first = next(iter(GO_RELEASES))
        raise InputError("", "", f"{release} is a shell script, and the explorer walks Go releases", f"explore {first} or newer")
    if options.witness is not None and (options.output != "text" or options.outcome):
        raise InputError("", "", "--witness prints a world file, and -o and --outcome are of the atlas", "leave them out")
    bounds = Bounds(**{name: getattr(options, name) for name in _BOUNDS})
    with progress(f"explore {release}, runs", None) as bar:
        found = atlas(walk(flow(release), bounds, bar.advance))
    text = _witness(found, options.witness) if options.witness is not None else _report(found, options)
    if options.write is not None:
        write_whole(Path(options.write), text)
    else:
        sys.stdout.write(text)
    return 0


def _report(found: Atlas, options: argparse.Namespace) -> str:
    shown = entries_with(found, options.outcome)
    if not shown:
        raise InputError("", "", f'no outcome holds "{options.outcome}"', "leave --outcome out to see all of them")
    match options.output:
        case "json":
            return json.dumps(atlas_document(found, options.outcome), indent=1) + "\n"
        case "html":
            return atlas_page(dataclasses.replace(found, entries=tuple(shown)))
    return "".join(f"{line}\n" for line in atlas_lines(found, options.outcome))


def _witness(found: Atlas, name: str) -> str:
    """The world file of a witness."""
    entry = next((entry for entry in found.entries if entry.id == name), None)
    if entry is None:
        known = [entry.id for entry in found.entries]
        raise InputError("", "", f'no outcome within these bounds has the ID "{name}"', nearest(name, known))
    tag = found.graph.flow.release.tag
    comments = [f"{tag}: {entry.outcome.text}", f"dmsim run --release {tag} --world FILE"]
    return yaml_text(world_document(world_of_witness(found.graph, entry.witness), release=tag), comments)
