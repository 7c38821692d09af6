"""Request bodies: JSON, YAML, protobuf."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cluster.bodies import JSON, PROTOBUF, YAML, decode
from simulator.cluster.status import Refused


def field(number, value):
    """A field of a protobuf message: a whole number below 128, or bytes."""
    return bytes([number << 3, value]) if isinstance(value, int) else bytes([number << 3 | 2, len(value)]) + value


def message(kind, *fields, version="v1"):
    """What client-go puts around a message."""
    meta = field(1, version.encode()) + field(2, kind.encode())
    return b"k8s\x00" + field(1, meta) + field(2, b"".join(fields)) + field(3, b"") + field(4, b"")


@pytest.mark.parametrize(
    ("raw", "document"),
    [
        (message("DeleteOptions"), {}),
        (message("DeleteOptions", field(1, 0)), {"gracePeriodSeconds": 0}),
        (message("DeleteOptions", b"\x08" + b"\xff" * 9 + b"\x01"), {"gracePeriodSeconds": -1}),
        (
            message("DeleteOptions", field(1, 30), field(2, field(1, b"u") + field(2, b"42")), field(3, 1), field(4, b"Orphan")),
            {
                "gracePeriodSeconds": 30,
                "preconditions": {"uid": "u", "resourceVersion": "42"},
                "orphanDependents": True,
                "propagationPolicy": "Orphan",
            },
        ),
        (message("DeleteOptions", field(5, b"All"), field(5, b"x"), field(9, b"?")), {"dryRun": ["All", "x"]}),
        (
            message("Eviction", field(1, field(1, b"p") + field(2, b"") + field(3, b"a")), field(2, field(1, 5))),
            {"metadata": {"name": "p", "namespace": "a"}, "deleteOptions": {"gracePeriodSeconds": 5}},
        ),
        (
            message(
                "Namespace", field(1, field(1, b"team") + field(11, field(1, b"k") + field(2, b"v")) + field(11, field(1, b"e")))
            ),
            {"metadata": {"name": "team", "labels": {"k": "v", "e": ""}}},
        ),
        (message("ConfigMap", field(2, field(1, b"a") + field(2, b"b")), field(4, 1)), {"data": {"a": "b"}, "immutable": True}),
    ],
)
def test_protobuf(raw, document):
    """Named and typed as in JSON; empty texts are as if they were not there."""
    kind = raw.split(b"\x12")[1][1:].split(b"\x12")[0].split(b"\x1a")[0].decode("latin-1")
    assert decode(PROTOBUF, raw) == {"kind": kind, "apiVersion": "v1", **document, "_encoding": "protobuf"}


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (message("Pod"), 415),
        (b"k8s\x00", 415),
        (message("DeleteOptions")[:-1], 400),
        (message("DeleteOptions", b"\x08"), 400),
        (message("DeleteOptions", b"\x0b"), 400),
        (message("DeleteOptions", b"\x08" + b"\xff" * 10), 400),
        (message("DeleteOptions", field(1, b"text")), 400),
        (message("DeleteOptions", field(2, 1)), 400),
        (message("Eviction", b"\x09" + b"x" * 7), 400),
    ],
)
def test_protobuf_that_cannot_be_read(raw, code):
    """A kind that is not read here is 415, a broken message 400."""
    with pytest.raises(Refused) as caught:
        decode(PROTOBUF, raw)
    assert caught.value.response.status == code


@pytest.mark.parametrize("content_type", [JSON, "application/merge-patch+json", "application/json; charset=utf-8", ""])
def test_json(content_type):
    """Whatever its patch."""
    assert decode(content_type, b'{"a": [1, 2.5, null, true]}') == {"a": [1, 2.5, None, True]}
    assert decode(content_type, b"") is None


def test_yaml():
    """As kubectl sends a server-side apply."""
    assert decode("application/apply-patch+yaml", b"kind: Pod\nspec: {a: [1]}") == {"kind": "Pod", "spec": {"a": [1]}}
    assert decode(YAML, b"- 1") == [1]


BILLION = b"a: &a [x, x, x, x, x, x, x, x, x, x]\n" + b"\n".join(
    b"%c: &%c [%s]" % (letter, letter, b", ".join([b"*%c" % (letter - 1)] * 10)) for letter in b"bcdefghi"
)


@pytest.mark.parametrize(
    ("content_type", "raw", "code", "text"),
    [
        (JSON, b"{", 400, "json parse error"),
        (JSON, b"\xff", 400, "json parse error"),
        (JSON, b"[NaN]", 400, "invalid number NaN"),
        (JSON, b"[1e999]", 400, "invalid number inf"),
        (JSON, b'["\\ud800"]', 400, "no UTF-8"),
        (JSON, b"[" * 300 + b"]" * 300, 400, "nests more than 200 deep"),
        (JSON, b"[" * 100_000, 400, "json parse error"),
        (YAML, b"a: [", 400, "yaml: "),
        (YAML, b"2: x", 400, "a key of the body is no text"),
        (YAML, b"a: 2026-01-01", 400, "a date is no value of JSON"),
        (YAML, b"!!python/object:os.system {}", 400, "yaml: "),
        (YAML, b"a: !!bool x", 400, "yaml: a value does not fit its tag"),
        (YAML, b"a: !!int ''", 400, "yaml: a value does not fit its tag"),
        (YAML, b"a: !!timestamp x", 400, "yaml: a value does not fit its tag"),
        (YAML, BILLION, 413, "holds more than 500000 values"),
        ("text/plain", b"x", 415, "accepted media types include: application/json, application/yaml, application/vnd.kubernetes"),
    ],
)
def test_bodies_that_cannot_be_read(content_type, raw, code, text):
    """One error, in one line."""
    with pytest.raises(Refused) as caught:
        decode(content_type, raw)
    assert caught.value.response.status == code
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


@given(
    st.sampled_from(
        [
            "bool",
            "int",
            "float",
            "null",
            "str",
            "timestamp",
            "binary",
            "seq",
            "map",
            "set",
            "omap",
            "pairs",
            "merge",
            "value",
            "python/none",
        ]
    ),
    st.sampled_from(
        ["", "x", "''", "-", "0x", "1:1", "2026-13-01", "[a]", "{a: b}", "[[a, b], c]", "[{a: b}]", "{[a]: b}", "{<<: x}"]
    ),
)
def test_any_tag_on_any_value(tag, value):
    """Is a document, or one refusal."""
    with contextlib.suppress(Refused):
        decode(YAML, f"a: !!{tag} {value}\n".encode())


@given(
    st.sampled_from([JSON, YAML, PROTOBUF, "x/y"]),
    st.binary(max_size=60) | st.binary(max_size=60).map(lambda raw: b"k8s\x00" + raw),
)
def test_decoding_never_crashes(content_type, raw):
    """A document that can travel as JSON, or Refused."""
    with contextlib.suppress(Refused):
        json.dumps(decode(content_type, raw), allow_nan=False).encode()
