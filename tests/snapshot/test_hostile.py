"""Bundles that mean harm: a clear error or a safe skip that is told, within 5 s and 500 MB, and nothing written but the output."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from simulator.reading import InputError
from simulator.scenario import load_cluster
from simulator.snapshot.files import read_files
from tests.importing.made import archive, member
from tests.snapshot.made import as_kubectl_prints, saved_objects

SECONDS, BYTES = 5.0, 500 << 20
NODE = as_kubectl_prints(saved_objects(load_cluster("container-node", "gpu-1"))["node"], "yaml")
ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


MEASURED = """
import atexit, re, sys
from pathlib import Path
from simulator.cli.main import entry
peak = Path(sys.argv.pop(1))
atexit.register(lambda: peak.write_text(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]))
entry()
"""
"""The command, which says at its end how much memory it took; what the kernel keeps for a parent begins with the tests' own."""


def snapshot(tmp_path, *arguments):
    """Run the command, measured: exit code, what it told, what it wrote. It must keep the limits, and write one file."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    before = sorted(path for path in tmp_path.rglob("*") if work not in path.parents)
    peak = tmp_path.with_name(f"{tmp_path.name}-peak")
    process = subprocess.Popen(
        [sys.executable, "-c", MEASURED, peak, "snapshot", *map(str, arguments), "-o", "world.yaml"],
        cwd=work,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(work)},
    )
    assert process.stdout is not None
    printed = process.stdout.read().decode()
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert usage.ru_utime + usage.ru_stime < SECONDS, printed[:500]
    assert int(peak.read_text()) * 1024 < BYTES, printed[:500]
    assert "Traceback" not in printed
    assert all(char.isprintable() or char == "\n" for char in printed)
    assert sorted(path for path in tmp_path.rglob("*") if work not in path.parents) == before
    assert {path.name for path in work.iterdir()} <= {"world.yaml"}
    world = work / "world.yaml"
    return process.returncode, printed, world.read_text() if world.exists() else ""


def with_node(tmp_path, **files):
    """A folder with a node that is in order, and others."""
    folder = tmp_path / "bundle"
    folder.mkdir()
    for name, data in {"node.yaml": NODE, **files}.items():
        (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return folder


ALIASES = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]\n" for at in range(1, 30)
)
HOSTILE = {
    "deep flow": lambda: "kind: Pod\nmetadata: " + "[" * 100_000,
    "deep blocks": lambda: "kind: Pod\n" + "".join("  " * at + "a:\n" for at in range(3000)),
    "deep JSON": lambda: '{"kind": "Pod", "metadata": ' + '{"a":' * 200_000 + "1" + "}" * 200_000 + "}",
    "alias bomb": lambda: ALIASES + "kind: Pod\nmetadata: *a29\n",
    "many small lists": lambda: "kind: Pod\nmetadata: [" + "[]," * 4_000_000 + "]\n",
    "many small objects": lambda: '{"kind": "Pod", "metadata": [' + "{}," * 5_000_000 + "{}]}",
    "many lines": lambda: "kind: Pod\nmetadata:\n" + "  a: b\n" * 1_000_000,
    "one long line": lambda: "kind: Pod\nmetadata: " + "x" * 30_000_000,
    "invalid UTF-8": lambda: b"kind: Pod\nmetadata: {name: \xff\xfe}\n",
    "as much as is read": lambda: "kind: Pod\nmetadata:\n" + "".join(f"  a{at}: {{a: b, c: d}}\n" for at in range(38_000)),
    "NUL": lambda: b"kind: Pod\nmetadata: {name: \x00}\n",
    "a huge number": lambda: "kind: Pod\nmetadata: {generation: " + "9" * 100_000 + "}\n",
    "a list that never ends": lambda: (
        "apiVersion: v1\nitems:\n" + "- apiVersion: v1\n  kind: Pod\n  spec:\n    nodeName: gpu-1\n" * 200_000
    ),
    "a JSON list that never closes": lambda: '{\n    "apiVersion": "v1",\n    "items": [\n' + "        {\n" * 2_000_000,
    "what no kind can be": lambda: json.dumps(
        {"kind": ["Pod"], "metadata": 3, "items": [{"kind": 1}, 2, None, {"kind": "Pod", "metadata": []}]}
    ),
    "wrong types": lambda: json.dumps(
        {
            "kind": "Pod",
            "metadata": {"name": 5, "namespace": [], "labels": [1], "ownerReferences": "x", "annotations": {"a": {}}},
            "spec": {"nodeName": "gpu-1", "containers": {"a": 1}, "volumes": [1], "nodeSelector": {"a": 1}, "resourceClaims": 7},
            "status": [],
        }
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document(name, tmp_path):
    """Beside a node that is in order: it is passed over, and the node is read."""
    code, printed, world = snapshot(
        tmp_path, with_node(tmp_path, **{"evil.json" if "JSON" in name else "evil.yaml": HOSTILE[name]()})
    )
    assert code == 0, printed
    assert "name: gpu-1" in world


@pytest.mark.parametrize("name", ["deep flow", "alias bomb", "invalid UTF-8", "many small lists"])
def test_a_hostile_document_alone(name, tmp_path):
    """There is nothing else: one clear error."""
    file = tmp_path / "evil.yaml"
    data = HOSTILE[name]()
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    code, printed, world = snapshot(tmp_path, file)
    assert (code, world) == (2, "")
    assert printed.startswith("dmsim snapshot: ")
    assert printed.count("\n") == 1


def test_terminal_escapes(tmp_path):
    """In names, labels, values, logs: shown escaped, or left out."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "\x1b[31mred", "namespace": "a\x07", "labels": {"\x1b]0;x": "y"}},
        "spec": {"nodeName": "gpu-1"},
    }
    good = {**pod, "metadata": {"name": "good", "labels": {"\x1b[2J": "x", "a": "\x1b[2J"}}}
    files = {"\x1b[31m.yaml": b"\xff", "pods.json": json.dumps({"kind": "List", "apiVersion": "v1", "items": [pod, good]})}
    code, printed, world = snapshot(tmp_path, with_node(tmp_path, **files))
    assert code == 0
    assert "\\x1b" in printed
    assert "name: good" in world
    assert "\x1b" not in world


