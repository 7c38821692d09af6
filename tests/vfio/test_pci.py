"""The PCI bus: what the kernel answers to writes, and what sysfs shows afterwards."""

from __future__ import annotations

import errno

import pytest

from simulator.host.fake import FakeHost
from simulator.host.pci import Attach, PciBus, RemoveDevice, RemoveDriver, SetFiles, WriteFault
from simulator.host.spec import File, HostSpec, Module, PciFunction
from simulator.host.tree import Tree
from simulator.ports import IoFailure
from tests.vfio.buses import AUDIO, GPU, SECOND, device

DEVICE = f"/sys/bus/pci/devices/{GPU}"
DRIVERS = "/sys/bus/pci/drivers"


@pytest.fixture
def bus():
    made = PciBus(Tree())
    for name in ("nvidia", "vfio-pci"):
        made.add_driver(name)
    made.add_device(GPU, device())
    made.add_device(SECOND, device(driver=""))
    return made


def refused(bus, path, text):
    with pytest.raises(OSError, match=r"E[A-Z]+") as raised:
        bus.write(path, text)
    return errno.errorcode[raised.value.errno], isinstance(raised.value, IoFailure)


def test_a_function_moves(bus):
    """unbind, driver_override and bind move the link `driver`, and the driver's link back."""
    bus.write(f"{DEVICE}/driver/unbind", GPU)
    assert not bus.tree.exists(f"{DEVICE}/driver")
    assert GPU not in bus.tree.names(f"{DRIVERS}/nvidia")
    bus.write(f"{DEVICE}/driver_override", "vfio-pci\n")
    bus.write(f"{DRIVERS}/vfio-pci/bind", f"{GPU}\n")
    assert bus.tree.resolve(f"{DEVICE}/driver") == f"{DRIVERS}/vfio-pci"
    assert GPU in bus.tree.names(f"{DRIVERS}/vfio-pci")
    assert bus.tree.read(f"{DEVICE}/driver_override") == "vfio-pci\n"
    assert bus.bound[GPU] == "vfio-pci"


@pytest.mark.parametrize("text", ["\n", "", "\nnvidia"])
def test_clearing_the_override(bus, text):
    """An empty first line clears it, and `(null)` is shown."""
    bus.write(f"{DEVICE}/driver_override", "x")
    bus.write(f"{DEVICE}/driver_override", text)
    assert bus.overrides()[GPU] is None
    assert bus.tree.read(f"{DEVICE}/driver_override") == "(null)\n"


@pytest.mark.parametrize(
    ("path", "text", "error"),
    [
        (f"{DRIVERS}/nvidia/unbind", "0000:99:00.0", "ENODEV"),
        (f"{DRIVERS}/nvidia/unbind", SECOND, "ENODEV"),
        (f"{DRIVERS}/vfio-pci/unbind", GPU, "ENODEV"),
        (f"{DRIVERS}/nvidia/unbind", f" {GPU}", "ENODEV"),
        (f"{DRIVERS}/nvidia/unbind", f"{GPU}\n\n", "ENODEV"),
        (f"{DRIVERS}/vfio-pci/bind", "0000:99:00.0", "ENODEV"),
        (f"{DRIVERS}/vfio-pci/bind", SECOND, "ENODEV"),
        (f"{DEVICE}/driver_override", "x" * 4096, "EINVAL"),
    ],
)
def test_what_writing_may_say(bus, path, text, error):
    """A name that is not on the bus, not bound there, or does not fit is ENODEV; an override may not fill a page."""
    assert refused(bus, path, text) == (error, True)


