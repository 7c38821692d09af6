"""Registration and allocation: no recording has them, the source does."""

from __future__ import annotations

import pytest

from simulator.gocompat import GoError, GoPanic
from simulator.host.pci import DeviceSpec
from simulator.host.spec import File, HostSpec
from simulator.node.plugin.names import PCI_IDS
from simulator.node.plugin.releases import PLUGINS
from simulator.runners.vfio import DriverSpec, VfioWorld, make_host

GPU, AUDIO, SECOND, THIRD = "0000:41:00.0", "0000:41:00.1", "0000:81:00.0", "0000:c1:00.0"
NAMES = "10de  NVIDIA\n\t1111  One\n\t1112  Audio\n\t2222  one\n"
ONE = "PCI_RESOURCE_NVIDIA_COM_ONE"


class Heard:
    def __init__(self):
        self.lines = []
        self.klogs = []

    def log(self, message):
        self.lines.append(message)

    def klog(self, line, message):
        self.klogs.append((line, message))


def function(device, group, numa="0\n", **more):
    files = {"vendor": "0x10de\n", "device": f"0x{device}\n", "numa_node": numa}
    return DeviceSpec(files=files, driver="vfio-pci", iommu_group=group, vfio_dev=f"vfio{group}", **more)


def plugin(release, devices=None, files=(), links=None, directories=()):
    devices = devices or {GPU: function("1111", "12"), AUDIO: function("1112", "12"), SECOND: function("1111", "13", "1\n")}
    spec = HostSpec("node", root="absent", container_files=(File(PCI_IDS, NAMES), *files), links=links or {})
    made = VfioWorld(spec, (), devices=devices, drivers={"vfio-pci": DriverSpec(())}, directories=directories)
    found = PLUGINS[release](make_host(made), Heard())
    found.initiate()
    found.out.lines.clear()
    return found


@pytest.mark.parametrize(
    ("release", "registered"),
    [
        ("v1.4.0", {"nvidia.com/ONE": ["12", "13"]}),
        ("v1.5.0", {"nvidia.com/ONE": [GPU, SECOND], "nvidia.com/AUDIO": [AUDIO]}),
        ("v1.6.0", {"nvidia.com/ONE": [GPU, SECOND], "nvidia.com/AUDIO": [AUDIO]}),
    ],
)
def test_what_the_kubelet_is_given(release, registered):
    """Groups up to v1.4.0, functions since."""
    found = plugin(release)
    assert {entry.resource: [device.address for device in entry.devices] for entry in found.registrations} == registered
    assert found.allocatable() == {resource: len(devices) for resource, devices in registered.items()}
    assert found.contested() == {}
    assert {entry.endpoint for entry in found.registrations} >= {"kubevirt-ONE.sock"}


def test_two_ids_of_one_name():
    """Share a socket: the one that registered last is all that the kubelet knows."""
    found = plugin("v1.6.0", {GPU: function("1111", "1"), SECOND: function("2222", "2"), THIRD: function("2222", "3")})
    assert found.contested() == {"nvidia.com/ONE": ("1111", "2222")}
    assert found.allocatable() == {"nvidia.com/ONE": 2}


def test_a_variable_names_the_group_up_to_v1_5_0_and_the_function_since():
    """The device nodes are the group's in any release."""
    nodes = ("/dev/vfio/vfio", "/dev/vfio/12")
    assert plugin("v1.4.0").allocate("ONE", [["12"]])[0] == type(plugin("v1.4.0").allocate("ONE", [["12"]])[0])(
        {ONE: f"{GPU},{AUDIO}"}, nodes
    )
    (older,), (newer,) = (plugin(release).allocate("ONE", [[GPU]]) for release in ("v1.5.0", "v1.6.0"))
    assert (older.env, older.devices) == ({ONE: f"{GPU},{AUDIO}"}, nodes)
    assert (newer.env, newer.devices) == ({ONE: GPU}, nodes)


def test_two_devices_of_one_request():
    """A node stands as often as it is asked for, up to v1.5.0."""
    (older,), (newer,) = (plugin(release).allocate("ONE", [[GPU, SECOND]]) for release in ("v1.5.0", "v1.6.0"))
    assert older.devices == ("/dev/vfio/vfio", "/dev/vfio/12", "/dev/vfio/vfio", "/dev/vfio/13")
    assert newer.devices == ("/dev/vfio/vfio", "/dev/vfio/12", "/dev/vfio/13")
    assert newer.env == {ONE: f"{GPU},{SECOND}"}


