"""Files people write: what is no document is one InputError."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.reading import InputError, parse_document


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
