"""Reading files people write: YAML and JSON documents, one value at a time, with errors that say where and what to do.

A leaf. `Place` is a value together with the file and the path inside it; each accessor checks a type and hands on the
place. Whatever is wrong becomes one `InputError`: the file, the place, what is wrong, the mend.
"""

from __future__ import annotations

import builtins
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

import yaml

from simulator.errors import InputError as InputError  # noqa: PLC0414  # read here by all who read files
from simulator.errors import nearest as nearest  # noqa: PLC0414  # exported again
from simulator.errors import printable as printable  # noqa: PLC0414  # exported again

FORMAT: Final = 1
"""The version of the files people write."""
_LARGEST_FILE: Final = 32 * 1024 * 1024
_DEEPEST: Final = 64
_DEEPEST_TEXT: Final = 1000
_MOST_NODES: Final = 2_000_000
YAML_ERRORS: Final = (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""What PyYAML raises for a text that is no YAML: beside its own errors those of Python, where a tag does not fit its value."""


class Place:
    """A value, and where it stands."""

    __slots__ = ("file", "path", "value")

    def __init__(self, value: Any, file: str, path: str = "") -> None:
        self.value = value
        self.file = file
        self.path = path

    def fail(self, problem: str, mend: str = "") -> NoReturn:
        """Raise InputError for this place."""
        raise InputError(self.file, self.path or "the document", problem, mend)

    def child(self, key: str | int) -> Place:
        """The place below, which must exist."""
        if isinstance(key, int):
            return Place(self.value[key], self.file, f"{self.path}[{key}]")
        step = key if re.fullmatch(r"[A-Za-z_][\w-]*", key) else f"[{json.dumps(key)}]"
        joined = f"{self.path}.{step}" if self.path and not step.startswith("[") else f"{self.path}{step}"
        return Place(self.value[key], self.file, joined)

    def mapping(self, known: Iterable[str] | None = None) -> Mapping[str, Any]:
        """A mapping with text keys, none of them unknown."""
        if not isinstance(self.value, dict):
            self.fail(f"is {_kind(self.value)} {_written(self.value)}".rstrip() + ", not a mapping", f"write {self._sample(known)}")
        for key in self.value:
            if not isinstance(key, str):
                self.fail(f"has the key {key!r}, which is {_kind(key)}", f'write it as text: "{key}"')
        if known is not None:
            allowed = set(known)
            for key in self.value:
                if key not in allowed:
                    self.fail(f'has the unknown key "{key}"', nearest(key, allowed))
        return self.value

    @staticmethod
    def _sample(known: Iterable[str] | None) -> str:
        """What a mapping of known keys looks like."""
        keys = list(known or ())[:4]
        return f"`{{{', '.join(f'{key}: ...' for key in keys)}}}`" if keys else "`key: value` lines"

    def get(self, key: str) -> Place | None:
        """The place below, if it is there and not null."""
        return self.child(key) if self.value.get(key) is not None else None

    def has(self, key: str) -> bool:
        """Is the key there, even if null?"""
        return key in self.value

    def need(self, key: str, mend: str) -> Place:
        """The place below; its absence is an error."""
        if self.value.get(key) is None:
            self.fail(f'lacks the key "{key}"', mend)
        return self.child(key)

    def items(self) -> Iterator[tuple[str, Place]]:
        """The places below a mapping."""
        for key in self.mapping():
            yield key, self.child(key)

    def list(self) -> builtins.list[Place]:
        """The places of a list."""
        if not isinstance(self.value, list):
            self.fail(f"is {_kind(self.value)}, not a list", "write `- item` lines")
        return [self.child(index) for index in range(len(self.value))]

    def elements(self, key: str) -> builtins.list[Place]:
        """The places of the list under a key; none if there is no such key."""
        found = self.get(key)
        return found.list() if found else []

    def entries(self, key: str) -> builtins.list[tuple[str, Place]]:
        """The keys and places of the mapping under a key; none if there is no such key."""
        found = self.get(key)
        return [*found.items()] if found else []

    def text(self) -> str:
        """A text. A number or a boolean is an error: YAML would have changed its spelling."""
        if not isinstance(self.value, str):
            written = _written(self.value)
            mend = f'put it in quotes: "{written}"' if isinstance(self.value, bool | int | float) else "write a text"
            self.fail(f"is {_kind(self.value)} {written}".rstrip() + ", not text", mend)
        return self.value

    def texts(self) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(item.text() for item in self.list())

    def boolean(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            self.fail(f"is {_kind(self.value)} {_written(self.value)}".rstrip() + ", not a boolean", "write true or false")
        return self.value

    def integer(self, low: int = -(2**31), high: int = 2**31) -> int:
        """A whole number within bounds."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            self.fail(f"is {_kind(self.value)} {_written(self.value)}".rstrip() + ", not a whole number")
        if not low <= self.value <= high:
            self.fail(f"is {_written(self.value)}, out of range", f"write a number from {low} to {high}")
        return self.value

    def seconds(self, high: float = 1e7) -> float:
        """A span in seconds, not negative."""
        value = self.value
        if not isinstance(value, int | float) or isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
            self.fail(f"is {_kind(value)} {_written(value)}".rstrip() + ", not a number of seconds")
        if not 0 <= value <= high:
            self.fail(f"is {_written(value)}, out of range", f"write seconds from 0 to {high:g}")
        return float(value)

    def choice(self, *options: str) -> str:
        """One of some texts."""
        value = self.text()
        if value not in options:
            self.fail(f'is "{value}"', "write " + " or ".join(f'"{option}"' for option in options))
        return value

    def path_text(self) -> str:
        """An absolute path without `..`, which therefore stays inside the fake tree."""
        value = self.text()
        if not value.startswith("/"):
            self.fail(f'"{value}" is no absolute path', f'write "/{value}"')
        if "\0" in value:
            self.fail("holds a NUL character")
        if ".." in value.split("/"):
            self.fail(f'"{value}" leads up with ".."', "write the path it means")
        if len(value.encode("utf-8", "surrogateescape")) > 4095:
            self.fail("is longer than a path can be (4095 bytes)")
        return os.path.normpath(value).replace("//", "/")


def _written(value: Any) -> str:
    """A scalar as it stands in the file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(getattr(value, "written", value)) if isinstance(value, int | float) else ""


_LONGEST_NUMBER: Final = 64
"""Characters of a whole number. Python refuses to print those beyond 4,300 digits."""


class _Integer(int):
    """A whole number that knows how it was written: 0x2236, 0755, 1_000."""

    written: str


class _Fraction(float):
    """A number that knows how it was written: 24.10."""

    written: str


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "the boolean"
        case int() | float():
            return "the number"
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "a mapping"
        case _:
            return f"a value of the type {type(value).__name__}"


class _Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]  # the C loader where libyaml is
    """Safe YAML without what surprises people: duplicate keys, dates, aliases that multiply."""


def _no_duplicates(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    out: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        try:
            duplicate = key in out
        except TypeError:
            raise yaml.constructor.ConstructorError(None, None, "a key is no scalar", key_node.start_mark) from None
        if duplicate:
            raise yaml.constructor.ConstructorError(None, None, f'the key "{key}" stands twice', key_node.start_mark)
        out[key] = loader.construct_object(value_node, deep=True)
    return out


def _integer(loader: _Loader, node: yaml.ScalarNode) -> int:
    if len(node.value) > _LONGEST_NUMBER:
        raise yaml.constructor.ConstructorError(None, None, "a number is longer than any that is needed", node.start_mark)
    number = _Integer(yaml.constructor.SafeConstructor.construct_yaml_int(loader, node))
    number.written = node.value
    return number


def _fraction(loader: _Loader, node: yaml.ScalarNode) -> float:
    number = _Fraction(yaml.constructor.SafeConstructor.construct_yaml_float(loader, node))
    number.written = node.value
    return number


_Loader.add_constructor("tag:yaml.org,2002:int", _integer)
_Loader.add_constructor("tag:yaml.org,2002:float", _fraction)
_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _no_duplicates)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda loader, node: loader.construct_scalar(node))


def read_bytes(path: Path) -> bytes:
    """What is in a file. Raises InputError: missing, a directory, unreadable, too large."""
    name = str(path)
    try:
        if path.is_dir():
            raise InputError(name, "", "is a directory, not a file", "name a file in it")
        if path.exists() and not path.is_file():
            raise InputError(name, "", "is no regular file", "name a YAML or JSON file")
        if path.stat().st_size > _LARGEST_FILE:
            raise InputError(name, "", f"is larger than {_LARGEST_FILE // 2**20} MiB", "name a YAML or JSON file")
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(name, "", "does not exist", "check the path") from None
    except (OSError, ValueError) as error:
        raise InputError(
            name, "", f"cannot be read: {getattr(error, 'strerror', None) or error}", "check the path and its permissions"
        ) from None


def read_text(path: Path) -> str:
    """The text of a file. Raises InputError as `read_bytes` does, and for what is not UTF-8."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(str(path), "", f"is no UTF-8 text (byte {error.start})", "save it as UTF-8") from None


def read_document(path: Path, file: str = "") -> Place:
    """A YAML (or JSON) document. Raises InputError, also for what is no mapping, too deep or blown up by aliases."""
    name = file or str(path)
    return parse_document(read_text(path), name)


def parse_document(text: str, name: str, *, is_json: bool | None = None) -> Place:
    """As `read_document`, from text. It is JSON if its name says so and its text allows it, where the caller does not know."""
    value = _parsed(text, name, _load_json if _reads_json(text, name, is_json=is_json) else _load_yaml)
    if not isinstance(value, dict):
        kind = "empty" if value is None else f"{_kind(value)}, not a mapping"
        raise InputError(name, "", f"is {kind}", "write `key: value` lines")
    return Place(value, name)


def parse_documents(text: str, name: str) -> builtins.list[Place]:
    """As `parse_document`, where several may stand in one file; empty ones are passed over."""
    if _reads_json(text, name):
        return [parse_document(text, name)]
    values = _parsed(text, name, _load_each)
    for value in values:
        if not isinstance(value, dict):
            raise InputError(name, "", f"holds {_kind(value)} where a mapping belongs", "write `key: value` lines")
    if len(values) == 1:
        return [Place(values[0], name)]
    return [Place(value, f"{name} (document {number})") for number, value in enumerate(values, 1)]


def _reads_json(text: str, name: str, *, is_json: bool | None = None) -> bool:
    return text.lstrip().startswith("{") and name.endswith(".json") if is_json is None else is_json


def _parsed(text: str, name: str, load: Callable[[str, str], Any]) -> Any:
    try:
        if _nesting(text) > _DEEPEST_TEXT:
            raise InputError(name, "", "is nested too deeply", "a world file has few levels")
        value = load(text, name)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).split("\n")[0]
        raise InputError(name, where, f"is no valid YAML: {problem}", "mend the syntax there") from None
    except json.JSONDecodeError as error:
        raise InputError(name, f"line {error.lineno}, column {error.colno}", f"is no valid JSON: {error.msg}") from None
    except YAML_ERRORS:
        raise InputError(name, "", "is nested too deeply or holds an impossible value", "a world file has few levels") from None
    _check_size(value, name)
    return value


