"""The decisive test: a world, saved as a person saves it and read back, runs as the world itself does."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess

import pytest

from simulator.cluster.fake import FakeCluster
from simulator.cluster.serve import Server
from simulator.host.fake import FakeHost
from simulator.manager.releases import DEFAULT, RELEASES
from simulator.manager.steps import HOST_QUERY
from simulator.real.clock import WallClock
from simulator.runners.simulated import simulate
from simulator.scenario import load_cluster, load_host, load_scenario, make_world, names
from simulator.snapshot.bundle import read_bundle, read_world_or_bundle
from simulator.snapshot.host import path_of
from simulator.writing import world_document, yaml_text
from tests.snapshot.made import SHELLS, lay_out, manager_daemonset, run_host_script, save

ENV = {"NODE_NAME": "gpu-1", "ENABLE_AUTO_DRAIN": "false", "OPERATOR_NAMESPACE": "gpu-operator", "DRIVER_CONFIG_DIGEST": "5f2c"}
CANNOT_BE_SAVED = {
    "unknown-node": "there is no node",
    "unreachable": "there is no server",
}
CLUSTERS = [name for name in names("clusters") if name not in CANNOT_BE_SAVED]
KINDS = {"vm-passthrough-node": "vfio-manager", "vm-vgpu-node": "vgpu-manager"}
UNSEEN = {"secure-boot-unenrolled-key": "whether the kernel takes a module that is not loaded can be known by loading it only"}


def prompt(cluster):
    """The cluster as a snapshot can know it: each pod goes after a second, and the server is of today."""
    pods = tuple(dataclasses.replace(pod, termination=1.0) for pod in cluster.pods)
    return dataclasses.replace(cluster, pods=pods, page_size=None, eviction="policy/v1")


def told(outcome):
    """What a run said, asked and did, and how the world ended."""
    after = outcome.after
    return (
        outcome.events,
        outcome.exit_code,
        after.node,
        sorted(after.pods),
        after.modules,
        after.gpu_drivers,
        after.mounts,
        after.files,
    )


def with_answer(text, spec, release):
    """The script's output with what nvidia-smi would have said to it. It is asked only where the module is loaded."""
    if all(module.name != "nvidia" for module in spec.modules):
        return text
    answer = FakeHost(spec, path_of(release)).run(HOST_QUERY)
    lines = "".join(f"|{line}\n" for line in answer.stdout.split("\n"))
    return text.replace("end\n", f"a\t{answer.exit_code}\n{lines}\nend\n")


@pytest.mark.parametrize("host", names("hosts"))
def test_a_host(host, tmp_path):
    """Each named host, seen by the host script only, on a container node."""
    spec = load_host(host)
    world = make_world(spec, prompt(load_cluster("container-node", "gpu-1")), env=ENV)
    mounts = ["/sys"] if spec.root == "absent" else ["/host", "/sys"]
    folder = save(tmp_path / "bundle", world.cluster, manager=manager_daemonset(ENV, DEFAULT, mounts=mounts))
    output = run_host_script(lay_out(spec, tmp_path / "root"), "--no-run")
    (folder / "host.txt").write_text(with_answer(output, spec, DEFAULT))
    bundle = read_bundle(folder)
    assert bundle.scenario.release == DEFAULT
    same = told(simulate(bundle.scenario.world, DEFAULT)) == told(simulate(world, DEFAULT))
    assert same == (host not in UNSEEN)


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_cluster(cluster, form, tmp_path):
    """Each named cluster that can be asked, saved as kubectl prints it, in every release."""
    spec = load_host("container-driver-loaded")
    world = make_world(spec, prompt(load_cluster(cluster, "gpu-1")), env=ENV)
    folder = save(tmp_path / "bundle", world.cluster, form)
    output = run_host_script(lay_out(spec, tmp_path / "root"), "--no-run")
    (folder / "host.txt").write_text(output)
    for release in RELEASES:
        daemonset = manager_daemonset(ENV, release, KINDS.get(cluster, "driver"))
        (folder / "manager.json").write_text(json.dumps(daemonset))
        bundle = read_bundle(folder)
        assert bundle.scenario.release == release
        assert told(simulate(bundle.scenario.world, release)) == told(simulate(world, release))


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_every_shell_sees_the_same(shell, tmp_path):
    """dash, busybox, bash: the same text."""
    root = lay_out(load_host("wrapper-to-opt-bin"), tmp_path / "root")
    assert run_host_script(root, "--no-run", shell=shell) == run_host_script(root, "--no-run")


def test_what_is_written_is_read_again(tmp_path):
    """The world file of a snapshot gives the same world."""
    world = make_world(load_host("converged-gpu-rdma"), prompt(load_cluster("dra-node", "gpu-1")), env=ENV)
    bundle = read_bundle(save(tmp_path / "bundle", world.cluster))
    file = tmp_path / "world.yaml"
    scenario = bundle.scenario
    file.write_text(
        yaml_text(world_document(scenario.world, release=scenario.release, description=scenario.description), bundle.unseen)
    )
    assert load_scenario(file) == scenario
    assert read_world_or_bundle(file).scenario == scenario


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl on PATH")
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_real_kubectl(form, tmp_path):
    """A cluster that is served, and saved by kubectl itself."""
    world = make_world(load_host("container-driver-loaded"), prompt(load_cluster("dra-node", "gpu-1")), env=ENV)
    clock = WallClock()
    fake = FakeCluster(world.cluster, clock)
    folder = tmp_path / "bundle"
    folder.mkdir()
    with Server(fake, clock) as server:
        for name, what in (("node", ["node", "gpu-1"]), ("pods", ["pods", "-A"]), ("daemonsets", ["daemonsets", "-A"])):
            done = subprocess.run(
                ["kubectl", "--server", server.url, "get", *what, "-o", form],
                capture_output=True,
                text=True,
                check=True,
                env={**os.environ, "HOME": str(tmp_path)},
            )
            (folder / f"{name}.{form}").write_text(done.stdout)
    (folder / "host.txt").write_text(run_host_script(lay_out(world.host, tmp_path / "root"), "--no-run"))
    (folder / "manager.json").write_text(json.dumps(manager_daemonset(ENV, DEFAULT)))
    assert told(simulate(read_bundle(folder).scenario.world, DEFAULT)) == told(simulate(world, DEFAULT))
