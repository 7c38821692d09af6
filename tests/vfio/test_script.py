"""The shell version, v0.9.x."""

from __future__ import annotations

import pytest

from simulator.host.pci import RemoveDevice, WriteFault
from tests.vfio.buses import AUDIO, GPU, SECOND, device, outcome, written

USAGE = "Usage: /usr/bin/vfio-manage COMMAND"
UNBIND = "/sys/bus/pci/drivers/nvidia/unbind"


def run(devices, *args, **changes):
    return outcome(devices, *args, release="v0.9.1", **changes)


def stderr(found):
    return "".join(event.text for event in found.events if type(event).__name__ == "StderrText")


def test_the_writes_of_a_bind():
    """Unbind first, then the override, with newlines; no modprobe."""
    found = run({GPU: device()}, "bind", "--all")
    assert written(found) == [
        "nvidia/unbind=0000:41:00.0\n",
        "0000:41:00.0/driver_override=\n",
        "0000:41:00.0/driver_override=vfio-pci\n",
        "vfio-pci/bind=0000:41:00.0\n",
    ]
    assert found.stdout == (
        "existing driver is nvidia\nunbinding device 0000:41:00.0 from driver nvidia\nbinding device 0000:41:00.0\n"
    )
    assert not found.log


def test_the_first_failed_write_ends_it():
    """Later GPUs stay untouched, exit code 1."""
    found = run({GPU: device(), SECOND: device()}, "unbind", "--all", faults=(WriteFault(UNBIND, error="EBUSY"),))
    assert found.exit_code == 1
    assert found.after.devices[SECOND].driver == "nvidia"
    assert stderr(found) == "sh: write error: Device or resource busy\n"


def test_without_a_driver_the_override_stays():
    """Unbinding a device that has no driver writes nothing."""
    found = run({GPU: device(driver="", override="vfio-pci")}, "unbind", "--all")
    assert (found.exit_code, found.writes) == (0, [])


def test_virtual_functions_are_bound():
    """The script knows no physfn, and asks vendor and class as texts."""
    devices = {GPU: device(), "0000:41:00.4": device(links={"physfn": GPU}), SECOND: device(files={"class": "0X030200\n"})}
    found = run(devices, "bind", "--all")
    assert [binding.driver for binding in found.after.devices.values()] == ["vfio-pci", "vfio-pci", "nvidia"]


@pytest.mark.parametrize(
    ("vendor", "code", "bound"),
    [("  0x10de\t\n", 0, True), ("0x10DE\n", 0, False), ("0x10de", 1, False), ("", 1, False), (5, 1, False)],
)
def test_how_a_vendor_is_read(vendor, code, bound):
    """Blanks around it are dropped; a file without a newline, or one that cannot be read, ends the script."""
    found = run({GPU: device(files={"vendor": vendor})}, "bind", "--all")
    assert (found.exit_code, found.after.devices[GPU].driver == "vfio-pci") == (code, bound)


def test_a_bus_without_functions():
    """The pattern stands for itself, and its vendor cannot be read."""
    found = run({}, "unbind", "--all")
    assert found.exit_code == 1
    assert "can't open /sys/bus/pci/devices/*/vendor" in stderr(found)


def test_the_auxiliary_device():
    """One consumer goes along, several are none."""
    audio = device(number="10f7", class_="040300", driver="snd_hda_intel")
    one = {GPU: device(class_="030000", consumers=(AUDIO,)), AUDIO: audio}
    assert run(one, "bind", "--all").after.devices[AUDIO].driver == "vfio-pci"
    assert run(one, "unbind", "--all").after.devices[AUDIO].driver == ""
    two = {GPU: device(class_="030000", consumers=(AUDIO, "0000:41:00.2")), AUDIO: audio, "0000:41:00.2": device(class_="0c0330")}
    assert run(two, "bind", "--all").after.devices[AUDIO].driver == "snd_hda_intel"


def test_a_device_that_vanishes():
    """The script ends at the file that is not there any more."""
    found = run({GPU: device()}, "bind", "--all", faults=(WriteFault(UNBIND, then=(RemoveDevice(GPU),)),))
    assert found.exit_code == 1
    assert stderr(found).endswith("can't create /sys/bus/pci/devices/0000:41:00.0/driver_override: nonexistent directory\n")


@pytest.mark.parametrize(
    "args", [(), ("help",), ("help", "bind"), ("--help",), ("BIND",), ("bind", "--all", "extra"), ("bind", "--", "-a")]
)
def test_bad_usage_exits_0(args):
    """Usage goes to standard error."""
    found = run({GPU: device()}, *args)
    assert (found.exit_code, found.writes) == (0, [])
    assert stderr(found).startswith(USAGE)


@pytest.mark.parametrize(
    ("args", "env", "code"),
    [
        (("bind",), {}, 2),
        (("unbind", "--device-id", ""), {}, 2),
        (("bind",), {"ALL_DEVICES": "false"}, 0),
        (("bind", "--bogus"), {}, 1),
        (("bind", "--device-id"), {}, 1),
        (("bind", "-d", "x -a y"), {}, 1),
        (("bind", "-d", "x -d y"), {}, 2),
    ],
)
def test_other_exit_codes(args, env, code):
    """An unset variable exits 2, getopt's refusal 1; blanks in an argument are read as options."""
    found = run({GPU: device()}, *args, env=env)
    assert (found.exit_code, found.writes) == (code, [])


def test_the_environment_may_ask_for_all():
    """ALL_DEVICES=true does what --all does."""
    assert run({GPU: device()}, "unbind", env={"ALL_DEVICES": "true"}).after.devices[GPU].driver == ""


def test_a_device_goes_before_all():
    """With both, only the device is taken."""
    found = run({GPU: device(), SECOND: device()}, "unbind", "-a", "--dev", SECOND)
    assert [binding.driver for binding in found.after.devices.values()] == ["nvidia", ""]


def test_what_is_no_gpu():
    """bind says so, unbind says nothing, exit code 0 for both."""
    audio = {AUDIO: device(class_="040300")}
    assert run(audio, "bind", "--all").stdout == "device 0000:41:00.1 is not a gpu!\n"
    assert run(audio, "bind", "-d", "nothing").stdout == "device nothing is not a gpu!\n"
    assert run(audio, "unbind", "--all").stdout == ""
