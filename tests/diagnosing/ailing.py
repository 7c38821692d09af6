"""Nodes with something left over on them: one at least for each kind of finding."""

from __future__ import annotations

from dataclasses import dataclass, replace

from simulator import labels
from simulator.cluster.objects import Container, Owner, Pod, ResourceClaim
from simulator.diagnosing import gpu_operator as op
from simulator.host.spec import File, Module, PciFunction, Program
from simulator.scenario import Scenario, load_cluster, load_host, make_world
from simulator.snapshot.bundle import Bundle

NODE = "gpu-1"
_CLUSTERS = {"container": "container-node", "passthrough": "vm-passthrough-node", "vgpu": "vm-vgpu-node", "bare": "bare-node"}
CLEAN_PAIRS = [
    *((host, cluster) for host in ("clean", "converged-gpu-rdma-cleaned", "cuda-toolkit-only", "nouveau-bound") for cluster in ("container-node", "bare-node", "mig-node", "dra-node", "vm-passthrough-node", "vm-vgpu-node")),
    ("container-driver-loaded", "container-node"),
    ("container-driver-loaded", "bare-node"),
    ("container-driver-loaded", "mig-node"),
    ("container-driver-loaded", "dra-node"),
    ("container-driver-loaded", "paged"),
    ("talos-vfio-pci", "vm-passthrough-node"),
    ("vfio-bound-driver-installed", "vm-passthrough-node"),
]  # fmt: skip
"""Named hosts and clusters that fit each other: nothing is left over there."""


@dataclass(frozen=True)
class Ailing:
    """A bundle, the kinds of findings that must be found in it, and the release it is judged for."""

    bundle: Bundle
    kinds: tuple[str, ...]
    release: str = "v0.10.0"


def policy(**spec):
    """A ClusterPolicy as the API has it."""
    return {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}, "spec": spec}


def bundle(host="clean", cluster="container", *, env=None, seen=None, host_fields=None, pods=(), **node_fields):
    """A named host and cluster with what is different about them. Labels and annotations are added; None takes one away."""
    spec, described = load_cluster(_CLUSTERS.get(cluster, cluster), NODE), load_host(host)
    node = spec.node
    for field in ("labels", "annotations"):
        merged = {**getattr(node, field), **node_fields.pop(field, {})}
        node = replace(node, **{field: {key: value for key, value in merged.items() if value is not None}})
    node = replace(node, **node_fields)
    host_fields = {key: value(described) if callable(value) else value for key, value in (host_fields or {}).items()}
    claims = tuple(ResourceClaim(pod.namespace, f"{pod.name}-claim", ("gpu.nvidia.com",)) for pod in pods if pod.resource_claims)
    spec = replace(spec, node=node, pods=(*spec.pods, *pods), resource_claims=(*spec.resource_claims, *claims))
    spec = replace(
        spec,
        objects=(seen,) if seen else (),
        daemonsets=spec.daemonsets
        | {(pod.namespace, pod.owner.name) for pod in pods if pod.owner and pod.owner.kind == "DaemonSet"},
    )
    world = make_world(replace(described, **host_fields), spec, env={"NODE_NAME": NODE, **(env or {})})
    return Bundle(Scenario(world))


def _job(name, **fields):
    return Pod("ml", name, owner=Owner("ReplicaSet", "app"), containers=(Container(),), **fields)


_READY = {"containerStatuses": [{"name": "main", "ready": True, "state": {"running": {}}}]}
_INITIALIZING = {"initContainerStatuses": [{"name": "k8s-driver-manager", "state": {"running": {}}}]}


_FAILING = {
    "initContainerStatuses": [
        {
            "name": "k8s-driver-manager",
            "ready": False,
            "restartCount": 11,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
        }
    ]
}


def driver_pod_that_fails(*, ready=False):
    """The driver's pod, whose init container was started again and again."""
    (status,) = _FAILING["initContainerStatuses"]
    return _driver_pod({"initContainerStatuses": [{**status, "ready": ready}]})


def training(name, **fields):
    """A pod that asks for a GPU."""
    return Pod("ml", name, owner=Owner("ReplicaSet", "app"), containers=(Container({"nvidia.com/gpu": "1"}),), **fields)


def _driver_pod(status, label=labels.DRIVER, app="nvidia-driver-daemonset"):
    return Pod(
        "gpu-operator", "driver-x", {"app": app}, node_selector={label: "true"}, owner=Owner("DaemonSet", "driver"), status=status
    )


def _with_audio(host):
    return (*host.pci, PciFunction("0000:18:00.1", "0x10de", "0x10f8", "0x040300", "snd_hda_intel", iommu_group=12))


