"""Binding to a vfio driver, and unbinding."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from simulator.host.fake import ModprobeAnswer
from simulator.host.pci import CONTROL_FILES, Attach, WriteFault
from simulator.runners.vfio import DriverSpec, simulate_vfio
from simulator.trace import ChildProcess
from tests.vfio.buses import ALIASES, AUDIO, GPU, KERNEL, SECOND, device, messages, outcome, world, written

VGA = {
    GPU: device(number="1e30", class_="030000", consumers=(AUDIO,)),
    AUDIO: device(number="10f7", class_="040300", driver="snd_hda_intel"),
}
BIND = "/sys/bus/pci/drivers/vfio-pci/bind"


def warning(devices, **changes):
    found = outcome(devices, "bind", "--all", **changes)
    assert found.exit_code == 0
    assert found.log[-1].level == "warning"
    return messages(found)[-1].removeprefix("Failed to bind device 0000:41:00.0: ")


def test_the_writes_of_a_bind():
    """The override is cleared, the old driver loses the device, the override is set, the new driver gets it."""
    found = outcome({GPU: device()}, "bind", "--all")
    assert written(found) == [
        "0000:41:00.0/driver_override=\n",
        "nvidia/unbind=0000:41:00.0",
        "0000:41:00.0/driver_override=vfio-pci",
        "vfio-pci/bind=0000:41:00.0",
    ]
    assert found.after.devices[GPU] == ("vfio-pci", "vfio-pci")


def test_a_device_that_is_bound_already():
    """Is not touched, but modprobe runs all the same, and its failure counts."""
    devices = {GPU: device(driver="vfio-pci")}
    found = outcome(devices, "bind", "--all")
    assert not found.writes
    assert [event.argv for event in found.events if isinstance(event, ChildProcess)] == [("chroot", "/", "modprobe", "vfio_pci")]
    assert warning(devices, modprobe={}) == 'failed to load "vfio_pci" driver: exit status 1'


@pytest.mark.parametrize(
    ("aliases", "driver"),
    [
        ("", "vfio-pci"),
        ("alias vfio_pci:v0000FFFFd*sv*sd*bc*sc*i* x\n", "vfio-pci"),
        (ALIASES, "vfio_pci"),
        (ALIASES + "alias vfio_pci:v000010DEd*sv*sd*bc*sc*i* variant_vfio_pci\n", "variant_vfio_pci"),
    ],
)
def test_the_driver_that_is_loaded(aliases, driver):
    """The best alias, or vfio-pci if there is none."""
    found = outcome({GPU: device()}, "bind", "--all", aliases=aliases)
    assert [event.argv[3] for event in found.events if isinstance(event, ChildProcess)] == [driver]


def test_the_driver_directory():
    """The module's own name comes first, then the one with dashes; without either it is an error."""
    devices = {GPU: device()}
    assert outcome(devices, "bind", "--all", drivers=("nvidia", "vfio_pci", "vfio-pci")).after.devices[GPU].driver == "vfio_pci"
    silent = {"vfio_pci": (ModprobeAnswer(0),)}
    text = "failed to find directory for vfio driver vfio_pci at /sys/bus/pci/drivers, is the module loaded?"
    assert warning(devices, drivers=("nvidia",), modprobe=silent) == text


def test_files_that_are_missing():
    """The device's modalias and the container's modules.alias are needed, even for a device that is bound."""
    modalias = device(files={"modalias": None}, driver="vfio-pci")
    assert warning({GPU: modalias}).startswith("failed to find best vfio variant driver: failed to read modalias file for 0000:41")
    path = f"/lib/modules/{KERNEL}/modules.alias"
    assert warning({GPU: device(driver="vfio-pci")}, aliases=None) == (
        f"failed to find best vfio variant driver: failed to read file {path}: open {path}: no such file or directory"
    )


def test_chroot():
    """A root that is not there, one without modprobe, and an image without chroot have their own errors."""
    devices = {GPU: device()}
    for root, text in (("/nowhere", "exit status 1"), ("/busybox", "exit status 127")):
        found = outcome(devices, "bind", "--all", "--host-root", root, directories=("/busybox",))
        assert messages(found)[-1].endswith(f'failed to load "vfio_pci" driver: {text}')
    found = outcome(devices, "bind", "--all", without=("/usr/bin/chroot",))
    assert messages(found)[-1].endswith('failed to load "vfio_pci" driver: exec: "chroot": executable file not found in $PATH')
    assert not [event for event in found.events if isinstance(event, ChildProcess)]


def test_modprobe_may_bind_by_itself():
    """A device that waits with an override gets its driver as soon as there is one, and is then bound again."""
    found = outcome({GPU: device(driver="", override="vfio-pci")}, "bind", "--all", drivers=())
    assert written(found)[1] == "vfio-pci/unbind=0000:41:00.0"
    assert found.after.devices[GPU].driver == "vfio-pci"


