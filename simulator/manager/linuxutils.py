"""The kernel module table: upstream's internal/linuxutils/kmod.go.

Source: `KernelModules.List`; the rows went to standard output up to v0.9.1 and to the log from v0.10.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from simulator import messages as m
from simulator.gocompat import GoError, PathError, atoi, errno_of, fields, wrapping
from simulator.manager.log import Log
from simulator.ports import Host

_PROC_MODULES: Final = "/proc/modules"
_LONGEST_LINE: Final = 64 * 1024
"""bufio.Scanner's buffer: a line and its newline must fit."""


def list_modules(host: Host, log: Log, search: str, print_row: Callable[[str], None]) -> None:
    """Print the lines of /proc/modules that contain `search` as a table. Raises GoError."""
    with wrapping(m.FAILED_TO_OPEN % _PROC_MODULES):
        try:
            text = host.read_file(_PROC_MODULES)
        except OSError as error:
            raise PathError("open", _PROC_MODULES, errno_of(error)) from None
    log.info(m.MODULE_TABLE_HEADER)
    for line in text.split("\n"):
        if len(line.encode("utf-8", "surrogateescape")) >= _LONGEST_LINE:
            log.error(m.READING_MODULES_FAILED % m.LINE_TOO_LONG)
            raise GoError(m.LINE_TOO_LONG)
        if search in line:
            _print_line(line, log, print_row)


def _print_line(line: str, log: Log, print_row: Callable[[str], None]) -> None:
    words = fields(line)
    if len(words) < 4:
        return
    try:
        size = atoi(words[1])
    except GoError as error:
        log.warning(m.MODULE_SIZE_UNREADABLE % (words[1], error))
        return
    try:
        count = atoi(words[2])
    except GoError as error:
        log.warning(m.MODULE_COUNT_UNREADABLE % (words[2], error))
        return
    print_row(m.MODULE_TABLE_ROW % (words[0], size, count, words[3]))
