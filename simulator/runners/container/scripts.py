"""The host's programs as files that a real kernel executes.

A described program becomes a shell script that prints what the model says it would print, as the host stands before the run.
Whether it is found and started is the real kernel's business: its place, its mode, its interpreter are the description's.
An interpreter that the description has, whatever it is in truth, becomes a script that reads the script it is given;
`/bin/sh` is a static BusyBox, and so is `HELPER`, which all of these are run by.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final

from simulator.host.fake import FakeHost
from simulator.host.spec import Program
from simulator.host.tree import HOST
from simulator.ports import ProcessResult
from simulator.runners.container.unfit import Unfit

OURS: Final = "/.dmsim"
"""Our own folder, in the container and in the host's root."""
HELPER: Final = f"{OURS}/busybox"
SHEBANG: Final = f"#!{HELPER} sh\n"
NOTHING: Final = f"{SHEBANG}exit 0\n"
"""A program of the host's own that is of no interest."""
INTERPRETER: Final = f'{SHEBANG}script=$1\nshift\n. "$script"\n'
"""What reads a script, whatever language it claims to be in."""


def stand_in(program: Program) -> str:
    """A program of the container's with a fixed answer."""
    return SHEBANG + _says(ProcessResult(program.exit_code, program.stdout, program.stderr))


def host_script(host: FakeHost, program: Program) -> str:
    """A program of the host's. The host given is used up: asking some programs changes it. Raises Unfit."""
    before = host.tree.snapshot()
    body = _says(host.commands.answer(program))
    effects = _effects(before, host.tree.snapshot())
    if host.commands.needs_shell(program):
        return effects + body
    first = SHEBANG if program.interpreter is None else f"#!{program.interpreter}\n"
    return first + effects + body


def _says(result: ProcessResult) -> str:
    lines = [
        f"{HELPER} printf %s {shlex.quote(text)}{redirection}\n"
        for text, redirection in ((result.stdout, ""), (result.stderr, " >&2"))
        if text
    ]
    return f"{''.join(lines)}exit {result.exit_code}\n"


def _effects(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """What running it does to the host, as commands in the host's root. Nothing goes away by it."""
    if gone := before.keys() - after.keys():
        raise Unfit(f"asking a program of the host's takes {min(gone)} away")
    changed = (path for path in sorted(after) if before.get(path) != after[path])
    return "".join(made(path.removeprefix(HOST), after[path], HELPER) for path in changed)


def made(path: str, text: str, box: str) -> str:
    """The command that makes what a snapshot of a tree has at a path, by a BusyBox."""
    place = shlex.quote(path)
    if path.endswith("/"):
        return f"{box} mkdir -p {place}\n"
    if text.startswith("-> "):
        return f"{box} ln -sfn {shlex.quote(text[3:])} {place}\n"
    return f"{box} printf %s {shlex.quote(text)} >{place}\n"
