"""Go's text/template and sprig, as far as a chart's outcome hangs on them: what is true, what is empty, what is an error.

Values are JSON documents as Helm has them: numbers are floating point, a map's missing key is nothing, nil. An error names
the place in the template; Helm 3 prints it as the library does, Helm 4 puts some of them on three lines.

Source: Go 1.26 text/template/exec.go, funcs.go; Masterminds/sprig v3 defaults.go, list.go; Helm v3.20.0 and v4.2.3
pkg/chart/common/util/coalesce.go, pkg/engine/engine.go.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

_KINDS: Final[tuple[tuple[type, str, str], ...]] = (
    (bool, "bool", "bool"),
    (str, "string", "string"),
    (int, "float64", "float64"),
    (float, "float64", "float64"),
    (list, "[]interface {}", "slice"),
    (dict, "map[string]interface {}", "map"),
)
_CALLED: Final = "error calling "


class Problem(Exception):
    """What is wrong, before it is known where."""


class RenderError(Exception):
    """A template that cannot be rendered. The text is Helm 3's; `helm_4` is Helm 4's."""

    def __init__(self, text: str, helm_4: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.helm_4 = helm_4 or text


class Template:
    """One file of a chart's templates, and the places in it."""

    def __init__(self, chart: str, name: str) -> None:
        self.path = f"{chart}/templates/{name}"

    @contextmanager
    def at(self, line: int, column: int, expression: str, name: str = "") -> Iterator[None]:
        """Where an expression stands: what goes wrong in it is a RenderError that says so.

        `name` is that of the template within the file, where it has one of its own.
        """
        try:
            yield
        except Problem as problem:
            where, name = f"{self.path}:{line}:{column}", name or self.path
            executing = f'executing "{name}" at <{expression}>:'
            text = f"template: {where}: {executing} {problem}"
            lines = f"{where}\n  {executing}\n    {problem}"
            raise RenderError(text, "" if str(problem).startswith(_CALLED) else lines) from None

    @contextmanager
    def including(self, line: int, column: int, expression: str, name: str = "") -> Iterator[None]:
        """Where another template is included: an error in that one is an error here."""
        with self.at(line, column, expression, name):
            try:
                yield
            except RenderError as error:
                raise Problem(f"{_CALLED}include: {error.text}") from None

    def fail(self, line: int, column: int, message: str) -> RenderError:
        """The error of a `fail`."""
        return RenderError(f"execution error at ({self.path}:{line}:{column}): {message}")


def truth(value: Any) -> bool:
    """Does an `if` take it? Neither nil nor zero nor anything empty; a text is, whatever it says."""
    return bool(value)


def default(otherwise: Any, value: Any) -> Any:
    """`default`: the value, unless it is empty."""
    return value if truth(value) else otherwise


def field(value: Any, *names: str, declared: str = "interface {}") -> Any:
    """`.a.b`: what is below a value. Raises Problem for what has no fields; nothing has none either."""
    for name in names:
        if value is None:
            raise Problem(f"nil pointer evaluating interface {{}}.{name}")
        if not isinstance(value, dict):
            raise Problem(f"can't evaluate field {name} in type {declared}")
        value = value.get(name)
    return value


def nil_safe(value: Any, *names: str) -> Any:
    """`((.a).b)`: as `field`, but nothing below nothing is nothing."""
    for name in names:
        if value is not None:
            value = field(value, name, declared=type_name(value))
    return value


def has(needle: Any, haystack: Any) -> bool:
    """`has`. Raises Problem for what is no list."""
    if not isinstance(haystack, list):
        raise Problem(f"{_CALLED}has: Cannot find has on type {_kind(haystack)}")
    return needle in haystack


def concat(*lists: Any) -> list[Any]:
    """`concat`. Raises Problem for what is no list."""
    out: list[Any] = []
    for one in lists:
        if not isinstance(one, list):
            raise Problem(f"{_CALLED}concat: Cannot concat type {_kind(one)} as list")
        out += one
    return out


def equal(value: Any, text: str, function: str = "eq") -> bool:
    """`eq VALUE "text"`. Raises Problem for a value of another type; nil equals no text."""
    if value is None:
        return False
    if not isinstance(value, str):
        raise Problem(f"{_CALLED}{function}: incompatible types for comparison: {type_name(value)} and string")
    return value == text


def as_map(value: Any) -> Mapping[str, Any]:
    """An argument that has to be a map. Raises Problem."""
    if not isinstance(value, dict):
        raise Problem(f"wrong type for value; expected map[string]interface {{}}; got {type_name(value)}")
    return value


def as_bool(value: Any) -> bool:
    """An argument that has to be a boolean. Raises Problem."""
    if not isinstance(value, bool):
        got = "interface {}" if value is None else type_name(value)
        raise Problem(f"wrong type for value; expected bool; got {got}")
    return value


def to_int(value: Any) -> int:
    """`int`: fractions are cut off, a text is read as Go reads a literal, anything else is 0."""
    if isinstance(value, float) and not math.isfinite(value):
        return -(2**63)
    if isinstance(value, int | float):
        return int(value)
    if not isinstance(value, str):
        return 0
    try:
        return int(value, 0)
    except ValueError:
        return 0


def type_name(value: Any) -> str:
    """A value's type as Go writes it."""
    return next(name for kind, name, _ in _KINDS if isinstance(value, kind))


def _kind(value: Any) -> str:
    return next(kind for known, _, kind in _KINDS if isinstance(value, known))


def coalesced(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The values that templates see: a chart's own under those given. A null takes a default away."""
    out = dict(given)
    for key, usual in defaults.items():
        if key not in given:
            out[key] = usual
        elif given[key] is None:
            del out[key]
        elif isinstance(given[key], dict) and isinstance(usual, dict):
            out[key] = coalesced(given[key], usual)
    return out
