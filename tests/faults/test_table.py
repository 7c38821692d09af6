"""Every single fault of a run: the base, the moments, the rows, their world files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.cluster.objects import Container, Fault, Owner, Pod
from simulator.faults import domains
from simulator.faults.damage import RANK, evicted_pods
from simulator.faults.planning import base, ends, faulted
from simulator.faults.table import after_fault, tabulate
from simulator.gocompat import errno_number
from simulator.manager.releases import GO_RELEASES, RELEASES, resolve
from simulator.reading import parse_document
from simulator.report.faults import damage_lines, domain_lines, fault_lines, faults_document, row_world
from simulator.runners.simulated import run, simulate
from simulator.scenario import load_cluster, load_host, make_world, names, read_scenario
from simulator.trace import ApiRequest
from simulator.world import CALLS, CallFault, PlannedChange

LOADED = make_world(load_host("container-driver-loaded"), env={"NODE_NAME": "gpu-1"})
TRAIN = Pod("ml", "train", owner=Owner("Job", "train"), containers=(Container(limits={"nvidia.com/gpu": "1"}),), termination=2)
BUSY = replace(LOADED, cluster=replace(LOADED.cluster, pods=(*LOADED.cluster.pods, TRAIN)))
NAMED_HOSTS = st.sampled_from(names("hosts"))
NAMED_CLUSTERS = st.sampled_from(names("clusters"))
ENV = st.fixed_dictionaries(
    {"NODE_NAME": st.just("gpu-1")},
    optional={
        name: st.sampled_from(["true", "false", "x"])
        for name in (
            "ENABLE_GPU_POD_EVICTION",
            "ENABLE_AUTO_DRAIN",
            "FORCE_REINSTALL",
            "DRAIN_USE_FORCE",
            "GPU_DIRECT_RDMA_ENABLED",
        )
    },
)


def only(*numbers):
    """Of the places those with these numbers."""
    return lambda places: [places[number % len(places)] for number in numbers]


def summary_of(outcome, world):
    """How a run ended, but for DaemonSets' pods."""
    after = outcome.after
    return (
        outcome.exit_code,
        outcome.panic,
        after.node,
        after.mounts,
        after.modules,
        after.files,
        after.gpu_drivers,
        evicted_pods(world, after),
    )


def replayed(table, number):
    """The end of the run that a row's world file describes."""
    scenario = read_scenario(parse_document(row_world(table, number), "row.yaml"), Path())
    return simulate(scenario.world, scenario.release, what_if=scenario.what_if)


@pytest.mark.parametrize("release", RELEASES)
def test_the_base_is_the_run_without_a_fault(release):
    """Noting the calls changes nothing, and each call has its own place."""
    noted = base(BUSY, resolve(release))
    assert noted.outcome == simulate(BUSY, release)
    assert [place.number for place in noted.places] == list(range(1, len(noted.places) + 1))
    assert len({place.call for place in noted.places}) == len(noted.places)


@pytest.mark.slow
@pytest.mark.parametrize("release", ["v0.8.1", "v0.12.0"])
def test_a_fault_changes_nothing_before_its_moment(release):
    """The trace up to the call is the base's, event by event."""
    resolved = resolve(release)
    noted = base(BUSY, resolved)
    for place in noted.places:
        for end in ends(place, BUSY, resolved):
            outcome = run(faulted(BUSY, place, end), resolved)
            before = list(outcome.events[: place.events])
            expected = list(noted.outcome.events[: place.events])
            if place.events and resolved.release.is_script:  # of a child that runs at this moment the end may be another
                before, expected = ([getattr(event, "argv", event) for event in events] for events in (before, expected))
            assert before == expected, (place, end)


@pytest.mark.parametrize("release", RELEASES)
def test_requests_and_calls_that_fail_show_in_the_trace_at_their_moment(release):
    """The injected status is the first thing there that differs."""
    resolved = resolve(release)
    noted = base(LOADED, resolved)
    patch = next(place for place in noted.places if place.call.argument.startswith("PATCH"))
    end = next(end for end in ends(patch, LOADED, resolved) if end.name == "403")
    event = run(faulted(LOADED, patch, end), resolved).events[patch.events]
    assert isinstance(event, ApiRequest)
    assert (event.method, event.status) == ("PATCH", 403)


@pytest.mark.slow
@pytest.mark.parametrize("release", ["v0.8.1", "v0.11.0"])
def test_each_row_s_world_file_is_replayed_to_the_same_end(release):
    """All rows, with damage or without."""
    table = tabulate(BUSY, release)
    for number, row in enumerate(table.rows, 1):
        assert summary_of(replayed(table, number), BUSY) == summary_of(row.outcome, BUSY), number


