"""The sandbox device plugin's recordings, replayed."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from functools import cache

import pytest

from simulator.cli.main import main
from simulator.reading import InputError
from simulator.recordings.layout import PLUGIN, Recording, pack, read_folder
from simulator.recordings.replaying import differences, replayed
from simulator.scenario import fixtures

BUS = {"devices": {}, "drivers": {"vfio-pci": {}}}
GPU = {"driver": "vfio-pci", "files": {"vendor": "0x10de\n", "device": "0x2236\n", "numa_node": "0\n"}, "iommu_group": 12}
ADDRESS = "0000:41:00.0"


@cache
def recordings():
    return list(read_folder(fixtures() / "recordings", PLUGIN))


def found(release="v1.5.0", **device):
    device = {**GPU, **device}
    return replayed(Recording("case", release, {**BUS, "devices": {ADDRESS: device}}, {}, "case.json", neighbour=PLUGIN))


@pytest.mark.parametrize("release", ["v1.5.0", "v1.6.0"])
def test_every_recording_replays(release):
    """Nothing is forgiven."""
    ours = [entry for entry in recordings() if entry.release == release]
    assert len(ours) == 24
    assert [entry.case for entry in ours if differences(entry, replayed(entry))] == []


def test_a_recording_that_differs_is_noticed():
    """Whichever part of it is another."""
    for entry in recordings():
        for key in entry.observed:
            broken = replace(entry, observed={**entry.observed, key: ["another"]})
            assert [mismatch.field for mismatch in differences(broken, replayed(entry))] == [key]
        if len(entry.case) > 12:
            break


def as_recorded(folder):
    """Three recordings in the form in which they are made."""
    (folder / "discovery").mkdir()
    discovery, names, edge = (
        next(entry for entry in recordings() if entry.case == case) for case in ("order", "names-bundled", "names-edge")
    )
    document = {"id": "order", "input": discovery.input, "versions": ["v1.5.0", "v1.6.0"], "observed": discovery.observed}
    (folder / "discovery/order.json").write_text(json.dumps(document))
    (folder / "names-bundled.tsv").write_text("# head\n" + "".join("\t".join(row) + "\n" for row in names.observed["names"]))
    files = [
        {"case": given["case"], "file": given["file"], "answers": seen["answers"]}
        for given, seen in zip(edge.input["files"], edge.observed["files"], strict=True)
    ]
    (folder / "names-edge.json").write_text(json.dumps(files))


@pytest.mark.slow
def test_the_form_in_which_they_are_made(tmp_path, capsys):
    """Is replayed and written as it stands, and packs into what the project carries."""
    as_recorded(tmp_path)
    assert main(["replay", str(tmp_path), "--write", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "6 passed, 0 failed"
    written = json.loads((tmp_path / "out/v1.6.0/order.json").read_text())
    assert written["observed"] == json.loads((tmp_path / "discovery/order.json").read_text())["observed"]
    (tmp_path / "packed").mkdir()
    pack(tmp_path, tmp_path / "packed", ["v1.5.0", "v1.6.0"])
    kept = {entry.case: entry for entry in recordings() if entry.release == "v1.6.0"}
    for entry in read_folder(tmp_path / "packed"):
        assert (entry.input, entry.observed) == (kept[entry.case].input, kept[entry.case].observed)
    assert main(["replay", str(tmp_path / "discovery")]) == 0


def test_names_of_another_file(tmp_path, capsys):
    """A table is enough: it holds what the file says of NVIDIA's devices."""
    (tmp_path / "names-other.tsv").write_text("1111\tOne\tnvidia.com/ONE\n2222\tone\tnvidia.com/ONE\n")
    (tmp_path / "names-other-shared.tsv").write_text("ONE\t1111 2222\n")
    assert main(["replay", str(tmp_path)]) == 0
    (tmp_path / "names-other.tsv").write_text("1111\tOne\tnvidia.com/TWO\n")
    assert main(["replay", str(tmp_path), "--program", PLUGIN]) == 1
    assert 'names[0][2]: recorded "nvidia.com/TWO", simulated "nvidia.com/ONE"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("names-x.tsv", "1111\tOne\n", "has 2 columns"),
        ("names-x-shared.tsv", "ONE\n", "has 1 columns"),
        ("names-x-shared.tsv", "ONE\t1 2\n", r"names-x\.tsv: does not exist"),
        ("names-x.json", "5", "of another form"),
        ("names-x.json", '[{"case": "a"}]', "of another form"),
        (
            "names-x.json",
            '[{"case": "a", "file": {"x": 1}, "answers": [{"id": "1"}]}]',
            r'files\[0\]\.file has the unknown key "x"',
        ),
        ("names-x.json", '[{"case": "a", "file": {}, "answers": [{"id": "1"}]}]', r"files\[0\]\.file says nothing of the file"),
        ("names-x.json", '[{"case": "a", "file": {"base64": "*"}, "answers": [{"id": "1"}]}]', r"file\.base64 is no base64"),
        ("discovery/x.json", "{}", 'lacks the key "observed"'),
        ("discovery/x.json", '{"observed": {}}', "no recording of a known form"),
        ("discovery/x.json", '{"observed": {}, "versions": ["v1.5.0"]}', 'lacks the key "input"'),
        ("discovery/x.json", '{"observed": {}, "input": {}, "versions": []}', "no list of releases"),
        ("discovery/x.json", '{"observed": {}, "input": {}, "versions": ["v0.1"]}', "which the model does not know"),
        (
            "discovery/x.json",
            '{"observed": {}, "input": {"devices": 5}, "versions": ["v1.5.0"]}',
            r"input\.devices is the number 5",
        ),
        ("discovery/x.json", '{"observed": {}, "input": {}, "versions": ["../v1"]}', "which is no name"),
    ],
)
def test_a_file_of_another_form(tmp_path, name, text, problem):
    """Is one error."""
    (tmp_path / "discovery").mkdir()
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=problem):
        list(map(replayed, read_folder(tmp_path)))


