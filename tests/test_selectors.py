"""Label and field selectors, label syntax."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator import selectors
from simulator.gocompat import GoError

NAMES = st.from_regex(re.compile(r"[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?"), fullmatch=True)
VALUES = NAMES | st.just("")
REQUIREMENTS = st.one_of(
    st.builds(selectors.Requirement, NAMES, st.sampled_from(["=", "==", "!="]), st.tuples(VALUES)),
    st.builds(
        selectors.Requirement,
        NAMES,
        st.sampled_from(["in", "notin"]),
        st.lists(VALUES, min_size=1, max_size=4, unique=True).map(lambda values: tuple(sorted(values))),
    ),
    st.builds(selectors.Requirement, NAMES, st.sampled_from(["exists", "!"]), st.just(())),
    st.builds(selectors.Requirement, NAMES, st.sampled_from(["gt", "lt"]), st.tuples(st.integers(0, 10**6).map(str))),
).filter(lambda requirement: requirement.key not in {"in", "notin"} and not {"in", "notin"} & set(requirement.values))
LABELS = st.dictionaries(NAMES, VALUES, max_size=6)


@given(st.lists(REQUIREMENTS, max_size=4))
def test_a_selector_survives_printing_and_parsing(requirements):
    """Canonical text parses back to the same selector, sorted by key."""
    selector = selectors.Selector(tuple(sorted(requirements, key=lambda requirement: requirement.key)))
    assert selectors.parse(str(selector)) == selector


@given(st.lists(REQUIREMENTS, max_size=4), LABELS)
def test_a_selector_matches_what_all_its_requirements_match(requirements, labels):
    """Conditions are joined by and."""
    selector = selectors.Selector(tuple(requirements))
    assert selector.matches(labels) == all(requirement.matches(labels) for requirement in requirements)


@given(NAMES, st.lists(VALUES, min_size=1, max_size=3), LABELS)
def test_in_and_notin_are_opposites(key, values, labels):
    """A label that is absent meets notin, and not in."""
    inside = selectors.Requirement(key, "in", tuple(values)).matches(labels)
    assert inside != selectors.Requirement(key, "notin", tuple(values)).matches(labels)


@given(st.text(alphabet=st.characters(codec="utf-8")) | st.text(alphabet="ab,=!()<>in \t-._/"))
def test_parsing_never_crashes(text):
    """Any text is a selector or one error."""
    with contextlib.suppress(GoError):
        selectors.parse(text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("x", "x"),
        ("!x", "!x"),
        ("app=train", "app=train"),
        (" app == train , z != 1 ", "app==train,z!=1"),
        ("x in (b,a,a)", "x in (a,b)"),
        ("x notin ()", "x notin ()"),
        ("x in (,a)", "x in (,a)"),
        ("x in (,,a)", "x in (,a)"),
        ("b=1,a", "a,b=1"),
        ("x=", "x="),
        ("x>5,y<7", "x>5,y<7"),
        ("in in (in)", "in in (in)"),
        ("example.com/gpu-app=true", "example.com/gpu-app=true"),
    ],
)
def test_parsing(text, canonical):
    """What is understood, and how it is sent."""
    assert str(selectors.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("app in (a", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("x=a||y=b", 'unable to parse requirement: values[0][x]: Invalid value: "a||y": a valid label must be'),
        ("=", "found '=', expected: !, identifier, or 'end of string'"),
        ("x,", "found '', expected: identifier after ','"),
        ("x y", "unable to parse requirement: found 'y', expected: in, notin, =, ==, !=, gt, lt"),
        ("x=(", "unable to parse requirement: found '(', expected: identifier"),
        ("x in a", "unable to parse requirement: found 'a' expected: '('"),
        ("!x=a", "found '=', expected: ',' or 'end of string'"),
        ("a b/c=d", "unable to parse requirement: found 'b/c', expected: in, notin, =, ==, !=, gt, lt"),
        ("-x=a", 'unable to parse requirement: <nil>: Invalid value: "-x": name part must consist of'),
        (
            "x>a",
            "unable to parse requirement: values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ],
)
def test_selector_errors(text, error):
    """Errors in upstream's words."""
    with pytest.raises(GoError) as failure:
        selectors.parse(text)
    assert str(failure.value).startswith(error)


@pytest.mark.parametrize(
    ("value", "right"),
    [
        ("", True),
        ("true", True),
        ("a.b-c_d", True),
        ("_a", False),
        ("a-", False),
        ("a b", False),
        ("x" * 63, True),
        ("x" * 64, False),
        ("é", False),
        ("a\n", False),
    ],
)
def test_label_values(value, right):
    """At most 63 bytes, alphanumeric at the ends."""
    assert (not selectors.label_value_errors(value)) == right


@pytest.mark.parametrize(
    ("key", "right"),
    [
        ("a", True),
        ("nvidia.com/gpu", True),
        ("/a", False),
        ("a/", False),
        ("A.com/a", False),
        ("a/b/c", False),
        ("x" * 64, False),
        ("", False),
        ("a" * 254 + "/x", False),
    ],
)
def test_label_keys(key, right):
    """An optional DNS prefix and a name."""
    assert (not selectors.label_key_errors(key)) == right


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("", []),
        ("spec.nodeName=n", [("spec.nodeName", True, "n")]),
        ("a==b,c!=d", [("a", True, "b"), ("c", False, "d")]),
        (r"a=b\,c\=d\\e", [("a", True, r"b,c=d\e")]),
    ],
)
def test_field_selectors(text, parsed):
    """Equality and inequality, with escapes."""
    assert selectors.parse_fields(text) == parsed


@given(st.text())
def test_an_escaped_field_value_survives(value):
    """Escaping is undone by parsing."""
    assert selectors.parse_fields(f"spec.nodeName={selectors.escape_field(value)}") == [("spec.nodeName", True, value)]


def test_a_field_selector_without_operator_is_an_error():
    """It must be understood."""
    with pytest.raises(GoError, match=r"can't understand 'spec\.nodeName'"):
        selectors.parse_fields("spec.nodeName")