@pytest.mark.parametrize("release", RELEASES)
def test_rows_of_every_release_are_replayed(release):
    """A few places: the first request, the middle, the end."""
    table = tabulate(LOADED, release, over=only(3, 20, 40, -3))
    assert table.rows
    for number, row in enumerate(table.rows, 1):
        outcome = replayed(table, number)
        assert (outcome.exit_code, outcome.after) == (row.outcome.exit_code, row.outcome.after), number


@pytest.mark.slow
@pytest.mark.parametrize("release", ["v0.4.2", "v0.10.0"])
def test_the_table_is_sorted_and_says_nothing_twice(release):
    """The worst damage first, what no restart heals before what one does; each place and fault in one row."""
    table = tabulate(BUSY, release)
    ranks = [row.rank for row in table.rows]
    assert ranks == sorted(ranks)
    worst = [RANK[row.damages[0].kind] if row.damages else len(RANK) for row in table.rows]
    assert worst == sorted(worst)
    assert worst[0] < worst[-1] == len(RANK)
    for row in table.rows:
        assert list(row.damages) == sorted(row.damages, key=lambda damage: RANK[damage.kind])
        assert (row.heals is None) == (not row.damages)
    said = [(place.call, end.name) for row in table.rows for place in row.places for end in row.ends]
    assert len(said) == len(set(said))
    resolved = resolve(release)
    expected = {(place.call, end.name) for place in table.base.places for end in ends(place, BUSY, resolved)}
    assert set(said) == expected


def row_of(table, call, argument, name):
    """The row of a fault."""
    return next(
        row
        for row in table.rows
        if row.place.call[:2] == (call, argument) and name in {end.name for end in row.ends} and not hasattr(row.ends[0], "signal")
    )


def at(world, release, call, argument):
    """The table of one call only, the last of its kind."""
    numbers = [place.number - 1 for place in base(world, resolve(release)).places if place.call[:2] == (call, argument)]
    return tabulate(world, release, over=only(numbers[-1]))


def test_an_uncordon_that_fails():
    """Exit code 0, the node stays cordoned; the next start would heal it, but none comes."""
    table = tabulate(LOADED, "v0.11.0")
    row = next(row for row in table.rows if row.place.call.nth == 3 and row.place.call.argument.startswith("PATCH /api/v1/nodes"))
    assert "503" in {end.name for end in row.ends}
    assert [damage.kind for damage in row.damages] == ["cordoned", "silent"]
    assert (row.outcome.exit_code, row.heals, row.restarts) == (0, True, False)


def test_a_host_driver_that_is_not_seen():
    """nvidia-smi fails once, and the host's modules are unloaded."""
    world = make_world(load_host("runfile-580"), env={"NODE_NAME": "gpu-1"})
    command = "chroot /host nvidia-smi --query-gpu=driver_version --format=csv,noheader"
    table = at(world, "v0.11.0", "execve", command)
    row = row_of(table, "execve", command, "exit 1")
    assert [damage.kind for damage in row.damages] == ["host-driver-unloaded", "silent", "gpus-without-driver"]
    assert row.heals is False


def test_a_module_that_stays_is_mended_by_a_restart():
    """Exit code 1, some modules gone; the next start unloads the rest."""
    row = row_of(at(LOADED, "v0.11.0", "delete_module", "nvidia"), "delete_module", "nvidia", "EAGAIN")
    assert [damage.kind for damage in row.damages] == ["half-unloaded", "fails"]
    assert (row.heals, row.restarts) == (True, True)


def test_pods_that_were_evicted_in_vain():
    """The workload is gone, the driver is not."""
    table = at(BUSY, "v0.11.0", "delete_module", "nvidia")
    kinds = [damage.kind for damage in row_of(table, "delete_module", "nvidia", "EBUSY").damages]
    assert kinds == ["evicted-in-vain", "half-unloaded", "fails"]


def test_a_driver_root_that_no_restart_unmounts():
    """v0.11.0 looks for mounts only where a module is loaded; v0.12.0 always does."""
    heals = []
    for release in ("v0.11.0", "v0.12.0"):
        table = at(LOADED, release, "umount", "/run/nvidia/driver")
        row = next(row for row in table.rows if row.ends[0].name == "SIGTERM")
        assert "mount-left" in {damage.kind for damage in row.damages}
        heals.append(row.heals)
    assert heals == [False, True]


