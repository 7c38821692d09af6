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
    assert len(gone.remove) == 8
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
    host.update_initramfs()
    host.reboot()
    assert drivers(host) == {""}
    assert host.live.run(ASKED).stdout == "580.82.07\n" * 2
    assert drivers(host) == {"nvidia"}
    host.write("/etc/modprobe.d/blacklist-nvidia.conf", "blacklist nvidia\ninstall nvidia /bin/false\n")
    host.update_initramfs()
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


def test_a_purge_may_install_a_driver_and_keeps_its_module():
    """H6: nvidia-peermem-loader gets the other flavour, which a reboot loads."""
    host = machine("converged-gpu-rdma")
    done = host.purge(["nvidia-driver-580-open", "nvidia-dkms-580-open"])
    assert set(done.install) == {"nvidia-dkms-580", "nvidia-kernel-source-580"}
    host.reboot()
    assert drivers(host) == {"nvidia"}
    assert {"gdrdrv", "nvidia_fs"} <= set(host.live.modules())


def test_marks_decide_what_autoremove_takes():
    """H7. Modules that need the driver are not loaded without it."""
    host = machine("converged-gpu-rdma")
    host.mark_manual(["doca-ofed"])
    host.purge(["nvidia-driver-580-open", "nvidia-dkms-580-open", "nvidia-peermem-loader"])
    gone = set(host.autoremove().remove)
    assert "nvidia-fs" in gone
    assert not {"doca-ofed", "rdma-core"} & gone
    assert "libnvidia-compute-580" in gone
    assert host.spec.packages["libnvidia-compute-580"].status == "rc"
    host.reboot()
    assert drivers(host) == {""}
    assert not {"gdrdrv", "nvidia_fs", "nvidia_peermem"} & set(host.live.modules())
    with pytest.raises(InputError, match='no package "libnvidia-compute-580" is installed'):
        host.mark_manual(["libnvidia-compute-580"])


def test_an_initramfs_is_as_old_as_it_is():
    """H12: what it holds is loaded, though neither the disk nor modprobe's configuration would do so."""
    host = machine(PACKAGED)
    host.write("/etc/modprobe.d/no.conf", "install nvidia /bin/false\n")
    host.reboot()
    assert drivers(host) == {"nvidia"}
    host.update_initramfs()
    host.reboot()
    assert drivers(host) == {""}


def test_an_initramfs_loads_by_name_what_it_was_told_to():
    """/etc/initramfs-tools/modules: past a blacklist, not past `install`."""
    host = machine("runfile-580")
    host.write("/etc/initramfs-tools/modules", "# modules\nnvidia\nnvidia-uvm\n")
    host.write("/etc/modprobe.d/no.conf", "blacklist nvidia\n")
    host.update_initramfs()
    host.nvidia_uninstall()
    host.reboot()
    assert drivers(host) == {"nvidia"}
    assert "nvidia_uvm" in host.live.modules()
    host.update_initramfs()
    host.reboot()
    assert drivers(host) == {""}


def test_without_k_all_the_newest_initramfs_is_renewed():
    """By version: 100 is newer than 79."""
    host = machine(PACKAGED)
    host.reboot("6.8.0-100-generic")
    assert host.update_initramfs(every=False) == ("6.8.0-100-generic",)
    assert host.update_initramfs() == ("6.8.0-79-generic", "6.8.0-100-generic")


def test_a_kernel_keeps_its_modules():
    """The .run installer's are there for the one it was installed under."""
    host = machine("runfile-580")
    host.reboot("6.8.0-100-generic")
    assert drivers(host) == {""}
    host.reboot("6.8.0-79-generic")
    assert drivers(host) == {"nvidia"}


def test_nvidia_fs_dkms_builds_no_driver():
    """DKMS packages of others share the prefix."""
    host = machine("converged-gpu-rdma")
    host.purge(["nvidia-driver-580-open", "nvidia-dkms-580-open", "nvidia-peermem-loader"])
    host.reboot("6.8.0-100-generic")
    assert drivers(host) == {""}


def test_the_driver_s_own_removal_takes_its_tree_of_dkms_along():
    """As the package's prerm and the installer do; one that is left over builds for the next kernel."""
    for name in (PACKAGED, "runfile-580"):
        host = machine(name)
        host.write("/var/lib/dkms/nvidia/580.82.07/source/dkms.conf", "x")
        if name == PACKAGED:
            host.purge(["nvidia-*", "libnvidia-*"])
        else:
            host.nvidia_uninstall()
        host.reboot("6.8.0-100-generic")
        assert drivers(host) == {""}
    host.write("/var/lib/dkms/nvidia/580.82.07/source/dkms.conf", "x")
    host.reboot("6.8.0-110-generic")
    assert drivers(host) == {"nvidia"}
