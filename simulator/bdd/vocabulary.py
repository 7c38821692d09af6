"""The vocabulary as a page: `python -m simulator.bdd.vocabulary > docs/vocabulary.md`.

Made from the step definitions themselves, so that it says what is matched. `tests/features` checks that the page is up to
date.
"""

from __future__ import annotations

import difflib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pytest_bdd.steps import StepFunctionContext, step_function_context_registry

from simulator.bdd.steps import given, node, passthrough, then, when
from simulator.bdd.tags import TAGS, VALUED
from simulator.scenario import load_cluster, names


@dataclass(frozen=True, slots=True)
class Definition:
    """A step definition: its keyword, its sentence, what it says of itself."""

    keyword: str
    sentence: str
    doc: str
    matches: Callable[[str], bool]


def definitions() -> list[Definition]:
    """Every step definition, Given before When before Then, each in the order of its module, those of a node and of passthrough last."""
    order, later = ("given", "when", "then"), ["", node.__name__, passthrough.__name__]
    modules = {module.__name__ for module in (given, when, then, node, passthrough)}

    def place(context: StepFunctionContext) -> int:
        return max(later.index(name) for name in later if name in {"", context.step_func.__module__})

    found = [
        Definition(context.type or "", context.parser.name, inspect.getdoc(context.step_func) or "", context.parser.is_matching)
        for context in sorted(step_function_context_registry.values(), key=place)
        if context.step_func.__module__ in modules
    ]
    return sorted(found, key=lambda definition: order.index(definition.keyword))


def nearest_sentence(keyword: str, step: str) -> str:
    """The sentence of a keyword that is most like a text that matches none."""
    words = re.findall(r"\w+", step.lower())

    def likeness(one: Definition) -> float:
        wanted = re.findall(r"\w+", re.sub(r"\{[^}]*\}", " ", one.sentence).lower())
        return difflib.SequenceMatcher(a=words, b=wanted).ratio()

    best = max((one for one in definitions() if one.keyword == keyword), key=likeness)
    return f"the nearest sentence: {best.keyword.capitalize()} {best.sentence}"


_INTRODUCTION = """\
# Vocabulary

<!-- Made by `make pages`; change the step definitions, not this page. -->

Every sentence a scenario may use. `{name}` stands for one word, `"{name}"` for anything between quotes, `{name:number}` for
a number, `{name:rest}` for the rest of the line, `{name=a|b}` for one of these; `(this|that)` is either, `[ this]` may be
left out. A table or a block of text follows a sentence that ends in a colon.
"""

_TITLES = {
    "given": "## Given: a known world, and what is different about it here",
    "when": "## When: one run of driver-manager, one question, or a node's time",
    "then": "## Then: what can be observed",
}


def page() -> Iterator[str]:
    """The page, line by line."""
    yield from _INTRODUCTION.splitlines()
    keyword = ""
    for definition in definitions():
        if definition.keyword != keyword:
            keyword = definition.keyword
            yield from ("", _TITLES[keyword])
        yield from ("", f"- `{definition.sentence}`", "")
        yield from (line and f"    {line}" for line in definition.doc.splitlines())
    yield from ("", "## Tags", "")
    yield from (f"- `@{tag}`: {text}" for tag, text in {**TAGS, **VALUED}.items())
    yield from ("", "## Named clusters", "")
    yield from (f"- `{name}`: {load_cluster(name).description}" for name in names("clusters"))


def main() -> None:
    """Print the page."""
    sys.stdout.write("\n".join(page()) + "\n")


if __name__ == "__main__":
    main()