def test_where_the_world_has_a_fault_of_its_own_there_is_no_other():
    """It belongs to the base."""
    own = replace(LOADED, faults=(CallFault("delete_module", "nvidia", error="EAGAIN"),))
    table = at(own, "v0.11.0", "delete_module", "nvidia")
    assert table.base.outcome.exit_code == 1
    assert table.rows == ()


def test_faults_of_the_cluster_count_on():
    """A request that fails in the base fails with each other fault, too."""
    own = replace(LOADED, cluster=replace(LOADED.cluster, faults=(Fault(method="PATCH", skip=2, times=1, status=500),)))
    noted = base(own, resolve("v0.11.0"))
    assert noted.outcome.after.node.unschedulable
    assert not any(damage.kind == "cordoned" for row in tabulate(own, "v0.11.0", over=only(1, 2)).rows for damage in row.damages)


def test_what_had_not_happened_yet_still_happens_after_the_fault():
    """The restart meets the driver of MOFED that the failed run did not wait for."""
    change = PlannedChange(30, write={"/run/mellanox/drivers/.driver-ready": ""})
    world = replace(LOADED, changes=(change,))
    outcome = simulate(replace(world, faults=(CallFault("delete_module", "nvidia", error="EAGAIN"),)), "v0.11.0")
    (later,) = after_fault(world, outcome).changes
    assert later.after == pytest.approx(30 - outcome.elapsed / 1e9)


@pytest.mark.slow
@settings(max_examples=60)
@given(NAMED_HOSTS, NAMED_CLUSTERS, ENV, st.sampled_from(list(RELEASES)), st.integers(0, 200))
def test_no_host_cluster_or_setting_makes_it_crash(host, cluster, env, release, number):
    """Whichever place is asked for, its rows are judged, printed and written; and the first one is replayed."""
    world = make_world(load_host(host), load_cluster(cluster, "gpu-1"), env=env)
    if not base(world, resolve(release)).places:
        assert tabulate(world, release).rows == ()
        return
    table = tabulate(world, release, over=only(number))
    lines = list(fault_lines(table, harmless=True))
    assert len(lines) >= 2
    assert len(faults_document(table)["rows"]) == len(table.rows)
    if table.rows:
        assert summary_of(replayed(table, 1), world) == summary_of(table.rows[0].outcome, world)


def test_every_way_to_end_is_one_that_a_world_can_say():
    """Calls of the world format, errnos of the kernel, each with a reason; a signal is every call's."""
    assert set(domains.CALLS) | {"request"} == set(CALLS)
    assert set(domains.SHELL_CALLS) == set(domains.CALLS) - {"open"}
    for call, found in domains.CALLS.items():
        assert len({end.name for end in found}) == len(found) > 0
        for end in found:
            assert end.why
            assert (end.error == "") != (end.exit_code is None)
            assert not end.error or errno_number(end.error)
            assert call == "execve" or end.error


@pytest.mark.parametrize(
    ("method", "path", "query", "absent"),
    [
        ("GET", "/api/v1/nodes/n", {}, {"409", "410", "answer lost"}),
        ("GET", "/api/v1/pods", {"limit": "500"}, {"404", "409", "410", "answer lost"}),
        ("GET", "/api/v1/pods", {"continue": "500"}, {"404", "409", "answer lost"}),
        ("PATCH", "/api/v1/nodes/n", {}, {"410"}),
        ("POST", "/api/v1/namespaces/a/pods/p/eviction", {}, {"410"}),
    ],
)
def test_how_a_request_can_end(method, path, query, absent):
    """By its verb."""
    found = {end.name for end in domains.request_ends(method, path, query)}
    assert {end.name for end in domains.REQUESTS} - found == absent


def test_the_page_has_the_domains_and_the_kinds_of_damage():
    """Its tables are the ones that are used."""
    page = (Path(__file__).resolve().parents[2] / "docs/faults.md").read_text(encoding="utf-8")
    assert "\n".join(domain_lines()) in page
    assert "\n".join(damage_lines()) in page


@pytest.mark.parametrize("release", GO_RELEASES)
def test_places_name_the_upstream_function(release):
    """Those that upstream gives a name."""
    functions = {place.call.call: place.function for place in base(LOADED, resolve(release)).places}
    assert functions["delete_module"] == "unloadDriver"
    assert functions["umount"] == "unmountRootfs"
    assert functions["execve"] == "unbindVfioPCI"
