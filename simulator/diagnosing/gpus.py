"""Which driver each GPU is on, against what the node is for; the resources that the node offers for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from simulator.diagnosing.commands import Command, delete_pod, drop_resources, from_vfio, on_host, to_vfio
from simulator.diagnosing.finding import Finding
from simulator.diagnosing.gpu_operator import PLUGIN_APPS, VFIO_MANAGER
from simulator.diagnosing.pods import uses_gpu
from simulator.diagnosing.situation import Situation, places
from simulator.host.spec import PciFunction
from simulator.manager.kubernetes import GPU_RESOURCES
from simulator.manager.steps import MODULES
from simulator.predicting.gpus import VFIO_DRIVERS, blocks_group
from simulator.predicting.modes import Mode

_NVIDIA: Final = "nvidia"
_OF_VMS: Final = "Virtual machines that use these GPUs lose them at once; an unbind under a running machine can hang."


def find(situation: Situation) -> Iterator[Finding]:
    """Findings about GPUs and their resources."""
    gpus = situation.gpus
    drivers = {gpu.address: gpu.driver for gpu in gpus}
    if situation.mode == Mode.VM_PASSTHROUGH and situation.node.labels.get(VFIO_MANAGER) == "true":
        yield from _passthrough(situation, drivers)
    elif situation.mode == Mode.CONTAINER:
        yield from _container(situation, drivers)
    elif len(set(drivers.values())) > 1:
        yield _split(drivers, (), "")
    yield from _resources(situation)


def _passthrough(situation: Situation, drivers: Mapping[str, str]) -> Iterator[Finding]:
    others = {address: driver for address, driver in drivers.items() if driver not in VFIO_DRIVERS}
    mend = (
        on_host("modprobe", "vfio-pci"),
        *(command for address, driver in others.items() for command in to_vfio(address, driver)),
    )
    if others and len(others) < len(drivers):
        yield _split(drivers, mend, "Programs that use the GPUs on nvidia keep the unbind waiting, or lose them.")
    elif others and not situation.host_check:
        if _NVIDIA in others.values():
            yield _on_nvidia(situation, others)
        elif not situation.is_driver_coming:
            yield _without_driver(others, mend, "None, but for vfio-manager's next start, which does the same.")
    groups = {gpu.iommu_group for gpu in situation.gpus_on(*VFIO_DRIVERS)} - {None}
    peers = [
        function
        for function in situation.host.pci
        if function.iommu_group in groups and not function.is_gpu and blocks_group(function, function.driver)
    ]
    if peers:
        yield _group(peers)


def _container(situation: Situation, drivers: Mapping[str, str]) -> Iterator[Finding]:
    on_vfio = {address: driver for address, driver in drivers.items() if driver in VFIO_DRIVERS}
    free = {address: driver for address, driver in drivers.items() if not driver}
    driver = _NVIDIA if situation.is_driver_loaded else ""
    to_nvidia: list[Command] = []
    for address, now in {**on_vfio, **(free if driver else {})}.items():
        to_nvidia += from_vfio(address, now, driver)
    mend = tuple(to_nvidia)
    if situation.gpus_on(_NVIDIA) and len(set(drivers.values())) > 1:
        yield _split(drivers, mend, _OF_VMS if on_vfio else "None that is known.")
    elif on_vfio:
        yield Finding(
            "vfio-on-container-node",
            f"{len(on_vfio)} of {len(drivers)} GPUs are on a vfio driver, and the node runs containers.",
            "No container can use them. A run of driver-manager that installs a driver takes them from vfio-pci; one that gives"
            " way to the host's driver, or keeps the loaded one, does not.",
            mend,
            _OF_VMS,
            (places(drivers),),
        )
    elif free and driver and not situation.gpus_on(_NVIDIA):
        yield _without_driver(free, mend, "None that is known.")


def _split(drivers: Mapping[str, str], commands: tuple[Command, ...], risk: str) -> Finding:
    return Finding(
        "gpus-split",
        f"The GPUs are on different drivers: {places(drivers)}.",
        "What offers them to pods or machines counts only those on its own driver. From v0.10.0 on"
        " `vfio-manage --all` only warns about a GPU that it could not move, and exits 0.",
        commands,
        risk or "Which driver they should all be on, only you know.",
        tuple(f"{address} is on {driver or 'no driver'}" for address, driver in drivers.items()),
    )


def _without_driver(free: Mapping[str, str], commands: tuple[Command, ...], risk: str) -> Finding:
    return Finding(
        "gpu-without-driver",
        f"No driver has {', '.join(free)}.",
        "Whoever was to bring the driver says that it is done, or has one loaded that did not take the GPU.",
        commands,
        risk,
        tuple(f"{address} is on {driver or 'no driver'}" for address, driver in free.items()),
    )


def _on_nvidia(situation: Situation, others: Mapping[str, str]) -> Finding:
    users = [pod for pod in situation.pods if uses_gpu(situation, pod)]
    handles = {
        module.name: module.users
        for module in situation.host.modules
        if module.name in MODULES and module.users and not module.pods
    }
    pods = (*users, *situation.driver_pods)
    held = ""
    if handles and not users:
        held = (
            " No pod is seen to hold it, so programs of the host do; `fuser --verbose /dev/nvidia*` names them, nvidia-persistenced is"
            " often one. Stop them, then let the pod of vfio-manager start again."
        )
    return Finding(
        "nvidia-on-passthrough-node",
        f"{', '.join(others)} {'is' if len(others) == 1 else 'are'} not on vfio-pci, and the node gives its GPUs to virtual machines.",
        "The driver of the old workload type is still loaded. vfio-manager's init container evicts nobody: as long as a pod or a"
        " program uses a GPU, or nvidia_drm is loaded, it fails and tries again. The sandbox validator fails meanwhile." + held,
        () if held else tuple(delete_pod(pod.namespace, pod.name) for pod in pods),
        "The pods that use a GPU end. driver-manager pauses the sandbox operands, unloads the driver, and takes every GPU from its"
        " driver, also those that a machine has.",
        (
            places(others),
            f"label {VFIO_MANAGER}=true",
            *(f"pod {pod.full_name} uses a GPU" for pod in users),
            *(f"module {name} has {count} open handles" for name, count in handles.items()),
        ),
    )


def _group(peers: list[PciFunction]) -> Finding:
    return Finding(
        "iommu-group-not-viable",
        f"{places({peer.address: peer.driver for peer in peers})} shares an IOMMU group with a GPU that is on vfio-pci.",
        "A machine gets all functions of a group or none: it fails to start with 'group is not viable'. vfio-manage moves one"
        " auxiliary function at most, and none of a 3D controller.",
        (
            on_host("modprobe", "vfio-pci"),
            *(command for peer in peers for command in to_vfio(peer.address, peer.driver)),
        ),
        "What the functions did for the host ends: audio, USB ports, their devices.",
        tuple(f"{peer.address} is in group {peer.iommu_group}, on {peer.driver}" for peer in peers),
    )


# --- what the node offers -------------------------------------------------------------------------------------------


def _resources(situation: Situation) -> Iterator[Finding]:
    """Extended resources with a quantity, though no GPU is on the driver they need."""
    offered = {name: amount for name, amount in _allocatable(situation).items() if amount not in {"", "0"}}
    nvidia, vfio = situation.gpus_on(_NVIDIA), situation.gpus_on(*VFIO_DRIVERS)
    stale = [name for name in offered if not (nvidia if name.startswith(GPU_RESOURCES) else nvidia or vfio)]
    if not stale:
        return
    plugins = [pod for pod in situation.pods if pod.labels.get("app") in PLUGIN_APPS]
    yield Finding(
        "resources-do-not-fit",
        f"The node offers {', '.join(f'{name}: {offered[name]}' for name in stale)}, and no GPU is on a driver for it.",
        "Pods that ask for it are scheduled here and fail. The kubelet offers what a device plugin said last; a plugin looks at"
        " the GPUs once, when it starts.",
        (*(delete_pod(pod.namespace, pod.name) for pod in plugins), drop_resources(situation.node.name, stale)),
        "Pods that have such a resource go on; new ones stay pending until a plugin offers it again.",
        (*(f"allocatable {name}: {offered[name]}" for name in stale), places({gpu.address: gpu.driver for gpu in situation.gpus})),
    )


def _allocatable(situation: Situation) -> dict[str, str]:
    found = situation.node.status.get("allocatable")
    return (
        {str(name): str(amount) for name, amount in found.items() if str(name).startswith("nvidia.com/")}
        if isinstance(found, Mapping)
        else {}
    )
