"""The kernel behind the host: modules, PCI bindings, mounts, and what its calls answer."""

from __future__ import annotations

import pytest

from simulator.gocompat import errno_name
from simulator.host.fake import FakeHost
from simulator.host.kernel import Answers
from simulator.host.spec import read_host
from simulator.reading import parse_document

DRIVER = """
gpus: [{address: "0000:18:00.0", driver: nvidia}, {address: "0000:3b:00.0", driver: vfio-pci}]
modules:
  - {name: nvidia_drm}
  - {name: nvidia_modeset, used_by: [nvidia_drm]}
  - {name: nvidia_uvm, size: 2154496}
  - {name: nvidia, used_by: [nvidia_modeset, nvidia_uvm], users: 1, version: 580.82.07}
  - {name: vfio_pci}
"""


def described(text: str, pods: set[str] | None = None) -> FakeHost:
    living = pods or set()
    return FakeHost(read_host(parse_document(text, "x.yaml"), "x"), (), living.__contains__)


def errno_of(call, *arguments: str) -> str:
    with pytest.raises(OSError) as error:
        call(*arguments)
    return errno_name(error.value.errno or 0)


# --- modules -----------------------------------------------------------------------------------------------------------


def test_loaded_modules_are_in_proc_and_sys():
    """A loaded module has its line in /proc/modules, and its count in /sys/module."""
    host = described(DRIVER)
    assert host.read_file("/proc/modules").splitlines()[2:4] == [
        "nvidia_uvm 2154496 0 - Live 0x0000000000000000 (OE)",
        "nvidia 16384 3 nvidia_modeset,nvidia_uvm, Live 0x0000000000000000 (OE)",
    ]
    assert host.read_file("/sys/module/nvidia/refcnt") == "3\n"


def test_a_module_in_use_stays():
    """A module that another one or an open file holds cannot be unloaded: EAGAIN."""
    host = described(DRIVER)
    assert errno_of(host.delete_module, "nvidia_modeset") == "EAGAIN"
    assert errno_of(host.delete_module, "nvidia") == "EAGAIN"
    assert "nvidia" in host.modules()


def test_what_is_not_loaded_cannot_be_unloaded():
    """A module that is not loaded, or is named with a dash, does not exist."""
    host = described(DRIVER)
    assert errno_of(host.delete_module, "nvidia_fs") == "ENOENT"
    assert errno_of(host.delete_module, "nvidia-drm") == "ENOENT"


def test_unloading_releases_what_it_held():
    """An unloaded module is gone from /proc and /sys, and no longer counts with those it used."""
    host = described(DRIVER)
    host.delete_module("nvidia_drm")
    host.delete_module("nvidia_modeset")
    assert host.modules() == ("nvidia", "nvidia_uvm", "vfio_pci")
    assert host.read_file("/sys/module/nvidia/refcnt") == "2\n"
    assert "nvidia_modeset" not in host.read_file("/proc/modules")
    assert host.kernel.modules["nvidia"].version == "580.82.07", "the rest of a module stays as it is"


def test_unloading_a_driver_frees_its_devices():
    """The GPUs of an unloaded driver have none, the others keep theirs."""
    host = described('gpus: [{address: "0000:18:00.0", driver: nvidia}, {address: "0000:3b:00.0", driver: vfio-pci}]\n'
                     "modules: [{name: nvidia}, {name: vfio_pci}]")  # fmt: skip
    host.delete_module("nvidia")
    assert host.gpu_drivers() == {"0000:18:00.0": "", "0000:3b:00.0": "vfio-pci"}
    host.delete_module("vfio_pci")
    assert host.gpu_drivers()["0000:3b:00.0"] == ""


def test_the_partial_unload_of_a_packaged_driver():
    """Upstream's list of modules takes uvm from a driver with nvidia_drm loaded, and then fails."""
    host = described(DRIVER)
    results = {}
    for name in ("nvidia_modeset", "nvidia_uvm", "nvidia"):
        try:
            host.delete_module(name)
        except OSError as error:
            results[name] = errno_name(error.errno or 0)
    assert results == {"nvidia_modeset": "EAGAIN", "nvidia": "EAGAIN"}
    assert host.modules() == ("nvidia", "nvidia_drm", "nvidia_modeset", "vfio_pci")


def test_a_file_in_the_place_of_sys_module_is_no_module():
    """What is no directory lists no modules."""
    assert described("files: {/sys/module: x}").modules() == ()


# --- scripted answers --------------------------------------------------------------------------------------------------


def test_a_script_answers_before_the_state_does():
    """A scripted errno comes whatever the state; "ok" unloads even what is in use."""
    host = described(DRIVER + "kernel: {delete_module: {nvidia: ok, nvidia_uvm: EBUSY}}")
    assert errno_of(host.delete_module, "nvidia_uvm") == "EBUSY"
    host.delete_module("nvidia")
    assert "nvidia" not in host.modules()


def test_a_list_is_an_answer_for_each_attempt():
    """The answers of a list come in turn, and the last one stays."""
    answers = Answers({"a": ("EBUSY", "ok"), "b": ()})
    assert [answers.next("a", bool) for _ in range(3)] == ["EBUSY", "ok", "ok"]
    assert answers.next("b", bool) == answers.next("c", bool) == "real"


