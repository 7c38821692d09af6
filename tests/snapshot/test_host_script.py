"""The host script: what it tells of a root, in any shell; that it changes nothing; what nvidia-smi says to it."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.host.spec import Module
from simulator.importing.roots import DirectoryRoot
from simulator.reading import InputError
from simulator.scenario import load_host
from simulator.snapshot.findings import Findings
from simulator.snapshot.host import read_host_root
from simulator.snapshot.text_root import TextRoot, host_script
from tests.snapshot.made import SHELLS, lay_out, run_host_script

BUSYBOX = Path("/bin/busybox")
RELEASE = "v0.10.0"


def read(text, release=RELEASE):
    findings = Findings()
    return read_host_root(TextRoot(text, "host.txt"), "n", release, findings), findings


@pytest.fixture
def root(tmp_path):
    """A root with a container's driver."""
    return lay_out(load_host("container-driver-loaded"), tmp_path / "root")


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_it_is_a_script_of_any_shell(shell):
    """It can be read, and knows no option but its own."""
    done = subprocess.run([*shell, "-s", "--", "--nonsense"], input=host_script(), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage:" in done.stderr


def test_it_uses_no_writing_command():
    """No redirection to a file but /dev/null, no command that changes anything."""
    code = "\n".join(line.partition(" # ")[0] for line in host_script().splitlines() if not line.lstrip().startswith("#"))
    assert not [target for target in re.findall(r"(?<![0-9<&-])>\s*([^&\s]+)", code) if target != "/dev/null"]
    commands = "rm|mv|cp|mkdir|touch|tee|modprobe|insmod|rmmod|mount|umount|chmod|chown|ln|kill|mktemp"
    assert not re.findall(rf"(?m)(?:^|[|;&(`])\s*(?:{commands})(?=\s)", code)


def test_it_changes_nothing(root):
    """A root looks the same afterwards, times included."""

    def state():
        return {path: (path.lstat().st_mode, path.lstat().st_mtime_ns, path.lstat().st_size) for path in root.rglob("*")}

    before = state()
    run_host_script(root)
    assert state() == before


def test_on_this_machine():
    """On the machine itself, whatever it is: it ends well, and what it prints can be read."""
    done = subprocess.run(["sh", "-s", "--", "--no-run"], input=host_script(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    seen, _ = read(done.stdout)
    assert seen.host.os["kernel"] == os.uname().release
    assert seen.host.os["architecture"] == os.uname().machine


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root, to give it up")
def test_without_root(root):
    """It ends well, and says what it could not see."""
    (root / "run/nvidia/nvidia-driver.pid").chmod(0o600)
    for folder in (root, *root.parents):
        if folder.stat().st_uid == 0 and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    command = ["setpriv", "--reuid=65534", "--clear-groups", "sh", "-s", "--", "--root", str(root)]
    done = subprocess.run(command, input=host_script(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    seen, findings = read(done.stdout)
    assert "on the host: it was run without root" in findings.all_unseen
    assert "on the host: /run/nvidia/nvidia-driver.pid cannot be read without root" in findings.all_unseen
    assert "on the host: nvidia-smi was not asked: that needs root" in findings.all_unseen
    assert seen.holders is None
    assert {module.name for module in seen.modules} == {"nvidia", "nvidia_modeset", "nvidia_uvm"}


def test_a_directory_and_the_script_tell_the_same(root):
    """`--root` looks at what the script would have told."""
    by_script, _ = read(run_host_script(root, "--no-run"))
    looked = read_host_root(DirectoryRoot(root), "n", RELEASE, Findings())
    assert dataclasses.replace(looked, holders=by_script.holders) == by_script


# --- nvidia-smi -----------------------------------------------------------------------------------------------------


@pytest.fixture
def smi(root):
    """Make an nvidia-smi of a shell's commands, in a root that has a static BusyBox."""
    shutil.copy(BUSYBOX, root / "bin/sh") if not (root / "bin/sh").is_symlink() else None
    (root / "usr/bin").mkdir(parents=True, exist_ok=True)

    def make(text, mode=0o755):
        (root / "usr/bin/nvidia-smi").write_text(f"#!/bin/sh\n{text}\n")
        (root / "usr/bin/nvidia-smi").chmod(mode)
        return run_host_script(root)

    return make


needs_root = pytest.mark.skipif(os.geteuid() != 0 or not BUSYBOX.exists(), reason="needs root and a static busybox")


@needs_root
@pytest.mark.parametrize(
    ("text", "stdout", "code"),
    [
        ("echo 580.82.07; echo 580.82.07", "580.82.07\n580.82.07\n", 0),
        ('[ "$1$2" = --query-gpu=driver_version--format=csv,noheader ] && printf yes', "yes", 0),
        ("echo no >&2; exit 9", "", 9),
        ("printf 'a\\n\\n  b'", "a\n\n  b", 0),
        ("read -r line; printf %s $?", "1", 0),
    ],
)
def test_what_nvidia_smi_says(smi, text, stdout, code):
    """As driver-manager asks it: in the node's root, along the image's PATH. The text is kept to the byte."""
    assert TextRoot(smi(text), "x").answer == (stdout, code)


@needs_root
def test_no_nvidia_smi(root, smi):
    """The shell's own exit code says that there is none."""
    text = smi("echo never", mode=0o644)
    answer = TextRoot(text, "x").answer
    assert answer is not None
    assert answer[1] in {126, 127}


@needs_root
def test_it_is_not_asked_where_that_would_load_the_module(root, smi):
    """The script only looks."""
    shutil.rmtree(root / "sys/module/nvidia")
    text = smi("touch /asked; echo 1")
    assert TextRoot(text, "x").answer is None
    assert not (root / "asked").exists()


def test_an_answer_that_the_model_would_give_is_not_fixed(tmp_path):
    """So that it changes when the host does; another one is taken for what it always says."""
    text = run_host_script(lay_out(load_host("ubuntu-24.04-driver-580-open"), tmp_path / "root"), "--no-run")

    def answering(stdout, code):
        lines = "".join(f"|{line}\n" for line in stdout.split("\n"))
        seen, findings = read(text.replace("end\n", f"a\t{code}\n{lines}\nend\n"))
        (program,) = seen.host.programs
        return program, [sentence for sentence in findings.all_assumed if "always says" in sentence]

    program, assumed = answering("580.82.07\n580.82.07\n", 0)
    assert (program.driver_version, assumed) == ("580.82.07", [])
    program, assumed = answering("Failed to initialize NVML\n", 18)
    assert (program.driver_version, program.stdout, program.exit_code) == ("", "Failed to initialize NVML\n", 18)
    assert assumed


# --- who holds what -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_holders(root, shell):
    """Processes that have a GPU open, with their pods, by GNU's tools and by BusyBox' own. Nobody else's are told."""
    uid = "a1b2c3d4-e5f6-4789-90ab-cdef01234567"
    for pid, name, cgroup, target in (
        ("4711", "python3", f"0::/kubepods.slice/kubepods-pod{uid.replace('-', '_')}.slice/cri-x.scope\n", "/dev/nvidia0"),
        ("4712", "nvidia-persiste", "0::/system.slice/x.service\n", "/dev/nvidiactl"),
        ("4713", "bash", f"0::/kubepods/burstable/pod{uid}/x\n", "/dev/null"),
        ("4714", "qemu", f"0::/kubepods/pod{uid}/x\n", "/dev/vfio/12"),
    ):
        folder = root / "proc" / pid
        (folder / "fd").mkdir(parents=True)
        (folder / "comm").write_text(f"{name}\n")
        (folder / "cgroup").write_text(cgroup)
        (folder / "fd/3").symlink_to(target)
    if os.geteuid() != 0:
        pytest.skip("needs root, as the script does")
    holders = TextRoot(run_host_script(root, "--no-run", shell=shell), "x").holders
    assert [(holder.pid, holder.command, holder.pod, holder.file) for holder in holders] == [
        ("4711", "python3", uid, "/dev/nvidia0"),
        ("4712", "nvidia-persiste", "", "/dev/nvidiactl"),
        ("4714", "qemu", uid, "/dev/vfio/12"),
    ]


@pytest.mark.parametrize("users", [0, 3])
def test_nobody_where_the_kernel_counts_somebody(root, users):
    """It is told as what could not be seen, and is no list of nobody."""
    (root / "proc/modules").write_text(f"nvidia 200 {users} - Live 0x0 (POE)\n")
    text = run_host_script(root, "--no-run")
    if "\nopen\n" not in text:
        text = text.replace("\nend\n", "\nopen\nend\n")
    seen, findings = read(text)
    assert seen.holders == (None if users else ())
    told = "which processes have a GPU open: the script found none, yet the kernel counts 3 handles of nvidia"
    assert (told in findings.all_unseen) == bool(users)


def test_modules_that_hold_each_other(root):
    """Counts without modules are handles; what has nothing to do with GPUs is left out; a count of - is none."""
    (root / "proc/modules").write_text(
        "nvidia_uvm 100 4 - Live 0x0 (POE)\n"
        "nvidia 200 26 nvidia_uvm,nv_peer_mem, Live 0x0 (POE)\n"
        "nv_peer_mem 10 0 - Live 0x0\n"
        "ib_core 10 2 nv_peer_mem,ib_uverbs, Live 0x0\n"
        "ib_uverbs 10 - - Live 0x0\n"
        "ext4 10 1 - Live 0x0\n"
        "drm 10 1 nouveau, Live 0x0\n"
        "nouveau 10 0 - Live 0x0\n"
    )
    seen, _ = read(run_host_script(root, "--no-run"))
    assert list(seen.modules) == [
        Module("nvidia_uvm", 100, users=4, taint="(POE)"),
        Module("nvidia", 200, ("nvidia_uvm", "nv_peer_mem"), 24, "(POE)"),
        Module("nv_peer_mem", 10, taint=""),
        Module("ib_core", 10, ("nv_peer_mem", "ib_uverbs"), taint=""),
        Module("ib_uverbs", 10, taint=""),
        Module("drm", 10, ("nouveau",), taint=""),
        Module("nouveau", 10, taint=""),
    ]


def test_virtual_functions(root):
    """They are no GPUs of their own."""
    function = root / "sys/bus/pci/devices/0000:18:00.4"
    shutil.copytree(root / "sys/bus/pci/devices/0000:18:00.0", function, symlinks=True)
    (function / "physfn").symlink_to("../0000:18:00.0")
    seen, findings = read(run_host_script(root, "--no-run"))
    assert [function.address for function in seen.pci] == ["0000:18:00.0", "0000:3b:00.0"]
    assert any("1 virtual function" in sentence for sentence in findings.all_assumed)


def test_what_cannot_be_seen(root):
    """No /proc/modules, no PCI bus, no mount table: told, and left to others."""
    (root / "proc/modules").unlink()
    (root / "proc/1/mountinfo").unlink()
    shutil.rmtree(root / "sys/bus")
    seen, findings = read(run_host_script(root, "--no-run"))
    assert (seen.modules, seen.pci) == (None, None)
    assert {"which kernel modules are loaded", "which PCI functions there are", "what is mounted below /run"} <= {
        *findings.all_unseen
    }


def test_an_output_that_is_cut(root):
    """It is told."""
    text = run_host_script(root, "--no-run")
    _, findings = read(text[: len(text) // 2])
    assert "the end of the host script's output: it is cut" in findings.all_unseen


def test_another_form():
    """A later script's output is refused, clearly."""
    with pytest.raises(InputError, match="run the script of this version again"):
        TextRoot("# dmsim host 2\n", "x")


def test_it_is_in_the_package():
    """The command prints it."""
    done = subprocess.run(
        [sys.executable, "-m", "simulator", "snapshot", "host-script"], capture_output=True, text=True, check=True
    )
    assert done.stdout == host_script()