def test_a_failed_bind_leaves_the_override():
    """The device has no driver, and only vfio-pci may take it."""
    devices = {GPU: device(), SECOND: device()}
    fault = WriteFault(BIND, GPU, error="EBUSY")
    found = outcome(devices, "bind", "--all", faults=(fault,))
    assert found.exit_code == 0
    assert found.after.devices[GPU] == ("", "vfio-pci")
    assert found.after.devices[SECOND] == ("vfio-pci", "vfio-pci")
    assert any(text.endswith(f"write {BIND}: device or resource busy") for text in messages(found))


def test_a_bind_that_is_told_to_try_again():
    """EAGAIN is waited out for ever: the next device is never reached."""
    found = outcome({GPU: device(), SECOND: device()}, "bind", "--all", faults=(WriteFault(BIND, GPU, error="EAGAIN"),))
    assert found.exit_code is None
    assert found.after.devices[SECOND].driver == "nvidia"


def test_the_auxiliary_device():
    """A VGA controller's first consumer that is on the bus goes where the GPU goes, and only for VGA controllers."""
    found = outcome(VGA, "bind", "--all")
    assert found.after.devices[AUDIO].driver == "vfio-pci"
    assert messages(found)[-1] == "Binding graphics auxiliary device 0000:41:00.1 to driver: vfio-pci"
    found = outcome(VGA, "unbind", "--all")
    assert [binding.driver for binding in found.after.devices.values()] == ["", ""]
    controller = {**VGA, GPU: device(consumers=(AUDIO,))}
    assert outcome(controller, "bind", "--all").after.devices[AUDIO].driver == "snd_hda_intel"


def test_odd_consumers():
    """Names of another form and addresses that are not on the bus are passed over."""
    odd = replace(VGA[GPU], consumers=("0000:41:00.7", AUDIO), entries=("consumer", "consumer:foo", "consumer:pci:", "xconsumer"))
    assert outcome({**VGA, GPU: odd}, "unbind", "--all").after.devices[AUDIO].driver == ""


def test_an_auxiliary_device_that_cannot_be_bound():
    """Is printed as Go prints a pointer to a struct."""
    text = warning(VGA, faults=(WriteFault(BIND, AUDIO, error="ENODEV"),))
    assert text.startswith(
        "failed to bind graphics auxiliary device &{/sys/bus/pci/devices/0000:41:00.1 0000:41:00.1 snd_hda_intel} to vfio-pci: "
    )


def test_unbind_clears_the_override_first():
    """Also of a device without a driver; a device whose driver directory is gone is left alone."""
    assert written(outcome({GPU: device(driver="", override="x")}, "unbind", "--all")) == ["0000:41:00.0/driver_override=\n"]
    found = outcome({GPU: device(driver="ghost", override="x")}, "unbind", "--all", drivers=())
    assert found.after.devices[GPU] == ("ghost", None)
    assert found.exit_code == 0


@pytest.mark.parametrize(
    ("devices", "drivers", "text"),
    [
        (
            {GPU: device(has_override=False)},
            {},
            (
                "failed to unbind device 0000:41:00.0: failed to clear driver_override for 0000:41:00.0:"
                " open /sys/bus/pci/devices/0000:41:00.0/driver_override: permission denied"
            ),
        ),
        (
            {GPU: device()},
            {
                "nvidia": DriverSpec(tuple(name for name in CONTROL_FILES if name != "unbind")),
                "vfio-pci": DriverSpec(CONTROL_FILES),
            },
            (
                "failed to unbind device 0000:41:00.0: failed to unbind 0000:41:00.0 from nvidia:"
                " open /sys/bus/pci/devices/0000:41:00.0/driver/unbind: permission denied"
            ),
        ),
    ],
)
def test_control_files_that_are_missing(devices, drivers, text):
    """Opening one that is not there is refused, as sysfs lets nobody create a file."""
    made = world(devices, "bind", "--all")
    (found,) = simulate_vfio(replace(made, drivers=drivers or made.drivers), "v0.10.0")
    assert messages(found)[-1] == f"Failed to bind device 0000:41:00.0: {text}"


def test_a_driver_that_takes_the_device_back():
    """The new driver's bind then finds it busy."""
    fault = WriteFault("/sys/bus/pci/drivers/nvidia/unbind", then=(Attach(GPU, "nvidia"),))
    found = outcome({GPU: device()}, "bind", "--all", faults=(fault,))
    assert found.after.devices[GPU] == ("nvidia", "vfio-pci")
    assert errno.errorcode[errno.EBUSY] == found.writes[-1].result
