"""Record what a real driver-manager image does: each case is run once, in the recordings' own world.

CASES is a folder with cases/ID.json, or a packed one (default: the cases that dmsim brings along). Written is
DIR/RELEASE/ID.json. An interrupted recording is gone on with: what is there, of the same image and input, is not run again.

Example:
  dmsim record --image nvcr.io/nvidia/cloud-native/k8s-driver-manager:v0.13.0 --out recorded
  dmsim record --image localhost/driver-manager:main --release v0.14.0 my-cases --out recorded --jobs 4
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from simulator.cli.arguments import add_image, find_image, read_cases_argument
from simulator.progress import progress
from simulator.recordings.layout import plain_name
from simulator.verifying.judging import with_reasons
from simulator.verifying.recorder import Recorder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_image(parser, required=True)
    parser.add_argument("cases", metavar="CASES", nargs="?", help="a folder of cases (default: those that dmsim brings along)")
    parser.add_argument("--out", metavar="DIR", required=True, help="where the recordings go: DIR/RELEASE/ID.json")
    parser.add_argument("--again", action="store_true", help="run also what is recorded already")
    parser.add_argument("-k", metavar="TEXT", dest="text", default="", help="only cases whose id holds TEXT")


def run(options: argparse.Namespace) -> int:
    """Record. Exits 1 if no case could be recorded."""
    cases = read_cases_argument(options.cases, options.text)
    image = find_image(options)
    recorder = Recorder(Path(options.out), plain_name(image.release, "--release"), image.id)
    recorded = kept = 0
    excluded: Counter[str] = Counter()
    with progress("record", len(cases)) as bar:
        made = recorder.record(cases, image, jobs=options.jobs, again=options.again)
        for done, case in enumerate(bar.over(made), 1):
            if case.excluded:
                excluded[case.excluded] += 1
            kept += case.kept
            recorded += not (case.kept or case.excluded)
            if not bar.is_at_terminal:
                what = f"excluded: {case.excluded}" if case.excluded else "kept" if case.kept else "recorded"
                sys.stderr.write(f"{done}/{len(cases)} {case.case} {what}\n")
    sys.stdout.write(f"{recorded} recorded, {kept} kept, {with_reasons(excluded)}\n")
    return 0 if recorded or kept else 1
