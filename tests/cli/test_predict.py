"""`dmsim predict`: the command, its exit codes, its errors."""

from __future__ import annotations

import json

import pytest

from simulator.cli.main import BAD_INPUT, CHECK_FAILED, OK, main

LOADED = ("--host", "container-driver-loaded")
INSTALLED = ("--host", "ubuntu-24.04-driver-580-open", "--env", "NODE_NAME=gpu-1")
WORLD = """\
format: 1
release: v0.12.0
host: container-driver-loaded
cluster: container-node
env: {NODE_NAME: gpu-1, DRIVER_CONFIG_DIGEST: "sha256:5f2c"}
"""


def run(capsys, *argv):
    """Exit code, standard output, standard error."""
    code = main(["predict", *argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def document(capsys, *argv):
    code, out, _ = run(capsys, *argv, "-o", "json")
    return code, json.loads(out)


@pytest.fixture
def world_file(tmp_path):
    path = tmp_path / "node.yaml"
    path.write_text(WORLD)
    return str(path)


def test_success_is_exit_code_0(capsys):
    """And the verdict comes first."""
    code, out, _ = run(capsys, *LOADED)
    assert code == OK
    assert out.startswith("will succeed: ")


def test_no_success_is_exit_code_1(capsys):
    """A host's own driver."""
    code, out, _ = run(capsys, *INSTALLED)
    assert code == CHECK_FAILED
    assert out.startswith("will not succeed: the host has a driver of its own")


def test_a_world_file_names_its_release(capsys, world_file):
    """And --release outdoes it; the world's digest is kept."""
    code, found = document(capsys, world_file)
    assert (code, found["format"], found["release"], found["verdict"]["path"]) == (OK, 1, "v0.12.0", "kept-driver")
    assert document(capsys, world_file, "--release", "v0.9.1")[1]["verdict"]["path"] == "full"


def test_the_command_line_outdoes_a_world_file(capsys, world_file):
    """Its variables, its cluster."""
    _, found = document(capsys, world_file, "--env", "FORCE_REINSTALL=true", "--cluster", "vm-passthrough-node")
    assert (found["mode"], found["verdict"]["path"]) == ("vm-passthrough", "full")


def test_a_bundle_is_read(capsys, tmp_path):
    """What kubectl saved, here the node alone: what was not seen and what was assumed is said."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-7", "labels": {"nvidia.com/gpu.deploy.driver": "true"}}}
    policy = {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "cluster-policy"},
        "spec": {"driver": {"upgradePolicy": {"autoUpgrade": True}}},
    }
    (tmp_path / "node.json").write_text(json.dumps(node))
    (tmp_path / "policy.json").write_text(json.dumps(policy))
    code, found = document(capsys, str(tmp_path))
    assert (code, found["verdict"]["outlook"]) == (OK, "will succeed as far as was seen")
    assert "nobody looked at the host" in found["verdict"]["sentence"]
    assert found["driver"]["seen"] is False
    assert found["assumed"]
    assert found["unseen"]
    assert {"name": "driver.upgradePolicy.autoUpgrade", "value": "true", "source": "ClusterPolicy", "note": ""} in found[
        "settings"
    ]["settings"]


def test_what_a_bundle_shows_against_success_is_weighed(capsys, tmp_path):
    """A driver-manager that fails on the node again and again: neither yes nor no, and exit code 1."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-7", "labels": {"nvidia.com/gpu.deploy.driver": "true"}}}
    failed = {
        "name": "k8s-driver-manager",
        "restartCount": 23,
        "lastState": {"terminated": {"exitCode": 1}},
        "state": {"waiting": {}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "nvidia-driver-daemonset-x",
            "namespace": "gpu-operator",
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "nvidia-driver-daemonset", "controller": True}
            ],
        },
        "spec": {
            "nodeName": "gpu-7",
            "nodeSelector": {"nvidia.com/gpu.deploy.driver": "true"},
            "initContainers": [{"name": "k8s-driver-manager", "image": "nvcr.io/nvidia/cloud-native/k8s-driver-manager:v0.10.0"}],
        },
        "status": {"phase": "Pending", "initContainerStatuses": [failed]},
    }
    (tmp_path / "node.json").write_text(json.dumps(node))
    (tmp_path / "pods.json").write_text(json.dumps(pod))
    code, found = document(capsys, str(tmp_path))
    assert (code, found["verdict"]["cause"], found["verdict"]["succeeds"]) == (CHECK_FAILED, "contradicted", False)
    assert found["verdict"]["sentence"].startswith("cannot be told: ")
    assert "23 restarts" in found["verdict"]["sentence"]
    assert found["verdict"]["seen"]