def _load_yaml(text: str, _: str) -> Any:
    return yaml.load(text, Loader=_Loader)  # noqa: S506  # _Loader is safe


def _load_each(text: str, _: str) -> builtins.list[Any]:
    return [value for value in yaml.load_all(text, Loader=_Loader) if value is not None]  # _Loader is safe


def _load_json(text: str, name: str) -> Any:
    def once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        for key, times in Counter(key for key, _ in pairs).items():
            if times > 1:
                raise InputError(name, "", f'holds the key "{key}" twice in one object', "each key stands once")
        return dict(pairs)

    return json.loads(text, object_pairs_hook=once_each)


def _nesting(text: str) -> int:
    """How deeply a text may be nested: brackets that are open at once, or indentation. The parser recurses on both."""
    deepest = depth = 0
    for char in re.findall(r"[\[\]{}]", text):
        depth += 1 if char in "[{" else -1
        deepest = max(deepest, depth)
    indented = max((len(line) - len(line.lstrip(" -?:")) for line in text.splitlines()), default=0)
    return max(deepest, indented)


def _check_size(value: Any, name: str) -> None:
    """Aliases can make a small file a huge document; count what a walk would meet, and stop early."""
    stack, met = [(value, 1)], 0
    while stack:
        node, depth = stack.pop()
        met += 1
        if depth > _DEEPEST:
            raise InputError(name, "", f"is nested deeper than {_DEEPEST} levels", "a world file has few levels")
        if met > _MOST_NODES:
            raise InputError(name, "", "is blown up by aliases", "write the values out")
        if isinstance(node, str) and not node.isascii() and re.search("[\ud800-\udfff]", node):
            raise InputError(name, "", "holds half of a surrogate pair, which is no character", "write the character itself")
        if isinstance(node, dict):
            stack += ((child, depth + 1) for child in (*node, *node.values()))
        elif isinstance(node, list):
            stack += ((child, depth + 1) for child in node)


def read_format(place: Place) -> None:
    """The format version of a file people write; absent means the newest."""
    version = place.get("format")
    if version is not None and version.integer() != FORMAT:
        version.fail(f"is {version.value}, which this version does not read", f"write {FORMAT}")
