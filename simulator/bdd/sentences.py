"""The sentences of the vocabulary: how a step definition spells what a feature file may say.

One form serves matching and documentation, so `docs/vocabulary.md` prints exactly what is matched:

    {name}            one word            "{name}"          anything between the quotes
    {name:number}     a number            {name:rest}       the rest of the line
    {name=a|b}        one of these        (this | that)     either
    [ this]           may be left out
"""

from __future__ import annotations

import re
from typing import Any, Final

from pytest_bdd.parsers import StepParser

_TOKEN: Final = re.compile(
    r"\"\{(?P<quoted>\w+)\}\"|\{(?P<name>\w+)(?::(?P<kind>number|rest)|=(?P<choice>[^}]+))?\}|(?P<mark>[\[\]()|])"
)
_MARKS: Final = {"[": "(?:", "]": ")?", "(": "(?:", ")": ")", "|": "|"}


def pattern(sentence: str) -> str:
    """The regular expression of a sentence."""
    out, at = [], 0
    for token in _TOKEN.finditer(sentence):
        out.append(re.escape(sentence[at : token.start()]))
        at = token.end()
        name, kind, choice = token["name"], token["kind"], token["choice"]
        if token["mark"]:
            out.append(_MARKS[token["mark"]])
        elif token["quoted"]:
            out.append(f'"(?P<{token["quoted"]}>[^"]*)"')
        elif choice:
            out.append(f"(?P<{name}>{'|'.join(re.escape(word) for word in choice.split('|'))})")
        else:
            out.append({"number": rf"(?P<{name}>\d+(?:\.\d+)?)", "rest": f"(?P<{name}>.*)"}.get(kind, rf"(?P<{name}>[^\s\"]+)"))
    out.append(re.escape(sentence[at:]))
    return "".join(out)


class Sentence(StepParser):
    """A sentence, matched as a whole. What was left out of it is None; numbers are floats."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.regex = re.compile(pattern(sentence))
        self.numbers = frozenset(re.findall(r"\{(\w+):number\}", sentence))

    def is_matching(self, name: str) -> bool:
        """Is a step's text this sentence?"""
        return self.regex.fullmatch(name) is not None

    def parse_arguments(self, name: str) -> dict[str, Any] | None:
        """What stands in the places of the sentence's names."""
        match = self.regex.fullmatch(name)
        if match is None:
            return None
        return {key: float(text) if key in self.numbers and text else text for key, text in match.groupdict().items()}
