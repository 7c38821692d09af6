"""A host from what the cluster says of its node, where nobody looked at the host itself. All of it is assumed, and told.

The node's labels and status tell the system, the GPUs' number, the mode, the driver's version; its pods whether the driver's
container has loaded the driver, and who uses a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from simulator import labels as operands
from simulator.host.spec import MELLANOX, NVIDIA, File, HostSpec, Module, PciFunction, Program
from simulator.manager.kubernetes import requests_gpu
from simulator.manager.steps import DRIVER_PID_FILE, DRIVER_ROOT
from simulator.manager.v0_10_0 import DRIVER_CONFIG_DIGEST, DRIVER_CONFIG_STATE_FILE
from simulator.predicting.modes import WORKLOADS, Mode
from simulator.snapshot.findings import Findings, quoted
from simulator.snapshot.kubernetes import Scene, has_gpus
from simulator.snapshot.logs import HostDriver
from simulator.snapshot.program import Program as DriverManager
from simulator.snapshot.secrets import without_secrets
from simulator.snapshot.values import elements, flag, mapping, text, texts

_FEATURE: Final = "feature.node.kubernetes.io/"
_ARCHITECTURES: Final = {"amd64": "x86_64", "arm64": "aarch64", "ppc64le": "ppc64le"}
_SYSTEMS: Final = {"ubuntu": "Ubuntu", "debian": "Debian", "rhel": "RHEL", "rhcos": "RHCOS", "flatcar": "Flatcar", "talos": "Talos"}
_GPU_RESOURCE: Final = re.compile(r"nvidia\.com/(?!mig-|gpu\.shared)[\w.-]+")
_SOME_GPU: Final = "0x2236"
"""An A10: a device id that NVIDIA's tools know, where nothing tells which GPU it is."""
_MOST_GPUS: Final = 64
_DRIVER_MODULES: Final = ("nvidia_uvm", "nvidia_modeset")
_VFIO_MODULES: Final = {
    "vfio_pci": (),
    "vfio_pci_core": ("vfio_pci",),
    "vfio_iommu_type1": (),
    "vfio": ("vfio_pci_core", "vfio_iommu_type1"),
}
_UNKNOWN_VERSION: Final = "0.0"
_PLAIN_VERSION: Final = re.compile(r"\d+(\.\d+)+")
_KERNEL: Final = re.compile(r"[\w.+~-]{1,128}")
_ROLES: Final = {
    Mode.CONTAINER: "the driver's container",
    Mode.VM_PASSTHROUGH: "vfio-manager",
    Mode.VM_VGPU: "the vGPU host driver's container",
}


@dataclass(frozen=True, slots=True)
class Inferred:
    """A host that is made up, in the parts that a look at the host may replace."""

    host: HostSpec
    modules: tuple[Module, ...]
    pci: tuple[PciFunction, ...]
    mounts: tuple[str, ...] = ()
    files: tuple[File, ...] = ()
    programs: tuple[Program, ...] = ()


