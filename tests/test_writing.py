"""Worlds written as files are worlds that run the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.cluster.objects import ClusterSpec, Node, Pod, read_cluster
from simulator.host.spec import File, HeldByPods, HostSpec, Module, PciFunction, Program, read_host
from simulator.manager.releases import NEWEST
from simulator.reading import parse_document
from simulator.runners.simulated import simulate
from simulator.scenario import Scenario, load_cluster, load_host, make_world, names, read_scenario
from simulator.verifying.random_worlds import worlds
from simulator.world import PlannedChange, World
from simulator.writing import cluster_document, host_document, world_document, yaml_text


def scenario(text: str) -> Scenario:
    return read_scenario(parse_document(text, "x.yaml"), Path())


def written(world: World) -> World:
    """A world, written and read."""
    return scenario(yaml_text(world_document(world))).world


def reread(host: HostSpec) -> HostSpec:
    return read_host(parse_document(yaml_text(host_document(host)), "x.yaml"), host.name)


@pytest.mark.slow
@settings(max_examples=150)
@given(worlds)
def test_any_world_runs_the_same_once_written(world):
    """Whatever world is drawn, its file is read, gives the same run, and is written the same again."""
    again = written(world)
    assert simulate(again, NEWEST) == simulate(world, NEWEST)
    assert world_document(again) == world_document(world)
    assert (again.cluster.pods, again.env, again.signal) == (world.cluster.pods, world.env, world.signal)


@pytest.mark.parametrize("name", names("hosts"))
def test_a_named_host_is_the_same_once_written(name):
    """A host that was read is equal to what its written form is read as."""
    assert reread(load_host(name)) == load_host(name)


@pytest.mark.parametrize("name", names("clusters"))
def test_a_named_cluster_is_the_same_once_written(name):
    """So is a cluster."""
    cluster = load_cluster(name)
    assert read_cluster(parse_document(yaml_text(cluster_document(cluster)), "x.yaml"), cluster.name) == cluster


def test_a_server_s_addresses_survive():
    """In one order."""
    cluster = ClusterSpec("x", None, addresses=frozenset({"localhost:6443", "[::1]:6443"}))
    text = yaml_text(cluster_document(cluster))
    assert text.index("[::1]:6443") < text.index("localhost:6443")
    assert read_cluster(parse_document(text, "x.yaml"), "x") == cluster


def test_statuses_and_objects_of_further_kinds_are_kept():
    """As documents."""
    policy = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "p"}, "status": {"state": "ready"}}
    node, pod = (
        Node("n", status={"nodeInfo": {"osImage": "Talos"}}),
        Pod("a", "p", status={"reason": "Evicted"}, finalizers=("example.com/block",)),
    )
    cluster = ClusterSpec("c", node, (pod,), objects=(policy,))
    assert read_cluster(parse_document(yaml_text(cluster_document(cluster)), "x.yaml"), "c") == cluster


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_of_a_file_survives(text):
    """A file's text is the same once written, whatever characters it has."""
    host = HostSpec("x", files=(File("/etc/modprobe.d/x.conf", text, 0o600),))
    assert reread(host) == host


@pytest.mark.parametrize(
    "host",
    [
        HostSpec("x", modules=(Module("nvidia", taint=""),)),
        HostSpec("x", modules=(Module("nvidia", users=2, pods=("a/x", "b/y")),)),
        HostSpec("x", modules=(Module("nvidia", users=2, processes=("Xorg (8)",)),)),
        HostSpec("x", proc_modules=None),
        HostSpec("x", container_files=(File("/etc/x", "", 0o600),), container_programs={"chroot": None}),
        HostSpec(
            "x", pci=(PciFunction("0000:18:00.0", "0x15b3", state="lost"), PciFunction("0000:19:00.0", "0x10de", class_="0x068000"))
        ),
        HostSpec("x", programs=(Program("/a", interpreter=None), Program("/b", driver_version="1.2", interpreter=None))),
        HostSpec("x", programs=(Program("/a", architecture="aarch64", interpreter="/lib/ld-linux-aarch64.so.1"),)),
        HostSpec("x", delete_module={"nvidia": (), "gdrdrv": {"busy_while_pods": ("a/b",)}}, init_module={"nvidia": "EPERM"}),
    ],
)
def test_what_is_particular_about_a_host_is_written(host):
    """Scripted answers, odd interpreters, missing files and taints are kept."""
    assert reread(host) == host


