"""What the node object alone tells: the system, the GPUs, the mode, whether a driver is at work."""

from __future__ import annotations

import json

import pytest

from simulator.manager.releases import DEFAULT
from simulator.reading import InputError
from simulator.runners.simulated import simulate
from simulator.snapshot.bundle import read_bundle

DEPLOY = "nvidia.com/gpu.deploy."
FEATURE = "feature.node.kubernetes.io/"


@pytest.fixture
def saved(tmp_path):
    """Save a node with these labels, this capacity and further objects; the bundle."""

    def save(labels=(), *, capacity=(), info=(), **more):
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "gpu-1", "labels": dict(labels)},
            "status": {"capacity": dict(capacity), "nodeInfo": dict(info)},
        }
        for name, document in ({"node": node} | more).items():
            (tmp_path / f"{name}.json").write_text(json.dumps(document))
        return read_bundle(tmp_path)

    return save


def pods(*items):
    return {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod", **item} for item in items]}


def pod(name, *, namespace="gpu-operator", ready=None, gpus=0, **spec):
    resources = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}} if gpus else {}
    status = {"phase": "Running", **({} if ready is None else {"containerStatuses": [{"name": "c", "ready": ready}]})}
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"},
        "spec": {"nodeName": "gpu-1", "containers": [{"name": "c", **resources}], **spec},
        "status": status,
    }


MANAGER = {
    "name": "k8s-driver-manager",
    "image": "nvcr.io/nvidia/cloud-native/k8s-driver-manager:v0.11.0@sha256:00ff",
    "env": [{"name": "DRIVER_CONFIG_DIGEST", "value": "1234567890"}],
}


def drivers(world):
    return [function.driver for function in world.host.pci if function.is_gpu]


def modules(world):
    return sorted(module.name for module in world.host.modules)


def test_a_node_without_labels(saved):
    """No GPU, and driver-manager runs all the same."""
    bundle = saved()
    assert drivers(bundle.scenario.world) == []
    assert simulate(bundle.scenario.world, DEFAULT).exit_code == 0
    assert any("no label of the node speaks of any" in sentence for sentence in bundle.assumed)
    assert any(sentence.startswith("pods: none") for sentence in bundle.unseen)


def test_the_system(saved):
    """Kernel, system and architecture from NFD's labels and from kubelet."""
    labels = {f"{FEATURE}kernel-version.full": "5.15.0-1-aws", f"{FEATURE}system-os_release.ID": "ubuntu"}
    info = {"osImage": "Ubuntu 22.04.4 LTS", "architecture": "arm64", "kernelVersion": "another"}
    assert saved(labels, info=info).scenario.world.host.os == {
        "name": "Ubuntu",
        "version": "22.04.4",
        "kernel": "5.15.0-1-aws",
        "architecture": "aarch64",
    }


@pytest.mark.parametrize(
    ("labels", "capacity", "count"),
    [
        ({"nvidia.com/gpu.count": "8"}, {"nvidia.com/gpu": "80"}, 8),
        ({}, {"nvidia.com/gpu": "2", "cpu": "64"}, 2),
        ({}, {"nvidia.com/GA102GL_A10": "4"}, 4),
        ({f"{FEATURE}pci-10de.present": "true"}, {}, 1),
        ({f"{FEATURE}pci-0302_10de.present": "true"}, {"nvidia.com/gpu": "0"}, 1),
        ({"nvidia.com/gpu.count": "x"}, {"nvidia.com/gpu": "-1"}, 0),
        ({"nvidia.com/gpu.count": "999"}, {}, 64),
    ],
)
def test_how_many_gpus(saved, labels, capacity, count):
    """By the label, by what the node offers, by its features."""
    assert len(drivers(saved(labels, capacity=capacity).scenario.world)) == count


def test_a_mellanox_card(saved):
    """NFD tells of one."""
    world = saved({f"{FEATURE}pci-15b3.present": "true"}).scenario.world
    assert [function.vendor for function in world.host.pci] == ["0x15b3"]


