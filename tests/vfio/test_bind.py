"""The commands bind and unbind: which devices they take, and how they end."""

from __future__ import annotations

import pytest

from simulator.host.pci import WriteFault
from tests.vfio.buses import AUDIO, GO_RELEASES, GPU, SECOND, device, messages, outcome

SWITCH = "0000:05:00.0"
DEVICES = {
    GPU: device(),
    SECOND: device(),
    SWITCH: device(number="22a3", class_="068000", driver="nvidia-nvswitch"),
    AUDIO: device(number="10f7", class_="040300", driver="snd_hda_intel"),
    "0000:00:00.0": device("8086", "09a2", "088000", driver=""),
}
DRIVERS = ("nvidia", "nvidia-nvswitch", "snd_hda_intel", "vfio-pci")


def run(*args, release="v0.10.0", **changes):
    return outcome(DEVICES, *args, release=release, drivers=DRIVERS, **changes)


def moved(found):
    return sorted(address for address, now in found.after.devices.items() if now.driver != found.before.devices[address].driver)


@pytest.mark.parametrize("command", ["bind", "unbind"])
@pytest.mark.parametrize("release", GO_RELEASES)
def test_all(command, release):
    """All GPUs, and the NVSwitches only with the flag or its variable."""
    assert moved(run(command, "--all", release=release)) == [GPU, SECOND]
    assert moved(run(command, "--all", f"--{command}-nvswitches", release=release)) == [SWITCH, GPU, SECOND]
    assert moved(run(command, "--all", release=release, env={"BIND_NVSWITCHES": "t"})) == [SWITCH, GPU, SECOND]


@pytest.mark.parametrize("command", ["bind", "unbind"])
def test_a_failure_among_all(command):
    """Is a warning, the next device has its turn, and the exit code is 0."""
    fault = WriteFault("/sys/bus/pci/drivers/nvidia/unbind", GPU, error="EBUSY")
    found = run(command, "--all", faults=(fault,))
    assert found.exit_code == 0
    assert moved(found) == [SECOND]
    assert [line.level for line in found.log].count("warning") == 1


@pytest.mark.parametrize(
    ("command", "text"), [("bind", "to vfio driver: failed to unbind device"), ("unbind", "from driver: failed to unbind device")]
)
def test_a_failure_of_one(command, text):
    """Is fatal."""
    fault = WriteFault("/sys/bus/pci/drivers/nvidia/unbind", GPU, error="EBUSY")
    found = run(command, "--device-id", GPU, faults=(fault,))
    assert found.exit_code == 1
    assert found.log[-1].level == "fatal"
    assert text in messages(found)[-1]


@pytest.mark.parametrize("command", ["bind", "unbind"])
@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("0000:00:00.0", "Device 0000:00:00.0 is not an NVIDIA device"),
        (AUDIO, "Device 0000:41:00.1 is not an NVIDIA GPU or NVSwitch"),
        (SWITCH, "Skipping NVSwitch 0000:05:00.0 (BIND_NVSWITCHES not set)"),
    ],
)
def test_devices_of_another_kind(command, address, text):
    """Are mentioned and left alone, exit code 0."""
    found = run(command, "--device-id", address)
    assert (found.exit_code, messages(found), found.writes) == (0, [text], [])


@pytest.mark.parametrize("command", ["bind", "unbind"])
def test_a_switch_by_its_address(command):
    """Works in v0.10.0 with the flag, and never again from v0.11.0."""
    args = (command, "--device-id", SWITCH, f"--{command}-nvswitches")
    assert moved(run(*args)) == [SWITCH]
    for release in ("v0.11.0", "v0.12.0"):
        found = run(*args, release=release)
        assert (found.exit_code, moved(found)) == (0, [])
        assert messages(found)[-1] == "Device 0000:05:00.0 is not an NVIDIA device"


def test_an_address_that_is_none():
    """The path is cleaned as Go does it, and what is written is the text as it was given."""
    found = run("bind", "--device-id", "../devices/0000:41:00.0")
    assert messages(found)[0] == "Binding device ../devices/0000:41:00.0"
    assert (found.writes[1].text, found.writes[1].result) == ("../devices/0000:41:00.0", "ENODEV")
    assert messages(run("unbind", "--device-id", "."))[-1] == (
        "failed to get NVIDIA device: unable to read PCI device vendor id for .: open /sys/bus/pci/devices/vendor:"
        " no such file or directory"
    )
