"""The list of PCI functions, and what makes it fail."""

from __future__ import annotations

import errno

import pytest

from tests.vfio.buses import AUDIO, GO_RELEASES, GPU, SECOND, device, messages, outcome

OLD = "failed to get NVIDIA GPUs: error getting all NVIDIA devices: error constructing NVIDIA PCI device 0000:41:00.0: "
NUMA = "open /sys/bus/pci/devices/0000:41:00.0/numa_node: no such file or directory"


def fatal(files, release="v0.10.0", **changes):
    found = outcome({GPU: device(files=files, **changes)}, "unbind", "--all", release=release)
    assert found.exit_code == 1
    assert not found.writes
    return messages(found)[-1].removeprefix(OLD)


@pytest.mark.parametrize(
    ("files", "old", "new"),
    [
        (
            {"vendor": None},
            (
                "unable to read PCI device vendor id for 0000:41:00.0: open /sys/bus/pci/devices/0000:41:00.0/vendor:"
                " no such file or directory"
            ),
            (
                "unable to read PCI vendor for /sys/bus/pci/devices/0000:41:00.0: open /sys/bus/pci/devices/0000:41:00.0/vendor:"
                " no such file or directory"
            ),
        ),
        (
            {"vendor": "10de\n"},
            "unable to convert vendor string to uint16: 10de",
            'unable to parse PCI vendor for /sys/bus/pci/devices/0000:41:00.0: strconv.ParseUint: parsing "10de": invalid syntax',
        ),
        (
            {"class": "0x100000000\n"},
            "unable to convert class string to uint32: 0x100000000",
            (
                "unable to parse PCI class for /sys/bus/pci/devices/0000:41:00.0: strconv.ParseUint:"
                ' parsing "0x100000000": value out of range'
            ),
        ),
        (
            {"device": errno.EIO},
            "unable to read PCI device id for 0000:41:00.0: read /sys/bus/pci/devices/0000:41:00.0/device: input/output error",
            (
                "unable to read PCI device for /sys/bus/pci/devices/0000:41:00.0: read /sys/bus/pci/devices/0000:41:00.0/device:"
                " input/output error"
            ),
        ),
        (
            {"numa_node": None},
            f"unable to read PCI NUMA node for 0000:41:00.0: {NUMA}",
            f"unable to read PCI numa_node for /sys/bus/pci/devices/0000:41:00.0: {NUMA}",
        ),
        (
            {"numa_node": "99999999999999999999\n"},
            "unable to convert NUMA node string to int64: 9223372036854775807",
            (
                "unable to parse PCI numa_node for /sys/bus/pci/devices/0000:41:00.0: strconv.ParseInt:"
                ' parsing "99999999999999999999": value out of range'
            ),
        ),
        (
            {"resource": "a b c\nd e\n"},
            "more than 3 entries in line '1' of resource file",
            "more than 3 entries in line '1' of resource file",
        ),
    ],
)
def test_a_malformed_function_stops_everything(files, old, new):
    """v0.12.0 has its own words for it."""
    assert fatal(files) == old
    assert fatal(files, "v0.11.0") == old
    assert fatal(files, "v0.12.0") == new


def test_the_numa_node_moved():
    """v0.12.0 reads it before the IOMMU group, the older releases after."""
    files = {"numa_node": None}
    assert "IOMMU group" in fatal(files, iommu_group="abc")
    assert "numa_node" in fatal(files, "v0.12.0", iommu_group="abc")


@pytest.mark.parametrize("release", GO_RELEASES)
def test_the_iommu_group(release):
    """No group is no error; one that is no number is; Go's prefixes count."""
    for group, works in ((None, True), ("0x1f", True), ("abc", False)):
        assert outcome({GPU: device(iommu_group=group)}, "unbind", "--all", release=release).exit_code == (0 if works else 1)


def test_subsystem_ids():
    """Only v0.12.0 reads them: missing ones are warned about, malformed ones stop everything."""
    missing = {GPU: device(files={"subsystem_vendor": None, "subsystem_device": None})}
    malformed = {GPU: device(files={"subsystem_device": "0x10000\n"})}
    for release in ("v0.10.0", "v0.11.0"):
        assert outcome(malformed, "unbind", "--all", release=release).exit_code == 0
    assert outcome(malformed, "unbind", "--all", release="v0.12.0").exit_code == 1
    found = outcome(missing, "unbind", "--all", release="v0.12.0")
    assert found.exit_code == 0
    assert messages(found)[:2] == [f"{name} file not found for 0000:41:00.0" for name in ("subsystem_vendor", "subsystem_device")]