def test_a_host_driver(saved):
    """The label says that driver-manager found one; the next run finds it again."""
    bundle = saved(
        {f"{DEPLOY}driver": "pre-installed", "nvidia.com/gpu.count": "2", "nvidia.com/cuda.driver-version.full": "580.82.07"}
    )
    outcome = simulate(bundle.scenario.world, DEFAULT)
    assert outcome.exit_code == 1
    assert any("Host driver detected: 580.82.07\n580.82.07" in getattr(event, "message", "") for event in outcome.events)
    assert any("may be left over" in sentence for sentence in bundle.assumed)


@pytest.mark.parametrize("version", [("580", "82", "07"), ("570", "133", "")])
def test_the_parts_of_a_version(saved, version):
    """Older gpu-feature-discovery writes a label for each."""
    parts = dict(zip(("major", "minor", "rev"), version, strict=True))
    labels = {f"nvidia.com/cuda.driver.{part}": value for part, value in parts.items()}
    (program,) = saved(labels | {f"{DEPLOY}driver": "pre-installed"}).scenario.world.host.programs
    assert program.driver_version == ".".join(filter(None, version))


def test_nothing_is_at_work_yet(saved):
    """A node of a fresh cluster: no driver is loaded."""
    world = saved({f"{DEPLOY}driver": "true", "nvidia.com/gpu.present": "true"}).scenario.world
    assert (drivers(world), modules(world), world.host.mounts) == ([""], [], ())


@pytest.mark.parametrize(
    "more",
    [
        {"capacity": {"nvidia.com/gpu": "1"}},
        {"labels": {"nvidia.com/cuda.driver.major": "580", "nvidia.com/cuda.driver.minor": "82"}},
        {"pods": pods(pod("train", namespace="ml", gpus=1))},
        {"pods": pods(pod("d", ready=True, initContainers=[MANAGER], nodeSelector={f"{DEPLOY}driver": "true"}))},
    ],
    ids=["capacity", "version", "a pod", "the driver's pod"],
)
def test_the_container_driver_is_at_work(saved, more):
    """Any sign of it will do; it leaves modules, a mount, a PID file."""
    labels = {f"{DEPLOY}driver": "true", "nvidia.com/gpu.present": "true", **more.pop("labels", {})}
    world = saved(labels, **more).scenario.world
    assert drivers(world) == ["nvidia"]
    assert modules(world) == ["nvidia", "nvidia_modeset", "nvidia_uvm"]
    assert world.host.mounts == ("/run/nvidia/driver",)


def test_the_driver_pod_that_is_not_ready(saved):
    """Its driver is not loaded, whatever was loaded before."""
    selector = {f"{DEPLOY}driver": "true"}
    items = pods(pod("d", ready=False, initContainers=[MANAGER], nodeSelector=selector))
    assert drivers(saved({**selector, "nvidia.com/gpu.present": "true"}, pods=items).scenario.world) == [""]


def test_a_digest_that_is_the_same(saved):
    """The driver's pod is ready: the driver that is loaded was made of its digest, and stays."""
    selector = {f"{DEPLOY}driver": "true"}
    items = pods(pod("d", ready=True, initContainers=[MANAGER], nodeSelector=selector))
    bundle = saved({**selector, "nvidia.com/gpu.present": "true"}, pods=items)
    assert bundle.scenario.release == "v0.11.0"
    assert bundle.scenario.world.env["DRIVER_CONFIG_DIGEST"] == "1234567890"
    outcome = simulate(bundle.scenario.world, "v0.11.0")
    assert outcome.after.modules == outcome.before.modules


def test_a_digest_that_is_not_known(saved):
    """The driver's pod is not ready, and a driver is loaded all the same: an earlier pod's, of whatever digest."""
    selector = {f"{DEPLOY}driver": "true"}
    items = pods(pod("d", ready=False, initContainers=[MANAGER], nodeSelector=selector))
    bundle = saved(selector, capacity={"nvidia.com/gpu": "1"}, pods=items)
    assert "the driver that is loaded was made of another digest than the one that is wanted now" in bundle.assumed
    assert "nvidia" not in simulate(bundle.scenario.world, "v0.11.0").after.modules


