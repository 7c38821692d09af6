"""A host's tree on disk is the tree of the simulated runner."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.host.fake import FakeHost
from simulator.host.spec import File, HostSpec, Module, PciFunction, Program
from simulator.runners.container.layout import Drawer, changes, lay_out
from simulator.runners.container.scripts import HELPER, OURS
from simulator.runners.container.unfit import Unfit
from simulator.scenario import load_host, names

PATH = ("/usr/local/bin", "/usr/bin", "/bin")
BUSYBOX = shutil.which("busybox")


@pytest.fixture
def laid_out(tmp_path):
    """Lay a host out; the layout, and the texts for the container."""

    def make(spec, **settings):
        ours, tree = tmp_path / "ours", tmp_path / "tree"
        ours.mkdir()
        tree.mkdir()
        (ours / "busybox").write_bytes(b"\x7fELF")
        arguments = {"helpers": {}, "replaced": {}, **settings}
        return lay_out(spec, tree, Drawer(ours), ours / "busybox", PATH, **arguments)

    return make


def on_disk(folder):
    """What is below a folder: path -> kind, mode, target."""
    out = {}
    for base, directories, files in os.walk(folder):
        for name in (*directories, *files):
            path = Path(base) / name
            status = path.lstat()
            out[f"/{path.relative_to(folder)}"] = (
                stat.S_IFMT(status.st_mode),
                None if path.is_symlink() else stat.S_IMODE(status.st_mode),
                str(path.readlink()) if path.is_symlink() else "",
            )
    return out


@pytest.mark.parametrize("name", [name for name in names("hosts") if name != "no-host-root"])
def test_every_path_of_a_named_host_is_there_and_nothing_else(name, laid_out):
    spec = load_host(name)
    found = on_disk(laid_out(spec).tree)
    tree = FakeHost(replace(spec, mounts=()), PATH).tree.snapshot()
    expected = {path.rstrip("/") for path in tree if path.startswith(("/host", "/run", "/sys"))}
    assert found.keys() - expected == {"/host/.dmsim", "/host/.dmsim/busybox"}
    assert expected <= found.keys()
    links = {path: text[3:] for path, text in tree.items() if text.startswith("-> ") and path in expected}
    assert {path: found[path][2] for path in links} == links


def test_a_host_without_a_root_has_none(laid_out):
    layout = laid_out(HostSpec("test", root="absent"))
    assert layout.mounted == ["run", "sys"]


def test_files_have_their_text_and_programs_their_mode(laid_out):
    spec = HostSpec(
        "test",
        files=(File("/run/nvidia/nvidia-driver.state", "digest\n"), File("/etc/os-release", "ID=a\n")),
        programs=(Program("/usr/bin/nvidia-smi", mode=0o640),),
        directories=("/run/mellanox/drivers",),
    )
    tree = laid_out(spec).tree
    assert (tree / "run/nvidia/nvidia-driver.state").read_text() == "digest\n"
    assert (tree / "host/etc/os-release").read_text() == "ID=a\n"
    assert stat.S_IMODE((tree / "host/usr/bin/nvidia-smi").stat().st_mode) == 0o640
    assert (tree / "run/mellanox/drivers").is_dir()


def test_what_lies_below_a_mount_is_there_and_the_mount_is_not_made(laid_out):
    spec = HostSpec("test", files=(File("/run/nvidia/driver/hidden", "x"),), mounts=("/run/nvidia/driver",))
    assert (laid_out(spec).tree / "run/nvidia/driver/hidden").read_text() == "x"


def test_a_drivers_control_files_are_named_pipes(laid_out):
    spec = HostSpec("test", pci=(PciFunction("0000:3b:00.0", "0x10de", driver="vfio-pci"),))
    layout = laid_out(spec)
    assert set(layout.controls) == {f"/sys/bus/pci/drivers/vfio-pci/{name}" for name in ("bind", "unbind")}
    assert all(stat.S_ISFIFO(place.stat().st_mode) for place in layout.controls.values())
    assert str((layout.tree / "sys/bus/pci/devices/0000:3b:00.0/driver").readlink()) == "/sys/bus/pci/drivers/vfio-pci"


def test_the_modules_file_is_told_apart(laid_out):
    assert laid_out(HostSpec("test", modules=(Module("nvidia"),))).modules.startswith("nvidia 16384 0 - Live")


@pytest.mark.parametrize(("text", "expected"), [(None, None), ("", "")])
def test_a_kernel_may_have_no_modules_file(text, expected, laid_out):
    assert laid_out(HostSpec("test", proc_modules=text)).modules == expected


def test_the_containers_own_files_are_put_there_by_command(laid_out):
    spec = HostSpec("test", container_files=(File("/etc/kube config", "a", 0o600), File("/run/x", "b")))
    layout = laid_out(spec, replaced={"/etc/kube config": "other"})
    assert layout.commands == f"put {OURS}/text-1 '/etc/kube config' 600\n"
    assert (layout.tree.parent / "ours/text-1").read_text() == "other"
    assert (layout.tree / "run/x").read_text() == "b"


def test_stand_ins_take_the_place_of_the_images_programs(laid_out):
    spec = HostSpec("test", container_programs={"chroot": None, "vfio-manage": Program("/usr/bin/vfio-manage", exit_code=3)})
    commands = laid_out(spec, helpers={"chroot": "/busybox/chroot"}).commands.splitlines()
    assert commands == [
        *(f"drop {directory}/chroot" for directory in PATH),
        *(f"drop {directory}/vfio-manage" for directory in PATH),
        f"put {OURS}/text-1 /usr/bin/vfio-manage 755",
    ]


def test_an_images_own_program_is_found_on_the_worlds_path(laid_out):
    layout = laid_out(HostSpec("test"), helpers={"chroot": "/busybox/chroot"})
    assert layout.commands == f"on_path /busybox/chroot {' '.join(PATH)}\n"


# --- programs of the host ---------------------------------------------------------------------------------------------


@pytest.fixture
def run(laid_out, tmp_path):
    """Lay a host out and run one of its programs' scripts by BusyBox, not in a root of its own."""
    if BUSYBOX is None:
        pytest.skip("there is no busybox")

    def script(spec, path):
        text = (laid_out(spec).tree / f"host{path}").read_text()
        body = tmp_path / "script"
        body.write_text(text.replace(HELPER, BUSYBOX))
        return text, subprocess.run([BUSYBOX, "sh", body], capture_output=True, text=True, check=False)

    return script