def test_a_busy_function(bus):
    """One that fits but has a driver already is EBUSY."""
    bus.write(f"{DEVICE}/driver_override", "vfio-pci")
    assert refused(bus, f"{DRIVERS}/vfio-pci/bind", GPU) == ("EBUSY", True)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        (f"{DEVICE}/nothing", "EACCES"),
        (f"{DEVICE}/vendor", "EACCES"),
        (f"{DEVICE}/nothing/there", "ENOENT"),
        (f"{DRIVERS}/ghost/bind", "ENOENT"),
        (f"{DRIVERS}/nvidia", "EISDIR"),
        (f"{DEVICE}/vendor/x", "ENOTDIR"),
    ],
)
def test_what_opening_may_say(bus, path, error):
    """sysfs lets nobody create a file, and most of its files are read only."""
    assert refused(bus, path, "x") == (error, False)


def test_ids_fit_without_an_override(bus):
    """A driver takes what has its ids, unless an override names another."""
    bus.add_driver("pci-stub", ids=("10de:2236",))
    assert bus.bound[SECOND] == "pci-stub"
    bus.write(f"{DRIVERS}/pci-stub/unbind", SECOND)
    bus.write(f"/sys/bus/pci/devices/{SECOND}/driver_override", "vfio-pci")
    assert refused(bus, f"{DRIVERS}/pci-stub/bind", SECOND) == ("ENODEV", True)


def test_a_driver_that_appears(bus):
    """Takes the free functions that wait for it, and only once."""
    bus.write(f"/sys/bus/pci/devices/{SECOND}/driver_override", "variant")
    assert bus.add_driver("variant") == [SECOND]
    assert bus.add_driver("variant") == []


def test_what_is_heard_of_writes(bus):
    """Canonical path, text and result of each; nothing of a file that is not there."""
    heard = []
    bus.on_write = lambda *write: heard.append(write)
    bus.faults = (WriteFault(f"{DEVICE}/driver_override", on_open=True, error="EROFS"),)
    assert refused(bus, f"{DEVICE}/driver_override", "x") == ("EROFS", False)
    assert refused(bus, f"{DEVICE}/nothing", "x") == ("EACCES", False)
    bus.write(f"{DEVICE}/driver/unbind", GPU)
    assert heard == [(f"{DEVICE}/driver_override", None, "EROFS"), (f"{DRIVERS}/nvidia/unbind", GPU, "ok")]


def test_faults(bus):
    """The first `skip` matches pass, the next `times` fail; other texts are not met; what follows follows."""
    path = f"{DEVICE}/driver_override"
    bus.faults = (WriteFault(path, "x", skip=1, times=1, error="EIO", then=(RemoveDriver("vfio-pci"),)),)
    bus.write(path, "x\n")
    bus.write(path, "y")
    assert refused(bus, path, " x ") == ("EIO", True)
    assert bus.overrides()[GPU] == "y"
    bus.write(path, "x")
    assert bus.drivers() == ["nvidia"]


def test_what_happens_by_itself(bus):
    """Functions and drivers come and go, whether or not somebody has looked at them."""
    for looked in (False, True):
        if looked:
            bus.tree.names(DEVICE)
            bus.tree.names(f"{DRIVERS}/vfio-pci")
        bus.apply(Attach(GPU, "vfio-pci"))
        assert bus.tree.resolve(f"{DEVICE}/driver") == f"{DRIVERS}/vfio-pci"
        bus.apply(SetFiles(GPU, {"class": "x\n", "numa_node": None}))
        assert bus.tree.read(f"{DEVICE}/class") == "x\n"
        assert not bus.tree.exists(f"{DEVICE}/numa_node")
    bus.apply(RemoveDriver("vfio-pci"))
    assert bus.bound[GPU] == ""
    bus.apply(RemoveDevice(GPU))
    assert bus.tree.names("/sys/bus/pci/devices") == [SECOND]
    for change in (RemoveDevice(GPU), Attach(GPU, "nvidia"), SetFiles(GPU, {})):
        bus.apply(change)  # what is gone stays gone


def test_a_file_that_cannot_be_read(bus):
    """Is there, and reading it says why not."""
    bus.apply(SetFiles(GPU, {"vendor": errno.EIO}))
    assert bus.tree.exists(f"{DEVICE}/vendor")
    with pytest.raises(IoFailure):
        bus.tree.read(f"{DEVICE}/vendor")