def test_a_later_container_gets_the_variables_of_the_earlier_too():
    """The map is made once for the call."""
    first, second = plugin("v1.6.0").allocate("ONE", [[GPU], [SECOND]])
    assert (first.env, second.env) == ({ONE: GPU}, {ONE: f"{GPU},{SECOND}"})
    assert second.devices == ("/dev/vfio/vfio", "/dev/vfio/13")


@pytest.mark.parametrize("release", ["v1.4.0", "v1.5.0", "v1.6.0"])
def test_with_iommufd(release):
    """Where there is /dev/iommu, each function's own node comes along."""
    found = plugin(release, files=(File("/dev/iommu", ""),))
    (given,) = found.allocate("ONE", [["13" if release == "v1.4.0" else SECOND]])
    assert given.devices == ("/dev/vfio/devices/vfio13", "/dev/vfio/vfio", "/dev/vfio/13", "/dev/iommu")


def test_an_iommufd_device_that_is_missing():
    """Is an error, not a device less."""
    bare = DeviceSpec(files={"vendor": "0x10de\n", "device": "0x1111\n"}, driver="vfio-pci", iommu_group="12")
    problem = "open /sys/bus/pci/devices/0000:41:00.0/vfio-dev: no such file or directory"
    with pytest.raises(GoError, match=f"could not determine iommufd device for device {GPU}: {problem}"):
        plugin("v1.6.0", {GPU: bare}, files=(File("/dev/iommu", ""),)).allocate("ONE", [[GPU]])
    odd = function("1111", "12")
    odd = DeviceSpec(files=odd.files, driver="vfio-pci", iommu_group="12", vfio_dev="other0")
    with pytest.raises(GoError, match=f"for device {GPU}: no iommufd device found"):
        plugin("v1.6.0", {GPU: odd}, files=(File("/dev/iommu", ""),)).allocate("ONE", [[GPU]])


def test_what_is_checked_at_allocation():
    """Group and vendor, of every function of the group; not the driver."""
    found = plugin("v1.6.0")
    bus = found.host.kernel.bus
    bus.bind(GPU, "nvidia")
    assert found.allocate("ONE", [[GPU]])[0].env == {ONE: GPU}
    bus.remove_device(AUDIO)
    found.out.lines.clear()
    with pytest.raises(GoError, match=f"invalid allocation request: unknown device: {AUDIO}"):
        found.allocate("ONE", [[GPU]])
    assert found.out.lines[-1] == f"IommuGroup has changed on the system  {AUDIO}"


def test_a_vendor_that_changed():
    """Is noticed."""
    found = plugin("v1.5.0")
    found.host.tree.find(f"/sys/bus/pci/devices/{GPU}/vendor").text = "0x8086\n"
    with pytest.raises(GoError, match=f"unknown device: {GPU}"):
        found.allocate("ONE", [[GPU]])
    assert found.out.lines[-1] == f"Vendor has changed on the system  {GPU}"


def test_a_device_that_nobody_knows():
    """Is refused since v1.5.0; before, its group is handed over empty."""
    with pytest.raises(GoError, match=r"invalid allocation request: unknown device: 0000:99:00\.0"):
        plugin("v1.5.0").allocate("ONE", [["0000:99:00.0"]])
    assert plugin("v1.4.0").allocate("ONE", [["99"]])[0].env == {ONE: ""}


def test_what_is_logged():
    """In one line up to v1.4.0, in more since."""
    old, new = plugin("v1.4.0"), plugin("v1.6.0")
    old.allocate("ONE", [["13"]])
    assert old.out.lines == ["In allocate", f"Allocated devices map[{ONE}:{SECOND}]"]
    new.allocate("ONE", [[GPU, SECOND]])
    assert new.out.lines == [
        "[ONE] ========== ALLOCATE CALLED ==========",
        "[ONE] Allocate() called with 1 container request(s)",
        f"[ONE] Container request 0: DeviceIDs=[{GPU} {SECOND}]",
        "[ONE] This means kubelet passed Topology Manager admission!",
        f"[ONE] Allocated devices - Envs: map[{ONE}:{GPU},{SECOND}], DeviceSpecs count: 3",
    ]


