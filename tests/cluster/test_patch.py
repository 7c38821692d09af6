"""Patches as the API server applies them."""

from __future__ import annotations

import contextlib
import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cluster import patch
from simulator.gocompat import GoError

SCALARS = st.integers() | st.text(max_size=4) | st.booleans()
KEYS = st.sampled_from(["a", "b", "c", "labels", "spec"])
DOCUMENTS = st.recursive(
    st.dictionaries(KEYS, SCALARS, max_size=3),
    lambda inner: st.dictionaries(KEYS, SCALARS | inner | st.lists(SCALARS, max_size=2), max_size=3),
    max_leaves=8,
)
PATCHES = st.recursive(
    st.dictionaries(KEYS, SCALARS | st.none(), max_size=3),
    lambda inner: st.dictionaries(KEYS, SCALARS | st.none() | inner | st.lists(SCALARS, max_size=2), max_size=3),
    max_leaves=8,
)
TYPES = st.sampled_from([patch.STRATEGIC, patch.MERGE])


@given(TYPES, DOCUMENTS, PATCHES)
def test_a_patch_applied_twice_is_a_patch_applied_once(kind, document, change):
    """Merging is idempotent."""
    once = patch.apply(kind, document, change)
    assert patch.apply(kind, once, change) == once


@given(TYPES, DOCUMENTS)
def test_an_empty_patch_changes_nothing(kind, document):
    """And gives a new document."""
    assert patch.apply(kind, document, {}) == document


@given(TYPES, DOCUMENTS, PATCHES)
def test_neither_the_document_nor_the_patch_is_changed(kind, document, change):
    """Patches are pure."""
    before = copy.deepcopy((document, change))
    patch.apply(kind, document, change)
    assert (document, change) == before


@given(DOCUMENTS, PATCHES)
def test_null_removes_and_nothing_null_is_left(document, change):
    """What a merge patch sets to null is gone."""

    def nulls(value):
        return isinstance(value, dict) and any(item is None or nulls(item) for item in value.values())

    assert not nulls(patch.apply(patch.MERGE, document, change))


def test_labels_are_merged_and_null_removes_one():
    """As driver-manager's patch of the node."""
    node = {"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"unschedulable": True}}
    change = {"metadata": {"labels": {"a": "x", "c": ""}}, "spec": {"unschedulable": None}}
    assert patch.apply(patch.STRATEGIC, node, change) == {"metadata": {"labels": {"a": "x", "b": "2", "c": ""}}, "spec": {}}


def test_strategic_lists_merge_by_their_key():
    """Containers by name; a list without a merge key is replaced."""
    pod = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}], "tolerations": [1]}}
    change = {"spec": {"containers": [{"name": "b", "image": "2"}, {"name": "a", "$patch": "delete"}], "tolerations": [2]}}
    assert patch.apply(patch.STRATEGIC, pod, change) == {"spec": {"containers": [{"name": "b", "image": "2"}], "tolerations": [2]}}


def test_strategic_directives():
    """Replace, delete, and removal from a list of primitives."""
    assert patch.apply(patch.STRATEGIC, {"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 2}}) == {"a": {"c": 2}}
    assert patch.apply(patch.STRATEGIC, {"a": {"b": 1}}, {"a": {"$patch": "delete"}}) == {"a": {}}
    document = {"metadata": {"finalizers": ["x", "y"]}}
    assert patch.apply(patch.STRATEGIC, document, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x"]}}) == {
        "metadata": {"finalizers": ["y"]}
    }
    assert patch.apply(patch.STRATEGIC, document, {"metadata": {"finalizers": ["z", "x"]}}) == {
        "metadata": {"finalizers": ["x", "y", "z"]}
    }


def test_a_strategic_list_item_without_its_key_is_an_error():
    """It cannot be merged."""
    with pytest.raises(GoError, match="does not contain declared merge key: name"):
        patch.apply(patch.STRATEGIC, {"spec": {"containers": []}}, {"spec": {"containers": [{"image": "x"}]}})


@pytest.mark.parametrize(
    ("operations", "result"),
    [
        ([{"op": "add", "path": "/b", "value": 2}], {"a": [1, 2], "b": 2}),
        ([{"op": "add", "path": "/a/1", "value": 9}], {"a": [1, 9, 2]}),
        ([{"op": "add", "path": "/a/-", "value": 9}], {"a": [1, 2, 9]}),
        ([{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        ([{"op": "replace", "path": "/a", "value": {}}], {"a": {}}),
        ([{"op": "move", "from": "/a", "path": "/x~1y"}], {"x/y": [1, 2]}),
        ([{"op": "copy", "from": "/a/0", "path": "/b"}], {"a": [1, 2], "b": 1}),
        ([{"op": "test", "path": "/a/0", "value": 1}], {"a": [1, 2]}),
    ],
)
def test_json_patch(operations, result):
    """RFC 6902."""
    assert patch.apply(patch.JSON, {"a": [1, 2]}, operations) == result


@pytest.mark.parametrize(
    "operations",
    [
        {},
        [1],
        [{"op": "add", "path": "/x"}],
        [{"op": "add", "path": "x", "value": 1}],
        [{"op": "remove", "path": ""}],
        [{"op": "move", "from": "", "path": "/a"}],
        [{"op": "remove", "path": "/nothing"}],
        [{"op": "remove", "path": "/a/7"}],
        [{"op": "test", "path": "/a/0", "value": 5}],
        [{"op": "bogus", "path": "/a"}],
        [{"op": "replace", "path": "", "value": 1}],
        [{"op": "add", "path": "/a/0/b", "value": 1}],
    ],
)
def test_json_patches_that_cannot_be_applied(operations):
    """One error each."""
    with pytest.raises(GoError):
        patch.apply(patch.JSON, {"a": [1, 2]}, operations)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["op", "path", "from", "value"]), st.sampled_from(["add", "remove", "/a", "/a/0", "", "x", 1, None])
        ),
        max_size=3,
    )
)
def test_json_patch_never_crashes(operations):
    """Any list is applied or is one error."""
    with contextlib.suppress(GoError):
        patch.apply(patch.JSON, {"a": [1, {"b": 2}]}, operations)


@pytest.mark.parametrize(
    ("document", "change", "result"),
    [
        ({"a": 1, "b": 2}, {"$retainKeys": ["b", "c"], "c": 3}, {"b": 2, "c": 3}),
        ({"finalizers": "odd"}, {"$deleteFromPrimitiveList/finalizers": ["x"]}, {"finalizers": []}),
    ],
)
def test_strategic_directives_of_kubectl(document, change, result):
    """Keys that are kept, and a list that is none."""
    assert patch.apply(patch.STRATEGIC, document, change) == result


@pytest.mark.parametrize("change", [{"$patch": {}}, {"$patch": "bogus"}, {"$retainKeys": 1}, {"$deleteFromPrimitiveList/a": {}}])
def test_strategic_directives_that_are_none(change):
    """One error each."""
    with pytest.raises(GoError):
        patch.apply(patch.STRATEGIC, {"a": [1]}, change)


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "move", "path": "/b"},
        {"op": "copy", "path": "/b", "from": 1},
        {"op": {}, "path": "/a"},
        {"op": "remove", "path": "/a/" + "9" * 5000},
    ],
)
def test_json_patch_operations_that_are_none(operation):
    """One error each."""
    with pytest.raises(GoError):
        patch.apply(patch.JSON, {"a": [1]}, [operation])
