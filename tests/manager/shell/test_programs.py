"""rmmod, lsmod and umount as the script calls them."""

from __future__ import annotations

import pytest

from simulator.host.fake import FakeHost
from simulator.host.spec import File, HeldByPods, HostSpec, Module
from simulator.manager.shell.kmod import Kmod
from simulator.manager.shell.mounts import Umount, mount_table


class Said:
    def __init__(self):
        self.out, self.err = [], []

    def log(self, level, message):
        raise AssertionError(level, message)

    def stdout(self, text):
        self.out.append(text)

    def stderr(self, text):
        self.err.append(text)


def made(**host):
    return FakeHost(HostSpec("h", **host), ["/usr/bin"]), Said()


def test_rmmod_goes_on_after_a_module_that_stays():
    """One word for each; exit code 1 if any stays."""
    host, said = made(
        modules=(Module("a", used_by=("b",)), Module("b", users=1), Module("c"), Module("d")), delete_module={"d": "EPERM"}
    )
    assert Kmod(host, said).rmmod(["a", "b", "x-y", "c", "d"]) == 1
    assert said.err == [
        "rmmod: ERROR: Module a is in use by: b\n",
        "rmmod: ERROR: Module b is in use\n",
        "rmmod: ERROR: Module x_y is not currently loaded\n",
        "rmmod: ERROR: could not remove 'd': Operation not permitted\n",
        "rmmod: ERROR: could not remove module d: Operation not permitted\n",
    ]
    assert host.modules() == ("a", "b", "d")


def test_holders_are_known_without_the_table():
    """They are sysfs' own; without /proc/modules they come in the order of their names."""
    host, said = made(modules=(Module("a", used_by=("c", "b")), Module("b"), Module("c")))
    host.change({}, ["/proc/modules"])
    assert Kmod(host, said).rmmod(["a"]) == 1
    assert said.err[0] == "rmmod: ERROR: Module a is in use by: b c\n"


def test_a_module_that_went_lets_go():
    """What it used has one holder less."""
    host, said = made(modules=(Module("a", used_by=("b", "c")), Module("b"), Module("c")))
    assert Kmod(host, said).rmmod(["b", "c", "a"]) == 0
    assert host.modules() == ()


def test_lsmod():
    """Names and sizes of /proc/modules, counts and users of /sys/module; what is no module there is still listed."""
    host, said = made(modules=(Module("uvm", size=5), Module("nvidia", size=70, used_by=("uvm",), users=1)))
    assert Kmod(host, said).lsmod([]) == 0
    assert "".join(said.out).splitlines() == [
        "Module                  Size  Used by",
        "uvm                        5  0",
        "nvidia                    70  2 uvm",
    ]
    host, said = made(proc_modules=None)
    assert Kmod(host, said).lsmod([]) == 1
    assert said.err[-1] == "Error: could not get list of modules: No such file or directory\n"


@pytest.mark.parametrize(
    ("points", "parents"),
    [
        (["/a", "/a/b", "/a/b/c", "/a/d"], [-1, 0, 1, 0]),
        (["/a", "/a"], [-1, 0]),
        (["/a/b", "/a", "/a/b/c"], [-1, -1, 1]),
        (["/a", "/ab"], [-1, -1]),
    ],
)
def test_a_mount_is_on_the_mount_that_a_walk_meets(points, parents):
    """Also where an older one lies below it."""
    table = mount_table(points)
    assert [-1 if mount.parent is None else table.index(mount.parent) for mount in table] == parents


@pytest.mark.parametrize(
    ("mounts", "answers", "left", "code", "words"),
    [
        (("/run/d", "/run/d/x"), {}, (), 0, ""),
        (("/run/d", "/run/d/x"), {"/run/d/x": "EBUSY"}, ("/run/d", "/run/d/x"), 32, "umount: /run/d/x: target is busy.\n"),
        (("/run/d", "/run/d/x"), {"/run/d": "EPERM"}, ("/run/d",), 32, "umount: /run/d: must be superuser to unmount.\n"),
        (("/run/d",), {"/run/d": "EIO"}, ("/run/d",), 32, "umount: /run/d: umount failed: Input/output error.\n"),
        (("/run/d/x",), {}, ("/run/d/x",), 1, "umount: /run/d: not mounted\n"),
        (("/run/e",), {}, ("/run/e",), 1, "umount: /run/d: not found\n"),
        (("/run/d", "/run/d"), {}, ("/run/d",), 0, ""),
    ],
)
def test_umount_recursively(mounts, answers, left, code, words):
    """Children first; the first failure ends it; a path that is no mount point is left alone with what is below it."""
    host, said = made(mounts=mounts, umount=answers)
    assert Umount(host, said).run(["-l", "-R", "/run/d"]) == code
    assert (host.mounts(), "".join(said.err)) == (left, words)


def test_reference_counts_of_pods():
    """Handles that pods hold go with the last of them."""
    here = {"default/a", "default/b"}
    spec = HostSpec(
        "h",
        container_files=(File("/sys/module/nvidia/refcnt", "3\n"),),
        held_by_pods={"nvidia": HeldByPods(("default/a", "default/b"), 2)},
    )
    host = FakeHost(spec, ["/usr/bin"], here.__contains__)
    kmod = Kmod(host, Said())
    assert kmod.references("nvidia") == 3
    here.discard("default/a")
    assert kmod.references("nvidia") == 3
    here.clear()
    assert kmod.references("nvidia") == 1
