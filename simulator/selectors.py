"""Label and field selectors, and the syntax of label keys and values, as Kubernetes has them.

A leaf: the client parses a drain selector before it sends it, and the API server parses it again.

Source: k8s.io/apimachinery/pkg/labels/selector.go, pkg/fields, pkg/util/validation, pkg/util/validation/field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from simulator.gocompat import GoError, aggregate, quote

_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_NAME_TEXT: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    " (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '" + _NAME + "')"
)
_VALUE_TEXT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end"
    " with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(" + _NAME + ")?')"
)
_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = _DNS_LABEL + r"(\." + _DNS_LABEL + ")*"
_SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end"
    " with an alphanumeric character (e.g. 'example.com', regex used for validation is '" + _SUBDOMAIN + "')"
)
_LONGEST_NAME: Final = 63
_LONGEST_SUBDOMAIN: Final = 253
_NAME_RE: Final = re.compile(_NAME + r"\Z")
_VALUE_RE: Final = re.compile(f"({_NAME})?" + r"\Z")
_SUBDOMAIN_RE: Final = re.compile(_SUBDOMAIN + r"\Z")


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


class Words(NamedTuple):
    """What errors call a label key with two slashes, and the unit of a length: apimachinery changed both in v0.35."""

    label_key: str = "a qualified name"
    unit: str = "characters"


WORDS: Final = Words()


def _too_long(limit: int, words: Words) -> str:
    return f"must be no more than {limit} {words.unit}"


def subdomain_errors(value: str, words: Words = WORDS) -> list[str]:
    """What is wrong with a DNS subdomain (`IsDNS1123Subdomain`): object names, the prefix of a label key."""
    errors = [_too_long(_LONGEST_SUBDOMAIN, words)] if _bytes(value) > _LONGEST_SUBDOMAIN else []
    if not _SUBDOMAIN_RE.match(value):
        errors.append(_SUBDOMAIN_TEXT)
    return errors


def label_key_errors(key: str, words: Words = WORDS) -> list[str]:
    """What is wrong with a label key (`IsQualifiedName`, later `IsLabelKey`): `[prefix/]name`."""
    parts = key.split("/")
    errors: list[str] = []
    if len(parts) > 2:
        return [f"{words.label_key} {_NAME_TEXT} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    if len(parts) == 2:
        prefix = parts[0]
        errors += (
            ["prefix part must be non-empty"] if not prefix else [f"prefix part {text}" for text in subdomain_errors(prefix, words)]
        )
    name = parts[-1]
    if not name:
        errors.append("name part must be non-empty")
    elif _bytes(name) > _LONGEST_NAME:
        errors.append(f"name part {_too_long(_LONGEST_NAME, words)}")
    if not _NAME_RE.match(name):
        errors.append(f"name part {_NAME_TEXT}")
    return errors


def label_value_errors(value: str, words: Words = WORDS) -> list[str]:
    """What is wrong with a label value (`IsValidLabelValue`): at most 63 bytes of a small alphabet, or empty."""
    errors = [_too_long(_LONGEST_NAME, words)] if _bytes(value) > _LONGEST_NAME else []
    if not _VALUE_RE.match(value):
        errors.append(_VALUE_TEXT)
    return errors


class Requirement(NamedTuple):
    """One condition: a key, an operator of the API (`=`, `==`, `!=`, `in`, `notin`, `exists`, `!`, `gt`, `lt`), values."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Do the labels meet it?"""
        has = self.key in labels
        match self.operator:
            case "=" | "==" | "in":
                return has and labels[self.key] in self.values
            case "!=" | "notin":
                return not has or labels[self.key] not in self.values
            case "exists":
                return has
            case "!":
                return not has
            case _:
                return has and _compare(labels[self.key], self.operator, self.values[0])

    def __str__(self) -> str:
        """Canonical text."""
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"
            case "gt" | "lt":
                return f"{self.key}{'>' if self.operator == 'gt' else '<'}{self.values[0]}"
            case _:
                return f"{self.key}{self.operator}{self.values[0]}"


