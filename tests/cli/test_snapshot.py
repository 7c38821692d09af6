"""`dmsim snapshot`, as a new user runs it."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from pathlib import Path

import pytest

from simulator.cli.main import main
from simulator.cluster.fake import FakeCluster
from simulator.cluster.objects import ClusterSpec, Container, Node, Owner, Pod
from simulator.cluster.serve import Server
from simulator.manager.releases import DEFAULT
from simulator.ports import Request
from simulator.real.clock import WallClock
from simulator.scenario import load_cluster, load_host, load_scenario
from tests.snapshot.made import lay_out, manager_daemonset, run_host_script, save

ENV = {"NODE_NAME": "gpu-1"}


@pytest.fixture
def bundle(tmp_path):
    """What somebody saved of a node."""
    return save(tmp_path / "bundle", load_cluster("container-node", "gpu-1"), manager=manager_daemonset(ENV, DEFAULT))


def test_what_is_written_can_be_run(bundle, tmp_path, capsys):
    """A world file, with what was not seen and what was assumed above it, and on standard error."""
    world = tmp_path / "world.yaml"
    assert main(["snapshot", str(bundle), "-o", str(world)]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(
        "Could not be seen:\n- the host itself: nobody looked at it (dmsim snapshot host-script)\nAssumed:\n- "
    )
    assert world.read_text().startswith("".join(f"# {line}\n" for line in printed.err.splitlines()))
    assert main(["run", "--world", str(world), "--exit-code"]) == 0
    assert f"--- {DEFAULT}, " in capsys.readouterr().out


def test_several_paths(bundle, tmp_path, capsys):
    """Files one by one, the host's among them, are as good as their folder; without -o the world is printed."""
    host = tmp_path / "host.txt"
    host.write_text(run_host_script(lay_out(load_host("runfile-580"), tmp_path / "root"), "--no-run"))
    assert main(["snapshot", *map(str, bundle.iterdir()), str(host)]) == 0
    one_by_one = capsys.readouterr().out
    shutil.copy(host, bundle)
    assert main(["snapshot", str(bundle)]) == 0
    assert capsys.readouterr().out == one_by_one
    assert main(["snapshot", str(bundle), "--root", str(tmp_path / "root")]) == 0
    assert "/usr/bin/nvidia-smi" in capsys.readouterr().out


def test_anonymize(bundle, capsys):
    """The node has another name."""
    assert main(["snapshot", str(bundle), "--anonymize"]) == 0
    printed = capsys.readouterr()
    assert "gpu-1" not in printed.out + printed.err
    assert "NODE_NAME: node-1" in printed.out
    assert "- the host itself: nobody looked at it (dmsim snapshot host-script)\n" in printed.err


