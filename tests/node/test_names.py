"""Names of resources: what the recordings do not ask."""

from __future__ import annotations

import pytest

from simulator.node.plugin.names import device_name, devices, sanitized
from simulator.recordings.plugin_observation import bundled
from simulator.vfio.pci_ids import DEVICES


def asked(text, device_id):
    said = []
    return device_name(text, device_id, said.append), said


def test_the_file_that_comes_along_has_the_devices_that_go_nvlib_embeds():
    """Both are of one day's database."""
    assert {int(device_id, 16) for device_id, _ in devices(bundled())} == DEVICES[0x10DE]


@pytest.mark.parametrize(
    ("name", "resource"),
    [
        ("GA102GL [A10]", "GA102GL_A10"),
        ("GA100 [A100-SXM-64GB]", "GA100_A100SXM64GB"),
        ("GH100 [GH200 120GB / 480GB]", "GH100_GH200_120GB___480GB"),
        ("straße ﬁ", "STRAE_"),
        ("ı ſ", "I_S"),
        ("a\x0bb\x1cc", "ABC"),
        ("  \x85 a.b\xa0", "A_B"),
        ("", ""),
    ],
)
def test_a_name_becomes_part_of_a_resource(name, resource):
    """By Go's capitals and Go's white space."""
    assert sanitized(name) == resource


def test_an_id_of_no_digits_is_a_prefix_of_any_line():
    """Of the first device, or, with a tab, of the first subsystem."""
    text = "10de  NVIDIA\n\t1111  One\n\t\t10de 0000  Sub\n\t2222  Two\n"
    assert asked(text, "") == ("1111_ONE", [])
    assert asked(text, "\t") == ("10DE_0000_SUB", [])
    assert asked(text, "22") == ("22_TWO", [])


@pytest.mark.parametrize(
    ("length", "name", "said"),
    [
        (65535 - 7, "AFTER", []),
        (65536 - 7, "", ["Error reading pci ids file bufio.Scanner: token too long"]),
    ],
)
@pytest.mark.parametrize("end", ["\n", ""])
def test_a_line_longer_than_the_scanner_ends_the_scan(length, name, said, end):
    """65,535 bytes are the most, with or without an end of line."""
    line = f"\t1111  {'x' * length}"
    assert asked(f"10de  NVIDIA\n{line}\n\t2222  After", "2222") == (name, said)
    assert bool(asked(f"10de  NVIDIA\n{line}{end}", "1111")[0]) is not said


def test_a_line_is_measured_in_bytes():
    """Not in characters."""
    line = f"\t1111  {'ü' * 32764}"
    assert asked(f"10de  NVIDIA\n{line}\n\t2222  After\n", "2222")[0] == "AFTER"
    assert asked(f"10de  NVIDIA\n{line}üx\n\t2222  After\n", "2222")[0] == ""


def test_a_long_line_before_the_vendor():
    """Is why the vendor is not found."""
    problem = "Error locating NVIDIA in pci.ds file: error reading pci.ids file: bufio.Scanner: token too long"
    assert asked("x" * 70000 + "\n10de  NVIDIA\n\t1111  One\n", "1111") == ("", [problem])
    assert asked("10de  NVIDIA\n\t1111  One\n" + "x" * 70000, "1111") == ("ONE", [])


def test_a_file_lists_devices_only():
    """No subsystems, no comments, nothing of other vendors."""
    text = "8086  Intel\n\t1111  No\n10de  NVIDIA\n# c\n\t22AB  A\n\t\t10de 0001  Sub\n\t3333\n\t22AB  Again\n\t4455No space\n\tzzzz  No\n1234  Other\n\t4444  No\n"
    assert list(devices(text)) == [("22AB", "A"), ("3333", ""), ("4455", "No space")]
