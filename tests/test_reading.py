"""Files people write: what is no document is one InputError."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.reading import InputError, nearest, parse_document, parse_documents


@pytest.mark.parametrize("value", ["!!bool x", "!!int ''", "!!float ''", "!!float x", "[!!bool x]", "{!!bool x: y}"])
def test_a_value_that_its_tag_does_not_fit(value):
    """Is refused, though PyYAML raises errors of Python for it."""
    with pytest.raises(InputError, match=r"f\.yaml: .*holds an impossible value"):
        parse_document(f"a: {value}", "f.yaml")


@given(
    st.sampled_from(
        ["bool", "int", "float", "null", "str", "timestamp", "binary", "seq", "map", "set", "omap", "pairs", "merge", "value", "x"]
    ),
    st.sampled_from(
        ["", "x", "''", "-", "0x", "1:1", "2026-13-01", "[a]", "{a: b}", "[[a, b], c]", "[{a: b}]", "{[a]: b}", "{<<: x}"]
    ),
)
def test_any_tag_on_any_value(tag, value):
    """Is a document or an InputError."""
    with contextlib.suppress(InputError):
        parse_document(f"a: !!{tag} {value}\n", "f.yaml")


def test_several_documents_in_one_file():
    """Each is a place that says which it is; empty ones are passed over, one alone needs no number, JSON is one."""
    first, second = parse_documents("a: 1\n---\n---\nb: [x]\n", "f.yaml")
    assert (first.value, first.file) == ({"a": 1}, "f.yaml (document 1)")
    with pytest.raises(InputError, match=r"^f\.yaml \(document 2\): b\[0\] is text, not a mapping"):
        second.child("b").list()[0].mapping()
    (alone,) = parse_documents("---\na: 1\n", "f.yaml")
    assert alone.file == "f.yaml"
    assert [place.value for place in parse_documents('{"a": 1}', "f.json")] == [{"a": 1}]
    assert parse_documents("", "f.yaml") == []
    with pytest.raises(InputError, match="no valid YAML"):
        parse_documents("a: 1\n---\n{", "f.yaml")


def test_the_mend_where_nothing_is_known():
    """No list of nothing."""
    assert nearest("nvidia-*", ()) == "there is none"


def test_the_mend_of_a_version():
    """What it begins, and not every other that looks like it; a list is in the order of numbers."""
    assert nearest("v0.12", ("v0.9.1", "v0.12.0", "v0.8.1")) == "did you mean v0.12.0?"
    assert nearest("zzz", ("v0.10.0", "v0.9.1", "v0.4.2")) == "known: v0.4.2, v0.9.1, v0.10.0"