def test_the_iommu_fd_is_looked_for():
    """From v0.11.0 a function without a directory in vfio-dev is warned about, Mellanox's too."""
    devices = {
        GPU: device(),
        SECOND: device(driver="vfio-pci", vfio_dev="vfio3"),
        "0000:05:00.0": device("15b3", "1021", "020000", "", entries=("vfio-dev",)),
    }
    assert not [text for text in messages(outcome(devices, "unbind", "--all")) if "IOMMU FD" in text]
    for release in ("v0.11.0", "v0.12.0"):
        warned = [text for text in messages(outcome(devices, "unbind", "--all", release=release)) if "IOMMU FD" in text]
        assert warned == [
            "unable to detect IOMMU FD for 0000:05:00.0: no iommufd device found",
            "unable to detect IOMMU FD for 0000:41:00.0: open /sys/bus/pci/devices/0000:41:00.0/vfio-dev: no such file or directory",
        ]


def test_names_that_the_library_lacks():
    """A device or class without a name is a warning that ends in a newline of its own, and nothing else."""
    devices = {GPU: device(number="fffe"), AUDIO: device(class_="030201", driver="")}
    assert messages(outcome(devices, "unbind", "--all"))[:2] == [
        "unable to get device name: failed to find device with id 'fffe'\n",
        "unable to get class name for device: failed to find class with id '30201'\n",
    ]


def test_order_is_by_number():
    """The address without its marks is a hexadecimal number, so a domain of five digits comes last."""
    devices = {address: device() for address in ("10000:01:00.0", "2000:01:00.0", "0000:0a:00.0")}
    found = messages(outcome(devices, "unbind", "--all"))
    assert found == [f"Unbinding device {address}" for address in ("0000:0a:00.0", "2000:01:00.0", "10000:01:00.0")]


def test_classes():
    """A GPU is a VGA or 3D controller, whoever made it; a virtual function is none; other vendors' functions are not read."""
    devices = {
        "0000:01:00.0": device(class_="030000"),
        "0000:02:00.0": device(class_="030200"),
        "0000:03:00.0": device(class_="030201"),
        "0000:04:00.0": device("15b3", "1021", "030200"),
        "0000:05:00.0": device(links={"physfn": "0000:02:00.0"}),
        "0000:06:00.0": device("8086", files={"class": None}),
    }
    found = [text for text in messages(outcome(devices, "unbind", "--all")) if text.startswith("Unbinding")]
    assert found == [f"Unbinding device {address}" for address in ("0000:01:00.0", "0000:02:00.0", "0000:04:00.0")]


@pytest.mark.parametrize("release", GO_RELEASES)
def test_virtual_functions_and_their_makers(release):
    """A link physfn to nowhere makes no virtual function; a malformed physical function spoils its virtual ones."""
    nowhere = {GPU: device(links={"physfn": "0000:99:00.0"})}
    assert outcome(nowhere, "unbind", "--all", release=release).writes
    broken = {SECOND: device(links={"physfn": GPU}), GPU: device(files={"resource": None})}
    found = outcome(broken, "unbind", "--device-id", SECOND, release=release)
    assert messages(found)[-1].startswith(
        "failed to get NVIDIA device: unable to detect physfn for 0000:81:00.0: unable to read PCI"
    )


def test_sriov_counts():
    """Decimal up to v0.11.0, with a prefix allowed in v0.12.0; 0 is a number like any other."""
    hexadecimal = {GPU: device(files={"sriov_totalvfs": "0x10\n", "sriov_numvfs": "0\n"})}
    assert outcome(hexadecimal, "unbind", "--all", release="v0.12.0").exit_code == 0
    assert "unable to convert sriov_totalvfs to uint64: strconv.ParseUint" in fatal(hexadecimal[GPU].files)
    assert "unable to read sriov_numvfs for: open" in fatal({"sriov_totalvfs": "16\n"})
    assert "unable to read PCI sriov_numvfs for /sys" in fatal({"sriov_totalvfs": "16\n"}, "v0.12.0")
    assert outcome({GPU: device(files={"sriov_totalvfs": "0\n", "sriov_numvfs": "0\n"})}, "unbind", "--all").exit_code == 0


def test_a_function_that_is_its_own_maker():
    """Ends in a stack overflow, exit code 2."""
    found = outcome({GPU: device(links={"physfn": GPU})}, "unbind", "--all")
    assert found.exit_code == 2


def test_switches_are_listed_after_the_gpus():
    """With the flag all functions are listed again, warnings included."""
    devices = {"0000:05:00.0": device(number="22a3", class_="068000"), GPU: device(number="fffe")}
    found = messages(outcome(devices, "unbind", "--all", "--unbind-nvswitches"))
    assert len([text for text in found if "unable to get device name" in text]) == 2
    assert found[2:] == ["Unbinding device 0000:41:00.0", "Unbinding device 0000:05:00.0"]


def test_nothing_to_list():
    """A bus without functions is fine, a bus that is not there is not."""
    assert outcome({}, "unbind", "--all", directories=("/sys/bus/pci/devices",)).exit_code == 0
    found = outcome({}, "unbind", "--all", without=("/sys/bus/pci/devices",))
    assert messages(found) == [
        (
            "failed to get NVIDIA GPUs: error getting all NVIDIA devices: unable to read PCI bus devices:"
            " open /sys/bus/pci/devices: no such file or directory"
        )
    ]
