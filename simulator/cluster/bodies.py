"""Request bodies as they travel: JSON, YAML, and the few protobuf messages that clients send to a server of this kind.

client-go sends the options of a deletion as protobuf wherever a typed client deletes, whatever it was told to use
otherwise; kubectl creates namespaces and config maps so. Other protobuf messages are refused, as a server that does not
know the format would.

Source: k8s.io/apimachinery/pkg/runtime/serializer/protobuf, pkg/runtime/generated.proto (Unknown, TypeMeta),
pkg/apis/meta/v1/generated.proto (DeleteOptions, ObjectMeta, Preconditions); k8s.io/api/core/v1 and policy/v1, generated.proto.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import yaml

from simulator.cluster.status import Refused, bad_request, failure, unsupported_media_type
from simulator.ports import AS_PROTOBUF
from simulator.reading import YAML_ERRORS

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_DEEPEST: Final = 200
"""How deeply a body may nest; a real server's limit is 10,000, beyond what Python's own functions follow."""
_MOST_VALUES: Final = 500_000
"""How many values a body may hold once YAML's aliases are expanded."""


def decode(content_type: str, raw: bytes) -> Any:
    """A body's document; None if there is no body. A message that was protobuf says so (`ports.AS_PROTOBUF`).

    Raises Refused.
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
    raise unsupported_media_type((JSON, YAML, PROTOBUF))


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None


def _no_number(text: str) -> Any:
    raise ValueError(f"invalid number {text}")


def _yaml(raw: bytes) -> Any:
    try:
        return yaml.safe_load(raw)
    except YAML_ERRORS as error:
        is_yamls_own = isinstance(error, yaml.YAMLError)
        text = str(error).replace("\n", " ") if is_yamls_own else "a value does not fit its tag, or nests too deeply"
        raise bad_request(f"yaml: {text}") from None


def _checked(document: Any) -> Any:
    """The document, if it is of JSON's types and no deeper than can be handled."""
    stack, seen = [(document, 0)], 0
    while stack:
        value, depth = stack.pop()
        seen += 1
        if seen > _MOST_VALUES:
            raise Refused(failure(413, f"the body holds more than {_MOST_VALUES} values"))
        if depth > _DEEPEST:
            raise bad_request(f"the body nests more than {_DEEPEST} deep")
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise bad_request("a key of the body is no text")
            stack += [(item, depth + 1) for item in value.values()]
        elif isinstance(value, list):
            stack += [(item, depth + 1) for item in value]
        elif isinstance(value, str):
            if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
                raise bad_request("a text of the body is no UTF-8")
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise bad_request(f"invalid number {value}")
        elif not isinstance(value, bool | int | None):
            raise bad_request(f"a {type(value).__name__} is no value of JSON")
    return document


# --- protobuf -----------------------------------------------------------------------------------------------------

_Field: TypeAlias = int | bytes
_MESSAGES: Final[Mapping[str, Mapping[int, tuple[str, str]]]] = {
    "DeleteOptions": {
        1: ("gracePeriodSeconds", "int"),
        2: ("preconditions", "Preconditions"),
        3: ("orphanDependents", "bool"),
        4: ("propagationPolicy", "string"),
        5: ("dryRun", "[]string"),
    },
    "Preconditions": {1: ("uid", "string"), 2: ("resourceVersion", "string")},
    "ObjectMeta": {
        1: ("name", "string"),
        2: ("generateName", "string"),
        3: ("namespace", "string"),
        5: ("uid", "string"),
        6: ("resourceVersion", "string"),
        11: ("labels", "map"),
        12: ("annotations", "map"),
    },
    "Eviction": {1: ("metadata", "ObjectMeta"), 2: ("deleteOptions", "DeleteOptions")},
    "Namespace": {1: ("metadata", "ObjectMeta")},
    "ConfigMap": {1: ("metadata", "ObjectMeta"), 2: ("data", "map"), 4: ("immutable", "bool")},
}
"""Message -> number -> name and type of its fields. Fields that are not here are left out of the document."""
_KINDS: Final = ("DeleteOptions", "Eviction", "Namespace", "ConfigMap")


def _protobuf(raw: bytes) -> dict[str, Any]:
    envelope = _fields(raw)
    meta = _fields(_bytes(envelope.get(1, [b""])[-1]))
    version, kind = (_text(meta.get(number, [b""])[-1]) for number in (1, 2))
    if kind not in _KINDS:
        raise Refused(failure(415, f"the kind {kind or '(none)'} is not read as {PROTOBUF} here; send {JSON}"))
    body = _message(kind, _bytes(envelope.get(2, [b""])[-1]))
    return {"kind": kind, "apiVersion": version, **body, **AS_PROTOBUF}


def _message(name: str, raw: bytes) -> dict[str, Any]:
    """A message's document. Go writes empty texts where nothing was set; they are left out."""
    known = _MESSAGES[name]
    out = {}
    for number, values in _fields(raw).items():
        if number in known:
            field, kind = known[number]
            value = _value_of(kind, values)
            if value != "":
                out[field] = value
    return out


def _value_of(kind: str, values: list[_Field]) -> Any:
    match kind:
        case "int":
            return _signed(values[-1])
        case "bool":
            return bool(values[-1])
        case "string":
            return _text(values[-1])
        case "[]string":
            return [_text(value) for value in values]
        case "map":
            entries = (_fields(_bytes(value)) for value in values)
            return {_text(entry.get(1, [b""])[-1]): _text(entry.get(2, [b""])[-1]) for entry in entries}
        case _:
            return _message(kind, _bytes(values[-1]))


def _fields(raw: bytes) -> dict[int, list[_Field]]:
    """A message's fields: number -> values in order. Raises Refused."""
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
                raise bad_request(f"proto: illegal wireType {wire}")
        if position + size > len(raw):
            raise bad_request("unexpected EOF")
        yield key >> 3, raw[position : position + size]
        position += size


def _varint(raw: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(raw):
            raise bad_request("unexpected EOF")
        byte = raw[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, position
    raise bad_request("proto: integer overflow")


def _signed(value: _Field) -> int:
    if not isinstance(value, int):
        raise bad_request("proto: wrong wireType")
    return value - (1 << 64) if value >> 63 else value


def _bytes(value: _Field) -> bytes:
    if not isinstance(value, bytes):
        raise bad_request("proto: wrong wireType")
    return value


def _text(value: _Field) -> str:
    return _bytes(value).decode("utf-8", "replace")