def test_a_folder_with_what_is_no_file(tmp_path):
    """A fifo, a socket of links, a loop, a link to the outside, a sparse giant: none is opened."""
    folder = with_node(tmp_path)
    os.mkfifo(folder / "pods.yaml")
    (tmp_path / "outside.yaml").write_text(NODE.replace("gpu-1", "outside"))
    (folder / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    (folder / "loop").symlink_to(".")
    (folder / "zero").symlink_to("/dev/zero")
    with (folder / "giant.yaml").open("wb") as giant:
        giant.truncate(1 << 40)
    code, printed, world = snapshot(tmp_path, folder)
    assert code == 0
    assert "giant.yaml: too large to be read" in printed
    assert "outside" not in world + printed.replace("outside.yaml", "")


def test_a_fifo(tmp_path):
    """Nobody waits for one."""
    os.mkfifo(tmp_path / "node.yaml")
    assert snapshot(tmp_path, tmp_path / "node.yaml")[0] == 2


def test_a_folder_with_too_many_entries(tmp_path, monkeypatch):
    """A clear error."""
    monkeypatch.setattr("simulator.snapshot.files._MOST", 20)
    folder = with_node(tmp_path, **{f"{at}.x": "" for at in range(20)})
    with pytest.raises(InputError, match="holds more than 20 entries"):
        read_files(folder)


def tar(tmp_path, *members, compress=False):
    file = tmp_path / "bundle.tar"
    data = archive(member("b/node.yaml", NODE.encode()), *members)
    file.write_bytes(gzip.compress(data, 1) if compress else data)
    return file


@pytest.mark.parametrize("compress", [False, True], ids=["tar", "tar.gz"])
def test_a_tar_that_leads_out(compress, tmp_path):
    """`..`, absolute names, links, devices: nothing is written, nothing outside is read."""
    evil = NODE.replace("gpu-1", "evil").encode()
    file = tar(
        tmp_path,
        member("../evil.yaml", evil),
        member("/evil.yaml", evil),
        member("b/../../evil.yaml", evil),
        member("b/link.yaml", kind=tarfile.SYMTYPE, target="/etc/passwd"),
        member("b/hard.yaml", kind=tarfile.LNKTYPE, target="/etc/passwd"),
        member("b/device.yaml", kind=tarfile.CHRTYPE),
        member("b/fifo.yaml", kind=tarfile.FIFOTYPE),
        compress=compress,
    )
    code, printed, world = snapshot(tmp_path, file)
    assert code == 0, printed
    assert "evil" not in world
    assert "with a name that lies in no root" in printed


def bomb(size):
    """A member of zeros that is far larger than its archive."""
    out = io.BytesIO()
    with gzip.open(out, "wb", 9) as packed:
        info = tarfile.TarInfo("b/bomb.yaml")
        info.size = size
        packed.write(info.tobuf())
        for _ in range(size >> 20):
            packed.write(bytes(1 << 20))
        packed.write(bytes(1024))
    return out.getvalue()


def test_a_gzip_bomb(tmp_path):
    """600 megabytes in less than one."""
    file = tmp_path / "bomb.tar.gz"
    file.write_bytes(bomb(600 << 20))
    code, printed, _ = snapshot(tmp_path, file)
    assert code == 2
    assert "bomb.tar.gz" in printed


def zipped(tmp_path, files):
    file = tmp_path / "bundle.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return file


def test_a_zip(tmp_path):
    """Paths that lead out, and a member that is larger than it may be: passed over, and told."""
    evil = NODE.replace("gpu-1", "evil")
    files = {"b/node.yaml": NODE, "../evil.yaml": evil, "/evil.yaml": evil, "bomb.yaml": bytes(300 << 20)}
    code, printed, world = snapshot(tmp_path, zipped(tmp_path, files))
    assert code == 0, printed
    assert "evil" not in yaml.safe_dump(yaml.safe_load(world))
    assert "bomb.yaml: too large to be read" in printed


@pytest.mark.parametrize("cut", [30, 200])
def test_a_damaged_zip(cut, tmp_path):
    """A clear error."""
    file = zipped(tmp_path, {"node.yaml": NODE})
    file.write_bytes(file.read_bytes()[:cut])
    code, printed, _ = snapshot(tmp_path, file)
    assert code == 2
    assert "damaged zip archive" in printed


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=["deflate", "bzip2", "lzma"])
def test_a_zip_whose_contents_are_damaged(method, tmp_path):
    """Whatever compressed them: a clear error."""
    file = tmp_path / "bundle.zip"
    with zipfile.ZipFile(file, "w", method) as packed:
        packed.writestr("node.yaml", NODE)
    data = bytearray(file.read_bytes())
    data[60:90] = bytes(30)
    file.write_bytes(data)
    with pytest.raises(InputError, match="damaged zip archive"):
        read_files(file)