def test_gpus_that_a_must_gather_shows_without_their_pods_leave_it_open(capsys, tmp_path):
    """The node's description tells that they are allocated, and not to whom."""
    lines = [
        "Name:               gpu-7",
        "Roles:              gpu",
        "Labels:             nvidia.com/gpu.deploy.driver=true",
        "                    nvidia.com/gpu.present=true",
        "Annotations:        <none>",
        "Capacity:",
        "  nvidia.com/gpu:   8",
        "Allocated resources:",
        "  Resource           Requests     Limits",
        "  --------           --------     ------",
        "  nvidia.com/gpu     8            8",
        "Events:              <none>",
        "",
    ]
    (tmp_path / "gpu_nodes.descr").write_text("\n".join(lines))
    code, found = document(capsys, str(tmp_path))
    assert (code, found["verdict"]["cause"]) == (CHECK_FAILED, "unseen-pods")
    assert "8 GPUs are asked for by pods that were not saved" in found["verdict"]["sentence"]


@pytest.mark.parametrize(
    ("chart", "to", "release"),
    [("v26.7.0", None, "v0.12.0"), ("v23.9.2", "vm-passthrough", "v0.6.2"), ("v25.3.0", None, "v0.8.1")],
)
def test_a_chart_stands_for_a_release(capsys, chart, to, release):
    """That of the DaemonSet in question: vfio-manager's was an older one in some charts."""
    event = ("--event", "mode-switch", "--to", to) if to else ()
    assert document(capsys, *LOADED, "--chart", chart, *event)[1]["release"] == release


def test_every_event_can_be_asked_for(capsys):
    """By name."""
    for event in ("pod-restart", "image-bump", "reboot", "config-change"):
        assert document(capsys, *LOADED, "--event", event)[1]["event"] == event


def test_markdown(capsys):
    """For a ticket."""
    code, out, _ = run(capsys, *LOADED, "-o", "markdown")
    assert code == OK
    assert out.startswith("## will succeed: ")


@pytest.mark.parametrize(("form", "start"), [("text", "v0.10.0, the node was rebooted"), ("markdown", "## v0.10.0"), ("json", "{")])
def test_two_releases(capsys, form, start):
    """In each form; the exit code is of the first."""
    code, out, _ = run(capsys, *LOADED, "--event", "reboot", "--compare", "v0.12.0", "-o", form)
    assert code == OK
    assert out.startswith(start)
    assert "no-eviction-without-driver" in out
    assert run(capsys, *INSTALLED, "--compare", "v0.12.0")[0] == CHECK_FAILED


def test_a_what_if_is_put_on_top(capsys):
    """Issue #191's."""
    argv = ("--host", "runfile-580", "--env", "NODE_NAME=gpu-1", "--env", "FORCE_HOST_DRIVER_UNBIND=true")
    assert run(capsys, *argv)[0] == CHECK_FAILED
    assert run(capsys, *argv, "--what-if", "force-host-driver-unbind")[0] == OK


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        ((), "either WORLD|BUNDLE or --host is needed"),
        (("node.yaml", *LOADED), "either WORLD|BUNDLE or --host is needed"),
        (("/does/not/exist.yaml",), "/does/not/exist.yaml"),
        ((*LOADED, "--release", "v0.10.9"), 'there is no release "v0.10.9"'),
        ((*LOADED, "--chart", "v26.3.9"), 'there is no chart "v26.3.9"'),
        ((*LOADED, "--chart", "v26.3.1", "--release", "v0.10.0"), "leave one out"),
        ((*LOADED, "--chart", "v22.9.1"), 'there is no release "v0.5.1"'),
        ((*LOADED, "--event", "mode-switch"), "--event mode-switch needs the new mode"),
        ((*LOADED, "--event", "mode-switch", "--to", "container"), "it is a container node already, so nothing happens"),
        ((*LOADED, "--to", "container"), "--to is of --event mode-switch"),
        ((*LOADED, "--compare", "nothing"), 'there is no release "nothing"'),
        ((*LOADED, "--what-if", "nothing"), 'there is no what-if "nothing"'),
        ((*LOADED, "--what-if", "force-host-driver-unbind", "--compare", "v0.12.0"), "leave one out"),
        ((*LOADED, "--env", "X"), "is no variable"),
    ],
)
def test_bad_input_is_one_line(capsys, argv, problem):
    """And exit code 2."""
    code, out, err = run(capsys, *argv)
    assert (code, out, err.count("\n")) == (BAD_INPUT, "", 1)
    assert problem in err
