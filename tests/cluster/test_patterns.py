"""Regular expressions of faults: those with which a search might never end are refused."""

from __future__ import annotations

import contextlib
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cluster.patterns import pattern
from simulator.reading import InputError, Place


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/pods$",
        "/namespaces/[^/]+/pods/[^/]+/eviction$",
        '"a.b/c":"(true|false)?"',
        r"(?:a|b)[)*]\)*",
        "a{3}",
        "(?i)x",
        "(?P<a>x)",
    ],
)
def test_ordinary_ones(text):
    """Are taken."""
    assert pattern(Place(text, "f")) == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("(.*)*(.*)*!", "repeats a group"),
        ("(a|a)+b", "repeats a group"),
        ("(?:a?){50}", "repeats a group"),
        ("(?x)(a|aa) *b", "has a comment or a condition"),
        ("(a|aa)(?#x)*b", "has a comment or a condition"),
        (".*.*.*.*!", "might never end"),
        ("a{0,9}a{,9}a{9,}a+", "might never end"),
        ("a?" * 13, "might never end"),
        ("(a|aa)" * 13, "might never end"),
        ("x" * 201, "is too long"),
        ("(", "is no regular expression"),
    ],
)
def test_those_that_are_refused(text, problem):
    """With the place."""
    with pytest.raises(InputError, match=re.escape(problem)):
        pattern(Place(text, "f", "faults[0].path"))


@given(st.text("a()*+?|.{,}9[]^\\x:#!", max_size=30))
def test_what_is_taken_ends(text):
    """Whatever it is, and however it fails."""
    with contextlib.suppress(InputError):
        pattern(Place(text, "f"))
        started = time.process_time()
        re.search(text + "!", "a" * 200)
        assert time.process_time() - started < 5
