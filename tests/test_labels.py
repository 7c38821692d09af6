"""Pausing and restoring operand labels."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator import labels
from simulator.manager.releases import GO_RELEASES, flow
from simulator.selectors import label_value_errors

VALUES = st.from_regex(re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,40}[A-Za-z0-9])?)?"), fullmatch=True) | st.sampled_from(
    ["", "true", "false", labels.PAUSED, "foo_" + labels.PAUSED, labels.PAUSED + "_foo", "_foo_", "__", labels.PRE_INSTALLED]
)


@pytest.mark.parametrize(
    ("value", "paused", "restored"),
    [
        ("", "", ""),
        ("true", labels.PAUSED, "true"),
        ("false", "false", "false"),
        ("True", "True_" + labels.PAUSED, "True"),
        ("pre-installed", "pre-installed_" + labels.PAUSED, "pre-installed"),
        ("_foo_", "_foo__" + labels.PAUSED, "foo"),
        ("__", "___" + labels.PAUSED, ""),
    ],
)
def test_values(value, paused, restored):
    """What becomes of a value, there and back."""
    assert labels.pause(value) == paused
    assert labels.restore(value) == restored


@pytest.mark.parametrize(
    ("value", "restored"),
    [
        (labels.PAUSED, "true"),
        ("foo_" + labels.PAUSED, "foo"),
        ("foo_" + labels.PAUSED + "_bar", "foo_bar"),
        (labels.PAUSED + "foo", "foo"),
        (labels.PAUSED + "_" + labels.PAUSED, ""),
        ("false_" + labels.PAUSED, "false"),
        ("x" + labels.PAUSED, "x"),
    ],
)
def test_what_an_earlier_run_left(value, restored):
    """A value that is paused already stays as it is, and is restored by its own rule."""
    assert labels.pause(value) == value
    assert labels.restore(value) == restored


@given(VALUES)
def test_pausing_twice_is_pausing_once(value):
    """A second run finds a paused value paused."""
    assert labels.pause(labels.pause(value)) == labels.pause(value)


@given(VALUES)
def test_restoring_undoes_pausing_but_for_underscores_at_the_ends(value):
    """What comes back is the value without underscores at its ends; nothing paused is left."""
    if labels.PAUSED in value:
        return
    assert labels.restore(labels.pause(value)) == (value.strip("_") if value != "true" else "true")
    assert labels.PAUSED not in labels.restore(value)


@given(VALUES)
def test_a_paused_operand_no_longer_matches_its_selector(value):
    """DaemonSets select on "true"."""
    assert labels.pause(value) != "true"


@given(st.dictionaries(st.sampled_from(labels.FETCHED), VALUES))
def test_a_pausing_patch_names_every_label_but_an_absent_mig_manager(values):
    """Labels the node lacks are in it, empty; mig-manager only with a value."""
    patch = labels.pause_all(values, labels.ALWAYS, labels.IF_DEPLOYED)
    assert set(patch) == set(labels.ALWAYS) | ({labels.MIG_MANAGER} if values.get(labels.MIG_MANAGER) else set())
    assert all(patch[key] == labels.pause(values.get(key, "")) for key in patch)


def test_a_long_value_can_become_impossible():
    """The suffix takes 26 of 63 bytes."""
    assert not label_value_errors(labels.pause("x" * 37))
    assert label_value_errors(labels.pause("x" * 38))


@pytest.mark.parametrize("tag", GO_RELEASES)
def test_whatever_is_paused_is_restored(tag):
    """In every release the labels that are paused in any case are restored in any case."""
    steps = flow(tag).steps
    assert set(steps.always) <= set(steps.restored)
    assert set(steps.always) | set(steps.if_deployed) <= set(steps.fetched)
