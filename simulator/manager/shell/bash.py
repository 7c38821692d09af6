"""What bash does for the script: programs, pipes, word splitting, tests, the ERR trap.

The script sets neither `-e` nor `-u`: a command that fails is passed over unless its status is asked for. An ERR trap is
not inherited by functions: it fires for the simple commands of the function that set it. Helpers such as sed, grep and
findmnt are not traced, as in the recordings. Leaves out patterns (globs) in unquoted expansions.

Source: GNU bash 5.2, execute_cmd.c, test.c, subst.c.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, TypeAlias

from simulator.manager.shell.messages import SCRIPT
from simulator.ports import CommandNotFound, Output, ProcessResult, ShellHost

NOT_FOUND: Final = 127
CANNOT_RUN: Final = 126
Program: TypeAlias = "Callable[[Sequence[str], Callable[[str], None] | None], int]"
"""A program of the image that is modelled: its arguments and, where it is a pipe, its standard output -> its exit code."""

_INTEGER: Final = re.compile(r"\s*[+-]?[0-9]+\s*\Z", re.ASCII)
_WHITE: Final = re.compile(r"[ \t\n]+")


class Exit(Exception):
    """The script ends."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Bash:
    """A shell with its environment. `lines` says where the script's commands stand that bash may complain about."""

    lines: ClassVar[Mapping[str, int]] = {}

    def __init__(self, env: Mapping[str, str], host: ShellHost, output: Output, programs: Mapping[str, Program]) -> None:
        self.env = env
        self.host = host
        self.output = output
        self.programs = programs
        self.err_trap: Callable[[], None] | None = None

    def variable(self, name: str, default: str = "") -> str:
        """`${NAME:-default}`."""
        return self.env.get(name, "") or default

    def echo(self, text: str) -> None:
        """`echo`."""
        self.output.stdout(text + "\n")

    def complain(self, text: str, command: str) -> None:
        """A message of bash's own; `command` is the key of its line."""
        self.output.stderr(f"{SCRIPT}: line {self.lines.get(command, 1)}: {text}\n")

    # --- programs -----------------------------------------------------------------------------------------------

    def run(self, *argv: str) -> int:
        """A program, its output on the script's own streams; its exit code."""
        return self._start(argv, None)

    def capture(self, *argv: str) -> tuple[int, str]:
        """`$(...)`: the exit code, and standard output without the newlines at its end."""
        status, text = self.piped(*argv)
        return status, text.replace("\0", "").rstrip("\n")

    def piped(self, *argv: str) -> tuple[int, str]:
        """The left side of a pipe: the exit code, and standard output."""
        parts: list[str] = []
        return self._start(argv, parts.append), "".join(parts)

    def nested(self, *argv: str) -> str:
        """What a program prints that a `bash -c` runs: a grandchild, which leaves no trace of its own."""
        parts: list[str] = []
        self.programs[argv[0]](argv[1:], parts.append)
        return "".join(parts)

    def _start(self, argv: tuple[str, ...], stdout: Callable[[str], None] | None) -> int:
        program = self.programs.get(argv[0])
        try:
            if program is None:
                result = self.host.run(argv)
            else:
                result = self.host.spawn(argv, lambda: ProcessResult(program(argv[1:], stdout)))
        except CommandNotFound:
            return self._not_started(argv[0])
        if result.stdout:
            (stdout or self.output.stdout)(result.stdout)
        if result.stderr:
            self.output.stderr(result.stderr)
        return result.exit_code

    def _not_started(self, name: str) -> int:
        for folder in self.env.get("PATH", "").split(":"):
            path = f"{folder}/{name}"
            if self.host.is_file(path):
                self.complain(f"{path}: Permission denied", name)
                return CANNOT_RUN
        self.complain(f"{name}: command not found", name)
        return NOT_FOUND

    # --- the language -------------------------------------------------------------------------------------------

    def simple(self, status: int) -> int:
        """The status of a simple command in the function that set the trap: where it is not 0, the trap runs."""
        if status and self.err_trap is not None:
            trap, self.err_trap = self.err_trap, None
            trap()
        return status

    def read_count(self, path: str) -> str:
        """`$(< path)`."""
        return self.host.read_file(path).replace("\0", "").rstrip("\n")

    def compare(self, left: str, operator: str, right: int) -> bool:
        """`[ ${left} -gt right ]`, of an unquoted expansion: what is no number is complained of, and is false."""
        found = words(left)
        if len(found) == 1 and _INTEGER.match(found[0]):
            number = int(found[0])
            return number > right if operator == "-gt" else number == right
        if len(found) == 1:
            self.complain(f"[: {found[0]}: integer expression expected", "test")
        elif found:
            self.complain("[: too many arguments", "test")
        else:
            self.complain(f"[: {operator}: unary operator expected", "test")
        return False


def words(value: str) -> list[str]:
    """The words of an unquoted expansion."""
    return [word for word in _WHITE.split(value) if word]
