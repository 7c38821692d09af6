"""What removing a package of NVIDIA's driver takes from a host: a table of the parts that matter here.

A host's description says which packages are installed and which files are there, not which package brought which file;
by their names packages fall into a few parts, and a part is gone with the last package of it.

What apt removes or installs beside what it was asked for is `apt`'s business. Source: debian/ of nvidia-graphics-drivers-580, yum-packaging-nvidia-driver, zypper-packaging.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from typing import Final

from simulator.host.spec import HostSpec, Package

NVIDIA_SMI: Final = "nvidia-smi"
MODULES: Final = "kernel modules"
INITRAMFS_HOOK: Final = "the initramfs hook that takes the driver's modules"
CONFIGURATION: Final = "modprobe's configuration"

PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    NVIDIA_SMI: (
        "nvidia-utils-*",
        "nvidia-smi",
        "nvidia-tesla*-smi",
        "nvidia-legacy-*-smi",
        "nvidia-driver-cuda",
        "nvidia-computeG0*",
        "nvidia-compute-utils-G0*",
        "xorg-x11-drv-nvidia-cuda*",
    ),
    MODULES: (
        "nvidia-dkms-*",
        "nvidia-kernel-dkms",
        "nvidia-open-kernel-dkms",
        "nvidia-tesla*-kernel-dkms",
        "nvidia-legacy-*-kernel-dkms",
        "linux-modules-nvidia-*",
        "linux-objects-nvidia-*",
        "kmod-nvidia*",
        "akmod-nvidia*",
        "nvidia-*-kmp-*",
    ),
    CONFIGURATION: ("nvidia-kernel-common-*", "nvidia-kernel-support", "nvidia-kmod-common"),
    INITRAMFS_HOOK: ("nvidia-kernel-common-*",),
}
"""Part -> the packages that bring it, as patterns."""
DRIVER_MODULES: Final = ("nvidia_vgpu_vfio", "nvidia_peermem", "nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia")
"""The driver's own modules, in the order in which `nvidia-uninstall` unloads them."""
CONFIGURATION_FILES: Final = (
    "/etc/modprobe.d/nvidia-graphics-drivers-kms.conf",
    "/lib/modprobe.d/nvidia-graphics-drivers.conf",
    "/usr/lib/modprobe.d/nvidia-graphics-drivers.conf",
)
INSTALLER_PROGRAMS: Final = ("nvidia-smi", "nvidia-uninstall", "nvidia-installer")
INSTALLER_FILES: Final = ("/var/lib/nvidia", "/etc/modprobe.d/nvidia-installer-disable-nouveau.conf")
"""What `nvidia-uninstall` removes beside libraries."""
DKMS_TREE: Final = "/var/lib/dkms/nvidia"
_GONE: Final = {"un", "rc"}


def matching(packages: Mapping[str, Package], patterns: Iterable[str]) -> tuple[str, ...]:
    """The packages that are there and match one of the patterns (dpkg-query's globs), in the host's order."""
    wanted = tuple(patterns)
    return tuple(
        name
        for name, package in packages.items()
        if package.status != "un" and any(fnmatch.fnmatchcase(name, pattern) for pattern in wanted)
    )


def brings(packages: Mapping[str, Package], part: str) -> bool:
    """Does an installed package bring this part?"""
    return any(
        package.status not in _GONE and fnmatch.fnmatchcase(name, pattern)
        for name, package in packages.items()
        for pattern in PARTS[part]
    )


def builds_modules(host: HostSpec) -> bool:
    """Are the driver's modules built anew for a new kernel (DKMS, akmods)? By a package, or a tree of DKMS's that is left over."""
    paths = (*host.directories, *(file.path for file in host.files))
    return any(f"{path}/".startswith(DKMS_TREE) for path in paths) or any(
        package.status not in _GONE
        and ("dkms" in name or name.startswith("akmod"))
        and any(fnmatch.fnmatchcase(name, pattern) for pattern in PARTS[MODULES])
        for name, package in host.packages.items()
    )