def test_vfio_dev(bus):
    """Is there while the driver is a vfio driver."""
    bus.add_device(AUDIO, device(driver="vfio-pci", vfio_dev="vfio0"))
    path = f"/sys/bus/pci/devices/{AUDIO}/vfio-dev/vfio0"
    assert bus.tree.exists(path)
    bus.unbind(AUDIO)
    assert not bus.tree.exists(path)
    bus.bind(AUDIO, "vfio-pci")
    assert bus.tree.exists(path)


def host(*functions, kernel="6.8.0", **changes):
    return FakeHost(HostSpec("test", pci=functions, os={"kernel": kernel}, **changes), ("/usr/bin",))


VGA = PciFunction(GPU, "0x10de", "0x1e30", "0x030000", "nvidia", {"numa_node": "1\n"}, 12)
HDA = PciFunction(AUDIO, "0x10de", "0x10f7", "0x040300", "snd_hda_intel")


def test_a_described_host():
    """Has all that a function has: ids, a modalias, its group, its consumers; attributes of the description go first."""
    made = host(VGA, HDA)
    assert made.read_file(f"{DEVICE}/modalias") == "pci:v000010DEd00001E30sv000010DEsd00000000bc03sc00i00\n"
    assert made.read_file(f"{DEVICE}/numa_node") == "1\n"
    assert made.resolve(f"{DEVICE}/iommu_group") == "/sys/kernel/iommu_groups/12"
    assert made.is_directory(f"{DEVICE}/consumer:pci:{AUDIO}")
    assert made.read_link(f"{DEVICE}/driver") == f"{DRIVERS}/nvidia"
    assert not made.is_directory(f"{DEVICE}/driver")
    with pytest.raises(OSError, match="EINVAL"):
        made.read_link(f"{DEVICE}/vendor")


@pytest.mark.parametrize(("kernel", "there"), [("6.1.0", True), ("5.15.0-100-generic", False), ("", True)])
def test_vfio_dev_of_a_described_host(kernel, there):
    """Linux has it since 6.1."""
    made = host(VGA, kernel=kernel)
    made.kernel.bind(GPU, "vfio-pci")
    assert made.is_directory(f"{DEVICE}/vfio-dev/vfio0") == there


def test_a_module_and_its_drivers():
    """A loaded module has its driver directories; unloading it frees its functions, loading one brings a driver."""
    made = host(VGA, modules=(Module("nvidia"),))
    assert made.kernel.bus.drivers() == ["nvidia", "nvidia-nvswitch"]
    made.delete_module("nvidia")
    assert made.kernel.bus.drivers() == []
    assert made.gpu_drivers() == {GPU: ""}
    made.kernel.load("vfio_pci")
    assert made.list_directory(f"{DRIVERS}/vfio-pci") == ["bind", "new_id", "remove_id", "unbind"]


def test_files_that_a_description_adds():
    """Stay beside what the bus shows."""
    made = host(VGA, files=(File(f"{DEVICE}/extra", "x"), File(f"{DEVICE}/vendor", "0x1\n")))
    assert (made.read_file(f"{DEVICE}/extra"), made.read_file(f"{DEVICE}/vendor")) == ("x", "0x1\n")
    assert made.read_file(f"{DEVICE}/device") == "0x1e30\n"


def test_a_tree_with_sysfs_nodes_can_be_cut():
    """Removing a whole branch, or replacing a file in it, works as anywhere."""
    made = host(VGA, modules=(Module("nvidia"),))
    made.change({"/sys/module/nvidia/refcnt": "7\n"}, [f"{DEVICE}/numa_node"])
    assert made.read_file("/sys/module/nvidia/refcnt") == "7\n"
    assert not made.tree.exists(f"{DEVICE}/numa_node")
    made.change({}, ["/sys/module/nvidia", "/sys/bus", "/sys/module"])
    assert not made.tree.exists("/sys/bus/pci")
    assert made.tree.snapshot()