def test_pods_hold_the_modules(saved):
    """GPU pods do, until they are gone."""
    labels = {f"{DEPLOY}driver": "true", "nvidia.com/gpu.present": "true"}
    owner = {"kind": "ReplicaSet", "name": "train", "controller": True, "apiVersion": "apps/v1"}
    train = pod("train", namespace="ml", gpus=1)
    train["metadata"]["ownerReferences"] = [owner]
    bundle = saved(labels, pods=pods(train))
    nvidia = next(module for module in bundle.scenario.world.host.modules if module.name == "nvidia")
    assert (nvidia.users, nvidia.pods) == (1, ("ml/train",))
    assert "nvidia" not in simulate(bundle.scenario.world, DEFAULT).after.modules


@pytest.mark.parametrize(
    ("label", "capacity", "driver", "module"),
    [
        ("vfio-manager", {"nvidia.com/GA102GL_A10": "2"}, "vfio-pci", "vfio_pci"),
        ("vfio-manager", {}, "", None),
        ("vgpu-manager", {"nvidia.com/NVIDIA_A10-4C": "2"}, "nvidia", "nvidia_vgpu_vfio"),
    ],
)
def test_nodes_for_virtual_machines(saved, label, capacity, driver, module):
    """By what the sandbox device plugin offers."""
    bundle = saved({f"{DEPLOY}{label}": "true", "nvidia.com/gpu.count": "1"}, capacity=capacity)
    world = bundle.scenario.world
    assert drivers(world) == [driver]
    assert (module in modules(world)) == (module is not None)
    assert world.env["ENABLE_GPU_POD_EVICTION"] == "false"


def test_several_nodes(tmp_path):
    """The one with GPUs is meant; of two with GPUs one must be named."""
    gpu = {"nvidia.com/gpu.present": "true"}
    nodes = [
        {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}}
        for name, labels in (("a", {}), ("b", gpu))
    ]
    (tmp_path / "nodes.json").write_text(json.dumps({"kind": "List", "items": nodes}))
    assert read_bundle(tmp_path).scenario.world.cluster.node.name == "b"
    assert read_bundle(tmp_path, node="a").scenario.world.cluster.node.name == "a"
    nodes.append({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "c", "labels": gpu}})
    (tmp_path / "nodes.json").write_text(json.dumps({"kind": "List", "items": nodes}))
    with pytest.raises(InputError, match="holds 3 nodes; say which one with --node: b, c"):
        read_bundle(tmp_path)
    with pytest.raises(InputError, match='holds no node "d"'):
        read_bundle(tmp_path, node="d")


@pytest.mark.parametrize(
    ("image", "release"),
    [
        ("k8s-driver-manager:v0.12.0", "v0.12.0"),
        ("registry:5000/x/k8s-driver-manager:v0.9.1-ubi9", "v0.9.1"),
        ("k8s-driver-manager:v0.8.0", "v0.8.1"),
        ("k8s-driver-manager:v9.9.9", "v0.12.0"),
        ("k8s-driver-manager:v0.10.1", "v0.10.0"),  # the nearest older one
        ("k8s-driver-manager:v0.9.10", "v0.9.1"),
        ("k8s-driver-manager:v0.6.4", "v0.6.2"),
        ("k8s-driver-manager:v0.1.0", "v0.4.2"),
        (f"k8s-driver-manager:v0.1.{'9' * 5000}", DEFAULT),
        ("k8s-driver-manager@sha256:00ff", DEFAULT),
    ],
)
def test_the_release(saved, image, release):
    """By the image's tag; a tag that is not known is told."""
    container = {"name": "k8s-driver-manager", "image": image}
    items = pods(pod("d", initContainers=[container], nodeSelector={f"{DEPLOY}driver": "true"}))
    assert saved({f"{DEPLOY}driver": "true"}, pods=items).scenario.release == release


