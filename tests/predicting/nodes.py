"""Small nodes to ask about: a host, a cluster and settings, each with only what a test is about."""

from __future__ import annotations

from dataclasses import replace

from simulator import labels
from simulator.cluster.objects import ClusterSpec, Container, Node, Owner, Pod
from simulator.host.spec import File, HostSpec, Module, PciFunction, Program
from simulator.scenario import load_cluster, load_host, make_world

EVICTS_NOTHING = {"ENABLE_GPU_POD_EVICTION": "false", "ENABLE_AUTO_DRAIN": "false"}
NO_DRAIN = {"ENABLE_AUTO_DRAIN": "false"}
LOADED = (
    Module("nvidia_uvm"),
    Module("nvidia_modeset"),
    Module("nvidia", used_by=("nvidia_uvm", "nvidia_modeset")),
)
GPU = PciFunction("0000:18:00.0", "0x10de", "0x2236", "0x030200", "nvidia", iommu_group=12)
DIGEST = "sha256:5f2c"
STATE = File("/run/nvidia/nvidia-driver.state", f"{DIGEST}\n")
SMI = Program("/usr/bin/nvidia-smi", driver_version="580.82.07", interpreter="/lib64/ld-linux-x86-64.so.2")
DEPLOYED = dict.fromkeys((labels.DRIVER, labels.DEVICE_PLUGIN, labels.OPERATOR_VALIDATOR), "true")
PLUGIN = Pod(
    "gpu-operator",
    "device-plugin",
    labels={"app": "nvidia-device-plugin-daemonset"},
    node_selector={labels.DEVICE_PLUGIN: "true"},
    owner=Owner("DaemonSet", "device-plugin"),
)


def host(**fields):
    """A host whose driver a container loaded."""
    return HostSpec(**{"name": "small", "pci": (GPU,), "modules": LOADED, **fields})


def gpu_pod(name="train", *, namespace="default", resource="nvidia.com/gpu", **fields):
    """A pod of a Deployment that asks for a GPU."""
    described = {"owner": Owner("ReplicaSet", "app"), "containers": (Container({resource: "1"}),), **fields}
    return Pod(namespace, name, **described)


def world(on=None, pods=(), *, env=None, node_labels=DEPLOYED, annotations=None, cordoned=False, **fields):
    """A node with these pods. `fields` are the cluster's."""
    node = Node("gpu-1", dict(node_labels), annotations or {}, cordoned)
    cluster = ClusterSpec("small", node, tuple(pods), frozenset({("gpu-operator", "device-plugin")}), **fields)
    return make_world(on or host(), cluster, env={"NODE_NAME": "gpu-1", **(env or {})})


def named(host_name, cluster="container-node", **env):
    """A named host in a named cluster."""
    return make_world(load_host(host_name), load_cluster(cluster, "gpu-1"), env={"NODE_NAME": "gpu-1", **env})


def watched(described, seconds):
    """The world, watched no longer than so many seconds."""
    return replace(described, stop_after=seconds)