class Selector(NamedTuple):
    """Conditions that must all hold, sorted by key. Empty selects everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Do the labels meet every condition?"""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        """Canonical text, as a client puts it into a query."""
        return ",".join(str(requirement) for requirement in self.requirements)


def _compare(value: str, operator: str, bound: str) -> bool:
    try:
        number = _parse_int(value)
    except ValueError:
        return False
    return number > _parse_int(bound) if operator == "gt" else number < _parse_int(bound)


def _parse_int(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text) or not -(2**63) <= int(text) < 2**63:
        raise ValueError(text)
    return int(text)


@lru_cache(maxsize=512)
def parse(text: str, words: Words = WORDS) -> Selector:
    """`labels.Parse`. Raises GoError with its text, e.g. `found ',', expected: identifier after ','`."""
    requirements = _Parser(text, words).parse()
    return Selector(tuple(sorted(requirements, key=lambda requirement: requirement.key)))


class _Token(NamedTuple):
    kind: str
    text: str


_SYMBOLS: Final = "=!(),><"
_TOKENS: Final = {")", ",", "!", "==", "=", ">", "in", "<", "!=", "notin", "("}
_OPERATORS: Final = {"in": "in", "=": "=", "==": "==", ">": "gt", "<": "lt", "notin": "notin", "!=": "!="}
_EXPECTED_OPERATOR: Final = "in, notin, =, ==, !=, gt, lt"


def _tokens(text: str) -> list[_Token]:
    out: list[_Token] = []
    at = 0
    text = text.partition("\0")[0]  # the lexer takes a NUL for the end
    while True:
        while at < len(text) and text[at] in " \t\r\n":
            at += 1
        if at >= len(text):
            out.append(_Token("end", ""))
            return out
        start = at
        if text[at] in _SYMBOLS:
            at = _symbol_end(text, at)
            word = text[start:at]
            out.append(
                _Token(word if word in _TOKENS else "error", word if word in _TOKENS else f"error expected: keyword found '{word}'")
            )
            continue
        while at < len(text) and text[at] not in _SYMBOLS and text[at] not in " \t\r\n":
            at += 1
        word = text[start:at]
        out.append(_Token(word if word in _TOKENS else "identifier", word))


def _symbol_end(text: str, at: int) -> int:
    """The longest run of symbols that is a token: `==`, `!=`, or one character."""
    start, found = at, False
    while at < len(text) and text[at] in _SYMBOLS:
        at += 1
        if text[start:at] in _TOKENS:
            found = True
        elif found:
            return at - 1
    return at