def infer_host(
    scene: Scene,
    manager: DriverManager,
    findings: Findings,
    seen: tuple[PciFunction, ...] | None = None,
    found: HostDriver | None = None,
) -> Inferred:
    """The whole host, but for PCI functions that were seen. `found` is what driver-manager's log says that it found there."""
    labels = scene.labels
    functions = _functions(labels, _count(scene, findings)) if seen is None else seen
    host = HostSpec(scene.name, os=_system(scene), pci=functions)
    if labels.get(operands.DRIVER) == operands.PRE_INSTALLED:
        version = _driver_version(labels) or (found.version if found else "")
        why = f"{operands.DRIVER} is {operands.PRE_INSTALLED}; the label may be left over from one that is gone"
        return _with_host_driver(host, functions, version, why, findings)
    if found is not None and not _is_ready(manager.pod):
        if found.version or not found.said:
            return _with_host_driver(host, functions, found.version, f"the log {found.log} says so", findings)
        findings.assumed(
            f"nvidia-smi can be started in the host's root, and says {quoted(found.said)}: the log {found.log} says so"
        )
        program = Program("/usr/bin/nvidia-smi", stdout=f"{without_secrets(found.said)}\n")
        return Inferred(replace(host, programs=(program,)), (), functions, programs=(program,))
    evidence = _evidence(scene, manager)
    if not any(function.is_gpu for function in functions):
        findings.assumed("no driver is loaded: there is no GPU")
        return Inferred(host, (), functions)
    if not evidence:
        findings.assumed(f"no driver is loaded: there is no sign that {_ROLES[manager.mode]} has done its work")
        return Inferred(host, (), functions)
    findings.assumed(f"{_ROLES[manager.mode]} has done its work: {evidence}")
    if manager.mode is Mode.VM_PASSTHROUGH:
        modules = tuple(Module(name, used_by=used_by) for name, used_by in _VFIO_MODULES.items())
        return Inferred(host, modules, tuple(_bound(function, "vfio-pci") for function in functions))
    modules = _driver_modules(["nvidia_vgpu_vfio"] if manager.mode is Mode.VM_VGPU else _DRIVER_MODULES)
    findings.assumed(f"the modules {', '.join(module.name for module in modules)} are loaded, and nothing beside pods uses them")
    files = [File(DRIVER_PID_FILE, "1\n")]
    if manager.stored_digest and _is_ready(manager.pod):
        files.append(File(DRIVER_CONFIG_STATE_FILE, f"{manager.stored_digest}\n"))
        findings.assumed("the driver that is loaded was made of the digest in the environment of the pod on the node")
    elif DRIVER_CONFIG_DIGEST in manager.env:
        files.append(File(DRIVER_CONFIG_STATE_FILE, "unknown\n"))
        findings.assumed("the driver that is loaded was made of another digest than the one that is wanted now")
    pci = tuple(_bound(function, "nvidia") for function in functions)
    return Inferred(host, modules, pci, (DRIVER_ROOT,), tuple(files))


def _with_host_driver(host: HostSpec, functions: tuple[PciFunction, ...], version: str, why: str, findings: Findings) -> Inferred:
    """A host with a driver of its own."""
    findings.assumed(f"the host has a driver of its own, {version or 'version unknown'}: {why}")
    program = Program("/usr/bin/nvidia-smi", driver_version=version or _UNKNOWN_VERSION)
    host = replace(host, programs=(program,), installable=("nvidia", *_DRIVER_MODULES))
    pci = tuple(_bound(function, "nvidia") for function in functions)
    return Inferred(host, _driver_modules(_DRIVER_MODULES), pci, programs=(program,))


def _driver_modules(holders: Iterable[str]) -> tuple[Module, ...]:
    names = tuple(holders)
    return (*(Module(name) for name in names), Module("nvidia", used_by=names))


def _bound(function: PciFunction, driver: str) -> PciFunction:
    return replace(function, driver=driver) if function.is_gpu else function


def _evidence(scene: Scene, manager: DriverManager) -> str:
    """What says that the driver of this mode is at work; "" if nothing does."""
    if _is_ready(manager.pod):
        return f"pod {text(manager.pod, 'metadata', 'name')} is ready"
    resources = [name for name in _resources(scene) if (name == "nvidia.com/gpu") == (manager.mode is Mode.CONTAINER)]
    if resources:
        return f"the node offers {resources[0]}"
    if manager.mode is Mode.CONTAINER and _driver_version(scene.labels):
        return f"gpu-feature-discovery found driver {_driver_version(scene.labels)}"
    users = [pod for pod in scene.pods if uses_gpu(pod)]
    if users and manager.mode is Mode.CONTAINER:
        return f"pod {text(users[0], 'metadata', 'name')} uses a GPU"
    return ""


def _is_ready(pod: dict[str, Any] | None) -> bool:
    """Are all containers of a pod ready? One of which no container's state was saved is taken by its phase."""
    states = elements(pod, "status", "containerStatuses")
    if not states and not elements(pod, "status", "initContainerStatuses"):
        return text(pod, "status", "phase") == "Running"
    return bool(states) and all(flag(state, "ready") for state in states)


