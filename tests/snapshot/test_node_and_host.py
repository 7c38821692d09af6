"""The node's objects and its host together: who holds the modules, what is made up where only a part was seen."""

from __future__ import annotations

import json

import pytest

from simulator.reading import InputError
from simulator.runners.simulated import simulate
from simulator.scenario import load_host
from simulator.snapshot.bundle import read_bundle
from simulator.snapshot.contents import Contents
from simulator.snapshot.files import read_files
from tests.snapshot.made import lay_out, run_host_script

UID = "a1b2c3d4-e5f6-4789-90ab-cdef01234567"
LABELS = {"nvidia.com/gpu.deploy.driver": "true", "nvidia.com/gpu.present": "true"}
OWNER = {"kind": "ReplicaSet", "name": "train", "controller": True, "apiVersion": "apps/v1"}


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """What the host script prints of a host whose modules are in use, without its list of processes."""
    root = lay_out(load_host("container-driver-loaded"), tmp_path_factory.mktemp("host") / "root")
    text = run_host_script(root, "--no-run").replace("open\n", "")
    return text.replace("nvidia_uvm 2154496 0 ", "nvidia_uvm 2154496 4 ").replace("nvidia 14376960 2 ", "nvidia 14376960 7 ")


@pytest.fixture
def saved(tmp_path, output):
    """The bundle of a node with a pod that may use a GPU, and of its host with more records."""

    def save(*records, gpus=1, text=output, labels=LABELS, container=None):
        resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
        metadata = {"name": "train", "namespace": "ml", "uid": UID, "ownerReferences": [OWNER]}
        pod = {
            "metadata": metadata,
            "spec": {"nodeName": "gpu-1", "containers": [{"resources": resources}]},
            "status": {"phase": "Running"},
        }
        if container is not None:
            selector = {"nvidia.com/gpu.deploy.driver": "true"}
            pod["spec"] |= {"initContainers": [{"name": "k8s-driver-manager", **container}], "nodeSelector": selector}
        node = {"kind": "Node", "metadata": {"name": "gpu-1", "labels": labels}}
        (tmp_path / "node.json").write_text(json.dumps(node))
        (tmp_path / "pod.json").write_text(json.dumps({"kind": "Pod", **pod}))
        if text:
            (tmp_path / "host.txt").write_text(text.replace("end\n", "\n".join([*records, "end\n"])))
        return read_bundle(tmp_path)

    return save


def module(bundle, name="nvidia"):
    return next(module for module in bundle.scenario.world.host.modules if module.name == name)


def test_processes_of_pods(saved):
    """They are known to hold the modules; once the pods are gone, so are the handles."""
    bundle = saved("open", f"h\t7\tpython3\t{UID}\t/dev/nvidia0", gpus=1)
    assert (module(bundle).users, module(bundle).pods) == (5, ("ml/train",))
    assert module(bundle, "nvidia_modeset").pods == ()
    assert "what holds the modules are processes of ml/train, and nothing else" in bundle.assumed
    assert "nvidia" not in simulate(bundle.scenario.world, "v0.10.0").after.modules


def test_a_pod_that_asked_for_nothing(saved):
    """It holds the modules, is not evicted, and the run ends badly."""
    bundle = saved("open", f"h\t7\tpython3\t{UID}\t/dev/nvidia0", gpus=0)
    assert module(bundle).pods == ("ml/train",)
    assert simulate(bundle.scenario.world, "v0.10.0").exit_code == 1


def test_other_processes(saved):
    """They never let go."""
    bundle = saved("open", f"h\t7\tpython3\t{UID}\t/dev/nvidia0", "h\t8\tXorg\t\t/dev/nvidia0")
    assert (module(bundle).users, module(bundle).pods) == (5, ())
    assert "processes that belong to no pod of the node hold the modules for ever: Xorg (8)" in bundle.assumed
    assert (module(bundle).processes, module(bundle, "nvidia_modeset").processes) == (("Xorg (8)",), ())
    assert simulate(bundle.scenario.world, "v0.10.0").exit_code == 1


def test_processes_were_not_looked_for(saved):
    """Then it is taken to be the pods that ask for a GPU; if there are none, it is not known."""
    bundle = saved(gpus=1)
    assert module(bundle).pods == ("ml/train",)
    assert "what holds the modules are the pods that use a GPU: ml/train" in bundle.assumed
    bundle = saved(gpus=0)
    assert module(bundle).pods == ()
    assert "who holds the modules" in bundle.unseen


def test_only_the_modules_were_not_seen(saved, output):
    """They are made up of what the node tells; what was seen stays."""
    head, _, rest = output.partition("f\t/proc/modules")
    text = head + rest.partition("f\t/sys/module")[2].partition("\nd\t")[2]
    bundle = saved(text=f"{text}", labels={**LABELS, "nvidia.com/gpu.count": "9"})
    world = bundle.scenario.world
    assert len(world.host.pci) == 2
    assert module(bundle).pods == ("ml/train",)
    assert not [sentence for sentence in bundle.assumed if "addresses are made up" in sentence]


def test_several_hosts(saved, tmp_path, output):
    """One is read, and that is told."""
    (tmp_path / "z.txt").write_text(output)
    assert "what z.txt says: one host's output is read, host.txt" in saved().unseen


@pytest.mark.parametrize(
    ("container", "unseen"),
    [
        (
            {"env": [{"name": "DRAIN_USE_FORCE", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "y"}}}]},
            "the value of DRAIN_USE_FORCE: it comes from elsewhere",
        ),
        ({"envFrom": [{"configMapRef": {"name": "x"}}]}, "variables that pod train takes from elsewhere"),
    ],
)
def test_settings_from_elsewhere(saved, container, unseen):
    """References are not followed, and that is told."""
    assert unseen in saved(container=container).unseen


@pytest.mark.parametrize(
    ("args", "taken"),
    [
        (["uninstall_driver"], ("uninstall_driver",)),
        (["preflight_check"], ("preflight_check",)),
        (["--password=x"], ("uninstall_driver",)),
    ],
)
def test_arguments(saved, args, taken):
    """Those that driver-manager knows."""
    assert saved(container={"args": args}).scenario.world.args == taken


def test_a_file_that_is_too_large(tmp_path):
    """A clear error for the only one."""
    with (tmp_path / "x.yaml").open("wb") as file:
        file.truncate(25 << 20)
    with pytest.raises(InputError, match="is larger than 24 MiB"):
        read_files(tmp_path / "x.yaml")


def test_not_endlessly_many_are_told():
    """Of what was passed over the first twenty, and how many more."""
    found = Contents("x")
    for at in range(23):
        found.skip(f"{at}")
    assert found.skipped[-1] == "and 3 more"
    assert len(found.skipped) == 21