@pytest.mark.parametrize("labels", [{"helm.sh/chart": "gpu-operator-v26.3.2"}, {"x": "y"}], ids=["a label", "the operator's image"])
def test_the_release_by_the_chart(saved, labels):
    """No image's tag says it: the chart does."""
    operator = pod("gpu-operator-x")
    operator["metadata"]["labels"] = labels
    operator["spec"]["nodeName"] = "another"
    operator["spec"]["containers"][0]["image"] = "nvcr.io/nvidia/gpu-operator:v26.3.2" if "x" in labels else "y"
    bundle = saved({f"{DEPLOY}driver": "true"}, pods=pods(operator))
    assert bundle.scenario.release == "v0.11.0"
    assert any("as chart v26.3.2 brings it" in sentence for sentence in bundle.assumed)


def test_the_next_pod_gets_what_its_daemonset_says(saved):
    """The pod that is there has run with older settings; one whose run is not over still has them."""
    selector = {f"{DEPLOY}driver": "true"}

    def container(digest):
        return {**MANAGER, "env": [{"name": "DRIVER_CONFIG_DIGEST", "value": digest}]}

    daemonset = {
        "kind": "DaemonSet",
        "apiVersion": "apps/v1",
        "metadata": {"name": "driver", "namespace": "gpu-operator"},
        "spec": {"template": {"spec": {"nodeSelector": selector, "initContainers": [container("22")]}}},
    }
    item = pod("d", ready=True, initContainers=[container("11")], nodeSelector=selector)
    item["status"]["initContainerStatuses"] = [{"name": "k8s-driver-manager", "state": {"terminated": {"exitCode": 0}}}]
    world = saved({**selector, "nvidia.com/gpu.present": "true"}, pods=pods(item), daemonset=daemonset).scenario.world
    assert world.env["DRIVER_CONFIG_DIGEST"] == "22"
    assert {file.path: file.text for file in world.host.files}["/run/nvidia/nvidia-driver.state"] == "11\n"
    item["status"]["initContainerStatuses"][0]["state"] = {"running": {}}
    bundle = saved({**selector, "nvidia.com/gpu.present": "true"}, pods=pods(item), daemonset=daemonset)
    assert bundle.scenario.world.env["DRIVER_CONFIG_DIGEST"] == "11"
    told = "driver-manager is started as pod d says, whose run is not over; DaemonSet driver has another DRIVER_CONFIG_DIGEST"
    assert told in bundle.assumed


@pytest.mark.parametrize(("phase", "digest"), [("Running", "22"), ("Pending", "11")])
def test_a_pod_that_says_nothing_of_its_init_containers(saved, phase, digest):
    """One that is running has them behind it."""
    selector = {f"{DEPLOY}driver": "true"}
    first, second = ({**MANAGER, "env": [{"name": "DRIVER_CONFIG_DIGEST", "value": value}]} for value in ("11", "22"))
    template = {"spec": {"nodeSelector": selector, "initContainers": [second]}}
    daemonset = {"kind": "DaemonSet", "metadata": {"name": "driver", "namespace": "x"}, "spec": {"template": template}}
    item = pod("d", ready=True, initContainers=[first], nodeSelector=selector)
    item["status"]["phase"] = phase
    bundle = saved(selector, pods=pods(item), daemonset=daemonset)
    assert bundle.scenario.world.env["DRIVER_CONFIG_DIGEST"] == digest
    assert any("driver-manager is started as" in sentence for sentence in bundle.assumed)


@pytest.mark.parametrize(("chart", "nearest", "release"), [("v26.3.9", "v26.3.3", "v0.11.0"), ("v22.1.0", "v22.9.0", "v0.4.2")])
def test_a_chart_that_is_not_known(saved, chart, nearest, release):
    """It was found, and is told; the nearest older one stands in."""
    container = {"name": "k8s-driver-manager", "image": "k8s-driver-manager@sha256:00ff"}
    selector = {f"{DEPLOY}driver": "true"}
    item = pod("d", initContainers=[container], nodeSelector=selector)
    item["metadata"]["labels"] = {"helm.sh/chart": f"gpu-operator-{chart}"}
    bundle = saved(selector, pods=pods(item))
    assert bundle.scenario.release == release
    assert f"driver-manager's release: no image's tag says it, and chart {chart} is not known" in bundle.unseen
    assert any(f"as chart {nearest} brings it, the nearest that is known" in sentence for sentence in bundle.assumed)