# --- what no recording asks, from the source -------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "bounds"), [("", 0), ("x", 1)])
def test_a_file_of_less_than_two_bytes(text, bounds):
    """Kills the plugin."""
    for name in ("vendor", "device"):
        observed = found(files={**GPU["files"], name: text})
        assert observed["panic"] == f"runtime error: slice bounds out of range [2:{bounds}]"
        assert observed["devices"] == {}
        assert "panic" not in found()


def test_a_file_that_cannot_be_read():
    """Each error stands three times in the recorder's klog: for errors, warnings and infos."""
    observed = found(files={**GPU["files"], "vendor": {"errno": "EIO"}})
    assert observed["log"] == ["Not a device, continuing", f"Could not get vendor ID for device  {ADDRESS}"]
    problem = f"read /sys/bus/pci/devices/{ADDRESS}/vendor: input/output error"
    assert observed["klog"] == [f"Could not read vendor for device {ADDRESS}: {problem}"] * 3


@pytest.mark.parametrize(
    ("text", "numa", "problem"),
    [
        ("1\n", 1, None),
        (" +3 \n", 3, None),
        ("-1\n", 0, None),
        ("", 0, 'strconv.ParseInt: parsing "": invalid syntax'),
        ("0x1\n", 0, 'strconv.ParseInt: parsing "0x1": invalid syntax'),
        ("9" * 20, 0, f'strconv.ParseInt: parsing "{"9" * 20}": value out of range'),
    ],
)
def test_numa_nodes(text, numa, problem):
    """A number below zero is no node, what is no number is an error; the plugin goes on with 0."""
    observed = found(files={**GPU["files"], "numa_node": text})
    assert observed["devices"] == {"2236": [{"address": ADDRESS, "numa": numa}]}
    if problem is None:
        assert observed["klog"] is None
    else:
        assert observed["klog"] == [f"Could not parse NUMA node for device {ADDRESS}: {problem}"] * 3
        assert observed["log"][2] == f"Could not get NUMA node for device {ADDRESS}: {problem}. Defaulting to NUMA node 0"


def test_a_function_without_an_iommu_group():
    """Is left out: there would be nothing to hand over."""
    observed = found(iommu_group=None)
    assert observed["devices"] == {}
    assert observed["log"][-1] == f"Could not get IOMMU Group for device  {ADDRESS}"


def test_grace_hopper():
    """The variant driver counts, and names that merely look alike do not."""
    observed = found(driver="nvgrace_gpu_vfio_pci")
    assert observed["resources"] == {"2236": "nvidia.com/GA102GL_A10"}
    assert found(driver="vfio_pci")["devices"] == {}


def test_v1_4_0_counts_iommu_groups():
    """The first function of a group stands for it, and only vfio-pci counts."""
    second = {**GPU, "files": {**GPU["files"], "device": "0x10f7\n"}}
    given = {**BUS, "devices": {ADDRESS: GPU, "0000:41:00.1": second, "0000:81:00.0": {**GPU, "iommu_group": 13}}}
    observed = replayed(Recording("case", "v1.4.0", given, {}, "case.json", neighbour=PLUGIN))
    assert observed["devices"] == {"2236": [{"address": "12", "numa": 0}, {"address": "13", "numa": 0}]}
    assert observed["iommu_groups"] == {"12": [ADDRESS, "0000:41:00.1"], "13": ["0000:81:00.0"]}
    assert observed["bdf_to_group"] == {}
    assert observed["log"][:4] == ["Not a device, continuing", f"Nvidia device  {ADDRESS}", "Iommu Group 12", "Device Id 2236"]
    other = replayed(
        replace(Recording("c", "v1.4.0", {**BUS, "devices": {ADDRESS: {**GPU, "driver": "nvidia"}}}, {}, "c", neighbour=PLUGIN))
    )
    assert other["log"] == ["Not a device, continuing", f"Nvidia device  {ADDRESS}"]


def test_a_pci_ids_file_that_is_a_directory():
    """Can be opened, not read."""
    given = {"files": [{"case": "a", "file": {"directory": True}, "ids": ["2236"]}]}
    (answered,) = replayed(Recording("case", "v1.6.0", given, {}, "case.json", neighbour=PLUGIN))["files"]
    problem = "Error locating NVIDIA in pci.ds file: error reading pci.ids file: read <file>: is a directory"
    assert answered["answers"] == [{"id": "2236", "name": "", "resource": "nvidia.com/2236", "log": problem}]


def test_bytes_that_are_no_utf_8():
    """Are dropped."""
    text = base64.b64encode(b"10de\n\t2236  A\xff\xfe B\n").decode()
    given = {"files": [{"case": "a", "file": {"base64": text}, "ids": ["2236"]}]}
    (answered,) = replayed(Recording("case", "v1.6.0", given, {}, "case.json", neighbour=PLUGIN))["files"]
    assert answered["answers"][0]["name"] == "A_B"


def test_one_release_of_a_neighbour(capsys):
    """Can be asked for; one that nobody has is bad input."""
    packed = str(fixtures() / "recordings")
    assert main(["replay", packed, "--program", PLUGIN, "--release", "v1.6.0", "-k", "vga"]) == 0
    assert capsys.readouterr().out == "2 passed, 0 failed\n"
    assert main(["replay", packed, "--program", PLUGIN, "--release", "v1.7.0"]) == 2
