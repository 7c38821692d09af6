"""The commands of two guides of Cozystack's, block by block: passthrough on a host with a preinstalled driver, and to VMs.

Only the command lines are here, in `fixtures/guides`, each block with its place and the hash of its text; the guide is its
authors'. `blocks_of` finds the blocks in a guide's text, so that a copy of it can be held against the list: a block that is
new, gone or changed shows. The list says of each block what runs it, or why nothing can.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from simulator.reading import Place, read_document, read_format
from simulator.scenario import fixtures

PREINSTALLED_DRIVER: Final = "preinstalled-driver"
PASSTHROUGH: Final = "passthrough"
_COMMAND: Final = re.compile(
    r"(sudo|kubectl|dpkg-query|lsmod|lspci|command|dkms|apt|apt-get|update-initramfs|nvidia-smi|virtctl)\s"
)
_BETWEEN: Final = re.compile(r"\n\s*\n|^```.*$", re.MULTILINE)
_WORDS: Final = re.compile("[\u0400-\u04ff]")


@dataclass(frozen=True, slots=True)
class Block:
    """A block: its text's hash, and its command lines as printed, without comments."""

    sha256: str
    commands: str


@dataclass(frozen=True, slots=True)
class Listed:
    """A block of the list: what runs it (the name of a test of `tests/node/test_guide.py`), or why nothing can."""

    block: Block
    run_by: str = ""
    not_executable: str = ""


def blocks_of(text: str) -> Iterator[Block]:
    """The command blocks of a guide's plain text: paragraphs that begin with a command and have words only in comments.

    A line of three backticks parts two paragraphs.
    """
    for paragraph in _BETWEEN.split(text):
        lines = [line.rstrip() for line in paragraph.strip("\n").split("\n")]
        commands = [line for line in lines if not line.startswith("#")]
        if commands and _COMMAND.match(commands[0]) and not any(map(_WORDS.search, commands)):
            whole = "\n".join(lines)
            yield Block(hashlib.sha256(whole.encode()).hexdigest(), "\n".join(commands) + "\n")


@lru_cache(maxsize=2)
def listed(name: str = PREINSTALLED_DRIVER) -> tuple[Listed, ...]:
    """The list of a guide."""
    place = read_document(fixtures() / "guides" / f"{name}.yaml", f"guides/{name}.yaml")
    place.mapping(("format", "blocks"))
    read_format(place)
    return tuple(map(_listed, place.elements("blocks")))


def _listed(place: Place) -> Listed:
    place.mapping(("sha256", "commands", "run_by", "not_executable"))
    block = Block(place.need("sha256", "write the text's hash").text(), place.need("commands", "write the lines").text())
    run_by, reason = place.get("run_by"), place.get("not_executable")
    if (run_by is None) == (reason is None):
        place.fail("is neither run nor said to be not executable, or both", "write run_by or not_executable")
    return Listed(block, run_by.text() if run_by else "", reason.text() if reason else "")