def test_a_zip_with_an_endless_directory(tmp_path):
    """It is not read: a directory takes ten times as much memory as space."""
    entry = b"PK\x01\x02" + bytes(24) + struct.pack("<H", 1) + bytes(16) + b"a"
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, len(entry) * 500_000, 4, 0)
    file = tmp_path / "bundle.zip"
    file.write_bytes(b"PK\x03\x04" + entry * 500_000 + end)
    code, printed, _ = snapshot(tmp_path, file)
    assert code == 2
    assert "has more than 20000 members" in printed


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gpu_nodes.descr", "Name:        a\nRoles: x\n" * 800_000),
        ("gpu_nodes.descr", "Name:        a\nRoles: x\nNon-terminated Pods:  (9)\n" + "  a b 1\n" * 2_000_000),
        ("gpu_nodes.labels", "a\n- b=c\n\n" * 1_500_000),
    ],
    ids=["nodes", "pods", "labels"],
)
def test_more_objects_than_are_read(name, text, tmp_path):
    """In a must-gather's own files: passed over, and told."""
    code, printed, _ = snapshot(tmp_path, with_node(tmp_path, **{name: text}))
    assert code == 0, printed
    assert f"{name}: holds more text than is read at once" in printed


def _list(*items):
    return json.dumps({"kind": "List", "apiVersion": "v1", "items": items}, separators=(",", ":"))