@pytest.mark.parametrize(
    "host",
    [HostSpec("x", module_uses={"nvidia_drm": ("nvidia",)}), HostSpec("x", held_by_pods={"nvidia": HeldByPods(("a/p",), 1)})],
)
def test_what_a_file_cannot_say_is_no_silent_loss(host):
    """Handles that recordings' kernels count beside `modules`."""
    with pytest.raises(ValueError, match="a host file cannot say"):
        host_document(host)
    with pytest.raises(ValueError, match="a host file cannot say"):
        world_document(World(host, ClusterSpec("c", None)))


def test_what_no_run_can_reach_is_left_out():
    """A directory where a file is, and the fixed answer of NVIDIA's own program, which a file cannot say both of."""
    host = HostSpec(
        "x",
        directories=("/run/a/b", "/c"),
        files=(File("/run/a", ""),),
        programs=(
            Program("/usr/bin/nvidia-smi", "x", exit_code=3, driver_version="1.2"),
            Program("/a", exit_code=3, hands_over_to="/b"),
        ),
    )
    document = host_document(host)
    assert document["directories"] == ["/c"]
    assert document["programs"] == {
        "/usr/bin/nvidia-smi": {"driver_version": "1.2", "interpreter": "/bin/sh"},
        "/a": {"exec": "/b"},
    }


def test_only_what_differs_is_written():
    """A world's file is as short as a person's: no defaults, and nothing that every pod has."""
    world = make_world(HostSpec("x"), ClusterSpec("y", None, (Pod("default", "p"),)), env={"NODE_NAME": "n"})
    assert world_document(world, release="v0.11.0", description="Why.") == {
        "format": 1,
        "description": "Why.",
        "release": "v0.11.0",
        "env": {"NODE_NAME": "n"},
        "host": {},
        "cluster": {"node": None, "pods": [{"namespace": "default", "name": "p"}]},
    }


@pytest.mark.parametrize(
    "changed",
    [
        {"args": ()},
        {"path": ("/bin", "")},
        {"pid_1": False},
        {"version": "v1"},
        {"seed": 3},
        {"stop_after": 420.0},
        {"signal": ("KILL", 0.5)},
        {"env": {}},
        {"changes": (PlannedChange(2.0, {"/host/etc/x": "y", "/run/z": ""}, ("/sys/module/nvidia",), ("a/b",)),)},
    ],
)
def test_a_setting_is_kept(changed):
    """Every setting of a world stands in its file, also that it is in no pod."""
    world = replace(make_world(HostSpec("x.yaml: the document"), load_cluster("bare-node", "n")), **changed)
    again = written(world)
    assert replace(again, host=world.host, cluster=world.cluster) == world


def test_a_world_in_no_pod_is_kept():
    """It has its own files and variables only."""
    world = World(
        HostSpec("host", container_files=(File("/etc/kubeconfig", "{}"),)), load_cluster("bare-node", "n"), env={"HOME": "/"}
    )
    document = world_document(world)
    assert document["in_pod"] is False
    again = written(world)
    assert (again.env, again.host.container_files) == (world.env, world.host.container_files)


def test_a_planned_change_of_the_containers_own_files_cannot_be_written():
    """A world file names the node's paths."""
    world = replace(make_world(HostSpec("x")), changes=(PlannedChange(1.0, {"/etc/kubeconfig": ""}),))
    with pytest.raises(ValueError, match="/etc/kubeconfig is the container's alone"):
        world_document(world)


def test_comments_stand_above():
    """One line each: what is in them cannot end the comment or steer a terminal."""
    text = yaml_text({"format": 1}, ["assumed:", "", "a\nb\x1b[1m"])
    assert text == "# assumed:\n#\n# a\\nb\\x1b[1m\nformat: 1\n"