def test_a_fixed_answer_is_said(run):
    spec = HostSpec("test", programs=(Program("/usr/bin/nvidia-smi", "it's 5%s\\n\n", "boom\n", 9),))
    text, result = run(spec, "/usr/bin/nvidia-smi")
    assert text.startswith("#!/bin/sh\n")
    assert (result.stdout, result.stderr, result.returncode) == ("it's 5%s\\n\n", "boom\n", 9)


def test_nvidia_smi_says_what_the_model_says(run):
    text, result = run(load_host("ubuntu-24.04-driver-580-open"), "/usr/bin/nvidia-smi")
    assert text.startswith("#!/lib64/ld-linux-x86-64.so.2\n")
    assert (result.stdout, result.returncode) == ("580.82.07\n580.82.07\n", 0)


def test_asking_nvidia_smi_loads_the_module(laid_out):
    spec = replace(load_host("ubuntu-24.04-driver-580-open"), modules=(), pci=(PciFunction("0000:3b:00.0", "0x10de"),))
    text = (laid_out(spec).tree / "host/usr/bin/nvidia-smi").read_text()
    assert f"{HELPER} mkdir -p /sys/module/nvidia/\n" in text
    assert f"{HELPER} ln -sfn /sys/bus/pci/drivers/nvidia /sys/bus/pci/devices/0000:3b:00.0/driver\n" in text
    assert "580.82.07" in text


def test_a_script_without_an_interpreter_names_none(run):
    text, result = run(HostSpec("test", programs=(Program("/opt/x", "y\n", interpreter=None),)), "/opt/x")
    assert not text.startswith("#!")
    assert result.stdout == "y\n"


def test_a_foreign_program_is_nothing_that_the_kernel_executes(run):
    text, result = run(load_host("foreign-architecture"), "/usr/local/bin/nvidia-smi")
    assert not text.startswith("#!")
    assert result.returncode == 2


def test_interpreters_read_what_they_are_given(laid_out):
    tree = laid_out(load_host("ubuntu-24.04-driver-580-open")).tree
    assert '. "$script"' in (tree / "host/lib64/ld-linux-x86-64.so.2").read_text()
    assert (tree / "host/bin/sh").read_bytes() == b"\x7fELF"


def test_a_program_that_takes_something_away_is_unfit(laid_out, monkeypatch):
    spec = HostSpec("test", programs=(Program("/usr/bin/nvidia-smi", driver_version="580.82.07"),), files=(File("/etc/x", ""),))
    from simulator.host.commands import Commands

    answer = Commands.answer

    def takes(commands, program):
        commands.tree.remove_tree("/host/etc/x")
        return answer(commands, program)

    monkeypatch.setattr(Commands, "answer", takes)
    with pytest.raises(Unfit, match="/host/etc/x"):
        laid_out(spec)


# --- what changes -----------------------------------------------------------------------------------------------------


def test_changes_are_what_went_what_came_and_what_is_another():
    before = {"/sys/a/": "", "/sys/a/b/": "", "/sys/a/b/c": "x", "/sys/ab": "", "/sys/d": "1", "/proc/modules": "nvidia"}
    after = {"/sys/ab": "", "/sys/d": "it's", "/sys/e/": "", "/sys/f": "-> /sys/e"}
    assert changes(before, after) == (
        "drop /proc/modules /sys/a\n"
        """$b printf %s 'it'"'"'s' >/sys/d\n"""
        "$b mkdir -p /sys/e/\n"
        "$b ln -sfn /sys/e /sys/f\n"
    )


def test_no_change_is_no_command():
    assert changes({"/a": "x"}, {"/a": "x"}) == ""
