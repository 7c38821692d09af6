"""`dmsim`: one subcommand, one module. Bad input is one message and exit code 2, never a traceback."""

from __future__ import annotations

import argparse
import importlib
import io
import itertools
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Final, NoReturn

from simulator import __version__
from simulator.errors import InputError, nearest, printable

SUBCOMMANDS: Final = {
    "demo": "the story of upstream's issue #191 on one screen, computed as it is told",
    "run": "one run of a release against a host and a cluster",
    "hosts": "list and describe the named hosts; what the host check says of them, and what is true",
    "clusters": "list the named clusters; one with its node's labels and the names of its pods",
    "hosts import": "a host file from a container image, a root directory or a tar archive",
    "snapshot": "a world file of your own node, from its cluster, saved objects, a must-gather",
    "snapshot host-script": "the read-only script that shows dmsim a node's host",
    "host plan": "what to remove from a host so that its GPUs are free for vfio-pci, and what must stay: as commands",
    "replay": "replay recordings of the real program on the model",
    "record": "record what a real driver-manager image does",
    "verify": "hold a real driver-manager image against the model: recorded cases, or worlds drawn at random",
    "vfio": "vfio-manage bind or unbind as a dry-run: which device ends on which driver",
    "faults": "for each request and host operation of a run, what happens if just this one fails; the worst first",
    "predict": "what a release will do to a node: verdict, host or container driver, pods, modules, cordon, labels, settings",
    "diagnose": "what happened on a node, what is left over, and the commands that mend it",
    "explore": "every path of a Go release within bounds, grouped by how it leaves the node; a witness for each",
    "compare": "what changes between two releases, and by which named change",
    "explain": "from a log to the releases and decisions that print it, the node's state, and what comes next",
    "resource-names": "what the sandbox device plugin calls each NVIDIA device of a pci.ids file",
    "node run": "a node over time: a chart of the GPU Operator on a host, and what people do to it",
    "passthrough check": "GPU passthrough to VMs: what nodes announce, KubeVirt permits and VMs ask for; each mismatch",
    "passthrough migrate": "values for Cozystack's platform that keep what a hand-edited KubeVirt CR permits",
    "vocabulary": "every sentence that a scenario may use, or those in which a word stands",
    "report": "the results of pytest scenarios as a page, Markdown or JSON",
    "serve": "a cluster over HTTP, for kubectl and other clients",
    "schema": "JSON Schemas of the files people write and of -o json, for editors and programs",
    "releases": "the supported releases: charts, named changes, quirks, steps",
    "completion": "what makes bash, zsh or fish complete dmsim's commands, options, hosts, clusters and releases",
}
"""Name, of one word or two -> what it does. The module is `simulator.cli.<name>` with `add_arguments` and `run`."""

OK: Final = 0
CHECK_FAILED: Final = 1
BAD_INPUT: Final = 2

NO_COLOR: Final = "--no-color"

_LISTING: Final = """\
commands (each has --help):
{}

before or after any command:
  --no-color           no colour, as with NO_COLOR=1; there is none in pipes and documents

documentation: docs/ of the repository and of the source distribution (docs/index.md is the first page); its pages are
called by their titles in each command's help

""".format("\n".join(f"  {name:<20} {text}" for name, text in SUBCOMMANDS.items()))

FIRST_STEPS: Final = """\
dmsim: what will NVIDIA's k8s-driver-manager do to my GPU node?

  a version bump: what changes for a node like mine?
    dmsim compare v0.10.0 v0.12.0 --host container-driver-loaded
  my node is stuck: what happened, and what now?
    kubectl logs -n gpu-operator POD -c k8s-driver-manager | dmsim explain -
  issue #191: why does a host's own driver block vfio, and what would help?
    dmsim demo

dmsim --help lists all commands; dmsim completion --help: Tab completes them.
"""
"""What `dmsim` alone prints: where to begin, for three kinds of user."""


class Parser(argparse.ArgumentParser):
    """argparse whose errors are one line, on standard error, exit code 2."""

    def error(self, message: str) -> NoReturn:
        """One message, and where help is."""
        self.exit(
            BAD_INPUT, f"{self.prog}: {printable(message)}{' See' if message.endswith('?') else '; see'} {self.prog} --help\n"
        )


def subparser(name: str) -> Parser:
    """The arguments of a subcommand."""
    module = _module(name)
    parser = Parser(
        prog=f"dmsim {name}", description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    module.add_arguments(parser)
    _add_no_color(parser)
    return parser


def _module(name: str) -> ModuleType:
    return importlib.import_module("simulator.cli." + name.replace("-", "_").replace(" ", "_"))


def _add_no_color(parser: argparse.ArgumentParser) -> None:
    """`--no-color`, to a subcommand and to the commands that it has itself."""
    parser.add_argument(NO_COLOR, action="store_true", default=argparse.SUPPRESS, help="no colour, as with NO_COLOR=1")
    for action in parser._actions:  # argparse shows the parsers of a command's own commands nowhere else
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _add_no_color(command)


def main(argv: Sequence[str]) -> int:
    """Run dmsim with arguments; returns the exit code."""
    parser = Parser(
        prog="dmsim",
        usage="dmsim [-h] [--version] [--no-color] COMMAND ...",
        description="A faithful model of NVIDIA's k8s-driver-manager.",
        epilog=_LISTING,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"dmsim {__version__}")
    refused = list(itertools.takewhile(NO_COLOR.__eq__, argv))
    argv = argv[len(refused) :]
    if not argv:
        sys.stdout.write(FIRST_STEPS)
        return OK
    name, rest = argv[0], argv[1:]
    if name.startswith("-"):
        parser.parse_args(argv)
        return OK
    if f"{name} {' '.join(rest[:1])}" in SUBCOMMANDS:
        name, rest = f"{name} {rest[0]}", rest[1:]
    elif name not in SUBCOMMANDS:
        parser.error(f'there is no subcommand "{name}"; {nearest(name, SUBCOMMANDS)}')
    options = subparser(name).parse_args(rest, argparse.Namespace(no_color=bool(refused)))
    try:
        return int(_module(name).run(options))
    except InputError as error:
        sys.stderr.write(f"dmsim {name}: {error}\n")
        return BAD_INPUT


def entry() -> NoReturn:
    """The console script. A reader that goes away early (`| head`) is no error.

    What the output's encoding has no character for, and bytes of the input that were no UTF-8, are written escaped.
    """
    if sys.stdout is None:
        sys.stderr.write("dmsim: standard output is closed\n")
        sys.exit(BAD_INPUT)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = OK
    except OSError as error:
        if error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stderr.write(f"dmsim: standard output cannot be written: {error.strerror}\n")
        code = BAD_INPUT
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
