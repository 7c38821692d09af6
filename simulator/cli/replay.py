"""Replay recordings of the real program on the model, and name each mismatch.

Without a folder, those that dmsim brings along: of driver-manager, of vfio-manage, and of two neighbours, the sandbox device
plugin and Cozystack's charts. A folder of recordings is one with cases/ and recordings/<release>/, or a packed one. The
neighbours' folders are read as they were recorded, too. With a --release of driver-manager, the others' recordings in a
packed folder are left out unless --program asks for them.

Example:
  dmsim replay --release v0.10.0
  dmsim replay --program vfio-manage -k bind
  dmsim replay --program sandbox-device-plugin --release v1.6.0
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from simulator.cli import colour
from simulator.cli.arguments import add_release
from simulator.manager.releases import RELEASES
from simulator.naming import check_release
from simulator.progress import progress
from simulator.reading import InputError
from simulator.recordings.layout import NEIGHBOURS, PROGRAM, PROGRAMS, Recording, make_folder, read_folder, write_recording
from simulator.recordings.replaying import NEIGHBOUR_RELEASES, differences, replayed, replayed_others
from simulator.scenario import fixtures


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("dirs", metavar="DIR", nargs="*", help="a folder of recordings (default: those that dmsim brings)")
    add_release(parser, default=None, otherwise="each recording's own")
    parser.add_argument("--program", choices=(*PROGRAMS, *NEIGHBOURS), help="only recordings of this program")
    parser.add_argument("-k", metavar="TEXT", dest="text", default="", help="only cases whose id holds TEXT")
    parser.add_argument("--write", metavar="OUT", help="also write the model's own observations, OUT/<release>/<id>.json (one DIR)")


def run(options: argparse.Namespace) -> int:
    """Replay. Exits 1 if anything mismatched, or if there was nothing to replay."""
    release = _release(options.release)
    folders = [Path(folder) for folder in options.dirs] or [fixtures() / "recordings"]
    if options.write is not None and len(folders) > 1:
        raise InputError("", "", "--write takes one DIR", "replay the folders one after the other")
    out = Path(options.write) if options.write is not None else None
    if out is not None:
        make_folder(out)
    passed = failed = 0
    for folder in folders:
        recordings = list(read_folder(folder, options.program or ""))
        program = options.program or _implied(recordings, release)
        asked_for = [
            recording
            for recording in recordings
            if program in {None, recording.program}
            and (not release or recording.release == release)
            and options.text in recording.case
        ]
        with progress("replay", len(asked_for)) as bar:
            for recording in bar.over(asked_for):
                simulated = replayed(recording)
                if out is not None:
                    write_recording(out, recording.release, recording.case, simulated, **replayed_others(recording))
                found = differences(recording, simulated)
                if not found:
                    passed += 1
                    continue
                failed += 1
                bar.clear()
                lines = (f"{recording.release} {recording.case}", *(f"  {mismatch}" for mismatch in found))
                colour.write(lines, colour.RECORDED, options)
    if not passed and not failed:
        sys.stdout.write("no recording fits\n")
    colour.write([f"{passed} passed, {failed} failed"], colour.RECORDED, options)
    return 1 if failed or not passed else 0


def _release(given: str | None) -> str:
    """Which release's recordings are replayed: of driver-manager's image, or of a neighbour. "" for all. Raises InputError."""
    if given is None or given in NEIGHBOUR_RELEASES:
        return given or ""
    return check_release(given)


def _implied(recordings: Sequence[Recording], release: str) -> str | None:
    """Whose releases --release names, in a folder that holds several programs' recordings."""
    return PROGRAM if release in RELEASES and any(recording.program == PROGRAM for recording in recordings) else None
