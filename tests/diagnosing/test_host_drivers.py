"""Which packages a host's driver consists of: all of it, and nothing that others need."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.diagnosing.host_drivers import driver_packages
from simulator.diagnosing.situation import Situation
from simulator.host.spec import Package
from simulator.manager.releases import RELEASES
from simulator.report.hosts import judge
from simulator.scenario import load_host, names
from tests.diagnosing.ailing import bundle

DRIVER = [
    "nvidia-driver-580-open",
    "nvidia-dkms-580-open",
    "nvidia-kernel-common-580",
    "nvidia-kernel-source-580-open",
    "nvidia-utils-580",
    "nvidia-firmware-580-580.82.07",
    "nvidia-compute-utils-580",
    "libnvidia-compute-580",
    "libnvidia-gl-580:i386",
    "libnvidia-cfg1-580",
    "xserver-xorg-video-nvidia-580",
    "nvidia-headless-580-open",
    "nvidia-headless-no-dkms-580-open",
    "cuda-drivers",
    "cuda-drivers-580",
    "linux-modules-nvidia-580-open-6.8.0-79-generic",
    "linux-objects-nvidia-580-6.8.0-79-generic",
    "linux-signatures-nvidia-6.8.0-79-generic",
    "nvidia-driver-580-server-open",
    "nvidia-utils-580-server",
    "nvidia-smi",
    "nvidia-alternative",
    "nvidia-kernel-dkms",
    "firmware-nvidia-gsp",
    "libcuda1",
    "libnvidia-ml1",
    "nvidia-persistenced",
    "nvidia-open",
    "kmod-nvidia-open-dkms",
    "nvidia-kmod-common",
    "nvidia-driver-libs",
    "nvidia-driver-cuda",
    "akmod-nvidia",
    "xorg-x11-drv-nvidia-cuda",
    "nvidia-open-driver-G06-signed-kmp-default",
    "nvidia-compute-G06",
    "nvidia-compute-utils-G06",
    "nvidia-computeG05",
    "nvidia-gfxG05-kmp-default",
]
OTHERS = [
    "libnvidia-container1",
    "libnvidia-container-tools",
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "nvidia-fabricmanager-580",
    "nvidia-imex-580",
    "nvlsm",
    "libnvidia-nscq-580",
    "nvidia-fs",
    "nvidia-fs-dkms",
    "nvidia-gds-12-8",
    "gdrdrv-dkms",
    "libgdrapi",
    "nvidia-peermem-loader",
    "nv-peer-memory",
    "nvidia-peer-memory-dkms",
    "nvidia-mlnx-ofed-misc",
    "nvidia-mlnx-config",
    "nvidia-ipmisol",
    "nvidia-acs-disable",
    "nvidia-crashdump",
    "nvidia-disable-numa-balancing",
    "nvidia-mig-manager",
    "nvidia-pci-realloc",
    "nvidia-raid-config",
    "nvidia-relaxed-ordering-gpu",
    "linux-image-6.8.0-1012-nvidia",
    "linux-headers-6.8.0-1012-nvidia",
    "linux-nvidia-64k",
    "linux-modules-nvidia-fs-6.8.0",
    "doca-ofed",
    "mlnx-ofed-kernel-dkms",
    "rdma-core",
    "libibverbs1",
    "ucx",
    "nvidia-cuda-toolkit",
    "cuda-toolkit-12-8",
    "cuda-compat-12-8",
    "site-gpu-rdma-stack",
]


def packages(*installed, status="ii"):
    found = bundle("clean", host_fields={"packages": {name: Package("1", status) for name in installed}})
    return set(driver_packages(Situation(found, "v0.10.0")))


def test_all_of_the_driver_is_named():
    """What is left of it would bring nvidia-smi or the module back."""
    assert packages(*DRIVER, *OTHERS) == set(DRIVER)


@pytest.mark.parametrize("status", ["rc", "un"])
def test_what_is_not_installed_is_not_named(status):
    """Configuration that is left, names that were only mentioned."""
    assert packages(*DRIVER, status=status) == set()


@pytest.mark.parametrize("name", names("hosts"))
def test_no_named_host_would_lose_what_is_not_the_drivers(name):
    """RDMA, storage, fabric, containers."""
    found = driver_packages(Situation(bundle(name), "v0.10.0"))
    kept = {"doca-ofed", "rdma-core", "gdrdrv-dkms", "nvidia-fs-dkms", "nvidia-container-toolkit", "nvidia-peermem-loader"}
    assert not kept & set(found)
    assert all("nvidia" in package or "cuda" in package for package in found)


def test_a_host_whose_packages_nobody_can_remove_gets_no_command():
    """The same packages on a system that is not known to have a package manager."""
    from simulator.diagnosing.findings import diagnose

    found = bundle("ubuntu-24.04-driver-580-open", "passthrough", host_fields={"os": {"name": "Talos"}})
    (finding,) = diagnose(found)
    assert (finding.kind, finding.commands) == ("host-driver-blocks-vfio", ())
    (known,) = diagnose(replace(found, scenario=bundle("ubuntu-24.04-driver-580-open", "passthrough").scenario))
    assert [command.argv[:3] for command in known.commands] == [
        ("apt-get", "purge", "--simulate"),
        ("apt-get", "purge", "libnvidia-compute-580"),
        ("systemctl", "reboot"),
    ]


@pytest.mark.parametrize("release", RELEASES)
def test_the_host_check_is_the_releases_own(release):
    """On every named host it says what a run finds: the script goes by a link that leads nowhere in its container, too."""
    wrong = [
        host for host in names("hosts") if Situation(bundle(host), release).host_check != judge(load_host(host), release).host_check
    ]
    assert wrong == []