class _Parser:
    """Recursive descent, as upstream's: `in` and `notin` are identifiers where a key or value stands."""

    def __init__(self, text: str, words: Words) -> None:
        self.words = words
        self.items = _tokens(text)
        self.at = 0

    def look(self, *, values: bool = True) -> _Token:
        token = self.items[self.at]
        return _Token("identifier", token.text) if values and token.kind in {"in", "notin"} else token

    def take(self, *, values: bool = True) -> _Token:
        token = self.look(values=values)
        self.at += 1
        return token

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while True:
            token = self.look()
            if token.kind == "end":
                return requirements
            if token.kind not in {"identifier", "!"}:
                raise GoError(f"found '{token.text}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self.requirement())
            except GoError as error:
                raise GoError(f"unable to parse requirement: {error}") from None
            token = self.take()
            if token.kind == "end":
                return requirements
            if token.kind != ",":
                raise GoError(f"found '{token.text}', expected: ',' or 'end of string'")
            token = self.look()
            if token.kind not in {"identifier", "!"}:
                raise GoError(f"found '{token.text}', expected: identifier after ','")

    def requirement(self) -> Requirement:
        token = self.take()
        absent = token.kind == "!"
        if absent:
            token = self.take()
        if token.kind != "identifier":
            raise GoError(f"found '{token.text}', expected: identifier")
        key = token.text
        errors = label_key_errors(key, self.words)
        if errors:
            raise GoError(f"<nil>: Invalid value: {quote(key)}: {'; '.join(errors)}")
        if self.look().kind in {"end", ","}:
            return Requirement(key, "!" if absent else "exists")
        if absent:
            return Requirement(key, "!")
        token = self.take(values=False)
        if token.kind not in _OPERATORS:
            raise GoError(f"found '{token.text}', expected: {_EXPECTED_OPERATOR}")
        operator = _OPERATORS[token.kind]
        values = self.value_set() if operator in {"in", "notin"} else [self.exact_value()]
        return _checked(key, operator, values, self.words)

    def value_set(self) -> list[str]:
        token = self.take()
        if token.kind != "(":
            raise GoError(f"found '{token.text}' expected: '('")
        first = self.look()
        if first.kind == ")":
            self.take()
            return [""]
        if first.kind not in {"identifier", ","}:
            raise GoError(f"found '{first.text}', expected: ',', ')' or identifier")
        values = self.identifiers()
        if self.take().kind != ")":
            raise GoError(f"found '{first.text}', expected: ')'")
        return sorted(values)

    def identifiers(self) -> set[str]:
        values: set[str] = set()
        while True:
            token = self.take()
            if token.kind == "identifier":
                values.add(token.text)
                following = self.look()
                if following.kind == ")":
                    return values
                if following.kind != ",":
                    raise GoError(f"found '{following.text}', expected: ',' or ')'")
            elif token.kind == ",":
                if not values:
                    values.add("")
                following = self.look()
                if following.kind == ")":
                    values.add("")
                    return values
                if following.kind == ",":
                    self.take()
                    values.add("")
            else:
                raise GoError(f"found '{token.text}', expected: ',', or identifier")

    def exact_value(self) -> str:
        token = self.look()
        if token.kind in {"end", ","}:
            return ""
        token = self.take()
        if token.kind == "identifier":
            return token.text
        raise GoError(f"found '{token.text}', expected: identifier")


def _checked(key: str, operator: str, values: list[str], words: Words) -> Requirement:
    errors: list[GoError] = []
    if operator in {"gt", "lt"}:
        try:
            _parse_int(values[0])
        except ValueError:
            errors.append(
                GoError(f"values[0]: Invalid value: {quote(values[0])}: for 'Gt', 'Lt' operators, the value must be an integer")
            )
    for index, value in enumerate(values):
        wrong = label_value_errors(value, words)
        if wrong:
            errors.append(GoError(f"values[{index}][{key}]: Invalid value: {quote(value)}: {'; '.join(wrong)}"))
    failure = aggregate(errors)
    if failure is not None:
        raise failure
    return Requirement(key, operator, tuple(values))


def parse_fields(text: str) -> list[tuple[str, bool, str]]:
    """`fields.ParseSelector`: `path=value`, `path==value`, `path!=value`, as (path, equal, value).

    Raises GoError `invalid selector: 'x'; can't understand 'x'`.
    """
    out = []
    for part in _split_unescaped(text, ","):
        if not part:
            continue
        match = re.match(r"((?:[^\\=!]|\\.|!(?!=))*?)(==|=|!=)(.*)\Z", part, re.DOTALL)
        if match is None:
            raise GoError(f"invalid selector: '{text}'; can't understand '{part}'")
        out.append((match[1], match[2] != "!=", re.sub(r"\\(.)", r"\1", match[3])))
    return out


def escape_field(value: str) -> str:
    """`fields.EscapeValue`."""
    return re.sub(r"([\\,=])", r"\\\1", value)


def _split_unescaped(text: str, separator: str) -> list[str]:
    parts, part, escaped = [], "", False
    for char in text:
        if char == separator and not escaped:
            parts.append(part)
            part = ""
            continue
        part += char
        escaped = char == "\\" and not escaped
    return [*parts, part]
