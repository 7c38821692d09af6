"""The images of host kinds: real apt, dpkg and an uninstaller act in them, and the host check says of each what it should."""

from __future__ import annotations

import os

import pytest

from simulator import images
from simulator.importing.sources import import_image
from simulator.manager.releases import DEFAULT
from simulator.reading import InputError
from simulator.report.hosts import judge
from simulator.scenario import load_host

NAMED = {
    "clean": "clean",
    "package": "ubuntu-24.04-driver-580-open",
    "run": "runfile-580",
    "converged": "converged-gpu-rdma",
}
"""Kind -> the named host that it is an example of."""
DRIVER = "nvidia-driver-580-open"
RDMA = {"doca-ofed", "rdma-core", "libibverbs1", "ucx", "mlnx-ofed-kernel-dkms"}


@pytest.fixture(scope="module")
def built(docker_engine):
    """All kinds, built."""
    assert tuple(NAMED) == images.KINDS
    return images.build(docker_engine)


@pytest.fixture
def shell(built, docker_engine):
    """Starts a container of a kind: a function that runs a shell command there and gives its exit code and lines."""
    containers = []

    def start(kind):
        container = docker_engine.containers.run(
            built[kind], ["sleep", "600"], detach=True, network_mode="none", labels={"dmsim": f"test-{os.getpid()}"}
        )
        containers.append(container)

        def run(command):
            code, output = container.exec_run(["sh", "-c", command], environment={"DEBIAN_FRONTEND": "noninteractive"})
            return code, output.decode().splitlines()

        return run

    yield start
    for container in containers:
        container.remove(force=True)


def simulated(lines, word):
    """The packages of `apt-get -s` lines that begin with a word."""
    return [line.split()[1] for line in lines if line.startswith(f"{word} ")]


@pytest.mark.container
@pytest.mark.parametrize("kind", NAMED)
def test_the_host_check_says_of_an_image_what_it_says_of_the_named_host(built, shell, kind):
    """Imported, an image of a kind gets the verdict of that kind; and so says its own nvidia-smi, run."""
    host = import_image(built[kind]).host
    expected = load_host(NAMED[kind])
    judgement = judge(host, DEFAULT)
    assert expected.verdict is not None
    assert judgement.host_check == expected.verdict.host_check
    assert judgement.exit_code == judge(expected, DEFAULT).exit_code
    assert shell(kind)("nvidia-smi --query-gpu=driver_version --format=csv,noheader")[0] == judgement.exit_code
    assert host.root == "normal"
    assert set(host.installable) >= {*expected.installable}
    assert set(host.packages) >= {name for name in expected.packages if "nvidia" in name}


@pytest.mark.container
def test_dpkg_query_lists_names_that_are_merely_known(shell):
    """Installed packages, each architecture; names that are only mentioned, as `un`; 1 for a pattern that matches nothing."""
    run = shell("package")
    code, lines = run("dpkg-query -W -f '${db:Status-Abbrev}|${binary:Package}\\n' 'nvidia-*' 'libnvidia-*' 'cuda-*' 2>/dev/null")
    assert code == 1
    assert {"ii |nvidia-utils-580", "ii |libnvidia-compute-580:amd64", "ii |libnvidia-compute-580:i386"} <= set(lines)
    assert {"un |libnvidia-ml1", "un |nvidia-smi", "un |nvidia-driver-580", "un |nvidia-persistenced"} <= set(lines)
    assert "xserver-xorg-video-nvidia-580" not in "".join(lines), "the patterns miss it"


@pytest.mark.container
def test_purging_the_driver_leaves_its_parts_until_autoremove(shell):
    """The meta package alone takes nothing along. What came with it goes by autoremove, but for configuration and i386."""
    run = shell("package")
    assert run("nvidia-smi") == (0, ["580.82.07"])
    assert run(f"apt-get purge -qy {DRIVER}")[0] == 0
    assert run("nvidia-smi")[0] == 0, "nvidia-utils-580 is still there"
    assert run("apt autoremove -y")[0] == 0
    assert run("nvidia-smi")[0] == 127
    code, lines = run("dpkg-query -W -f '${db:Status-Abbrev}|${binary:Package}\\n' 'nvidia-*' 'libnvidia-*' | grep -v ^un")
    assert code == 0
    assert lines == ["rc |libnvidia-compute-580:amd64", "ii |libnvidia-compute-580:i386", "rc |nvidia-kernel-common-580"]
    assert run("ls /etc/modprobe.d; find /lib/modules -name '*.ko'")[1] == ["nvidia-graphics-drivers-kms.conf"]


@pytest.mark.container
def test_apt_and_apt_get_take_patterns_differently(shell):
    """apt: a glob that matches nothing aborts. apt-get: it is tried as a regular expression too, so it may remove strangers."""
    run = shell("package")
    code, lines = run("apt purge -s -y 'nvidia-utils-580' 'zz-*' 2>&1")
    assert code == 100
    assert "E: Couldn't find any package by glob 'zz-*'" in lines
    assert simulated(lines, "Purg") == []
    code, lines = run("apt-get purge -s -y 'utils-5*'")
    assert code == 0
    assert {"nvidia-utils-580", "nvidia-compute-utils-580"} <= set(simulated(lines, "Purg"))


@pytest.mark.container
def test_a_purge_may_install_the_other_flavour(shell):
    """Where an installed package depends on either, apt swaps the purged one for its sibling."""
    run = shell("package")
    assert run("apt-get install -qy cuda-drivers-580 nvidia-peermem-loader nvidia-gds")[0] == 0
    _, lines = run(f"apt-get purge -s {DRIVER} nvidia-dkms-580-open")
    assert set(simulated(lines, "Inst")) == {"nvidia-driver-580", "nvidia-dkms-580", "nvidia-kernel-source-580"}
    _, lines = run("apt-get purge -s 'nvidia-*'")
    assert simulated(lines, "Inst") == []


