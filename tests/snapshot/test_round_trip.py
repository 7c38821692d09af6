"""The decisive test: a world, saved as a person saves it and read back, runs as the world itself does."""

from __future__ import annotations

import dataclasses

import pytest

from simulator.manager.releases import DEFAULT
from simulator.runners.simulated import simulate
from simulator.scenario import load_cluster, load_host, make_world, names
from simulator.snapshot.bundle import read_bundle
from tests.snapshot.made import lay_out, manager_daemonset, run_host_script, save

ENV = {"NODE_NAME": "gpu-1", "ENABLE_AUTO_DRAIN": "false", "OPERATOR_NAMESPACE": "gpu-operator", "DRIVER_CONFIG_DIGEST": "5f2c"}
CLUSTERS = ["container-node", "dra-node", "mig-node", "paged", "unlabelled-node", "vm-passthrough-node", "vm-vgpu-node"]


def prompt(cluster):
    """The cluster as a snapshot can know it: each pod goes after a second."""
    return dataclasses.replace(
        cluster, pods=tuple(dataclasses.replace(pod, termination=1.0) for pod in cluster.pods), page_size=None
    )


def told(outcome):
    """What a run said and did, and how the world ended."""
    after = outcome.after
    return outcome.events, outcome.exit_code, after.node, sorted(after.pods), after.modules, after.gpu_drivers, after.mounts, after.files


@pytest.mark.parametrize("host", names("hosts"))
def test_a_host(host, tmp_path):
    """Each named host, seen by the host script only, on a container node."""
    spec = load_host(host)
    world = make_world(spec, prompt(load_cluster("container-node", "gpu-1")), env=ENV)
    folder = save(tmp_path / "bundle", world.cluster, manager=manager_daemonset(ENV, DEFAULT))
    (folder / "host.txt").write_text(run_host_script(lay_out(spec, tmp_path / "root"), "--no-run"))
    bundle = read_bundle(folder)
    assert bundle.scenario.release == DEFAULT
    assert told(simulate(bundle.scenario.world, DEFAULT)) == told(simulate(world, DEFAULT))
