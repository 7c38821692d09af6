"""`dmsim`: one subcommand, one module. Bad input is one message and exit code 2, never a traceback."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from simulator import __version__
from simulator.reading import InputError, nearest, printable

SUBCOMMANDS: Final = {
    "run": "one run of a release against a host and a cluster",
    "hosts": "list and describe the named hosts; what the host check says of them, and what is true",
    "hosts import": "a host file from a container image, a root directory or a tar archive",
    "host plan": "what to remove from a host so that its GPUs are free for vfio-pci, and what must stay: as commands",
