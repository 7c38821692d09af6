"""What a driver or MOFED container left on the host: mounts, files, modules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simulator.diagnosing.commands import Command, on_host, write_file
from simulator.diagnosing.finding import Finding
from simulator.diagnosing.situation import Situation, is_starting
from simulator.manager.steps import DRIVER_PID_FILE, DRIVER_ROOT, MOFED_READY, MOFED_ROOT
from simulator.manager.v0_10_0 import DRIVER_CONFIG_STATE_FILE
from simulator.predicting.modes import Mode

_MLX5: Final = "mlx5_core"
_OF_DRIVER: Final = {"nvidia_uvm": "nvidia-uvm", "nvidia_modeset": "nvidia-modeset"}
"""Modules that the driver container loads with nvidia -> what modprobe calls them."""
_VGPU: Final = "nvidia_vgpu_vfio"
_DRM: Final = "nvidia_drm"
_NOUVEAU: Final = "nouveau"
_NOUVEAU_CONF: Final = "/etc/modprobe.d/nouveau-off.conf"
_INITRAMFS: Final = {
    "Ubuntu": ("update-initramfs", "-u"),
    "Debian": ("update-initramfs", "-u"),
    "RHEL": ("dracut", "--force"),
    "Rocky": ("dracut", "--force"),
    "SLES": ("dracut", "--force"),
    "Fedora": ("dracut", "--force"),
}


def find(situation: Situation) -> Iterator[Finding]:
    """Findings about what is left on the host."""
    is_gone = not situation.is_driver_loaded or situation.host_check
    if is_gone and not any(map(is_starting, situation.driver_pods)):
        if situation.driver_mounts:
            yield _stale_root(situation)
        if situation.has_file(DRIVER_PID_FILE):
            yield _stale_pid_file(situation)
    if situation.has_state_file and situation.has_driver_on_disk and situation.has_host_driver:
        yield _stale_state_file()
    if _MLX5 not in situation.modules:
        if mounts := situation.mounts_at(MOFED_ROOT):
            yield _stale_mofed_root(mounts)
        if situation.has_file(MOFED_READY):
            yield _stale_mofed_sign()
    if situation.has_container_traces and not situation.host_check:
        missing = [name for name in _OF_DRIVER if name not in situation.modules]
        if situation.is_driver_loaded and missing and _VGPU not in situation.modules and situation.driver_mounts:
            yield _half_unloaded(situation, missing)
    if _DRM in situation.modules and _is_to_be_unloaded(situation):
        yield _drm(situation)
    if any(module.name == _NOUVEAU and module.users for module in situation.host.modules):
        yield _nouveau(situation)


def _unmount(mounts: tuple[str, ...]) -> tuple[Command, ...]:
    """The last mount first. Lazily, as driver-manager does: a process may still have a file open there."""
    return tuple(on_host("umount", "--lazy", path) for path in reversed(mounts))


def _stale_root(situation: Situation) -> Finding:
    mounts = situation.driver_mounts
    instead = "the host's own driver is loaded" if situation.host_check else "module nvidia is not loaded"
    heals = (
        "At its next start driver-manager gives way to the host's driver and leaves the mount."
        if situation.host_check
        else "Up to v0.11.0 driver-manager unmounts it only where the module is still loaded; from v0.12.0 on its next run does."
    )
    return Finding(
        "stale-driver-root",
        f"{DRIVER_ROOT} is mounted, and {instead}.",
        f"Operands that start now find a driver's files there and take them for a driver. {heals}",
        _unmount(mounts),
        "If a driver container is installing a driver right now it loses its root, and has to be restarted.",
        (*(f"mount {path}" for path in mounts), instead),
    )


def _stale_pid_file(situation: Situation) -> Finding:
    instead = "the host's own driver is loaded" if situation.host_check else "module nvidia is not loaded"
    return Finding(
        "stale-pid-file",
        f"{DRIVER_PID_FILE} is there, and {instead}.",
        "Whoever looks for it takes the driver container for alive. A run of driver-manager that unloads a driver removes it; one"
        " that finds none loaded does so from v0.12.0 on.",
        (on_host("rm", DRIVER_PID_FILE),),
        "A driver container that is starting right now has its lock on this file: another could then start beside it.",
        (f"file {DRIVER_PID_FILE}", instead),
    )


def _stale_state_file() -> Finding:
    return Finding(
        "stale-state-file",
        f"{DRIVER_CONFIG_STATE_FILE} is of a driver container, and the driver that is loaded is the host's own.",
        "Where the host check does not see the host's driver and the digest is the wanted one, driver-manager takes it for the"
        " container's and keeps it.",
        (on_host("rm", DRIVER_CONFIG_STATE_FILE),),
        "The next run takes the full way: it evicts GPU pods and unloads the driver.",
        (f"file {DRIVER_CONFIG_STATE_FILE}", "module nvidia is on the host's own disk"),
    )


def _stale_mofed_root(mounts: tuple[str, ...]) -> Finding:
    return Finding(
        "stale-mofed-root",
        f"{MOFED_ROOT} is mounted, and {_MLX5} is not loaded.",
        "The root of a MOFED container that is gone. driver-manager leaves it alone; a driver container builds nvidia_peermem"
        " against what it finds there.",
        _unmount(mounts),
        "If a MOFED container is starting right now it loses its root, and has to be restarted.",
        (*(f"mount {path}" for path in mounts), f"module {_MLX5} is not loaded"),
    )


def _stale_mofed_sign() -> Finding:
    return Finding(
        "stale-mofed-sign",
        f"{MOFED_READY} is there, and {_MLX5} is not loaded.",
        "driver-manager takes MOFED for ready, so the driver is installed before it.",
        (on_host("rm", MOFED_READY),),
        "driver-manager waits from now on until the MOFED container writes the file again.",
        (f"file {MOFED_READY}", f"module {_MLX5} is not loaded"),
    )


def _half_unloaded(situation: Situation, missing: list[str]) -> Finding:
    return Finding(
        "modules-half-unloaded",
        f"nvidia is loaded, and {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not.",
        "An unload that failed at nvidia left this: each module is tried by itself, and what went stays away. CUDA needs"
        " nvidia_uvm. A later run that finds nvidia free unloads it and mends this.",
        (on_host("chroot", DRIVER_ROOT, "modprobe", "--all", *(_OF_DRIVER[name] for name in missing)),),
        "The modules of the container's driver come back; whoever was to unload it has one more to unload.",
        (f"modules {', '.join(sorted(name for name in situation.modules if name.startswith('nvidia')))}", f"mount {DRIVER_ROOT}"),
    )


def _is_to_be_unloaded(situation: Situation) -> bool:
    """Will a run of driver-manager try to unload the driver that is loaded, and is that what the node wants?"""
    if situation.host_check or not situation.is_driver_loaded:
        return False
    return situation.has_container_traces or (
        situation.mode != Mode.CONTAINER and situation.node.labels.get(situation.bringer) == "true"
    )


def _drm(situation: Situation) -> Finding:
    module = next((found for found in situation.host.modules if found.name == _DRM), None)
    users = f", held by {module.users} open handles" if module and module.users else ""
    return Finding(
        "nvidia-drm-loaded",
        f"{_DRM} is loaded{users}.",
        "It holds nvidia_modeset, which holds nvidia. driver-manager has it in no list, so each unload fails with 'driver is in"
        " use'.",
        (on_host("modprobe", "--remove", _DRM),),
        "A console or display on the GPU goes dark. While a display server has the card open modprobe refuses: stop that first.",
        (f"module {_DRM}", f"label {situation.bringer}={situation.node.labels.get(situation.bringer, 'absent')}"),
    )


def _nouveau(situation: Situation) -> Finding:
    system = situation.host.os.get("name", "")
    rebuild = next((on_host(*argv) for name, argv in _INITRAMFS.items() if system.startswith(name)), None)
    return Finding(
        "nouveau-in-use",
        "nouveau is loaded and in use.",
        "driver-manager unloads nouveau so that the driver can take the GPU; in use it cannot be, and the run fails. On some"
        " kernels the attempt itself has crashed the node. Up to v0.11.0 the operand labels are restored by then; on v0.12.0's"
        " path without a driver nothing is put back.",
        (
            write_file(_NOUVEAU_CONF, "blacklist nouveau\noptions nouveau modeset=0\n"),
            *((rebuild,) if rebuild else ()),
            on_host("systemctl", "reboot"),
        ),
        "The node reboots; its console is without a framebuffer on this card afterwards.",
        tuple(f"module nouveau has {module.users} users" for module in situation.host.modules if module.name == _NOUVEAU),
    )
