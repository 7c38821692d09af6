"""A log as people have it -> the lines of it that driver-manager wrote.

What stands in front of a line is taken away (`prefixes`). Both of logrus' forms are read: `time=... level=...
msg=...` and the terminal's `INFO[0000] ...`. A line that is none of driver-manager's (by the catalogue of its texts) is another
container's and is passed over, but remembered after the line before it, of whose message it may be a part. Lines of a poll that
repeat are one. White space does not count (`squeezed`): terminals wrap and pad.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from simulator import messages
from simulator.explaining.prefixes import LONGEST_LINE, Prefixes, without_colours
from simulator.manager.shell import messages as shell_messages

LOG: Final = "log"
"""A line of logrus."""
ECHO: Final = "echo"
"""A line of the script's own: it has no header."""
RAW: Final = "raw"
"""What a library writes beside the log, in no fixed order with it."""


@dataclass(slots=True)
class Entry:
    """A line of driver-manager's. `number` counts the text's lines from 1."""

    number: int
    kind: str
    level: str
    message: str
    more: list[str] = field(default_factory=list)
    """The unknown lines after it: a part of its message, or another container's."""

    @property
    def whole(self) -> str:
        """The message with the lines after it."""
        return "\n".join((self.message, *self.more))


@dataclass(slots=True)
class Log:
    """What was read: the lines in order, those beside the log, and how many were not driver-manager's."""

    entries: list[Entry]
    raws: list[Entry]
    foreign: int


def squeezed(text: str) -> str:
    """Without white space."""
    return "".join(text.split())


_HEADER: Final = re.compile(r'time="?([^"\s=]*?)"?\s*level=(\w+)\s*msg=(.*)', re.DOTALL)
_TERMINAL: Final = re.compile(r"(INFO|WARN|ERRO|FATA|DEBU|PANI)\[[^\]\s]*\]\s?(.*)", re.DOTALL)
_LEVELS: Final = {
    "INFO": "info",
    "WARN": "warning",
    "ERRO": "error",
    "FATA": "fatal",
    "warn": "warning",
}
_KLOG: Final = re.compile(r"([IWEF])\d{4} [\d:.]+ +\d+ (?=\S+\.go:\d+\])")
_MOST_LINES: Final = 200
"""So many lines of one message are remembered."""
_BROKEN_HEADER: Final = 4
"""A header may be broken into so many lines, where a log was wrapped narrowly."""
POLLED: Final = re.compile(
    r"Waiting for MOFED to be installed\.\.\.|Waiting for \d+ daemon set pod\(s\)|Failed to read /proc/modules|"
    r"stat: cannot statx '/run/mellanox|File: /run/mellanox"
)
ROW: Final = re.compile(r"\S+ +-?\d+ +-?\d+(?: +\S+)?\s*\Z")
"""A row of the table of modules: Go's, lsmod's."""


# --- the catalogue ----------------------------------------------------------------------------------------------------


def _patterns(module: object, excluded: Iterable[str]) -> Iterator[str]:
    for name, text in sorted(vars(module).items()):
        if not name.isupper() or not isinstance(text, str) or name in excluded:
            continue
        first = text.strip("\n").split("\n")[0].strip()
        pattern = re.sub(r"%-?\d*[sd]", ".*", re.escape(first).replace(r"\-", "-"))
        pattern = re.sub(r"(?:\\ )+", r"\\s+", pattern)  # as a terminal or `fold` may have left it
        yield f"{pattern}(?:: .*)?" if first.startswith(("failed", "error")) else pattern