def uses_gpu(pod: Mapping[str, Any]) -> bool:
    """Is it a running pod that has asked for a GPU?"""
    containers = [
        {"resources": {kind: mapping(container, "resources", kind) for kind in ("limits", "requests")}}
        for container in elements(pod, "spec", "containers")
    ]
    return text(pod, "status", "phase") in {"Running", ""} and requests_gpu({"spec": {"containers": containers}})


def _resources(scene: Scene) -> dict[str, int]:
    """NVIDIA's resources that the node offers, but for none of one."""
    capacity: dict[Any, Any] = mapping(scene.node, "status", "capacity")
    counts = {name: str(value) for name, value in capacity.items() if isinstance(name, str) and _GPU_RESOURCE.fullmatch(name)}
    return {name: int(value) for name, value in counts.items() if re.fullmatch(r"[1-9]\d{0,3}", value)}


def _count(scene: Scene, findings: Findings) -> int:
    """How many GPUs there are."""
    label = scene.labels.get("nvidia.com/gpu.count", "")
    if re.fullmatch(r"\d{1,3}", label):
        count, why = int(label), "nvidia.com/gpu.count says so"
    elif resources := _resources(scene):
        count, why = sum(resources.values()), f"the node offers {', '.join(sorted(resources))}"
    elif has_gpus(scene.node) or any(workload.selector in scene.labels for workload in WORKLOADS.values()):
        count, why = 1, "the node is labelled as one with GPUs, and nothing says how many"
    else:
        count, why = 0, "no label of the node speaks of any"
    count = min(count, _MOST_GPUS)
    findings.assumed(f"{count} GPU{'' if count == 1 else 's'}: {why}" + ("; their addresses are made up" if count else ""))
    return count


def _functions(labels: Mapping[str, str], count: int) -> tuple[PciFunction, ...]:
    """GPUs at addresses that are made up, and a Mellanox card if a label tells of one."""
    is_vga = any(re.fullmatch(rf"{re.escape(_FEATURE)}pci-0300_10de(_.*)?\.present", label) for label in labels)
    class_ = "0x030000" if is_vga else "0x030200"
    gpus = tuple(PciFunction(f"0000:{0x20 + index:02x}:00.0", NVIDIA, _SOME_GPU, class_) for index in range(count))
    has_card = any(re.fullmatch(rf"{re.escape(_FEATURE)}pci-(\w+_)?15b3(_.*)?\.present", label) for label in labels)
    card = PciFunction("0000:10:00.0", MELLANOX, class_="0x020000", driver="mlx5_core")
    return (*((card,) if has_card else ()), *gpus)


def _system(scene: Scene) -> dict[str, str]:
    """The system, as NFD and kubelet tell it."""
    labels, info = scene.labels, texts(scene.node, "status", "nodeInfo")
    image = re.match(r"(?P<name>[A-Za-z][A-Za-z .-]*?)\s+v?(?P<version>\d[\w.]*)", info.get("osImage", ""))
    name = _SYSTEMS.get(labels.get(f"{_FEATURE}system-os_release.ID", ""), image["name"] if image else "")
    version = labels.get(f"{_FEATURE}system-os_release.VERSION_ID", image["version"] if image else "")
    kernel = labels.get(f"{_FEATURE}kernel-version.full") or info.get("kernelVersion", "")
    machine = _ARCHITECTURES.get(labels.get("kubernetes.io/arch") or info.get("architecture", ""), "")
    told = {"name": name, "version": version, "kernel": kernel if _KERNEL.fullmatch(kernel) else "", "architecture": machine}
    return {key: value for key, value in told.items() if value}


def _driver_version(labels: Mapping[str, str]) -> str:
    """The version of the driver that gpu-feature-discovery found, "" if it tells none."""
    parts = [labels.get(f"nvidia.com/cuda.driver.{part}", "") for part in ("major", "minor", "rev")]
    version = labels.get("nvidia.com/cuda.driver-version.full") or ".".join(part for part in parts if part)
    return version if _PLAIN_VERSION.fullmatch(version) else ""
