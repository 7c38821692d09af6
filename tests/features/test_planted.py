"""The planted faults still fit the model: each can be planted, changes a release, and leaves no trace when removed."""

import importlib.util
from pathlib import Path

import pytest

from simulator.manager.releases import GO_RELEASES, flow

_SPEC = importlib.util.spec_from_file_location("planted", Path(__file__).with_name("planted.py"))
assert _SPEC is not None
planted = importlib.util.module_from_spec(_SPEC)
assert _SPEC.loader is not None
_SPEC.loader.exec_module(planted)


def test_there_are_thirty_of_them():
    """As many as were asked for, or more."""
    assert len(planted.FAULTS) >= 30


@pytest.mark.parametrize("name", planted.FAULTS)
def test_a_fault_can_be_planted(name: str):
    """Names that a fault patches are still there; releases resolve with it."""
    with pytest.MonkeyPatch.context() as patch:
        planted.plant(name, patch)
        assert [flow(release).release.tag for release in GO_RELEASES] == list(GO_RELEASES)
    flow.cache_clear()


def test_every_fault_says_what_it_is():
    """The table is read by people."""
    assert [name for name, plant in planted.FAULTS.items() if not plant.__doc__] == []
