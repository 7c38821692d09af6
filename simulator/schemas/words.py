"""The few shapes that schemas are made of. A key that may be left out may also be null, as the readers have it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from simulator.reading import FORMAT

Schema: TypeAlias = "dict[str, Any]"

NULL: Final[Schema] = {"type": "null"}
TEXT: Final[Schema] = {"type": "string"}
FLAG: Final[Schema] = {"type": "boolean"}
ANY_OBJECT: Final[Schema] = {"type": "object"}
SECONDS: Final[Schema] = {"type": "number", "minimum": 0, "maximum": 1e7}
ABSOLUTE: Final[Schema] = {"type": "string", "pattern": r"^/(?!(.*/)?\.\.(/|$))[^\u0000]*$"}
"""A path that does not lead up."""
NODE_PATH: Final[Schema] = {"type": "string", "pattern": r"^/(?!(\.?/)*\.?$)(?!(.*/)?\.\.(/|$))[^\u0000]*$"}
"""A path of something below the root."""
FORMAT_KEY: Final[Schema] = {"const": FORMAT, "description": "The version of this format; absent means the newest."}


def said(schema: Schema, description: str) -> Schema:
    """The schema with what completion shows."""
    return {**schema, "description": description}


def choice(*options: str) -> Schema:
    """One of some texts."""
    return {"type": "string", "enum": [*options]}


def whole(low: int = -(2**31), high: int = 2**31) -> Schema:
    """A whole number within bounds."""
    return {"type": "integer", "minimum": low, "maximum": high}


def text(pattern: str, **more: Any) -> Schema:
    """A text that has a pattern."""
    return {"type": "string", "pattern": pattern, **more}


def list_of(item: Schema, **more: Any) -> Schema:
    """A list."""
    return {"type": "array", "items": item, **more}


def map_of(item: Schema, key: Schema | None = None, **more: Any) -> Schema:
    """A mapping with any keys, or those that fit."""
    names = {"propertyNames": key} if key else {}
    return {"type": "object", "additionalProperties": item, **names, **more}


def either(*schemas: Schema) -> Schema:
    """One or another."""
    return {"anyOf": [*schemas]}


def known(names: Iterable[str], rest: Schema) -> Schema:
    """Names that completion proposes, or something else of its kind."""
    return either({"enum": [*names]}, rest)


def or_null(schema: Schema) -> Schema:
    """The same, or null, which stands for its absence. The description stays where an editor looks for it."""
    inner = {key: value for key, value in schema.items() if key != "description"}
    outer = {"description": schema["description"]} if "description" in schema else {}
    if not inner:
        return schema
    if isinstance(inner.get("type"), str) and not {"enum", "const"} & set(inner):
        return {**outer, **inner, "type": [inner["type"], "null"]}
    if set(inner) == {"anyOf"}:
        return {**outer, "anyOf": [*inner["anyOf"], NULL]}
    return {**outer, "anyOf": [inner, NULL]}


def fields(may: Mapping[str, Schema], need: Mapping[str, Schema] | None = None, **more: Any) -> Schema:
    """A mapping with these keys and no other."""
    needed = dict(need or {})
    out: Schema = {
        "type": "object",
        "properties": {**needed, **{key: or_null(value) for key, value in may.items()}},
        "additionalProperties": False,
    }
    if needed:
        out["required"] = [*needed]
    return {**out, **more}