EGM = (
    File("/sys/class/egm/egm4/gpu_devices", f"{GPU} {SECOND.upper()}\n"),
    File("/sys/class/egm/egm5/gpu_devices", f"{SECOND}\n"),
    File("/sys/class/egm/egm6/gpu_devices", f"{SECOND}\n"),
    File("/sys/class/egm/egm7/gpu_devices", "\n"),
    File("/sys/class/egm/other/gpu_devices", f"{GPU}\n"),
    File("/dev/egm4", ""),
    File("/dev/egm5", ""),
)


def test_egm_devices_come_with_all_their_gpus():
    """Since v1.6.0; a part of the GPUs is not enough, and a node must be there."""
    found = plugin("v1.6.0", files=EGM, directories=("/sys/class/egm/egm8",))
    assert "/dev/egm4" not in found.allocate("ONE", [[GPU]])[0].devices
    assert found.allocate("ONE", [[SECOND]])[0].devices[-1] == "/dev/egm5"
    found.out.lines.clear()
    assert found.allocate("ONE", [[GPU, SECOND]])[0].devices[-2:] == ("/dev/egm4", "/dev/egm5")
    assert "[ONE] EGM devices injected: [/dev/egm4 /dev/egm5]" in found.out.lines
    warned = "warning: skipping EGM device egm6: device node /dev/egm6 is not accessible: stat /dev/egm6: no such file or directory"
    assert warned in found.out.lines
    unreadable = "open /sys/class/egm/egm8/gpu_devices: no such file or directory"
    assert f"warning: skipping EGM device egm8: unable to read gpu_devices: {unreadable}" in found.out.lines
    assert plugin("v1.5.0", files=EGM).allocate("ONE", [[SECOND]])[0].devices == ("/dev/vfio/vfio", "/dev/vfio/13")


def test_an_egm_class_that_is_no_directory():
    """Is said, and no hindrance."""
    found = plugin("v1.6.0", files=(File("/sys/class/egm", ""),))
    assert found.allocate("ONE", [[GPU]])[0].env == {ONE: GPU}
    assert any("unable to discover EGM devices" in line for line in found.out.lines)


MDEVS = {
    "/sys/bus/mdev/devices/uuid-1": "../../../devices/pci0000:40/0000:41:00.0/uuid-1",
    "/sys/bus/mdev/devices/uuid-2": "../../../devices/pci0000:80/0000:81:00.0/uuid-2",
}


def test_mediated_devices():
    """By type, blanks as underscores, with the NUMA node of their GPU since v1.5.0."""
    files = (
        File("/sys/devices/pci0000:40/0000:41:00.0/uuid-1/mdev_type/name", "GRID A100 \t 40C\n"),
        File("/sys/devices/pci0000:80/0000:81:00.0/uuid-2/mdev_type/name", "GRID A100 \t 40C\n"),
    )
    found = plugin("v1.6.0", {SECOND: function("2222", "13", "1\n")}, files=files, links=MDEVS)
    entry = found.registrations[-1]
    assert (entry.resource, [(device.address, device.numa_node) for device in entry.devices]) == (
        "nvidia.com/GRID_A100_40C",
        [("uuid-1", 0), ("uuid-2", 1)],
    )
    assert found.found.gpu_vgpus == {GPU: ["uuid-1"], SECOND: ["uuid-2"]}
    assert found.out.klogs[0][0] == 307
    old = plugin("v1.4.0", {SECOND: function("2222", "13", "1\n")}, files=files, links=MDEVS)
    assert [device.numa_node for device in old.registrations[-1].devices] == [0, 0]


def test_mediated_devices_that_cannot_be_read():
    """Are left out, with a line each; a link to nowhere in particular is the plugin's end."""
    found = plugin("v1.6.0", links={"/sys/bus/mdev/devices/uuid-1": "../x/uuid-1"})
    assert not found.found.vgpus
    assert found.out.klogs == [
        (
            338,
            "Could not read mdev_type/name for device uuid-1: open /sys/bus/mdev/devices/uuid-1/mdev_type/name: no such file or directory",
        )
    ]
    flat = (File("/sys/bus/mdev/devices/flat/mdev_type/name", "A\n"),)
    found = plugin("v1.6.0", files=flat)
    assert found.out.klogs[0][0] == 350
    with pytest.raises(GoPanic, match="index out of range"):
        plugin("v1.6.0", files=flat, links={"/sys/bus/mdev/devices/odd": "flat"})
