"""What a package is to a host whose GPUs are to be freed: part of the driver, or something that must stay.

By name, as packages of Ubuntu, Debian, DGX OS, RHEL and SLES are named; the first pattern that fits decides. What only
shares the driver's prefix (RDMA, platform, kernels) comes first, so that no pattern of the driver's reaches it. These
patterns classify what is installed; no command of a plan holds one.

Source: debian/ of nvidia-graphics-drivers; yum- and zypper-packaging-nvidia-driver; doca-driver-build; DGX OS 7's list of
packages; Debian's own packages by experiment.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from simulator.node.apt import plain
from simulator.node.packages import NVIDIA_SMI, PARTS


@dataclass(frozen=True, slots=True)
class Role:
    """One role. `goes`: is it the driver's, so that it is removed?"""

    name: str
    why: str
    goes: bool = False
    patterns: tuple[str, ...] = ()


ROLES: Final = (
    Role(
        "storage",
        "GPUDirect Storage: of no use without the driver, but others may mount by it; it brings no driver back by itself",
        patterns=("nvidia-fs", "nvidia-fs-*", "linux-modules-nvidia-fs-*", "linux-objects-nvidia-fs-*", "nvidia-gds", "nvidia-gds-*", "kmod-nvidia-fs*"),
    ),
    Role(
        "kernel module",
        "built for this kernel beforehand: its nvidia.ko is loaded at boot for the GPU that is found",
        goes=True,
        patterns=("linux-modules-nvidia-*", "linux-objects-nvidia-*", "linux-signatures-nvidia-*"),
    ),
    Role(
        "kernel",
        "a kernel, or its headers, of the flavour named nvidia: the host boots from it",
        patterns=("linux-*-nvidia", "linux-*-nvidia-*", "linux-nvidia", "linux-nvidia-*"),
    ),
    Role(
        "rdma",
        "the network's (RDMA), or loads what the network uses; no driver for the GPU is in it",
        patterns=(
            "doca-*", "mlnx-*", "ofed-*", "knem", "knem-*", "xpmem", "xpmem-*", "iser-*", "isert-*", "srp-*", "kernel-mft*", "mft",
            "mft-*", "fwctl-*", "rdma-core*", "libibverbs*", "ibverbs-*", "librdmacm*", "libibumad*", "infiniband-diags", "perftest",
            "ucx", "ucx-*", "sharp", "hcoll", "opensm", "opensm-*", "dpcp", "libvma*", "libxlio*", "nvidia-mlnx-*",
            "nvidia-peermem-loader", "nv-peer-memory*", "nvidia-peer-memory*", "gdrdrv-dkms", "libgdrapi*", "gdrcopy*", "kmod-mlnx*",
            "kmod-knem*", "kmod-xpmem*", "kmod-iser*", "kmod-srp*", "kmod-kernel-mft*",
        ),
    ),
    Role(
        "fabric",
        "NVSwitch and NVLink fabric: needed where switches are shared or a service VM runs it; its version follows the driver's",
        patterns=("nvidia-fabricmanager*", "nvidia-fabric-manager*", "nvidia-imex*", "nvlsm", "libnvidia-nscq*", "libnvsdm*"),
    ),
    Role(
        "platform",
        "the platform's own: RAID, PCI, IPMI, sysctl, power; not the driver's, though named like it",
        patterns=(
            "nvidia-acs-disable", "nvidia-crashdump", "nvidia-disable-*", "nvidia-earlycon", "nvidia-enable-*", "nvidia-esm-hook-epilogue",
            "nvidia-ipmisol", "nvidia-kernel-defaults", "nvidia-mig-manager", "nvidia-pci-*", "nvidia-raid-config",
            "nvidia-redfish-config", "nvidia-relaxed-ordering-*", "nvidia-system-*", "nvidia-*-loader", "nvsm", "nvsm-*", "dgx-*",
            "nvidia-conf-*", "nvidia-logrotate", "nvidia-motd", "nvidia-nvme-*", "nvidia-repo-keys",
        ),
    ),
    Role(
        "container toolkit",
        "the container toolkit: no driver in it; passthrough does not need it, other workloads of the node may",
        patterns=("nvidia-container-*", "libnvidia-container*", "nvidia-docker*"),
    ),
    Role(
        "cuda toolkit",
        "compilers and libraries of CUDA: no driver in them",
        patterns=(
            "cuda-toolkit*", "cuda-nvcc*", "cuda-cudart*", "cuda-compat*", "cuda-keyring", "cuda-libraries*", "cuda-repo*", "cuda-tools*",
            "cuda-runtime*", "nvidia-cuda-[!m]*", "libcudart*", "libnvidia-ml-dev",
        ),
    ),
    Role(
        "monitoring",
        "DCGM: no driver in it; its service holds the GPUs while it runs",
        patterns=("datacenter-gpu-manager*",),
    ),
    Role(
        "other",
        "nothing of it runs in the kernel or opens a GPU at boot",
        patterns=(
            "nvidia-detect", "nvidia-installer-cleanup", "nvidia-vaapi-driver", "nvidia-openjdk-*", "libnvidia-egl-wayland*", "dkms",
            "libnvidia-egl-gbm*", "libnvidia-egl-xcb*", "libnvidia-egl-xlib*", "libxnvctrl*", "nvidia-libXNVCtrl*",
            "nvidia-driver-assistant", "nvidia-driver-pinning-*", "nvidia-driver-local-repo-*", "dnf-plugin-nvidia", "yum-plugin-nvidia",
        ),
    ),
    Role(
        "nouveau's firmware",
        "part of linux-firmware, for the kernel's own driver; NVIDIA's has firmware of its own",
        patterns=("firmware-nvidia-graphics", "nvidia-gpu-firmware", "kernel-firmware-nvidia"),
    ),
    Role(
        "firmware",
        "firmware of the driver",
        goes=True,
        patterns=("nvidia-firmware-*", "firmware-nvidia-*", "kernel-firmware-nvidia-*"),
    ),
    Role(
        "nvidia-smi",
        "brings nvidia-smi: driver-manager takes the host for one with a driver, and asking it loads the module",
        goes=True,
        patterns=PARTS[NVIDIA_SMI],
    ),
    Role(
        "kernel module",
        "builds nvidia.ko again for every new kernel, and its nvidia.ko of today is loaded at boot for the GPU that is found",
        goes=True,
        patterns=(
            "nvidia-dkms-*", "nvidia-kernel-*dkms", "nvidia-open-kernel-dkms", "nvidia-*-kernel-dkms", "kmod-nvidia*dkms", "akmod-nvidia*",
        ),
    ),
    Role(
        "kernel module",
        "its nvidia.ko, built beforehand, is loaded at boot for the GPU that is found",
        goes=True,
        patterns=("kmod-nvidia*", "nvidia-*-kmp-*", "nvidia-kernel-[0-9]*", "nvidia-open-kernel-[0-9]*"),
    ),
    Role(
        "kernel module's source",
        "what DKMS builds nvidia.ko from",
        goes=True,
        patterns=("nvidia-kernel-source*", "nvidia-open-kernel-source*", "nvidia-*-kernel-source"),
    ),
    Role(
        "configuration",
        "the driver's part of modprobe.d, udev's rules and the initramfs hook; its blacklist of nouveau goes with it",
        goes=True,
        patterns=(
            "nvidia-kernel-common*", "nvidia-kernel-support", "nvidia-open-kernel-support", "nvidia-*-kernel-support",
            "nvidia-kmod-common", "nvidia-modprobe*", "nvidia-common-G0*", "nvidia-legacy-check", "nvidia-alternative", "glx-alternative-nvidia",
            "glx-alternative-mesa", "glx-diversions",
        ),
    ),
    Role(
        "driver",
        "the driver's libraries, services and meta packages",
        goes=True,
        patterns=(
            "nvidia-driver*", "nvidia-open", "nvidia-open-[0-9]*", "nvidia-headless-*", "nvidia-server-*", "cuda-drivers*",
            "nvidia-compute-utils-*", "nvidia-compute-G0*", "nvidia-gl-G0*", "nvidia-video-G0*", "nvidia-persistenced*",
            "nvidia-settings*", "nvidia-prime*", "nvidia-xconfig*", "nvidia-libopencl1", "nvidia-opencl-*", "nvidia-egl-*",
            "nvidia-vulkan-*", "nvidia-suspend-common", "nvidia-powerd", "nvidia-libs*", "nvidia-drm-G0*", "nvidia-linux-*",
            "nvidia-vgpu-*", "nvidia-cuda-mps", "nvidia-tesla*", "nvidia-legacy-*", "nvidia-userspace-meta-G0*", "nvidia-bug-report*", "libnvidia-*", "libcuda1", "libcudadebugger1", "libegl-nvidia*", "libgl1-nvidia*",
            "libgles-nvidia*", "libglx-nvidia*", "libnvcuvid1", "libnvoptix1", "xserver-xorg-video-nvidia*",
            "xorg-x11-drv-nvidia*", "xorg-x11-nvidia", "x11-video-nvidia*", "nvidia-glG0*",
        ),
    ),
)  # fmt: skip
"""In the order in which they are asked."""
UNKNOWN: Final = Role("unknown", "shares the name, and nothing here knows what it is: look at it (`dpkg -L`, `rpm -ql`)")
_UNRELATED: Final = Role("unrelated", "has nothing to do with GPUs by its name")
_SHARED: Final = ("nvidia", "cuda")


@lru_cache(maxsize=4096)
def role_of(name: str) -> Role:
    """The role of a package."""
    bare = plain(name)
    for role in ROLES:
        if any(fnmatch.fnmatchcase(bare, pattern) for pattern in role.patterns):
            return role
    return UNKNOWN if any(word in bare for word in _SHARED) else _UNRELATED