_USAGE_ERRORS: Final = (
    r"Required flags? \".*\" not set",
    r"could not parse \".*\" as \w+ value from environment variable .*",
    r"flag provided but not defined: .*",
    r"invalid (?:boolean )?value .* for (?:flag )?-.*: parse error",
    r"flag needs an argument: .*",
    r"bad flag syntax: .*",
    r"Cannot use two forms of the same flag: .*",
    r"No help topic for '.*'",
)
_NVDRAIN: Final = (r"Failed to delete all GPU pods(?:: .*)?", r"error building kubernetes .*", r"error parsing --timeout flag.*")
_LOGGED: Final = re.compile("|".join((*_patterns(messages, {"MODULE_TABLE_ROW", "NO_TLS"}), *_USAGE_ERRORS, *_NVDRAIN)), re.DOTALL)
_ECHOED: Final = re.compile(
    "|".join(
        (
            *_patterns(shell_messages, {"SCRIPT", "USAGE", "IN_USE", "NOT_READY", "MISSING_NODE_NAME"}),
            r"node/\S+ (?:not labeled|labeled|already cordoned|cordoned|already uncordoned|uncordoned|drained)",
            r"pods?/\S+ (?:condition met|evicted|deleted|eviction failed|deletion failed)",
        )
    )
)
_BESIDE: Final = re.compile(
    r"[IWEF](?:\d{4} [\d:.]+ +\d+)? (?:client_config|config)\.go:\d+\] .*|"
    r"evicting pod \S+/\S+|error when evicting pods?.*|panic: .*|WARNING: .*|"
    r"There are pending (?:nodes|pods).*|Following errors occurred.*|Warning: .*|"
    r"rmmod: .*|lsmod: .*|umount: .*|rm: cannot remove .*|libkmod: .*|Error: could not get list of modules.*|"
    r"Commands:\Z|  (?:uninstall_driver|preflight_check)\Z|"
    r"/usr/local/bin/driver-manager: line \d+: .*|Usage: /usr/local/bin/driver-manager .*|"
    r"Could not unload NVIDIA driver kernel modules, driver is in use|stat: cannot statx '/run/mellanox.*|"
    r"Error from server(?! \(BadRequest\): container ).*|error: .*|The connection to the server .*|Unable to connect to the server: .*"
)
_FIRST_WORDS: Final = re.compile(
    r"[A-Z][a-z]+[: ]|NVIDIA|node/|pods?/|evicting|error|panic|WARNING|rmmod|lsmod|umount|rm:|libkmod|/usr/local/bin/driver|[IWEF]\d{4} |"
    r"NODE_NAME|GPUDirect|nvidia|stat:|  File|  uninstall_driver|  preflight_check|Could|gdrdrv|mlx5"
)


@lru_cache(maxsize=4096)
def _kind(message: str, *, header: bool) -> str:
    """What a line is, "" if it is none of driver-manager's."""
    if header:
        return LOG if _LOGGED.fullmatch(message.strip()) or ROW.match(message) else ""
    if not _FIRST_WORDS.match(message):
        return ""
    if _ECHOED.fullmatch(message.strip()):
        return ECHO
    if _BESIDE.match(message) or (message.startswith(("nvidia", "gdrdrv", "mlx5")) and ROW.match(message)):
        return RAW
    return ""


# --- reading ------------------------------------------------------------------------------------------------------------


def read(text: str) -> Log:
    """The lines that driver-manager wrote."""
    log = Log([], [], 0)
    last: Entry | None = None
    beside: set[str] = set()
    for number, line in _logical(text):
        found = _parsed(line)
        if found is None:
            stripped = line.strip()
            log.foreign += bool(stripped)
            if last is not None and len(last.more) < _MOST_LINES:
                last.more.append(line)
            continue
        kind, level, message = found
        if kind == RAW:
            if message not in beside:
                beside.add(message)
                log.raws.append(Entry(number, kind, level, message))
            continue
        entry = Entry(number, kind, level, message)
        if begins_run(entry):
            beside.clear()
        if _repeats_poll(log.entries, message):
            last = None
            continue
        log.entries.append(entry)
        last = entry
    for entry in log.entries:  # what was another line in front of them counts as foreign only if nobody needs it
        while entry.more and not entry.more[-1].strip():
            entry.more.pop()
    return log


_FIRST_LINES: Final = (messages.STARTING, messages.PERFORMING_PREFLIGHT)
_FIRST_OF_SCRIPT: Final = "Getting current value of the 'nvidia.com/gpu.deploy.operator-validator' node label"


def begins_run(entry: Entry) -> bool:
    """Is it a line that only the beginning of a run prints?"""
    return entry.message.strip() in (*_FIRST_LINES, _FIRST_OF_SCRIPT)


@lru_cache(maxsize=1024)
def polled(message: str) -> str:
    """What a line of a poll is known by, "" if it is none: its number does not count."""
    return re.sub(r"\d+", "N", squeezed(message)) if POLLED.match(message.lstrip()) else ""


def _repeats_poll(entries: list[Entry], message: str) -> bool:
    key = polled(message)
    return bool(key) and any(polled(entry.message) == key for entry in entries[-2:])


