"""Schemas of recordings: their forms (`recordings.form`), turned into JSON Schema."""

from __future__ import annotations

from typing import Any, Final

from simulator.recordings import form
from simulator.recordings.form import Either, Fields, Form, Leaf, ListOf, MapOf, Row
from simulator.schemas.clusters import NAME
from simulator.schemas.hosts import ERRNO, FILE_NAME, KERNEL_ANSWER
from simulator.schemas.words import ABSOLUTE, FLAG, NODE_PATH, SECONDS, TEXT, Schema, either, or_null, said, whole

_NUMBER: Final[Schema] = {"type": "number"}
_LEAVES: Final[tuple[tuple[Leaf, Schema], ...]] = (
    (form.TEXT, TEXT),
    (form.FLAG, FLAG),
    (form.PATH, NODE_PATH),
    (form.ROOT, ABSOLUTE),
    (form.NAME, FILE_NAME),
    (form.OBJECT, NAME),
    (form.PATTERN, TEXT),
    (form.ANSWER, KERNEL_ANSWER),
    (form.ERRNO, ERRNO),
    (form.NUMBER, _NUMBER),
    (form.SECONDS, SECONDS),
    (form.WATCHED, {**SECONDS, "maximum": 86_400}),
    (form.EXIT_CODE, whole(0, 255)),
    (form.MODE, whole(0, 0o7777)),
    (form.COUNT, whole(0, 10**6)),
    (form.WHOLE, whole()),
)
_TYPES: Final[dict[type, str]] = {str: "string", int: "integer", dict: "object", list: "array", type(None): "null"}


def schema_of(what: Form) -> Schema:
    """A form as a schema. A leaf of which a schema can say nothing may be anything there."""
    match what:
        case Leaf():
            if what.options:
                return {"type": "string", "enum": [*what.options]}
            return next((schema for leaf, schema in _LEAVES if leaf is what), {})
        case Fields():
            needed = {name: schema_of(inner) for name, inner in what.need.items()}
            may = {name: or_null(schema_of(inner)) for name, inner in what.may.items()}
            out: Schema = {"type": "object", "properties": {**needed, **may}}
            return {**out, "required": [*needed]} if needed else out
        case ListOf():
            return {"type": "array", "items": schema_of(what.item)}
        case Row():
            count = len(what.items)
            return {"type": "array", "items": [schema_of(item) for item in what.items], "minItems": count, "maxItems": count}
        case MapOf():
            keys = {"propertyNames": schema_of(what.key)} if what.key else {}
            return {"type": "object", "additionalProperties": schema_of(what.item), **keys}
        case Either():
            return either(*(_typed(kind, schema_of(inner)) for kind, inner in what.forms.items()))


def _typed(kind: type, schema: Schema) -> Schema:
    return schema or {"type": _TYPES[kind]}


def packed(inputs: Form, *observed: Form) -> Schema:
    """Of a packed file: the inputs of all cases, or what was observed of them in a release."""
    either_form: list[Any] = [schema_of(each) for each in observed]
    return {
        "type": "object",
        "required": ["format"],
        "properties": {
            "format": {"const": 1, "description": "The version of this format."},
            "cases": said({"type": "object", "additionalProperties": schema_of(inputs)}, "Id -> what the program was given."),
            "release": said(TEXT, "The upstream tag that was recorded."),
            "observed": said({"type": "object", "additionalProperties": either(*either_form)}, "Id -> what it was seen to do."),
        },
        "oneOf": [{"required": ["cases"]}, {"required": ["release", "observed"]}],
    }


def driver_manager() -> Schema:
    """Of driver-manager's recordings, Go and shell."""
    return packed(form.INPUT, form.OBSERVED, form.SHELL_OBSERVED)


def vfio_manage() -> Schema:
    """Of vfio-manage's recordings: a bus, steps, what each did."""
    return packed(form.VFIO_INPUT, form.VFIO_OBSERVED)


def sandbox_device_plugin() -> Schema:
    """Of the sandbox device plugin's recordings."""
    return packed(form.PLUGIN_INPUT, Fields())


def cozystack() -> Schema:
    """Of the recordings of Cozystack's charts."""
    return packed(form.COZYSTACK_INPUT, Fields())


def outcome() -> Schema:
    """What `dmsim run -o json` prints: what was observed has the form that recordings have."""
    node = schema_of(Fields(need={"labels": form.TEXT_MAP, "annotations": form.TEXT_MAP, "unschedulable": form.FLAG}))
    rows = Fields(
        need={
            "release": form.TEXT,
            "gpu_drivers": Fields(need={"before": form.TEXT_MAP, "after": form.TEXT_MAP}),
            "changes": ListOf(Fields(need={"subject": form.TEXT, "what": form.TEXT})),
            "waits": ListOf(Fields(need={"at_s": form.NUMBER, "for_s": form.NUMBER})),
        }
    )
    made = schema_of(rows)
    observed = either(schema_of(form.OBSERVED), schema_of(form.SHELL_OBSERVED))
    properties = {"format": {"const": 1}, **made["properties"], "observed": observed, "node_before": or_null(node)}
    return {"type": "object", "required": [*properties], "properties": properties}
