"""The atlas: outcomes folded along paths, counted, and witnessed."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pytest

from simulator.explore.atlas import Outcome, OutcomeSoFar, atlas, prove, wholes, world_of_witness
from simulator.explore.effects import Effect
from simulator.explore.made_up import Bounds
from simulator.explore.stretches import End
from simulator.explore.walking import walk
from simulator.manager.releases import GO_RELEASES, flow

NARROW = Bounds(faults=0, pods=0, polls=0, labels=0, odd_pods=0, modules=1)


@lru_cache
def graph_of(release):
    return walk(flow(release), NARROW)


@pytest.mark.parametrize(
    ("effects", "field", "value"),
    [
        ([Effect("labelled", "paused")], "labels", "paused"),
        ([Effect("labelled", "paused"), Effect("labelled", "restored")], "labels", "restored"),
        ([Effect("labelled", "plugin paused")], "labels", "kubelet plugin left paused"),
        ([Effect("labelled", "plugin paused"), Effect("labelled", "restored")], "labels", "restored"),
        ([Effect("cordoned")], "cordon", "left cordoned"),
        ([Effect("cordoned"), Effect("uncordoned")], "cordon", "as it was"),
        ([Effect("uncordoned")], "cordon", "foreign cordon lifted"),
        ([Effect("uncordoned"), Effect("cordoned")], "cordon", "as it was"),
        ([Effect("uncordoned"), Effect("cordoned"), Effect("uncordoned")], "cordon", "foreign cordon lifted"),
        ([Effect("unloaded", "nvidia_uvm")], "modules", "half unloaded"),
        ([Effect("unloaded", "nvidia_uvm"), Effect("unloaded", "nvidia")], "modules", "gone"),
        ([Effect("unloaded", "nouveau")], "modules", "untouched"),
        ([Effect("unmounted", "/a"), Effect("failed", "umount")], "mounts", "half gone"),
        ([Effect("held", "nvidia")], "failed", "something failed"),
    ],
)
def test_effects_are_folded_into_an_outcome(effects, field, value):
    """In the order in which they happened."""
    assert getattr(Outcome.of(End(0), OutcomeSoFar().after(effects)), field) == value


def walks_from(node, counted):
    if isinstance(node, End):
        return 1
    if node not in counted:
        counted[node] = sum(walks_from(edge.leads_to, counted) for edge in node.edges)
    return counted[node]


def test_every_walk_is_in_one_outcome():
    """Counted from the beginning with outcomes, and from the ends without."""
    graph = graph_of("v0.9.0")
    assert atlas(graph).walks == walks_from(graph.root, {})


@pytest.mark.parametrize("release", ["v0.9.0", "v0.12.0"])
def test_a_witness_ends_as_its_outcome_says(release):
    """The run that is told its answers goes along its edges."""
    graph = graph_of(release)
    found = atlas(graph)
    runs = wholes(graph, [entry.witness.told for entry in found.entries])
    for entry, whole in zip(found.entries, runs, strict=True):
        assert [stretch.way for stretch in whole.stretches] == [edge.way for edge in entry.witness.edges]
        state = OutcomeSoFar().after(effect for stretch in whole.stretches for effect in stretch.effects)
        assert Outcome.of(whole.stretches[-1].ends, state) == entry.outcome


def test_the_plain_run_is_the_witness_of_success():
    """No answer of it is unusual."""
    (plain,) = [entry for entry in atlas(graph_of("v0.9.0")).entries if not entry.witness.unusual]
    assert plain.outcome.ends == "exit 0"


def test_a_decision_names_upstreams_function():
    """Of a host with a driver: isHostDriver said yes."""
    (entry,) = [entry for entry in atlas(graph_of("v0.12.0")).entries if entry.outcome.labels == "pre-installed"]
    assert ("cmd/driver-manager/main.go", "uninstallDriver", "self.is_host_driver()", "yes") in [
        (one.file, one.function, one.text, one.answer) for one in entry.decisions
    ]
    assert entry.last_lines == ("driver is pre-installed on host",)


def test_the_worst_outcomes_come_first():
    """A run that never ends before one that fails, before one that succeeds."""
    ends = [entry.outcome.ends for entry in atlas(graph_of("v0.12.0")).entries]
    assert ends == sorted(ends, key=["never", "exit 1", "exit 0"].index)


@pytest.mark.slow
@pytest.mark.parametrize("release", GO_RELEASES)
def test_five_hundred_witnesses_are_proven(release):
    """Each one's ordinary world takes the path that it was made for; one request or system call may fail."""
    proof = prove(walk(flow(release), replace(NARROW, faults=1)), 500, seed=1)
    assert (proof.proven, proof.differing) == (500, ())


def test_a_witness_of_another_path_is_not_proven(monkeypatch):
    """The world of one run does not pass for that of another."""
    graph = graph_of("v0.9.0")
    other = world_of_witness(graph, atlas(graph).entries[0].witness)
    monkeypatch.setattr("simulator.explore.atlas.world_of", lambda whole: other)
    assert prove(graph, 20, seed=1).differing


def test_the_smallest_bounds_are_walked_and_proven():
    """Nothing beside what there always is: no module but nvidia, no mount below the driver's root, no pod."""
    graph = walk(flow("v0.9.0"), Bounds(faults=0, pods=0, polls=0, labels=0, odd_pods=0, modules=0))
    proof = prove(graph)
    assert proof.proven > 100
    assert not proof.differing