@lru_cache(maxsize=4096)
def _parsed(line: str) -> tuple[str, str, str] | None:
    """Kind, level and message of a line; None if it is none of driver-manager's."""
    if "level=" in line:
        found = _HEADER.search(line)
        if found is not None:
            message = found[3].rstrip()
            if len(message) > 1 and message[0] == message[-1] == '"':
                message = _unquoted(message)
            return (LOG, _LEVELS.get(found[2], found[2]), message) if _kind(message, header=True) else None
    found = _TERMINAL.match(line)
    if found is not None:
        message = found[2].rstrip()
        return (LOG, _LEVELS.get(found[1], "debug"), message) if _kind(message, header=True) else None
    message = line.rstrip()
    kind = _kind(message, header=False)
    if not kind:
        return None
    return (kind, "", _KLOG.sub(r"\1 ", message) if kind == RAW else message)


def _unquoted(text: str) -> str:
    """A message that logrus quoted (`%q`)."""
    try:
        return str(json.loads(text))
    except ValueError:
        return text


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """The lines without what stands in front of them, partial ones joined; the number of the line they begin on."""
    prefixes = Prefixes(text, _is_own)
    partial, begun = "", 0
    broken, left = "", 0
    for number, physical in enumerate(text.split("\n"), start=1):
        line, is_part = prefixes.bare(physical)
        if partial:
            line, start = (partial + line if len(partial) < LONGEST_LINE else partial), begun
        else:
            start = number
        if is_part:
            partial, begun = line, start
            continue
        partial = ""
        if broken:
            line, start = broken + line, begun
            left -= 1
        if line.startswith("time=") and "msg=" not in line and (left or not broken):
            broken, begun, left = line, start, left if broken else _BROKEN_HEADER
            continue
        broken = ""
        yield start, line
    if partial or broken:
        yield begun, partial or broken


def _is_own(line: str) -> bool:
    """Is it a line of the log's or the script's, which nobody else prints?"""
    found = _parsed(line)
    return found is not None and found[0] != RAW


# --- lines that a terminal broke ----------------------------------------------------------------------------------------

_OPENER: Final = re.compile(
    r'time=|(?:INFO|WARN|ERRO|FATA)\[|\{"log":|\[(?:pod/)?[^\s\]/]+/|\d{4}-\d\d-\d\dT\d\d:|[IWEF]\d{4} |'
    r"evicting pod |error when evicting |panic: "
)
_HEADED: Final = re.compile(r"time=|(?:INFO|WARN|ERRO|FATA)\[")
_MOST_PARTS: Final = 40
"""A message is broken into no more parts."""
_WIDEST: Final = 400
"""Columns of a terminal."""
_LONGEST: Final = 2**20
"""Nobody wraps more than this."""


def unwrapped(text: str) -> Iterator[str]:
    """The text with its wrapped lines put together again: broken at the last column, or between words. Nothing if it is not wrapped."""
    if len(text) > _LONGEST:
        return
    lines = [without_colours(line.rstrip("\r")) for line in text.split("\n")]
    width = max(map(len, lines))
    if not 20 <= width <= _WIDEST:
        return
    hard: list[str] = []
    soft: list[str] = []
    is_open, parts, room = False, 0, 0
    for index, line in enumerate(lines):
        may_continue = index > 0 and bool(line) and not _OPENER.match(line)
        is_new = not may_continue or _parsed(line) is not None
        if not is_new and len(lines[index - 1]) >= width:
            hard[-1] += line
        else:
            hard.append(line)
        first = line.split(" ", 1)[0]
        fits_not = not is_new and bool(soft[-1].strip()) and room < len(first) + 1
        if parts < _MOST_PARTS and (fits_not or (may_continue and is_open)):
            soft[-1] = _joined(soft[-1], line)
            parts += 1
        else:
            soft.append(line)
            parts = 1
        is_open = bool(_HEADED.match(soft[-1])) and _parsed(soft[-1]) is None
        room = width - len(line)
    for joined in (hard, soft):
        if len(joined) < len(lines):
            yield "\n".join(joined)


def _joined(line: str, rest: str) -> str:
    """Two parts of a line: `fold` leaves the space that it breaks at, others drop it; a hyphen may be broken after."""
    return line.rstrip(" ") + ("" if line.endswith("-") else " ") + rest.lstrip(" ")
