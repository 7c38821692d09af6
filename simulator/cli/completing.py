"""What may stand next on a command line of dmsim, read off the subcommands' own parsers: for the scripts of the shells.

A value is completed by what its metavar says it is; `by_metavar` knows each one that is in use.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from simulator.cli.main import NO_COLOR, SUBCOMMANDS, subparser
from simulator.manager.charts import CHARTS
from simulator.manager.releases import RELEASES
from simulator.manager.whatif import WHAT_IFS
from simulator.scenario import names
from simulator.schemas.catalogue import SCHEMAS

_OWN: Final = {"--help": "list the commands", "--version": "say which dmsim this is", NO_COLOR: "no colour"}


class Values(NamedTuple):
    """What may stand in one place: words, each with what it means ("" if it says that itself), and files."""

    words: Mapping[str, str]
    files: bool = False

    def beginning(self, start: str) -> Values:
        """Only the words that begin so."""
        return Values({word: text for word, text in self.words.items() if word.startswith(start)}, self.files)


NOTHING: Final = Values({})
"""Only the user knows."""

FILES: Final = Values({}, files=True)


def complete(line: Sequence[str]) -> Values:
    """What the last word of a line may become, given those before it; "dmsim" itself is not among them.

    `--host=NAME` may be one word, as most shells have it, or three, as bash has it.
    """
    *before, word = line or ("",)
    while before[:1] == [NO_COLOR]:
        del before[0]
    option, equals, value = word.partition("=")
    if equals and option.startswith("--"):
        found = _at([*before, option], value)
        return Values({f"{option}={each}": text for each, text in found.words.items()}, found.files)
    if word == "=":
        word = ""
    elif before[-1:] == ["="]:
        del before[-1]
    return _at(before, word)


def _at(before: Sequence[str], word: str) -> Values:
    name = next((name for size in (2, 1) if (name := " ".join(before[:size])) in SUBCOMMANDS), "")
    if not name:
        own = _OWN if word.startswith("-") and not before else {}
        return Values({**own, **_next_words(before)}).beginning(word)
    parser: argparse.ArgumentParser = subparser(name)
    rest = list(before[len(name.split()) :])
    while rest and (inner := _inner(parser)) is not None and rest[0] in inner.choices:
        parser = inner.choices[rest.pop(0)]
    if "--" in rest:
        return NOTHING
    expected = _expected(parser, rest, word)
    if expected is not None:
        return expected.beginning(word)
    if word.startswith("-"):
        return _options(parser, rest).beginning(word)
    further = {} if rest else _next_words(name.split())
    arguments = [values_of(action) for action in parser._actions if not action.option_strings]
    words = {key: text for values in arguments for key, text in values.words.items()}
    return Values(words | further, any(values.files for values in arguments)).beginning(word)


def _next_words(before: Sequence[str]) -> dict[str, str]:
    """The words that make a subcommand of those before, alone or with one more."""
    found: dict[str, str] = {}
    for name, text in SUBCOMMANDS.items():
        words = name.split()
        if words[: len(before)] == list(before) and len(words) > len(before):
            is_whole = len(words) == len(before) + 1
            found.setdefault(words[len(before)], text if is_whole else "")
    return found


def _inner(parser: argparse.ArgumentParser) -> argparse._SubParsersAction[argparse.ArgumentParser] | None:
    """The commands within a subcommand, if it has some. argparse tells them in no other way."""
    return next((action for action in parser._actions if isinstance(action, argparse._SubParsersAction)), None)


def _expected(parser: argparse.ArgumentParser, rest: Sequence[str], word: str) -> Values | None:
    """The values of the option that the word belongs to; None if it belongs to none."""
    for distance, each in enumerate(reversed(rest), 1):
        if not each.startswith("-") or each == "-":
            continue
        action = parser._option_string_actions.get(each)
        if action is None or action.nargs == 0:
            return None
        is_first = distance == 1
        takes_more = action.nargs in {"+", "*"} and not word.startswith("-")
        return values_of(action) if is_first or takes_more else None
    return None


def _options(parser: argparse.ArgumentParser, rest: Iterable[str]) -> Values:
    """The options, in their long form if they have one, but for those that stand there already and cannot be repeated."""
    given = set(rest)
    found = {}
    for action in parser._actions:
        is_repeated = isinstance(action, argparse._AppendAction)  # extending is a kind of appending
        if action.option_strings and (is_repeated or not given & set(action.option_strings)):
            found[max(action.option_strings, key=len)] = _plain(action.help or "")
    return Values(found)


def _plain(text: str) -> str:
    """A help text up to its first details."""
    return text.partition(" (")[0].partition(":")[0].replace("%%", "%")


def values_of(action: argparse.Action) -> Values:
    """What may stand for an argument: its choices, else what its metavar says; nothing for a metavar that is not known."""
    if isinstance(action, argparse._SubParsersAction):
        return Values({choice.dest: choice.help or "" for choice in action._choices_actions})
    if action.choices is not None:
        return Values(dict.fromkeys(map(str, action.choices), ""))
    return by_metavar(action.dest).get(str(action.metavar), NOTHING)


def by_metavar(dest: str) -> Mapping[str, Values]:
    """Metavar -> what may stand for it. Of some metavars the argument's own name says more."""
    return {
        **dict.fromkeys(("FILE", "DIR", "OUT", "CASES", "LOG", "PATH", "WORLD|BUNDLE", "REF|DIR|FILE.tar", "RESULTS"), FILES),
        **dict.fromkeys(("K=V", "ID", "TEXT", "N", "S", "T", "DATE", "ADDRESS", "REF", "ARGS", "WORD"), NOTHING),
        **dict.fromkeys(("R", "R2"), _words(RELEASES)),
        "R1 R2": _words((*RELEASES, *CHARTS)),
        "C": _words(CHARTS),
        "STORY": _words(names("stories"), files=True),
        "HOST": _words(names("hosts"), files=True),
        "NAME|FILE": _words(names("clusters" if dest == "cluster" else "hosts"), files=True),
        "NAME": _words({"what_if": WHAT_IFS, "schema": SCHEMAS}.get(dest, ())),
    }


def _words(words: Iterable[str], *, files: bool = False) -> Values:
    return Values(dict.fromkeys(words, ""), files)
