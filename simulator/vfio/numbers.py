"""Go's `strconv.ParseUint` and `strconv.ParseInt`, which decide whether a sysfs file is malformed.

Base 0 takes the base from the prefix (`0x10`, `0b1`, `0o7`, `017`) and allows underscores between digits. A number that
does not fit is found before a bad digit behind it.

Source: Go 1.26 strconv/atoi.go (strconv/number.go).
"""

from __future__ import annotations

from typing import Final

from simulator.gocompat import GoError, quote

_DIGITS: Final = {char: value for value, char in enumerate("0123456789abcdefghijklmnopqrstuvwxyz")}
_PREFIXES: Final = {"b": 2, "o": 8, "x": 16}
_SYNTAX: Final = "invalid syntax"
_RANGE: Final = "value out of range"


class NumError(GoError):
    """`strconv.NumError`. `value` is what the function returns beside it: 0, or the nearest number that fits."""

    def __init__(self, function: str, text: str, problem: str, value: int) -> None:
        super().__init__(f"strconv.{function}: parsing {quote(text)}: {problem}")
        self.problem = problem
        self.value = value


def parse_uint(text: str, base: int, bits: int) -> int:
    """`strconv.ParseUint`. Raises NumError."""
    digits, radix = text, base
    if not text:
        raise NumError("ParseUint", text, _SYNTAX, 0)
    if base == 0:
        radix = 10
        if text[0] == "0":
            prefix = _PREFIXES.get(_lower(text[1])) if len(text) >= 3 else None
            radix, digits = (prefix, text[2:]) if prefix else (8, text[1:])
    largest = (1 << bits) - 1
    number = 0
    underscores = False
    for char in digits:
        if char == "_" and base == 0:
            underscores = True
            continue
        digit = _DIGITS.get(_lower(char), radix)
        if digit >= radix:
            raise NumError("ParseUint", text, _SYNTAX, 0)
        number = number * radix + digit
        if number > largest:
            raise NumError("ParseUint", text, _RANGE, largest)
    if underscores and not _underscores_fit(text):
        raise NumError("ParseUint", text, _SYNTAX, 0)
    return number


def parse_int(text: str, base: int, bits: int) -> int:
    """`strconv.ParseInt`. Raises NumError."""
    if not text:
        raise NumError("ParseInt", text, _SYNTAX, 0)
    negative = text[0] == "-"
    try:
        number = parse_uint(text[1:] if text[0] in "+-" else text, base, bits)
    except NumError as error:
        if error.problem != _RANGE:
            raise NumError("ParseInt", text, error.problem, 0) from None
        number = error.value
    limit = 1 << (bits - 1)
    if not negative and number >= limit:
        raise NumError("ParseInt", text, _RANGE, limit - 1)
    if negative and number > limit:
        raise NumError("ParseInt", text, _RANGE, -limit)
    return -number if negative else number


def _lower(char: str) -> str:
    return char.lower() if "A" <= char <= "Z" else char


def _underscores_fit(text: str) -> bool:
    """`underscoreOK`: underscores stand between digits, or between the prefix and a digit."""
    last, rest = "^", text
    is_hex = False
    if len(rest) >= 2 and rest[0] == "0" and _lower(rest[1]) in _PREFIXES:
        last, is_hex, rest = "0", _lower(rest[1]) == "x", rest[2:]
    for char in rest:
        if "0" <= char <= "9" or (is_hex and "a" <= _lower(char) <= "f"):
            last = "0"
        elif char == "_":
            if last != "0":
                return False
            last = "_"
        else:
            if last == "_":
                return False
            last = "!"
    return last != "_"