def test_busy_while_a_pod_lives():
    """A module can be busy for as long as one of some pods exists."""
    pods = {"default/train"}
    host = described("modules: [{name: nvidia}]\nkernel: {delete_module: {nvidia: {busy_while_pods: [default/train]}}}", pods)
    assert errno_of(host.delete_module, "nvidia") == "EBUSY"
    pods.clear()
    host.delete_module("nvidia")
    assert host.modules() == ()


def test_handles_of_pods():
    """A module's users can be pods: the count says so while one of them lives, and the kernel refuses as for any other user."""
    pods = {"a/x", "a/y"}
    host = described(
        "modules: [{name: nvidia_uvm, users: 2, pods: [a/x]}, {name: nvidia, used_by: [nvidia_uvm], users: 3, pods: [a/x, a/y]}]",
        pods,
    )
    assert errno_of(host.delete_module, "nvidia_uvm") == "EAGAIN"
    assert host.read_file("/sys/module/nvidia/refcnt") == "4\n"
    pods.remove("a/x")
    host.delete_module("nvidia_uvm")
    assert errno_of(host.delete_module, "nvidia") == "EAGAIN"
    assert " 3 - " in host.read_file("/proc/modules")
    pods.clear()
    assert host.read_file("/sys/module/nvidia/refcnt") == "0\n"
    host.delete_module("nvidia")
    assert host.modules() == ()


# --- PCI ---------------------------------------------------------------------------------------------------------------


def test_a_binding_is_two_links():
    """A bound function and its driver lead to each other in /sys."""
    host = described(DRIVER)
    device = "/sys/bus/pci/devices/0000:18:00.0"
    assert host.tree.find(f"{device}/driver") is host.tree.find("/sys/bus/pci/drivers/nvidia")
    assert host.tree.find("/sys/bus/pci/drivers/nvidia/0000:18:00.0") is host.tree.find(device)
    host.kernel.unbind("0000:18:00.0")
    assert errno_of(host.stat, f"{device}/driver") == "ENOENT"
    host.kernel.unbind("0000:18:00.0")
    assert host.gpu_drivers()["0000:18:00.0"] == ""


def test_only_gpus_count_as_gpus():
    """NVIDIA's display functions are GPUs; its audio function, its switches and other vendors' cards are not."""
    host = described(
        'gpus: [{address: "0000:65:00.0", class: "0x030000"}]\n'
        'pci: [{address: "0000:65:00.1", vendor: "0x10de", class: "0x040300"},'
        ' {address: "0000:05:00.0", vendor: "0x10de", class: "0x068000"},'
        ' {address: "0000:00:02.0", vendor: "0x8086", class: "0x030000"}]'
    )
    assert [*host.gpu_drivers()] == ["0000:65:00.0"]


# --- mounts and files --------------------------------------------------------------------------------------------------


def test_a_mount_hides_what_lies_below():
    """What a directory held is hidden by a mount, and back after it is unmounted."""
    host = described("files: {/run/nvidia/driver/x: y}\nmounts: [/run/nvidia/driver]")
    assert errno_of(host.stat, "/run/nvidia/driver/x") == "ENOENT"
    host.unmount("/run/nvidia/driver")
    host.stat("/run/nvidia/driver/x")
    assert host.mounts() == ()


def test_unmounting_takes_what_is_mounted_on_it():
    """A detached mount takes the mounts below it along."""
    host = described("mounts: [/run/nvidia/driver, /run/nvidia/driver/dev, /run/nvidia/driver/dev/shm, /run/other]")
    host.unmount("/run/nvidia/driver")
    assert host.mount_points() == ["/run/other"]


def test_the_newest_mount_goes_first():
    """Of two mounts on one directory the newer one is unmounted."""
    host = described("mounts: [/run/a, /run/a]")
    host.unmount("/run/a")
    assert host.mount_points() == ["/run/a"]
    host.unmount("/run/a")
    assert host.mount_points() == []


def test_what_cannot_be_unmounted():
    """What is not mounted is invalid, what does not exist is not found, and a script says what it likes."""
    host = described("directories: [/run/a]\nmounts: [/run/b]\nkernel: {umount: {/run/b: EBUSY}}")
    assert errno_of(host.unmount, "/run/a") == "EINVAL"
    assert errno_of(host.unmount, "/run/none") == "ENOENT"
    assert errno_of(host.unmount, "/run/b") == "EBUSY"


def test_removing():
    """A file or an empty directory is removed, anything else is refused with the kernel's errno."""
    host = described("files: {/run/a/file: x}\ndirectories: [/run/b]\nkernel: {unlink: {/run/c: EPERM}}")
    assert errno_of(host.remove, "/run/a") == "ENOTEMPTY"
    assert errno_of(host.remove, "/run/none") == "ENOENT"
    assert errno_of(host.remove, "/run/c") == "EPERM"
    host.remove("/run/a/file")
    host.remove("/run/b")
    assert errno_of(host.stat, "/run/a/file") == errno_of(host.stat, "/run/b") == "ENOENT"
