"""Whose a log is, and what it says of a host at which nobody looked."""

from __future__ import annotations

import json

import pytest

from simulator.runners.simulated import simulate
from simulator.snapshot.bundle import read_bundle

UNIT = "k8s-driver-manager"
STARTS = "time=2026-01-01T00:00:00Z level=info msg=Starting driver uninstallation process\n"
ENDS = "time=2026-01-01T00:00:01Z level=info msg=Cordoning node {node}\n"
PRE = "time=2026-01-01T00:00:00Z level=info msg=NVIDIA GPU driver is already pre-installed on the node, disabling the containerized driver\n"


def found(said):
    return f"{STARTS}time=2026-01-01T00:00:00Z level=info msg=Host driver detected: {said}\n"


def pod(name, node, *, is_done=False):
    state = {"terminated": {"exitCode": 0}} if is_done else {"waiting": {"reason": "CrashLoopBackOff"}}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "gpu-operator"},
        "spec": {
            "nodeName": node,
            "nodeSelector": {"nvidia.com/gpu.deploy.driver": "true"},
            "initContainers": [{"name": UNIT, "image": f"x/{UNIT}:v0.10.0"}],
        },
        "status": {
            "phase": "Running" if is_done else "Pending",
            "initContainerStatuses": [{"name": UNIT, "restartCount": 0 if is_done else 7, "state": state}],
            "containerStatuses": [{"name": "nvidia-driver-ctr", "ready": is_done}],
        },
    }


@pytest.fixture
def saved(tmp_path):
    """The bundle of node gpu-1, with these logs by file, and further nodes and pods."""

    def save(logs, *pods, others=()):
        labels = {"nvidia.com/gpu.deploy.driver": "true", "nvidia.com/gpu.count": "1"}
        for name in ("gpu-1", *others):
            node = {"kind": "Node", "metadata": {"name": name, "labels": labels}}
            (tmp_path / f"node-{name}.json").write_text(json.dumps(node))
        listed = {"apiVersion": "v1", "items": [*pods], "kind": "List", "metadata": {"resourceVersion": ""}}
        (tmp_path / "pods.json").write_text(json.dumps(listed, indent=4) + "\n")
        for name, text in logs.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return read_bundle(tmp_path, node="gpu-1")

    return save


HERE, THERE = pod("driver-a", "gpu-1"), pod("driver-b", "gpu-2")


def prefixed(name, text, container=UNIT):
    return "".join(f"[pod/{name}/{container}] {line}\n" for line in text.splitlines())


def test_by_the_prefix_of_its_lines(saved):
    """One file may hold the logs of several pods and containers: those of this node's driver-manager are taken."""
    other = prefixed("driver-a", "Error from server (BadRequest): container is waiting to start", "nvidia-driver-ctr")
    text = prefixed("driver-b", STARTS) + prefixed("driver-a", PRE) + " more of it\n" + other
    bundle = saved({"x.log": text}, HERE, THERE)
    assert bundle.logs == {f"gpu-operator/driver-a/{UNIT}": prefixed("driver-a", PRE) + " more of it\n"}


def test_by_the_name_of_its_file(saved):
    """The longest name of a pod that is in it; a log of a pod on another node is not this node's."""
    longer = pod("driver-a-1", "gpu-2")
    bundle = saved({"driver-a.log": STARTS, "driver-a-1.log": PRE, "driver-b.log": PRE}, HERE, THERE, longer)
    assert bundle.logs == {f"gpu-operator/driver-a/{UNIT}": STARTS}


def test_by_the_name_of_its_folder(saved):
    """As OpenShift's must-gather has it."""
    bundle = saved({f"pods/driver-{pod}/{UNIT}/logs/current.log": STARTS + pod for pod in "ab"}, HERE, THERE)
    assert bundle.logs == {f"gpu-operator/driver-a/{UNIT}": f"{STARTS}a"}


@pytest.mark.parametrize("names", ["gpu-1", "gpu-2", "", "gpu-1 gpu-2", "gpu-20"])
def test_by_the_node_that_it_names(saved, names):
    """Where several nodes were saved; if it names none, or both, that is told."""
    bundle = saved({"x.log": STARTS + ENDS.format(node=names)}, others=("gpu-2",))
    told = "whose the log x.log is: 2 nodes were saved, and nothing says of which it is"
    assert (bool(bundle.logs), told in bundle.unseen) == {"gpu-1": (True, False), "gpu-2": (False, False)}.get(names, (True, True))


def test_of_one_node(saved):
    """It is this node's; of a pod that was not saved that is told."""
    bundle = saved({"x.log": STARTS, "y.log": prefixed("driver-z", STARTS)}, HERE)
    assert [*bundle.logs] == ["x.log", "y.log"]
    assert "the log y.log of pod driver-z, which was not saved, is of this node" in bundle.assumed
    assert not [sentence for sentence in (*bundle.unseen, *bundle.assumed) if "x.log" in sentence]


def test_what_is_left_out_is_told(saved):
    """What looks like a secret."""
    bundle = saved({"x.log": STARTS + "password=canary\n"}, HERE)
    assert "canary" not in bundle.logs["x.log"]
    assert "a part of log x.log: it looks like a secret" in bundle.unseen


# --- the host's driver ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "version"), [(found("570.172.08") + "570.172.08\n", "570.172.08"), (PRE, "0.0"), (STARTS + PRE, "0.0")]
)
def test_a_driver_that_the_log_found(saved, log, version):
    """Where nobody looked at the host it has the driver, and the run finds it again."""
    bundle = saved({"driver-a.log": log}, HERE)
    (program,) = bundle.scenario.world.host.programs
    assert program.driver_version == version
    said = "version unknown" if version == "0.0" else version
    assert f"the host has a driver of its own, {said}: the log gpu-operator/driver-a/{UNIT} says so" in bundle.assumed
    assert simulate(bundle.scenario.world, "v0.10.0").exit_code == 1


def test_an_answer_that_is_no_version(saved):
    """Is what nvidia-smi says, once more."""
    bundle = saved({"driver-a.log": found("Failed to initialize NVML")}, HERE)
    (program,) = bundle.scenario.world.host.programs
    assert (program.stdout, program.driver_version) == ("Failed to initialize NVML\n", "")
    assert any('says "Failed to initialize NVML": the log' in sentence for sentence in bundle.assumed)


@pytest.mark.parametrize(
    ("logs", "pods", "others"),
    [
        ({"driver-a.log": found("1.2") + STARTS}, [HERE], ()),  # the last run does not say so
        ({"driver-b.log": found("1.2")}, [HERE, THERE], ("gpu-2",)),
        ({"x.log": found("1.2")}, [HERE], ("gpu-2",)),  # whose it is is not known
        ({"driver-a.log": found("1.2")}, [pod("driver-a", "gpu-1", is_done=True)], ()),  # it has been overtaken
    ],
)
def test_a_log_that_says_nothing_of_this_host_now(saved, logs, pods, others):
    """There is no nvidia-smi."""
    assert saved(logs, *pods, others=others).scenario.world.host.programs == ()
