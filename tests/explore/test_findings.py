"""What can go wrong in a release: the properties over its graph, and their witnesses."""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from simulator import labels
from simulator.explore.findings import PROPERTIES, findings
from simulator.explore.label_values import CLASSES, results
from simulator.explore.made_up import Bounds
from simulator.explore.walking import walk
from simulator.manager.releases import GO_RELEASES, flow
from simulator.report.findings_page import TO_DO, label_page, surveyed, texts
from simulator.runners.simulated import run
from simulator.scenario import load_scenario

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs/findings"
NO_FAULT = Bounds(faults=0, pods=1, polls=0, labels=0, odd_pods=1, modules=1)
BY_NAME = {one.name: one for one in PROPERTIES}


@cache
def without_fault(release):
    """Property -> kinds of ways to it, of runs in which nothing fails."""
    found = findings(walk(flow(release), NO_FAULT), {})
    assert found.unproven == ()
    kinds = {one.name: set() for one in PROPERTIES}
    for name, kind in found.proven:
        kinds[name].add((kind.function, kind.end.exit_code))
    return kinds


@pytest.mark.slow
def test_without_a_fault_a_node_stays_cordoned_only_by_a_panic_or_for_ever():
    """In the first release and in the newest."""
    for release in ("v0.9.0", "v0.12.0"):
        assert without_fault(release)["node-left-cordoned"] == {
            ("drain_node", 2),
            ("nv_drain_node", None),
            ("wait_for_mofed_driver", None),
        }


@pytest.mark.slow
def test_without_a_fault_only_the_full_drain_panics():
    """In the first release and in the newest."""
    for release in ("v0.9.0", "v0.12.0"):
        assert without_fault(release)["panics"] == {("drain_node", 2)}


@pytest.mark.slow
def test_a_foreign_cordon_is_lifted_by_success_and_by_clean_up():
    """In the first release and in the newest."""
    for release in ("v0.9.0", "v0.12.0"):
        assert without_fault(release)["foreign-cordon-lifted"] == {("uncordon", 0), ("uncordon_in_cleanup", 1)}


@pytest.mark.slow
def test_the_newest_release_can_fail_with_the_kubelet_plugin_paused():
    """Without any fault, which the first release cannot."""
    assert ("evict_kubelet_plugin", 1) in without_fault("v0.12.0")["operands-left-paused"]
    assert not any(code == 1 for _, code in without_fault("v0.9.0")["operands-left-paused"])


@pytest.mark.slow
def test_without_a_fault_no_module_is_left_behind():
    """Half an unload needs a module that is held."""
    for release in ("v0.9.0", "v0.12.0"):
        assert without_fault(release)["modules-half-unloaded"] == set()


def witnesses():
    for page in sorted(PAGES.glob("*.md")):
        for file, text in re.findall(r"^## (\S+)\n\n.* In (v.*)\.$", page.read_text(encoding="utf-8"), re.MULTILINE):
            for release in text.split(", "):
                yield pytest.param(page.stem, file, release, id=f"{file}-{release}")


@pytest.mark.parametrize(("name", "file", "release"), list(witnesses()))
def test_a_witness_shows_what_its_page_says(name, file, release):
    """In each release that the page names."""
    world = load_scenario(ROOT / f"fixtures/findings/{file}.yaml").world
    assert BY_NAME[name].shows(run(world, flow(release)))


def test_each_property_has_a_page_and_says_what_to_do():
    """And every world of the fixtures is on one."""
    assert set(TO_DO) == set(BY_NAME)
    assert {path.stem for path in PAGES.glob("*.md")} == {*BY_NAME, "README", "label-values"}
    assert {param.values[1] for param in witnesses()} == {path.stem for path in (ROOT / "fixtures/findings").glob("*.yaml")}


def test_the_page_of_label_values_is_up_to_date():
    """`make pages` writes what stands there."""
    assert (PAGES / "label-values.md").read_text(encoding="utf-8") == label_page()


@pytest.mark.slow
@pytest.mark.exhaustive
def test_pages_and_worlds_are_up_to_date():
    """`make pages` writes what stands there."""
    written = texts(surveyed())
    assert {name: (ROOT / name).read_text(encoding="utf-8") for name in written} == written


def test_a_label_ends_as_it_was_paused_or_restored():
    """For every class of value, and whether each of the two patches is applied or refused."""
    for value, pausing, restoring in product(CLASSES.values(), (True, False), (True, False)):
        ends = value
        if pausing:
            ends = labels.pause(value)
        if restoring:
            ends = labels.restore(value)
        assert ends in {value, *results(value)}


def test_pausing_twice_is_pausing_once():
    """So a run that was ended midway does no harm to the next."""
    assert all(labels.pause(labels.pause(value)) == labels.pause(value) for value in CLASSES.values())


def test_the_next_run_restores_what_this_one_would_have():
    """Of every value: a run that left it paused loses nothing."""
    assert all(results(value).next_run == results(value).restored for value in CLASSES.values())


def test_emptiness_survives_pausing():
    """A value that is not empty is not emptied, and the other way round: no path depends on more."""
    assert all(bool(labels.pause(value)) == bool(value) for value in CLASSES.values())


def test_every_go_release_is_in_every_table():
    """With a yes or a no."""
    for name in BY_NAME:
        text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
        assert all(re.search(rf"^\| {re.escape(release)} \| (yes|no) \|", text, re.MULTILINE) for release in GO_RELEASES)