@pytest.mark.container
def test_autoremove_takes_rdma_unless_it_is_marked_as_asked_for(shell):
    """The hazard of a common meta package: with it goes the mark that something needs RDMA."""
    run = shell("converged")
    code, lines = run(f"apt-get purge -qy {DRIVER} nvidia-dkms-580-open | grep Removing")
    assert code == 0
    assert {line.split()[1].partition(":")[0] for line in lines} == {
        "site-gpu-rdma-stack",
        DRIVER,
        "nvidia-peermem-loader",
        "nvidia-dkms-580-open",
        "nvidia-kernel-source-580-open",
    }
    gone = set(simulated(run("apt-get autoremove -s")[1], "Remv"))
    assert RDMA | {"nvidia-fs", "nvidia-fs-dkms", "nvidia-mlnx-ofed-misc", "nvidia-utils-580"} <= gone
    run("apt-mark manual doca-ofed rdma-core")
    gone = set(simulated(run("apt-get autoremove -s")[1], "Remv"))
    assert not RDMA & gone
    assert {"nvidia-fs", "nvidia-fs-dkms", "nvidia-mlnx-ofed-misc", "nvidia-utils-580"} <= gone


@pytest.mark.container
def test_nvidia_uninstall_removes_what_it_installed(shell):
    """It goes by its log, leaves what was changed since, and exits with 0 even where nothing is left to do."""
    run = shell("run")
    assert run("nvidia-smi") == (0, ["580.82.07"])
    assert run("dpkg-query -W 'nvidia-*' 'libnvidia-*'")[0] == 1, "no package knows of it"
    assert run("head -n 1 /var/lib/nvidia/log") == (0, ["580.82.07"])
    run(
        "echo changed >> /etc/modprobe.d/nvidia-installer-disable-nouveau.conf; cp /usr/bin/nvidia-installer /root/nvidia-uninstall"
    )
    code, lines = run("nvidia-uninstall -s")
    assert code == 0
    altered = "Your driver installation has been altered since it was initially installed: "
    assert lines == [f"{altered}/etc/modprobe.d/nvidia-installer-disable-nouveau.conf is left."]
    assert run("nvidia-smi")[0] == 127
    assert (
        run("ls /usr/bin/nvidia-* /var/lib/nvidia 2>/dev/null; find / -xdev -name 'nvidia*.ko' -o -xdev -name 'libnvidia-ml*'")[1]
        == []
    )
    assert run("/root/nvidia-uninstall -s") == (0, ["There is no NVIDIA driver currently installed."])


# --- without an engine ----------------------------------------------------------------------------------------------------


def test_a_minimal_debian_is_made_once(tmp_path):
    """What the cache has is taken."""
    archive = tmp_path / "debian-bookworm-minbase-kmod.tar"
    archive.write_bytes(b"x")
    assert images.minimal_debian(tmp_path) == archive


@pytest.mark.parametrize("lacks", ["root", "debootstrap"])
def test_what_making_it_needs(tmp_path, monkeypatch, lacks):
    """Root, and debootstrap; the error says so."""
    monkeypatch.setattr(images.os, "geteuid", lambda: 1000 if lacks == "root" else 0)
    monkeypatch.setattr(images.shutil, "which", lambda _: None if lacks == "debootstrap" else "/usr/sbin/debootstrap")
    with pytest.raises(
        InputError, match="a minimal Debian is made by root, with debootstrap; become root and install it, or name a --base"
    ):
        images.minimal_debian(tmp_path / "cache")


def test_debootstrap_may_fail(tmp_path, monkeypatch):
    """Its last words are told, and nothing is left in the cache."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "debootstrap").write_text("#!/bin/sh\necho E: no mirror\nexit 1\n")
    (folder / "debootstrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(images.os, "geteuid", lambda: 0)
    with pytest.raises(InputError, match="debootstrap failed; it said: E: no mirror"):
        images.minimal_debian(tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_what_debootstrap_makes_is_kept(tmp_path, monkeypatch):
    """As an archive, without device files and caches; the next time it is there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = '#!/bin/sh\nfor d in etc dev var/cache/apt; do mkdir -p "$4/$d"; : > "$4/$d/x"; done\necho "$@" > "$4/etc/arguments"\n'
    (folder / "debootstrap").write_text(script)
    (folder / "debootstrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(images.os, "geteuid", lambda: 0)
    archive = images.minimal_debian(tmp_path / "cache")
    from simulator.importing.archive import TarRoot

    with archive.open("rb") as file:
        root = TarRoot("x", file)
        assert root.names("/etc") == ["arguments", "x"]
        assert root.read("/etc/arguments", 100).startswith(b"--variant=minbase --include=kmod bookworm ")
        assert root.names("/dev") == root.names("/var/cache/apt") == []
    assert list((tmp_path / "cache").iterdir()) == [archive]


def test_an_unknown_kind_is_one_error(capsys):
    """With the nearest ones."""
    assert images.main(["packages"]) == 2
    assert capsys.readouterr().err == 'python -m simulator.images: there is no kind of image "packages"; did you mean package?\n'


@pytest.mark.parametrize(("variable", "place"), [("/x", "/x/dmsim"), ("", "/home/u/.cache/dmsim")])
def test_where_it_is_kept(monkeypatch, variable, place):
    """In the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", variable)
    monkeypatch.setenv("HOME", "/home/u")
    assert str(images.default_cache()) == place
