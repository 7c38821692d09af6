"""Steps at their edges: what the recordings do not reach."""

from __future__ import annotations

import dataclasses

import pytest

from simulator.cluster.objects import Container, Fault, Owner, Pod
from simulator.host.spec import File, Program
from simulator.manager.releases import flow
from simulator.runners.simulated import simulate
from simulator.scenario import load_host, make_world

NODE = {"NODE_NAME": "gpu-1"}


def world(host="container-driver-loaded", faults=(), **fields):
    env = {**NODE, **fields.pop("env", {})}
    made = make_world(dataclasses.replace(load_host(host), **fields), env=env)
    return dataclasses.replace(made, cluster=dataclasses.replace(made.cluster, faults=tuple(faults))) if faults else made


def messages(outcome):
    return [line.message for line in outcome.log]


def test_a_driver_root_below_a_file_is_no_missing_driver_root():
    """Upstream asks for "does not exist" only: it goes on to unmount, finds nothing, and says it succeeded."""
    host = load_host("container-driver-loaded")
    files = tuple(file for file in host.files if not file.path.startswith("/run/nvidia"))
    outcome = simulate(world(mounts=(), files=(*files, File("/run/nvidia", "a file\n"))))
    assert outcome.exit_code == 0
    assert "Successfully unmounted /run/nvidia/driver and all its submounts" in messages(outcome)
    assert [(call.call, call.result) for call in outcome.kernel_calls if call.call == "umount"] == [("umount", "ENOTDIR")]


@pytest.mark.parametrize(("vendor", "found"), [("0x8086", False), ("0x15b3", True)])
def test_a_pci_function_without_a_vendor_file_is_passed_over(vendor, found):
    """The next one decides."""
    outcome = simulate(
        world(
            "clean",
            env={"GPU_DIRECT_RDMA_ENABLED": "true"},
            files=(
                File("/sys/bus/pci/devices/0000:01:00.0/class", "0x1\n"),
                File("/sys/bus/pci/devices/0000:02:00.0/vendor", f"{vendor}\n"),
                File("/run/mellanox/drivers/.driver-ready", ""),
            ),
            container_programs={"vfio-manage": Program("/usr/bin/vfio-manage")},
        )
    )
    assert ("No Mellanox devices were found" in messages(outcome)) is not found
    assert ("Mellanox device found at 0000:02:00.0" in messages(outcome)) is found


def test_a_module_table_without_a_last_newline():
    """The last line counts all the same."""
    host = dataclasses.replace(
        load_host("container-driver-loaded"), modules=(), proc_modules="nvidia 1 2 -", delete_module={"nvidia": "EBUSY"}
    )
    host = dataclasses.replace(host, files=(*host.files, File("/sys/module/nvidia/refcnt", "1\n")))
    outcome = simulate(make_world(host, env={**NODE, "ENABLE_AUTO_DRAIN": "false"}))
    assert "nvidia               1          2               -\n" in messages(outcome)


def test_a_mount_point_that_vanishes_while_it_is_unmounted():
    """ "Not mounted" is no error below the driver's root."""
    outcome = simulate(
        world(
            mounts=("/run/nvidia/driver/dev", "/run/nvidia/driver/proc"),
            umount={"/run/nvidia/driver/dev": "EINVAL"},
            env={"ENABLE_AUTO_DRAIN": "false"},
        )
    )
    assert outcome.exit_code == 0
    assert "Successfully unmounted /run/nvidia/driver and all its submounts" in messages(outcome)


def test_the_drain_helpers_own_list_is_the_second_panic():
    """Its result is nil, and is used."""
    made = world(faults=[Fault(path="^/api/v1/pods$", query="limit", status=500)])
    train = Pod("default", "train", owner=Owner("Job", "train"), containers=(Container({"nvidia.com/gpu": "1"}),))
    outcome = simulate(dataclasses.replace(made, cluster=dataclasses.replace(made.cluster, pods=(*made.cluster.pods, train))))
    assert outcome.exit_code == 2
    assert outcome.panic == "runtime error: invalid memory address or nil pointer dereference"
    assert outcome.after.node.unschedulable
    assert outcome.after.node.labels["nvidia.com/gpu.deploy.dcgm"] == "paused-for-driver-upgrade"


def test_a_change_that_is_left_out_is_gone():
    """v0.10.0 without its retries has v0.9.1's single attempt."""
    plain = world(faults=[Fault(method="PATCH", status=500)])
    with_retries = simulate(plain, "v0.10.0")
    without = simulate(plain, "v0.10.0", without=frozenset({"label-patch-retried"}))
    assert sum("retrying" in text for text in messages(with_retries)) > 3
    assert not any("retrying" in text for text in messages(without))


def test_an_unknown_what_if_is_a_key_error():
    """The command line turns it into a message."""
    with pytest.raises(KeyError):
        flow("v0.10.0", what_if="no-such")


@pytest.mark.parametrize(("release", "warned"), [("v0.9.0", True), ("v0.10.0", False)])
def test_a_pid_file_that_goes_before_it_is_removed(release, warned):
    """Up to v0.9.1 it was looked for first, so that its absence is a failure; from v0.10.0 on it is none."""
    outcome = simulate(world(unlink={"/run/nvidia/nvidia-driver.pid": "ENOENT"}), release)
    assert outcome.exit_code == 0
    found = [line for line in outcome.log if line.level == "warning" and "nvidia-driver.pid" in line.message]
    assert bool(found) is warned


@pytest.mark.parametrize("release", ["v0.9.0", "v0.11.0"])
def test_a_clean_up_that_fails_after_the_fallback_drain(release):
    """Its error says so; v0.12.0 unloads once only."""
    made = world(env={"ENABLE_GPU_POD_EVICTION": "false", "ENABLE_AUTO_DRAIN": "true"}, delete_module={"nvidia": "EBUSY"})
    made = dataclasses.replace(made, cluster=dataclasses.replace(made.cluster, pods=()))
    outcome = simulate(made, release)
    assert outcome.exit_code == 1
    assert outcome.log[-1].message.startswith("failed to cleanup NVIDIA driver: "), outcome.log[-1]


def test_a_state_file_that_is_a_directory():
    """It can be opened but not read: a warning, and the driver counts as another one."""
    outcome = simulate(
        world(env={"DRIVER_CONFIG_DIGEST": "d"}, directories=("/run/nvidia/nvidia-driver.state",), files=()), "v0.10.0"
    )
    unread = "read /run/nvidia/nvidia-driver.state: is a directory"
    assert [line.level for line in outcome.log if unread in line.message] == ["warning"]


@pytest.mark.parametrize(("length", "fits"), [(65_535, True), (65_536, False)])
def test_the_longest_line_of_the_module_table(length, fits):
    """With its newline it has to fit into bufio.Scanner's 64 KiB; a carriage return is white space."""
    start = "nvidia 1 2 -\r\nnvidia_uvm 1 2 "
    host = dataclasses.replace(
        load_host("container-driver-loaded"),
        modules=(),
        proc_modules=f"{start}{'x' * (length - 15)}\n",
        delete_module={"nvidia": "EBUSY"},
    )
    host = dataclasses.replace(host, files=(*host.files, File("/sys/module/nvidia/refcnt", "1\n")))
    outcome = simulate(make_world(host, env={**NODE, "ENABLE_AUTO_DRAIN": "false"}))
    assert "nvidia               1          2               -\n" in messages(outcome)
    assert any(message.startswith("nvidia_uvm ") for message in messages(outcome)) is fits
    assert any("token too long" in message for message in messages(outcome)) is not fits
