"""Request bodies as they travel: JSON, YAML, and the two protobuf messages that client-go sends to a server of this kind.

client-go sends the options of a deletion as protobuf wherever a typed client deletes, whatever it was told to use
otherwise; an eviction too, if it prefers protobuf. Other protobuf messages are refused, as a server that does not know
the format would.

Source: k8s.io/apimachinery/pkg/runtime/serializer/protobuf, pkg/runtime/generated.proto (Unknown, TypeMeta),
pkg/apis/meta/v1/generated.proto (DeleteOptions, ObjectMeta, Preconditions); k8s.io/api/policy/v1/generated.proto.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import yaml

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_DEEPEST: Final = 200
"""How deeply a body may nest; a real server's limit is 10,000, beyond what Python's own functions follow."""
_MOST_VALUES: Final = 500_000
"""How many values a body may hold once YAML's aliases are expanded."""


class UndecodableError(Exception):
    """A body cannot be read. `code` is the HTTP code of the answer: 400, 413 for too much, 415 for a format that is not known."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def decode(content_type: str, raw: bytes) -> Any:
    """A body's document; None if there is no body. A message that was protobuf says so under `_encoding`.

    Raises UndecodableError.
    """
    if not raw:
        return None
    if raw.startswith(_MAGIC):
        return _protobuf(raw[len(_MAGIC) :])
    kind = content_type.partition(";")[0].strip().lower()
    if kind in {YAML, "application/apply-patch+yaml"}:
        return _checked(_yaml(raw))
    if kind == JSON or kind.endswith("+json") or not kind:
        return _checked(_json(raw))
    accepted = f"{JSON}, {YAML}, {PROTOBUF}"
    raise UndecodableError(415, f"the body of the request was in an unknown format - accepted media types include: {accepted}")


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise UndecodableError(400, f"couldn't get version/kind; json parse error: {error}") from None


def _no_number(text: str) -> Any:
    raise ValueError(f"invalid number {text}")


def _yaml(raw: bytes) -> Any:
    try:
        return yaml.safe_load(raw)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UndecodableError(400, f"yaml: {error}".replace("\n", " ")) from None


def _checked(document: Any) -> Any:
    """The document, if it is of JSON's types and no deeper than can be handled."""
    stack, seen = [(document, 0)], 0
    while stack:
        value, depth = stack.pop()
        seen += 1
        if seen > _MOST_VALUES:
            raise UndecodableError(413, f"the body holds more than {_MOST_VALUES} values")
        if depth > _DEEPEST:
            raise UndecodableError(400, f"the body nests more than {_DEEPEST} deep")
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise UndecodableError(400, "a key of the body is no text")
            stack += [(item, depth + 1) for item in value.values()]
        elif isinstance(value, list):
            stack += [(item, depth + 1) for item in value]
        elif isinstance(value, str):
            if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
                raise UndecodableError(400, "a text of the body is no UTF-8")
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise UndecodableError(400, f"invalid number {value}")
        elif not isinstance(value, bool | int | None):
            raise UndecodableError(400, f"a {type(value).__name__} is no value of JSON")
    return document


# --- protobuf -----------------------------------------------------------------------------------------------------

_Field: TypeAlias = int | bytes
_Message: TypeAlias = Callable[[bytes], dict[str, Any]]


def _protobuf(raw: bytes) -> dict[str, Any]:
    envelope = _fields(raw)
    meta = _fields(_bytes(envelope.get(1, [b""])[-1]))
    version, kind = (_text(meta.get(number, [b""])[-1]) for number in (1, 2))
    reader = _READERS.get(kind)
    if reader is None:
        raise UndecodableError(415, f"the kind {kind or '(none)'} is not read as {PROTOBUF} here; send {JSON}")
    body = reader(_bytes(envelope.get(2, [b""])[-1]))
    return {"kind": kind, "apiVersion": version, **body, "_encoding": "protobuf"}


def _delete_options(raw: bytes) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for number, values in _fields(raw).items():
        match number:
            case 1:
                out["gracePeriodSeconds"] = _signed(values[-1])
            case 2:
                preconditions = _fields(_bytes(values[-1]))
                names = {1: "uid", 2: "resourceVersion"}
                out["preconditions"] = {names[key]: _text(found[-1]) for key, found in preconditions.items() if key in names}
            case 3:
                out["orphanDependents"] = bool(values[-1])
            case 4:
                out["propagationPolicy"] = _text(values[-1])
            case 5:
                out["dryRun"] = [_text(value) for value in values]
            case _:
                pass
    return out


def _eviction(raw: bytes) -> dict[str, Any]:
    fields = _fields(raw)
    metadata = _fields(_bytes(fields.get(1, [b""])[-1]))
    names = {1: "name", 3: "namespace"}
    out: dict[str, Any] = {"metadata": {names[key]: _text(found[-1]) for key, found in metadata.items() if key in names}}
    if 2 in fields:
        out["deleteOptions"] = _delete_options(_bytes(fields[2][-1]))
    return out


_READERS: Final[Mapping[str, _Message]] = {"DeleteOptions": _delete_options, "Eviction": _eviction}


def _fields(raw: bytes) -> dict[int, list[_Field]]:
    """A message's fields: number -> values in order. Raises UndecodableError."""
    out: dict[int, list[_Field]] = {}
    for number, value in _walk(raw):
        out.setdefault(number, []).append(value)
    return out


def _walk(raw: bytes) -> Iterator[tuple[int, _Field]]:
    position = 0
    while position < len(raw):
        key, position = _varint(raw, position)
        match key & 7:
            case 0:
                value, position = _varint(raw, position)
                yield key >> 3, value
                continue
            case 1:
                size = 8
            case 2:
                size, position = _varint(raw, position)
            case 5:
                size = 4
            case wire:
                raise UndecodableError(400, f"proto: illegal wireType {wire}")
        if position + size > len(raw):
            raise UndecodableError(400, "unexpected EOF")
        yield key >> 3, raw[position : position + size]
        position += size


def _varint(raw: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(raw):
            raise UndecodableError(400, "unexpected EOF")
        byte = raw[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, position
    raise UndecodableError(400, "proto: integer overflow")


def _signed(value: _Field) -> int:
    if not isinstance(value, int):
        raise UndecodableError(400, "proto: wrong wireType")
    return value - (1 << 64) if value >> 63 else value


def _bytes(value: _Field) -> bytes:
    if not isinstance(value, bytes):
        raise UndecodableError(400, "proto: wrong wireType")
    return value


def _text(value: _Field) -> str:
    return _bytes(value).decode("utf-8", "replace")