def test_logs(bundle, tmp_path, capsys):
    """What driver-manager logged goes to a file of its own."""
    line = "time=2026-01-01T00:00:00Z level=info msg=Starting driver uninstallation process\n"
    (bundle / "nvidia-driver-daemonset-c6b9x.log").write_text(line)
    assert main(["snapshot", str(bundle), "--logs", str(tmp_path / "manager.log")]) == 0
    assert (tmp_path / "manager.log").read_text() == line
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nowhere"], "nowhere: does not exist"),
        (["{bundle}", "--node", "x"], 'holds no node "x"; known: gpu-1'),
        (["{bundle}", "-o", "/nowhere/world.yaml"], "/nowhere/world.yaml: cannot be written: No such file or directory"),
        (["{bundle}", "--root", "nowhere"], "nowhere: cannot be entered"),
        (["--kubectl", "/nowhere/kubectl"], "/nowhere/kubectl: is no program that can be found"),
        (["--kubectl", "/bin/false", "--node", "x"], "/bin/false: get --raw /api/v1/nodes/x failed: exit code 1"),
    ],
)
def test_bad_input(bundle, arguments, problem, capsys):
    """One message, exit code 2."""
    assert main(["snapshot", *(argument.format(bundle=bundle) for argument in arguments)]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("dmsim snapshot: ")
    assert problem in printed.err
    assert printed.err.count("\n") == 1


# --- a live cluster -------------------------------------------------------------------------------------------------


@pytest.fixture
def kubectl(tmp_path):
    """A stand-in for kubectl that answers GETs from a cluster's documents, and notes them; the cluster can be changed."""

    def make(cluster, **answers):
        fake = FakeCluster(cluster, WallClock())
        folder = tmp_path / "kubectl"
        folder.mkdir()
        for path in (
            "/api/v1",
            "/api/v1/pods",
            "/api/v1/nodes",
            "/apis/apps/v1/daemonsets",
            "/apis/resource.k8s.io/v1/resourceclaims",
        ):
            answers.setdefault(path, json.dumps(fake.request(Request("GET", path)).body))
        for node in json.loads(answers["/api/v1/nodes"])["items"]:
            answers[f"/api/v1/nodes/{node['metadata']['name']}"] = json.dumps({"kind": "Node", **node})
        (folder / "answers.json").write_text(json.dumps(answers))
        program = folder / "kubectl"
        program.write_text(
            f"#!{sys.executable}\n"
            "import json, pathlib, sys\n"
            "folder = pathlib.Path(__file__).parent\n"
            "with (folder / 'calls').open('a') as calls: calls.write(json.dumps(sys.argv[1:]) + '\\n')\n"
            "answers = json.loads((folder / 'answers.json').read_text())\n"
            "path = sys.argv[-1]\n"
            "answer = answers.get(path, answers.get(path.partition('?')[0] if '/log' not in path else path))\n"
            "sys.exit('Error from server (NotFound): not found') if answer is None else sys.stdout.write(answer)\n"
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return program

    return make


def calls(program):
    return [json.loads(line) for line in (program.parent / "calls").read_text().splitlines()]


def test_a_live_cluster(kubectl, tmp_path, capsys):
    """Only GETs, of nothing secret; what is not there is told, and no error."""
    program = kubectl(load_cluster("container-node", "gpu-1"))
    world = tmp_path / "world.yaml"
    command = ["snapshot", "--kubectl", str(program), "--kubeconfig", "k", "--context", "c", "--node", "gpu-1", "-o", str(world)]
    assert main(command) == 0
    assert len(load_scenario(world).world.cluster.pods) == 6
    assert "- ClusterPolicies: " in capsys.readouterr().err
    asked = calls(program)
    assert all(call[:4] == ["--kubeconfig=k", "--context=c", "get", "--raw"] and len(call) == 5 for call in asked)
    paths = [call[-1] for call in asked]
    assert paths[:2] == ["/api/v1/nodes/gpu-1", "/api/v1/pods?fieldSelector=spec.nodeName%3Dgpu-1"]
    assert not [path for path in paths if "secrets" in path or "configmaps" in path]


def test_the_only_node(kubectl, capsys):
    """Where one node has GPUs it need not be named."""
    assert main(["snapshot", "--kubectl", str(kubectl(load_cluster("container-node", "gpu-1")))]) == 0
    assert "name: gpu-1" in capsys.readouterr().out


def test_the_logs_of_a_live_cluster(kubectl, tmp_path, capsys):
    """Those of the pods that run driver-manager, the run before too."""
    manager = {"name": "k8s-driver-manager", "image": "x/k8s-driver-manager:v0.11.0"}
    pod = {
        "metadata": {"name": "d", "namespace": "gpu-operator"},
        "spec": {"nodeName": "gpu-1", "initContainers": [manager], "nodeSelector": {"nvidia.com/gpu.deploy.driver": "true"}},
        "status": {"phase": "Pending"},
    }
    log = "/api/v1/namespaces/gpu-operator/pods/d/log?container=k8s-driver-manager&limitBytes=4194304"
    program = kubectl(
        load_cluster("container-node", "gpu-1"),
        **{
            "/api/v1/pods": json.dumps({"kind": "PodList", "apiVersion": "v1", "items": [pod]}),
            log: "level=info msg=now\n",
            f"{log}&previous=true": "level=info msg=before\n",
        },
    )
    command = ["snapshot", "--kubectl", str(program), "--node", "gpu-1", "--logs", str(tmp_path / "log")]
    assert main(command) == 0
    assert (tmp_path / "log").read_text() == "level=info msg=now\nlevel=info msg=before\n"
    assert "release: v0.11.0" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl on PATH")
def test_a_real_kubectl(tmp_path, capsys):
    """A served cluster, asked by kubectl: the node's pods, and no others."""
    pods = (
        Pod("ml", "train", containers=(Container({"nvidia.com/gpu": "1"}),), owner=Owner("ReplicaSet", "train")),
        Pod("ml", "elsewhere", node_name="other"),
    )
    spec = ClusterSpec("c", Node("gpu-1", {"nvidia.com/gpu.present": "true"}), pods)
    clock = WallClock()
    with Server(FakeCluster(spec, clock), clock) as server:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": server.url}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
            "current-context": "c",
        }
        (tmp_path / "config").write_text(json.dumps(config))
        os.environ.setdefault("HOME", str(tmp_path))
        assert main(["snapshot", "--kubeconfig", str(tmp_path / "config"), "-o", str(tmp_path / "world.yaml")]) == 0
    world = load_scenario(Path(tmp_path / "world.yaml")).world
    assert [pod.name for pod in world.cluster.pods] == ["train"]
    assert next(module for module in world.host.modules if module.name == "nvidia").pods == ("ml/train",)
    capsys.readouterr()
