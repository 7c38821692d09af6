"""The host over time: what an administrator's act leaves, now and after a reboot."""

from __future__ import annotations

import pytest

from simulator.node.machine import Machine
from simulator.reading import InputError
from simulator.scenario import load_host

PACKAGED = "ubuntu-24.04-driver-580-open"
DRIVER = {"nvidia", "nvidia_drm", "nvidia_modeset", "nvidia_uvm"}
ASKED = ["chroot", "/host", "nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]


def machine(name: str) -> Machine:
    return Machine(load_host(name))


def drivers(host: Machine) -> set[str]:
    return set(host.live.gpu_drivers().values())


@pytest.mark.parametrize("name", [PACKAGED, "runfile-580", "nouveau-bound", "clean"])
def test_a_reboot_brings_back_what_was_loaded(name):
    """Module, binding and who holds whom."""
    host = machine(name)
    before = (host.live.modules(), host.live.gpu_drivers(), host.live.tree.exists("/sys/module/nvidia"))
    host.reboot()
    assert (host.live.modules(), host.live.gpu_drivers(), host.live.tree.exists("/sys/module/nvidia")) == before
    if name == PACKAGED:
        with pytest.raises(OSError, match="EAGAIN"):
            host.live.delete_module("nvidia")


def test_a_purge_takes_files_at_once_and_nothing_from_memory():
    """The module stays until the reboot."""
    host = machine(PACKAGED)
    assert host.live.run(ASKED).stdout == "580.82.07\n" * 2
    gone = host.purge(["nvidia-*", "libnvidia-*"])
    assert len(gone) == 8
    assert host.live.run(ASKED).exit_code == 127
    assert set(host.live.modules()) >= DRIVER
    assert drivers(host) == {"nvidia"}
    host.reboot()
    assert not set(host.live.modules()) & DRIVER
    assert drivers(host) == {""}


def test_forgotten_dkms_packages_bring_the_driver_back():
    """H11: nvidia-smi is gone, so the host check says no; the module loads at boot all the same."""
    host = machine(PACKAGED)
    host.purge(["nvidia-driver-*", "nvidia-utils-*", "libnvidia-*", "nvidia-compute-utils-*"])
    host.reboot()
    assert host.live.run(ASKED).exit_code == 127
    assert drivers(host) == {"nvidia"}


def test_a_blacklist_keeps_the_driver_away_at_boot_but_not_from_the_probe():
    """H10: nvidia-smi loads the module by name, which no blacklist stops; `install` does."""
    host = machine(PACKAGED)
    host.write("/etc/modprobe.d/blacklist-nvidia.conf", "blacklist nvidia\n")
    host.reboot()
    assert drivers(host) == {""}
    assert host.live.run(ASKED).stdout == "580.82.07\n" * 2
    assert drivers(host) == {"nvidia"}
    host.write("/etc/modprobe.d/blacklist-nvidia.conf", "blacklist nvidia\ninstall nvidia /bin/false\n")
    host.reboot()
    assert host.live.run(ASKED).exit_code == 9
    assert drivers(host) == {""}


def test_a_removed_file_is_gone_after_the_reboot_too():
    """And with a directory what is in it."""
    host = machine(PACKAGED)
    host.write("/etc/modprobe.d/blacklist-nvidia.conf", "blacklist nvidia\n")
    host.remove(["/etc/modprobe.d"])
    assert not host.live.tree.exists("/host/etc/modprobe.d")
    host.reboot()
    assert drivers(host) == {"nvidia"}


def test_nvidia_uninstall_unloads_what_nobody_uses():
    """Its own list of modules has nvidia_drm, unlike driver-manager's; no reboot is needed."""
    host = machine("runfile-580")
    assert host.nvidia_uninstall() == ("nvidia_uvm", "nvidia_modeset", "nvidia")
    assert drivers(host) == {""}
    assert host.live.run(ASKED).exit_code == 127
    host.reboot()
    assert drivers(host) == {""}


def test_a_new_kernel_has_the_driver_only_if_it_is_built_for_it():
    """DKMS builds it, the .run installer does not."""
    packaged, runfile = machine(PACKAGED), machine("runfile-580")
    for host in (packaged, runfile):
        host.reboot("6.8.0-90-generic")
        assert host.kernel == "6.8.0-90-generic"
    assert drivers(packaged) == {"nvidia"}
    assert drivers(runfile) == {""}


def test_nouveau_takes_the_gpu_if_it_is_there_and_not_blacklisted():
    """It was loaded before, so it is on the disk."""
    host = machine("nouveau-bound")
    host.write("/etc/modprobe.d/blacklist.conf", "blacklist nouveau\n")
    host.reboot()
    assert drivers(host) == {""}


def test_what_the_bus_of_others_has_stays():
    """Network cards keep their drivers and modules."""
    host = machine("converged-gpu-rdma")
    others = {address: driver for address, driver in host.live.kernel.bound.items() if address not in host.live.gpu_drivers()}
    assert others
    host.reboot()
    assert {address: host.live.kernel.bound[address] for address in others} == others
    assert "mlx5_core" in host.live.modules()


def test_a_pattern_that_matches_nothing_is_an_error():
    """As apt refuses the whole transaction."""
    host = machine(PACKAGED)
    with pytest.raises(InputError, match=r'no package "cuda-\*" is installed'):
        host.purge(["nvidia-*", "cuda-*"])
    assert len(host.spec.packages) == 8
    with pytest.raises(InputError, match="has no nvidia-uninstall"):
        host.nvidia_uninstall()
