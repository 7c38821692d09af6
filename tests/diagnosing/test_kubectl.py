"""kubectl itself, with the commands of a diagnosis, does to a served cluster what the tests take them to do."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from simulator.clock import VirtualClock
from simulator.cluster.fake import FakeCluster
from simulator.cluster.serve import Server
from simulator.diagnosing.commands import CLUSTER
from simulator.diagnosing.findings import diagnose
from simulator.real.clock import WallClock
from simulator.snapshot.bundle import read_bundle
from tests.diagnosing.ailing import AILING
from tests.diagnosing.mending import request_of

KUBECTL = shutil.which("kubectl")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl on PATH")]


def _one_of_each_kind_and_form():
    found = {}
    for name, ailing in AILING.items():
        for finding in diagnose(ailing.bundle, ailing.release):
            told = [command for command in finding.commands if command.on == CLUSTER]
            form = " then ".join(" ".join(command.argv[1:3]) for command in told)
            if told and f"{finding.kind}: {form}" not in found:
                found[f"{finding.kind}: {form}"] = (name, told)
    return found


ONE = _one_of_each_kind_and_form()


@pytest.mark.parametrize("kind", ONE)
def test_kubectl_does_the_same(kind, tmp_path):
    """The same node, pods and policy; only versions and dates may differ."""
    name, told = ONE[kind]
    spec = AILING[name].bundle.scenario.world.cluster
    here, clock = FakeCluster(spec, VirtualClock()), WallClock()
    with Server(FakeCluster(spec, clock), clock) as server:
        for command in told:
            done = subprocess.run(
                [KUBECTL, "--server", server.url, *command.argv[1:], *(["--wait=false"] if command.argv[1] == "delete" else [])],
                env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            here.request(request_of(command.argv)[0])
        there = server.call(lambda: _seen(server.cluster))
    assert there == _seen(here)


def _seen(cluster):
    """What the commands may change."""
    node = cluster.store.node
    kinds = {kind.plural: kind for kind in cluster.store._objects}
    policies = cluster.store.objects(kinds["clusterpolicies"]) if "clusterpolicies" in kinds else {}
    daemonsets = cluster.store.objects(kinds["daemonsets"]) if "daemonsets" in kinds else {}
    return {
        "node": (node["metadata"]["labels"], node["metadata"]["annotations"], node["spec"].get("unschedulable", False)),
        "status": {part: node["status"][part] for part in ("capacity", "allocatable")},
        "pods": {name: (name in cluster.terminating(), pod["metadata"].get("labels")) for name, pod in cluster.store.pods.items()},
        "policies": [found["spec"] for found in policies.values()],
        "daemonsets": {name: found["spec"]["template"]["spec"].get("nodeSelector") for name, found in daemonsets.items()},
    }


def test_a_node_that_kubectl_saved_is_diagnosed(tmp_path):
    """What the cluster shows; nothing about the host, at which nobody looked."""
    ailing = AILING["cordon-of-driver-manager"]
    clock = WallClock()
    saved = tmp_path / "saved"
    saved.mkdir()
    with Server(FakeCluster(ailing.bundle.scenario.world.cluster, clock), clock) as server:
        for name, what in (("node.yaml", ["node", "gpu-1"]), ("pods.yaml", ["pods", "--all-namespaces"])):
            command = [KUBECTL, "--server", server.url, "get", *what, "--output=yaml"]
            done = subprocess.run(command, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, capture_output=True, check=True)
            (saved / name).write_bytes(done.stdout)
    bundle = read_bundle(saved)
    assert not bundle.is_host_seen
    assert tuple(finding.kind for finding in diagnose(bundle)) == ailing.kinds
