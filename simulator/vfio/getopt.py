"""BusyBox's `getopt` command, as the shell version calls it: `getopt -o ad: --long all,device-id: -- "$@"`.

Options may stand behind other arguments and long ones may be shortened; arguments come out quoted for the shell. Leaves
out the variable GETOPT_COMPATIBLE.

Source: BusyBox 1.35 util-linux/getopt.c, glibc getopt_long; both by experiment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

_SHORT: Final = {"a": False, "d": True}
_LONG: Final = {"all": False, "device-id": True}
"""Option -> does it take an argument?"""


class Word(NamedTuple):
    """A word of the output: an option's name or `--`, or an argument, which is printed in quotes."""

    text: str
    quoted: bool = False

    def __str__(self) -> str:
        """As getopt prints it."""
        return "'" + self.text.replace("'", "'\\''") + "'" if self.quoted else self.text


class Parsed(NamedTuple):
    """What getopt prints, and what it complains about; any complaint makes it exit 1."""

    words: list[Word]
    complaints: list[str]

    @property
    def text(self) -> str:
        """Standard output, without its newline."""
        return "".join(f" {word}" for word in self.words)


def getopt(args: Sequence[str], *, posixly_correct: bool = False) -> Parsed:
    """Sort arguments into options and others. `posixly_correct` stops at the first other argument."""
    words: list[Word] = []
    complaints: list[str] = []
    others: list[str] = []
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if arg == "--":
            break
        if arg.startswith("--"):
            _long(arg, rest, words, complaints)
        elif arg.startswith("-") and arg != "-":
            _short(arg[1:], rest, words, complaints)
        else:
            others.append(arg)
            if posixly_correct:
                break
    words.append(Word("--"))
    words += (Word(other, quoted=True) for other in (*others, *rest))
    return Parsed(words, complaints)


def _long(arg: str, rest: list[str], words: list[Word], complaints: list[str]) -> None:
    given, equals, value = arg[2:].partition("=")
    found = [given] if given in _LONG else [name for name in _LONG if name.startswith(given)]
    if len(found) > 1:
        shown = " ".join(f"'--{name}'" for name in found)
        complaints.append(f"option '{arg}' is ambiguous; possibilities: {shown}")
        return
    if not found:
        complaints.append(f"unrecognized option '{arg}'")
        return
    name = found[0]
    if not _LONG[name]:
        if equals:
            complaints.append(f"option '--{name}' doesn't allow an argument")
        else:
            words.append(Word(f"--{name}"))
        return
    if not equals:
        if not rest:
            complaints.append(f"option '--{name}' requires an argument")
            return
        value = rest.pop(0)
    words += (Word(f"--{name}"), Word(value, quoted=True))


def _short(letters: str, rest: list[str], words: list[Word], complaints: list[str]) -> None:
    while letters:
        letter, letters = letters[0], letters[1:]
        if letter not in _SHORT:
            complaints.append(f"invalid option -- '{letter}'")
        elif not _SHORT[letter]:
            words.append(Word(f"-{letter}"))
        elif letters or rest:
            words += (Word(f"-{letter}"), Word(letters or rest.pop(0), quoted=True))
            return
        else:
            complaints.append(f"option requires an argument -- '{letter}'")