_ON = {labels.UPGRADE_ANNOTATION: "true"}
_MOFED = {"GPU_DIRECT_RDMA_ENABLED": "true"}
_MANAGER = {
    "manager": {"env": [{"name": "ENABLE_AUTO_DRAIN", "value": "false"}, {"name": "DRAIN_TIMEOUT_SECONDS", "value": "300"}]}
}


def _files(paths):
    return lambda host: (*host.files, *(File(path, text) for path, text in paths.items()))


def _without_modules(*names):
    return lambda host: tuple(
        replace(module, used_by=tuple(user for user in module.used_by if user not in names))
        for module in host.modules
        if module.name not in names
    )


AILING = {
    # --- what everything else waits for
    "held": Ailing(
        bundle(
            "container-driver-loaded",
            "bare",
            annotations=_ON,
            host_fields={"modules": lambda host: tuple(replace(module, users=1, pods=("ml/train",)) for module in host.modules)},
            pods=(_driver_pod(_FAILING), training("train")),
        ),
        ("driver-held", "init-container-fails"),
    ),
    # --- the host's own driver
    "label-without-driver": Ailing(bundle(labels={labels.DRIVER: "pre-installed"}), ("pre-installed-without-driver",)),
    "label-without-driver-of-script": Ailing(
        bundle(labels={labels.DRIVER: "pre-installed"}), ("pre-installed-without-driver",), "v0.8.1"
    ),
    "label-on-passthrough": Ailing(
        bundle("talos-vfio-pci", "passthrough", labels={labels.DRIVER: "pre-installed"}), ("pre-installed-without-driver",)
    ),
    "label-says-container": Ailing(bundle("runfile-580"), ("host-driver-labelled-container",)),
    "unseen": Ailing(bundle("ubuntu-24.04-headless-580-open"), ("host-driver-unseen",)),
    "unseen-by-the-script": Ailing(bundle("runfile-580-usr-local"), ("host-driver-unseen",), "v0.8.1"),
    "packages-on-passthrough": Ailing(bundle("ubuntu-24.04-driver-580-open", "passthrough"), ("host-driver-blocks-vfio",)),
    "rpms-on-passthrough": Ailing(bundle("rhel-9-nvidia-open", "passthrough"), ("host-driver-blocks-vfio",)),
    "sles-on-passthrough": Ailing(bundle("sles-15-g06", "passthrough"), ("host-driver-blocks-vfio",)),
    "runfile-on-passthrough": Ailing(bundle("runfile-580", "passthrough"), ("host-driver-blocks-vfio",)),
    "driver-on-vgpu-node": Ailing(bundle("vgpu-host", "vgpu"), ("host-driver-blocks-vgpu-manager",)),
    "script-called-nvidia-smi": Ailing(bundle("wrapper-prints-anything"), ("answer-without-driver",)),
    # --- operand labels
    "paused": Ailing(
        bundle(labels={labels.DEVICE_PLUGIN: labels.PAUSED, labels.DCGM: f"x_{labels.PAUSED}"}),
        ("operands-paused", "operand-value-unknown"),
    ),
    "paused-twice": Ailing(bundle(labels={labels.DCGM: f"{labels.PAUSED}_{labels.PAUSED}"}), ("operands-paused",)),
    "paused-while-running": Ailing(
        bundle(cluster="bare", labels={labels.DCGM: labels.PAUSED}, pods=(_driver_pod(_INITIALIZING),)), ("operands-paused",)
    ),
    "paused-on-host-driver": Ailing(
        bundle("runfile-580", labels={labels.DRIVER: "pre-installed", labels.DCGM: labels.PAUSED}), ("operands-paused",)
    ),
    "custom-paused": Ailing(
        bundle(env={"NODE_LABEL_FOR_GPU_POD_EVICTION": "site/gpu"}, labels={"site/gpu": labels.PAUSED}), ("operands-paused",)
    ),
    "vgpu-change": Ailing(
        bundle(cluster="vgpu", labels={labels.SANDBOX_VALIDATOR: "paused-for-vgpu-change"}), ("operands-paused-by-another",)
    ),
    "mig-change-and-own": Ailing(
        bundle(labels={labels.DCGM: f"paused-for-mig-change_{labels.PAUSED}"}), ("operands-paused-by-another",)
    ),
    "blank": Ailing(bundle(labels={labels.DCGM: "", labels.DEVICE_PLUGIN: ""}), ("operands-blank",)),
    "blank-driver-on-host-driver": Ailing(bundle("runfile-580", labels={labels.DRIVER: ""}), ("operands-blank",)),
    "unknown-value": Ailing(bundle(labels={labels.DCGM: "yes"}), ("operand-value-unknown",)),
    "no-eviction-label": Ailing(
        bundle(env={"NODE_LABEL_FOR_GPU_POD_EVICTION": "nvidia.com/dra-kubelet-plugin"}), ("eviction-label-missing",)
    ),
    # --- the upgrade controller, and who cordoned
    "state-without-controller": Ailing(bundle(labels={labels.UPGRADE_STATE: "drain-required"}), ("upgrade-state-stale",)),
    "state-that-is-none": Ailing(bundle(labels={labels.UPGRADE_STATE: "upgrading"}, annotations=_ON), ("upgrade-state-stale",)),
    "annotation-without-driver": Ailing(
        bundle(annotations=_ON, seen=policy(driver={"enabled": False})), ("upgrade-annotation-stale",)
    ),
    "annotation-with-sandboxes": Ailing(
        bundle(annotations=_ON, seen=policy(sandboxWorkloads={"enabled": True})), ("upgrade-annotation-stale",)
    ),
    "annotation-without-policy": Ailing(
        bundle(annotations=_ON, seen=policy(driver={"upgradePolicy": {"autoUpgrade": False}})), ("upgrade-annotation-stale",)
    ),
    "annotation-on-passthrough": Ailing(bundle("talos-vfio-pci", "passthrough", annotations=_ON), ("upgrade-annotation-stale",)),
    "notes": Ailing(
        bundle(labels={labels.UPGRADE_STATE: "upgrade-done"}, annotations={**_ON, op.INITIAL_CORDON: "true"}),
        ("upgrade-notes-stale",),
    ),
    "request": Ailing(bundle(annotations={op.UPGRADE_REQUESTED: "true"}), ("upgrade-request-stale",)),
    "skipped": Ailing(bundle(labels={op.UPGRADE_SKIP: "true"}), ("upgrade-skipped",)),
    "drain-skipped": Ailing(
        bundle(
            "container-driver-loaded",
            annotations=_ON,
            pods=(replace(_job("wl"), labels={op.DRAIN_SKIP: "true"}, containers=(Container({"nvidia.com/gpu": "1"}),)),),
        ),
        ("drain-skipped-by-gpu-pod",),
    ),
    "cordon-of-driver-manager": Ailing(
        bundle(unschedulable=True, labels={labels.DCGM: labels.PAUSED}), ("operands-paused", "cordon-of-driver-manager")
    ),
    "cordon-of-controller": Ailing(
        bundle(unschedulable=True, labels={labels.UPGRADE_STATE: "validation-required"}, annotations=_ON),
        ("cordon-of-upgrade-controller",),
    ),
    "failed-and-cordoned": Ailing(
        bundle(unschedulable=True, labels={labels.UPGRADE_STATE: "upgrade-failed"}, annotations=_ON),
        ("upgrade-failed", "cordon-of-upgrade-controller"),
    ),
    "cordon-where-nobody-evicts": Ailing(
        bundle(
            cluster="passthrough",
            host="talos-vfio-pci",
            unschedulable=True,
            labels={labels.SANDBOX_VALIDATOR: labels.PAUSED},
            env={"ENABLE_GPU_POD_EVICTION": "false", "ENABLE_AUTO_DRAIN": "false"},
        ),
        ("operands-paused", "cordon-of-another"),
    ),
    "cordon-of-another": Ailing(bundle(unschedulable=True), ("cordon-of-another",)),
    # --- what a driver left on the host
    "root-without-module": Ailing(
        bundle(host_fields={"mounts": ("/run/nvidia/driver", "/run/nvidia/driver/proc")}), ("stale-driver-root",)
    ),
    "root-beside-host-driver": Ailing(
        bundle("runfile-580", labels={labels.DRIVER: "pre-installed"}, host_fields={"mounts": ("/run/nvidia/driver",)}),
        ("stale-driver-root",),
    ),
    "pid-file-without-module": Ailing(
        bundle(host_fields={"files": _files({"/run/nvidia/nvidia-driver.pid": "1"})}), ("stale-pid-file",)
    ),
    "pid-file-beside-host-driver": Ailing(
        bundle(
            "runfile-580",
            labels={labels.DRIVER: "pre-installed"},
            host_fields={"files": _files({"/run/nvidia/nvidia-driver.pid": "1"})},
        ),
        ("stale-pid-file",),
    ),
    "state-file-beside-unseen-driver": Ailing(
        bundle(
            "ubuntu-24.04-headless-580-open",
            labels={labels.DRIVER: "pre-installed"},
            host_fields={"files": _files({"/run/nvidia/nvidia-driver.state": "x"})},
        ),
        ("stale-state-file",),
    ),
    "mofed-root": Ailing(bundle(host_fields={"mounts": ("/run/mellanox/drivers",)}), ("stale-mofed-root",)),
    "mofed-sign": Ailing(bundle(host_fields={"files": _files({"/run/mellanox/drivers/.driver-ready": ""})}), ("stale-mofed-sign",)),
    "half-unloaded": Ailing(
        bundle("container-driver-loaded", host_fields={"modules": _without_modules("nvidia_modeset", "nvidia_uvm")}),
        ("modules-half-unloaded",),
    ),
    "drm": Ailing(
        bundle("container-driver-loaded", host_fields={"modules": lambda host: (*host.modules, Module("nvidia_drm"))}),
        ("nvidia-drm-loaded",),
    ),
    "nouveau": Ailing(bundle("nouveau-bound", host_fields={"modules": (Module("nouveau", users=1),)}), ("nouveau-in-use",)),
    # --- GPUs
    "split-on-host-driver": Ailing(bundle("vfio-bound-partly", labels={labels.DRIVER: "pre-installed"}), ("gpus-split",)),
    "split-on-passthrough": Ailing(
        bundle("talos-vfio-pci", "passthrough", host_fields={"pci": lambda host: (host.pci[0], replace(host.pci[1], driver=""))}),
        ("gpus-split",),
    ),
    "driverless-beside-module": Ailing(
        bundle("container-driver-loaded", host_fields={"pci": lambda host: tuple(replace(gpu, driver="") for gpu in host.pci)}),
        ("gpu-without-driver",),
    ),
    "vfio-manager-is-ready": Ailing(
        bundle("clean", "passthrough", pods=(_driver_pod(_READY, op.VFIO_MANAGER, "nvidia-vfio-manager"),)), ("gpu-without-driver",)
    ),
    "vfio-on-container-node": Ailing(bundle("talos-vfio-pci"), ("vfio-on-container-node",)),
    "vfio-beside-host-driver": Ailing(
        bundle("vfio-bound-driver-loaded", labels={labels.DRIVER: "pre-installed"}), ("vfio-on-container-node",)
    ),
    "mode-switch-under-load": Ailing(
        bundle(
            "container-driver-loaded",
            "passthrough",
            host_fields={"delete_module": {"nvidia_uvm": {"busy_while_pods": ("ml/wl",)}}},
            pods=(_job("wl"),),
        ),
        ("nvidia-on-passthrough-node", "gpu-user-invisible"),
    ),
    "mode-switch": Ailing(bundle("container-driver-loaded", "passthrough"), ("nvidia-on-passthrough-node",)),
    "iommu-group": Ailing(bundle("talos-vfio-pci", "passthrough", host_fields={"pci": _with_audio}), ("iommu-group-not-viable",)),
    "offers-gpus": Ailing(
        bundle(cluster="bare", status={"allocatable": {"nvidia.com/gpu": "2"}, "capacity": {"nvidia.com/gpu": "2"}}),
        ("resources-do-not-fit",),
    ),
    "offers-cards": Ailing(
        bundle(
            "clean", "passthrough", status={"allocatable": {"nvidia.com/GA102GL_A10": 2}, "capacity": {"nvidia.com/GA102GL_A10": 2}}
        ),
        ("resources-do-not-fit",),
    ),
    # --- pods
    "stuck": Ailing(bundle(pods=(_job("nb", terminating=True, termination=None),)), ("pod-stuck-terminating",)),
    "invisible": Ailing(
        bundle(
            "container-driver-loaded",
            host_fields={"delete_module": {"nvidia": {"busy_while_pods": ("ml/rt",)}}},
            pods=(_job("rt"),),
        ),
        ("gpu-user-invisible",),
    ),
    "invisible-user": Ailing(
        bundle(
            "container-driver-loaded",
            host_fields={"modules": lambda host: tuple(replace(module, users=1, pods=("ml/rt",)) for module in host.modules)},
            pods=(_job("rt"),),
        ),
        ("gpu-user-invisible",),
    ),
    "invisible-daemon": Ailing(
        bundle(
            "container-driver-loaded",
            labels={labels.CLIENT: "true"},
            host_fields={"delete_module": {"nvidia": {"busy_while_pods": ("ml/dcgm",)}}},
            pods=(Pod("ml", "dcgm", owner=Owner("DaemonSet", "own-dcgm"), containers=(Container(),)),),
        ),
        ("gpu-user-invisible",),
        "v0.12.0",
    ),
    "invisible-daemon-without-label": Ailing(
        bundle(
            "container-driver-loaded",
            host_fields={"delete_module": {"nvidia": {"busy_while_pods": ("ml/dcgm",)}}},
            pods=(Pod("ml", "dcgm", owner=Owner("DaemonSet", "own-dcgm"), containers=(Container(),)),),
        ),
        ("gpu-user-invisible",),
        "v0.12.0",
    ),
    "claims": Ailing(
        bundle(cluster="dra-node", pods=(_job("claim", resource_claims=({"name": "gpu", "resourceClaimName": "claim-claim"},)),)),
        ("claims-wait-for-driver",),
    ),
    # --- settings
    "time-without-unit": Ailing(bundle(env={"DRAIN_TIMEOUT_SECONDS": "300"}, seen=policy(driver=_MANAGER)), ("setting-refused",)),
    "yes-for-true": Ailing(bundle(env={"DRAIN_USE_FORCE": "yes"}, seen=policy(driver={"enabled": True})), ("setting-refused",)),
    "empty-boolean": Ailing(
        bundle(env={"ENABLE_AUTO_DRAIN": ""}, seen=policy(driver={"manager": {"env": []}})), ("setting-empty",)
    ),
    "label-and-value": Ailing(
        bundle(
            env={"NODE_LABEL_FOR_GPU_POD_EVICTION": "site/gpu=true"},
            labels={"site/gpu": "true"},
            seen=policy(driver={"manager": {}}),
        ),
        ("eviction-label-with-value",),
    ),
    "mofed-of-the-host": Ailing(
        bundle("converged-gpu-rdma-cleaned", env=_MOFED, seen=policy(driver={"rdma": {"enabled": True}})), ("waits-for-mofed",)
    ),
    "mofed-swapped": Ailing(
        bundle(
            "converged-gpu-rdma-cleaned", env={**_MOFED, "USE_HOST_MOFED": "true"}, seen=policy(driver={"rdma": {"enabled": True}})
        ),
        ("waits-for-mofed",),
        "v0.9.0",
    ),
}
"""Name -> node."""
TOLD_ONLY = frozenset({"upgrade-failed", "init-container-fails"})
"""Kinds that mend themselves once something else is mended."""
WITHOUT_COMMANDS = {
    "failed": Ailing(bundle(labels={labels.UPGRADE_STATE: "upgrade-failed"}, annotations=_ON), ("upgrade-failed",)),
    "failing": Ailing(bundle("clean", "bare", pods=(_driver_pod(_FAILING),)), ("init-container-fails",)),
    "kept-by-a-finalizer": Ailing(
        bundle(pods=(_job("nb", terminating=True, termination=None, finalizers=("example.com/block",)),)),
        ("pod-stuck-terminating",),
    ),
    "image-on-passthrough": Ailing(bundle("fedora-atomic-nvidia", "passthrough"), ("host-driver-blocks-vfio",)),
    "held-by-the-host": Ailing(
        bundle(
            "container-driver-loaded",
            "passthrough",
            host_fields={"modules": lambda host: tuple(replace(module, users=1) for module in host.modules)},
        ),
        ("nvidia-on-passthrough-node",),
    ),
    "no-packages-on-passthrough": Ailing(bundle("wrapper-to-opt-bin", "passthrough"), ("host-driver-blocks-vfio",)),
    "split-vgpus": Ailing(
        bundle(
            "container-driver-loaded",
            "vgpu",
            host_fields={"pci": lambda host: (host.pci[0], replace(host.pci[1], driver="vfio-pci"))},
        ),
        ("gpus-split",),
    ),
    "policy-not-seen": Ailing(bundle(env={"DRAIN_TIMEOUT_SECONDS": "300"}), ("setting-refused",)),
    "no-mofed-at-all": Ailing(
        bundle(
            "clean",
            env=_MOFED,
            host_fields={"pci": lambda host: (*host.pci, PciFunction("0000:19:00.0", "0x15b3", class_="0x020000"))},
        ),
        ("waits-for-mofed",),
    ),
    "hidden-answer": Ailing(
        bundle(
            host_fields={
                "programs": (Program("/opt/x/nvidia-smi", stdout="1\n"),),
                "links": {"/usr/bin/nvidia-smi": "/opt/x/nvidia-smi"},
            }
        ),
        ("answer-without-driver",),
    ),
}
"""Nodes for which no command is sure to be right."""
