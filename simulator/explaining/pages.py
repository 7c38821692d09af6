"""What a Go release prints where it does nothing else: pages of help, and that there is no such command.

A page that is cut, and one that an error followed, is printed alike; so each command line whose output begins with the text's lines
is a candidate. The version on a page is the build's and says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from simulator.config import PREFLIGHT_CHECK, UNINSTALL_DRIVER, read
from simulator.explaining.go_answers import NAMED, refusals
from simulator.explaining.search import Candidate
from simulator.explaining.steering import NOTHING, Decision
from simulator.explaining.text import Entry, squeezed
from simulator.manager.releases import GO_RELEASES, flow
from simulator.urfave import End

HELPED: Final = "helped"
"""The answer of a run that was asked for help, or for nothing."""
_INCORRECT: Final = "Incorrect Usage: "
_NO_TOPIC: Final = re.compile(r"No help topic for '(.*)'\s*\Z")
_SAID: Final = "driver-manager"
"""What is not found on the pages of other programs; options are found by their environment variable."""
_OPTION: Final = re.compile(r"\s*--[a-z-]+ .*\[\$([A-Z_]+)\]\s*\Z")
_VERSION: Final = "VERSION:"
_ASKED: Final[tuple[tuple[tuple[str, ...], Mapping[str, str]], ...]] = (
    ((), NAMED),
    ((UNINSTALL_DRIVER, "--help"), NAMED),
    ((PREFLIGHT_CHECK, "--help"), NAMED),
    (("help", "help"), NAMED),
    (("--version",), NAMED),
    ((), {}),
    ((UNINSTALL_DRIVER,), {}),
    ((PREFLIGHT_CHECK,), {}),
)
"""Command lines and environments of the pages that no line of the text has to name."""


@dataclass(frozen=True, slots=True)
class Paged:
    """The candidates of a text that is a page, and its lines that are."""

    candidates: tuple[Candidate, ...]
    lines: int
    from_beginning: bool


def paged(lines: Sequence[Entry], tags: Sequence[str]) -> Paged | None:
    """The runs that print these lines, which are none of the log's; None if they are no page of these releases."""
    own = _own(lines)
    if not own:
        return None
    go = [tag for tag in tags if tag in GO_RELEASES]
    for from_beginning in (True, False):
        found = {
            (tag, *ending): Candidate(tag, *ending, (), NOTHING, (), from_beginning)
            for tag in go
            for ending in _endings(tag, own, from_beginning=from_beginning)
        }
        if found:
            return Paged(tuple(found.values()), len(own), from_beginning)
    return None


def _own(lines: Sequence[Entry]) -> list[str]:
    """The lines that a page has. Those of other containers are left out, if any of the lines is driver-manager's alone."""
    texts = [entry.message for entry in lines if entry.message.strip()]
    after_version = {index + 1 for index, text in enumerate(texts) if text.strip() == _VERSION}
    own = [text for index, text in enumerate(texts) if index in after_version or _is_of_page(text)]
    telling = any(_SAID in text or _NO_TOPIC.match(text.strip()) or _OPTION.match(text) for text in own)
    return own if telling or len(own) == len(texts) else []


def _is_of_page(text: str) -> bool:
    plain = text.strip()
    return (
        squeezed(text) in _vocabulary()
        or plain.startswith((_INCORRECT, "driver-manager version "))
        or _NO_TOPIC.match(plain) is not None
    )


@lru_cache(maxsize=1)
def _vocabulary() -> frozenset[str]:
    """Every line of every page, without white space."""
    return frozenset(line for tag in GO_RELEASES for args, env in _ASKED for line in _squeezed_lines(_ended(tag, args, env).stdout))


def _squeezed_lines(text: str) -> list[str]:
    return [squeezed(line) for line in text.split("\n") if line.strip()]


def _ended(tag: str, args: tuple[str, ...], env: Mapping[str, str]) -> End:
    ended = read(flow(tag).flags, args, env)
    return ended if isinstance(ended, End) else End()  # these settings are accepted: no page


def _endings(tag: str, own: Sequence[str], *, from_beginning: bool) -> Iterator[tuple[int | None, tuple[Decision, ...]]]:
    """Exit code and decisions of the runs of a release that print these lines, first of all or somewhere."""
    lines = [squeezed(line) for line in own]
    for args, env in (*_ASKED, *_named_by(own[0].strip())):
        ended = _ended(tag, args, env)
        page = _squeezed_lines(ended.stdout + ended.stderr)
        starts = range(1) if from_beginning else range(1, len(page) - len(lines) + 1)
        for start in starts:
            if not _agree(lines, page, start):
                continue
            failed = ended.fatal or (ended.stderr.strip() if ended.exit_code else "")
            if start + len(lines) < len(page) or ended.fatal is not None:  # an error is logged after its page
                yield None, ()
            else:
                yield ended.exit_code, (Decision("main", "settings", f"failed: {failed}" if failed else HELPED),)


def _named_by(line: str) -> Iterator[tuple[tuple[str, ...], Mapping[str, str]]]:
    """The command lines that a text's first line names."""
    if line.startswith(_INCORRECT):
        yield from refusals(line.removeprefix(_INCORRECT))
    elif topic := _NO_TOPIC.match(line):
        yield (topic[1],), NAMED


def _agree(lines: Sequence[str], page: Sequence[str], start: int) -> bool:
    """Do the lines stand on the page, from its line `start` on?"""
    if start + len(lines) > len(page):
        return False
    return all(
        line == page[index] or (index > 0 and page[index - 1] == _VERSION) or _is_version(line, page[index])
        for index, line in enumerate(lines, start)
    )


def _is_version(line: str, printed: str) -> bool:
    return printed == "driver-managerversionunknown" and line.startswith("driver-managerversion")
