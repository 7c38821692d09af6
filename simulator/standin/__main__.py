"""A release of driver-manager or vfio-manage, run by the model as a process: `python -m simulator.standin ... -- ARGS`.

It unmounts, unloads modules and changes a node for real. Run it in a container.

Example:
  python -m simulator.standin --release v0.10.0 -- preflight_check
  python -m simulator.standin --program vfio-manage --release v0.10.0 -- unbind --all
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from simulator.manager.releases import DEFAULT, GO_RELEASES
from simulator.reading import InputError
from simulator.standin.program import DRIVER_MANAGER, PROGRAMS, check, run

BAD_INPUT: Final = 2


def main(argv: Sequence[str]) -> int:
    """Read our own arguments, then be the program with those after `--`."""
    parser = argparse.ArgumentParser(
        prog="python -m simulator.standin",
        usage="%(prog)s [-h] [--program NAME] [--release R] [--without NAME] -- ARGS",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--program", metavar="NAME", default=DRIVER_MANAGER, help=f"one of {', '.join(PROGRAMS)}")
    parser.add_argument(
        "--release", metavar="R", default=DEFAULT, help=f"upstream tag (default {DEFAULT}): {', '.join(GO_RELEASES)}"
    )
    parser.add_argument("--without", metavar="NAME", action="append", default=[], help="leave a named change of the release out")
    own, args = (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if "--" in argv else (argv, ())
    options = parser.parse_args(own)
    try:
        check(options.program, options.release, options.without)
    except InputError as error:
        sys.stderr.write(f"{parser.prog}: {error}\n")
        return BAD_INPUT
    return run(options.program, options.release, args, os.environ, frozenset(options.without))


def entry() -> NoReturn:
    """The program's own exit code is the process'."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    entry()