def test_claims_and_budgets_without_number(tmp_path):
    """Nothing is compared with each of so many."""
    names = [f"x{at}" for at in range(20_000)]
    pods = [{"kind": "Pod", "metadata": {"name": name}, "spec": {"nodeName": "gpu-1"}} for name in names[:2000]]
    claims = [{"kind": "ResourceClaim", "metadata": {"name": name}} for name in names]
    status = {"disruptionsAllowed": 0}
    budgets = [{"kind": "PodDisruptionBudget", "metadata": {"name": name}, "status": status} for name in names]
    files = {"pods.json": _list(*pods), "claims.json": _list(*claims), "budgets.json": _list(*budgets)}
    code, printed, _ = snapshot(tmp_path, with_node(tmp_path, **files))
    assert code == 0, printed
    assert "which pods 20000 disruption budgets hold: there are too many to compare" in printed


@pytest.mark.parametrize(
    "items",
    [
        [{"kind": "Pod", "metadata": {"name": f"x{at}"}, "spec": {"nodeName": "gpu-1"}} for at in range(5001)],
        [
            {
                "kind": "Pod",
                "metadata": {"name": "x", "labels": {f"x{at}": "" for at in range(30_001)}},
                "spec": {"nodeName": "gpu-1"},
            }
        ],
    ],
    ids=["pods", "labels"],
)
def test_more_than_a_node_has(items, tmp_path):
    """A clear error."""
    code, printed, world = snapshot(tmp_path, with_node(tmp_path, **{"pods.json": _list(*items)}))
    assert (code, world) == (2, "")
    assert "more than are read" in printed


def test_a_hostile_host_output(tmp_path):
    """What the script never writes: paths that lead out, files below files, nonsense, a million records."""
    lines = [
        "# dmsim host 1",
        "f\t/../../etc/passwd\t-rw",
        "f\tetc\t-rw",
        "f\t/a\t-rw",
        "f\t/a/b\t-rw",
        "l\t/loop\t/loop",
        "l\t/usr/bin/nvidia-smi\t" + "../" * 500,
        "e\t/bin/sh\t-rwxr-xr-x\tzz\tnvml",
        "e\t/sbin/modprobe\t-rwxr-xr-x\t7f454c46\tnvml",
        "f\t/proc/modules\t-r--r--r--",
        "|nvidia 99999999999999999999 7 - Live 0x0",
        "|nvidia 1 7 nvidia, Live 0x0 (OE)",
        "|\x1b[31m 1 7 - Live 0x0",
        "f\t/sys/bus/pci/devices/0000:01:00.0/vendor\t-r",
        "|0x10de",
        "a\tx",
        "h\t1",
        "kernel\t../../x",
        *(f"f\t/x/{at}\t-rw" for at in range(50_000)),
        "f\t/" + "x/" * 5000 + "\t-rw",
    ]
    folder = with_node(tmp_path, **{"host.txt": "\n".join(lines)})
    code, printed, world = snapshot(tmp_path, folder)
    assert code == 0, printed
    assert "the end of the host script's output: it is cut" in printed
    assert yaml.safe_load(world)["host"]["modules"][0]["name"] == "nvidia"


def test_wide_characters(tmp_path):
    """One character makes a text four times as large in memory."""
    item = "- apiVersion: v1\n  kind: Pod\n  spec:\n    nodeName: other\n    x: " + "x" * 1000 + "\n"
    text = "apiVersion: v1\nitems:\n- kind: \N{GRINNING FACE}\n" + item * 22_000 + "kind: List\n"
    log = "level=info msg=\N{GRINNING FACE}\n" + "a b c d\n" * 2_900_000
    code, printed, _ = snapshot(tmp_path, with_node(tmp_path, **{"a.yaml": text, "driver-manager.log": log}))
    assert code == 0, printed


def test_a_long_log_of_secrets(tmp_path):
    """Redacting is linear."""
    log = (
        "time=x level=info msg="
        + "password" * 500_000
        + "\n"
        + "=" * 3_000_000
        + "eyJ" * 500_000
        + "://" * 500_000
        + "a:" * 500_000
    )
    code, printed, _ = snapshot(tmp_path, with_node(tmp_path, **{"driver-manager.log": log}))
    assert code == 0, printed
