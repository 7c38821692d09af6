"""A driver of the host's own: where it is, what the driver label says of it, and what the host check sees."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from simulator import labels
from simulator.diagnosing.commands import Command, label_node, on_host
from simulator.diagnosing.finding import Finding
from simulator.diagnosing.gpu_operator import VFIO_MANAGER, VGPU_MANAGER
from simulator.diagnosing.situation import Situation
from simulator.predicting.modes import Mode

_DRIVER_PACKAGES: Final = re.compile(
    r"nvidia-(driver|open|headless|dkms|utils|compute|firmware|persistenced|smi|alternative|gfxG0\d|computeG0\d)(?![a-z]).*"
    r"|nvidia-(kernel-(common|source|dkms|support|open)|kmod-common).*"
    r"|libnvidia-(?!container|nscq|egl-wayland|egl-gbm).*"
    r"|linux-(modules|objects|signatures)-nvidia-(?!fs-).*"
    r"|(kmod-nvidia|akmod-nvidia|xorg-x11-drv-nvidia|xserver-xorg-video-nvidia).*"
    r"|cuda-drivers(-\d+)?|firmware-nvidia-gsp|libcuda1"
)
"""Of Ubuntu, Debian, NVIDIA's repositories, RPM Fusion and SUSE. Not what shares the prefix: container toolkit, storage, RDMA,
fabric manager, site tuning, kernels."""
_REMOVERS: Final = {
    "Ubuntu": (("apt-get", "purge", "--simulate"), ("apt-get", "purge")),
    "Debian": (("apt-get", "purge", "--simulate"), ("apt-get", "purge")),
    "RHEL": (("dnf", "remove", "--assumeno"), ("dnf", "remove")),
    "SLES": (("zypper", "remove", "--dry-run"), ("zypper", "remove")),
}
"""The system's name begins with this -> how packages are removed, first only for show."""
_FAMILIES: Final = {
    "DGX OS": "Ubuntu",
    "Rocky": "RHEL",
    "AlmaLinux": "RHEL",
    "Red Hat": "RHEL",
    "CentOS": "RHEL",
    "openSUSE": "SLES",
}
_UNINSTALLER: Final = "/usr/bin/nvidia-uninstall"
_INSTALLED: Final = frozenset({"ii", "hi", "iF", "iU"})


def find(situation: Situation) -> Iterator[Finding]:
    """Findings about the host's own driver."""
    if situation.is_answer_empty:
        yield _answer_without_driver(situation)
        return
    label = situation.node.labels.get(labels.DRIVER)
    if label == labels.PRE_INSTALLED and not situation.has_host_driver:
        yield _label_without_driver(situation)
    if situation.mode == Mode.CONTAINER:
        if label == "true" and situation.host_check:
            yield _label_says_container(situation)
        elif label == "true" and situation.is_host_driver_unseen:
            yield _unseen(situation)
    elif situation.host_check:
        if situation.mode == Mode.VM_PASSTHROUGH and situation.node.labels.get(VFIO_MANAGER) == "true":
            yield _blocks_vfio(situation)
        elif situation.mode == Mode.VM_VGPU and situation.node.labels.get(VGPU_MANAGER) == "true":
            yield _blocks_vgpu_manager(situation)


def _label_without_driver(situation: Situation) -> Finding:
    node, in_container_mode = situation.node.name, situation.mode == Mode.CONTAINER
    return Finding(
        "pre-installed-without-driver",
        f"{labels.DRIVER} is {labels.PRE_INSTALLED}, and the host has no driver.",
        "The driver DaemonSet selects on true, so no driver pod comes, and the operands wait for a driver in Init. No release"
        " of driver-manager takes the value back."
        + ("" if in_container_mode else " The operator takes it away at its next look at the node; from chart v26.7.0 on that may"
           " be long, and it keeps the value if the node becomes a container node first."),
        (label_node(node, {labels.DRIVER: "true" if in_container_mode else None}),),
        "The driver pod comes, and driver-manager in it evicts GPU pods and cordons the node meanwhile."
        if in_container_mode
        else "None on this node: nothing of its workload type selects on the label.",
        (f"label {labels.DRIVER}={labels.PRE_INSTALLED}", "the host check finds no driver", "module nvidia is not loaded"),
    )  # fmt: skip


def _label_says_container(situation: Situation) -> Finding:
    return Finding(
        "host-driver-labelled-container",
        f"The host has a driver of its own, and {labels.DRIVER} is true.",
        "At its next start driver-manager gives way to the host's driver: it sets the label to pre-installed, waits a minute and"
        " fails. Whatever version the chart asks for, the host's stays. FORCE_REINSTALL does not change that.",
        (label_node(situation.node.name, {labels.DRIVER: labels.PRE_INSTALLED}),),
        "The driver pod goes. Operands use the host's driver. Without it a driver that the host loses later is not replaced"
        " until the label is true again.",
        (f"label {labels.DRIVER}=true", "the host check finds a driver"),
    )


def _unseen(situation: Situation) -> Finding:
    return Finding(
        "host-driver-unseen",
        "A driver of the host's own is loaded, and the host check does not see it.",
        "driver-manager takes the host for one without a driver: it evicts the GPU pods, tries to unload the host's modules, and"
        " the driver container installs its own over them.",
        (label_node(situation.node.name, {labels.DRIVER: labels.PRE_INSTALLED}),),
        "The driver pod goes, and operands use the host's driver: they must find its libraries and nvidia-smi, which the host"
        " check did not.",
        (
            f"label {labels.DRIVER}=true",
            "module nvidia is loaded",
            "no driver container left a mark",
            "the host check finds no driver",
        ),
    )


def _answer_without_driver(situation: Situation) -> Finding:
    path = _nvidia_smi(situation)
    return Finding(
        "answer-without-driver",
        f"{path or 'Something'} answers as nvidia-smi, and the host has no driver.",
        "Any output with exit code 0 counts as a driver: the node is labelled pre-installed and gets no driver at all.",
        (on_host("mv", path, f"{path}.disabled"),) if path else (),
        "Whoever put the program there may need it under that name.",
        ("the host check finds a driver", "module nvidia is not loaded", "no GPU is on nvidia"),
    )


def _nvidia_smi(situation: Situation) -> str:
    """The path of the first nvidia-smi along the container's PATH, if it is described as a program."""
    described = {program.path for program in situation.host.programs}
    path = situation.fake_host().path
    return next((found for folder in path if (found := f"{folder}/nvidia-smi") in described), "")


def _blocks_vfio(situation: Situation) -> Finding:
    commands = _removal(situation)
    return Finding(
        "host-driver-blocks-vfio",
        "The host has a driver of its own, so vfio-manager never gives the GPUs to vfio-pci.",
        "Its init container ends with exit code 1 at each try, before it touches a GPU. The label pre-installed that it writes"
        " stops only the driver DaemonSet. Neither FORCE_REINSTALL nor another label helps: the driver has to leave the host."
        + ("" if commands else " How, depends on the host's image; it cannot be told from what was seen."),
        commands,
        "Packages that depend on the driver go with it: read what the first command says before the second, and stop if it"
        " names RDMA packages or installs anything. Whoever uses the GPUs on the host loses them; the node reboots.",
        ("the host check finds a driver", f"label {VFIO_MANAGER}=true", *_seen_packages(situation)),
    )


def _blocks_vgpu_manager(situation: Situation) -> Finding:
    return Finding(
        "host-driver-blocks-vgpu-manager",
        "The host has a driver of its own, so vgpu-manager's init container fails for ever.",
        "The label pre-installed that it writes stops only the driver DaemonSet, and the operator takes it away again.",
        (label_node(situation.node.name, {VGPU_MANAGER: "false"}),),
        "The operator keeps a false, so the host's vGPU manager is used until the label is true again.",
        ("the host check finds a driver", f"label {VGPU_MANAGER}=true"),
    )


def driver_packages(situation: Situation) -> tuple[str, ...]:
    """The installed packages that the host's driver consists of, by name."""
    return tuple(
        name
        for name, package in sorted(situation.host.packages.items())
        if package.status in _INSTALLED and _DRIVER_PACKAGES.fullmatch(name)
    )


def _seen_packages(situation: Situation) -> tuple[str, ...]:
    packages = driver_packages(situation)
    return (f"packages {', '.join(packages)}",) if packages else ()


def _removal(situation: Situation) -> tuple[Command, ...]:
    """What takes the driver from the host; nothing where the host's system is not known to have packages."""
    reboot = on_host("systemctl", "reboot")
    packages = driver_packages(situation)
    if packages:
        system = situation.host.os.get("name", "")
        family = next((other for name, other in _FAMILIES.items() if system.startswith(name)), system)
        for name, removers in _REMOVERS.items():
            if family.startswith(name):
                return (*(on_host(*remover, *packages) for remover in removers), reboot)
        return ()
    if any(program.path == _UNINSTALLER for program in situation.host.programs):
        return (on_host("nvidia-uninstall", "--silent"), reboot)
    return ()
