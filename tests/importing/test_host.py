"""A host made of a root says of the host check what the root would say."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.host.fake import FakeHost
from simulator.host.spec import KEYS, HostSpec, Package, read_host
from simulator.importing.roots import Root
from simulator.manager.releases import DEFAULT, NEWEST
from simulator.reading import parse_document
from simulator.report.hosts import judge
from simulator.writing import host_document, yaml_text
from tests.importing.made import (
    ARM,
    LIBC,
    LOADER,
    MODULE,
    NVIDIA_SMI,
    NVML,
    ORDINARY,
    PATH,
    SHELL,
    Description,
    Link,
    as_directory,
    as_tar,
    elf,
    imported,
)

SMI = "/usr/bin/nvidia-smi"
ANSWERS = b"#!/bin/sh\necho 580.82.07\n"


@pytest.fixture(params=["directory", "tar"])
def make(request, tmp_path):
    """Makes a root of a description: the same as a directory and as a tar archive."""

    def made(description: Description) -> Root:
        if request.param == "tar":
            return as_tar(description)
        return as_directory(Path(tempfile.mkdtemp(dir=tmp_path)), description)

    return made


def reread(host: HostSpec) -> HostSpec:
    return read_host(parse_document(yaml_text(host_document(host), ["x"]), "x.yaml"), host.name)


@pytest.mark.parametrize(
    ("added", "verdict", "code"),
    [
        pytest.param({}, False, 127, id="nothing"),
        pytest.param({SMI: ANSWERS}, True, 0, id="a script that answers"),
        pytest.param({"/opt/bin/nvidia-smi": ANSWERS}, False, 127, id="off the PATH"),
        pytest.param({SMI: (ANSWERS, 0o644)}, False, 126, id="not executable"),
        pytest.param({SMI: None}, False, 126, id="a directory"),
        pytest.param({SMI: b""}, False, 0, id="an empty file"),
        pytest.param({SMI: b"echo 1\n"}, True, 0, id="no shebang, so the shell runs it"),
        pytest.param({SMI: b"#!/bin/sh\necho 1 >&2\n"}, False, 0, id="on standard error only"),
        pytest.param({SMI: b"#!/bin/sh\necho\n"}, True, 0, id="an empty line is an answer"),
        pytest.param({SMI: b"#!/bin/sh\necho no\nexit 9\n"}, False, 9, id="text and failure"),
        pytest.param({SMI: b"#!/usr/bin/python3\nprint(1)\n"}, False, 127, id="interpreter missing"),
        pytest.param({SMI: b"#!/usr/bin/python3\nprint(1)\n", "/usr/bin/python3": b"x"}, True, 0, id="unknown, so it counts"),
        pytest.param({SMI: b'#!/bin/sh\nexec /opt/nvidia-smi "$@"\n'}, False, 127, id="hands over to nothing"),
        pytest.param({SMI: b'#!/bin/sh\nexec /opt/nvidia-smi "$@"\n', "/opt/nvidia-smi": ANSWERS}, True, 0, id="hands over"),
        pytest.param({SMI: b'#!/bin/sh\nexec /usr/bin/nvidia-smi "$@"\n'}, True, 0, id="starts itself"),
        pytest.param(
            {SMI: Link("/etc/alternatives/smi"), "/etc/alternatives/smi": Link("/opt/smi"), "/opt/smi": ANSWERS},
            True,
            0,
            id="links",
        ),
        pytest.param({SMI: Link("../../../../../opt/smi"), "/opt/smi": ANSWERS}, True, 0, id="a link past the top stays inside"),
        pytest.param({SMI: Link("/nowhere")}, False, 127, id="broken link"),
        pytest.param({SMI: Link(SMI)}, False, 126, id="a loop of links"),
        pytest.param({SMI: Link("../../..")}, False, 126, id="a link to the root itself"),
        pytest.param({SMI: Link("/run/smi"), "/run/smi": ANSWERS}, False, 127, id="/run is empty on a node"),
        pytest.param({SMI: elf(machine=ARM)}, False, 2, id="another architecture"),
        pytest.param({SMI: elf(machine=8)}, False, 2, id="an architecture without a name"),
        pytest.param({SMI: NVIDIA_SMI[:40]}, False, 127, id="truncated"),
        pytest.param({SMI: NVIDIA_SMI, **NVML, **MODULE}, True, 0, id="NVIDIA's, driver on disk"),
        pytest.param({SMI: NVIDIA_SMI, **NVML}, False, 9, id="NVIDIA's, no module"),
        pytest.param({SMI: NVIDIA_SMI, **MODULE}, False, 12, id="NVIDIA's, library missing"),
        pytest.param({SMI: elf(needed=("libx.so",)), **NVML, **MODULE}, False, 127, id="a library that is needed is missing"),
        pytest.param({SMI: elf(interpreter="/lib/ld-musl-x86_64.so.1")}, False, 127, id="loader missing"),
        pytest.param({SMI: elf(interpreter=None)}, True, 0, id="a static binary counts as one that answers"),
        pytest.param(
            {SMI: NVIDIA_SMI, **NVML, **MODULE, "/etc/modprobe.d/b.conf": b"blacklist nvidia\n"}, True, 0, id="the check loads it"
        ),
        pytest.param(
            {SMI: NVIDIA_SMI, **NVML, **MODULE, "/etc/modprobe.d/b.conf": b"install nvidia /bin/false\n"}, False, 9, id="denied"
        ),
    ],
)
def test_what_the_host_check_would_say(make, added, verdict, code):
    """For each nature of nvidia-smi: the verdict and exit code that a real chroot gave."""
    host = imported(make({**ORDINARY, **added})).host
    judgement = judge(host, DEFAULT)
    assert (judgement.host_check, judgement.exit_code) == (verdict, code)
    assert reread(host) == host


BUSYBOX = Path("/bin/busybox")


@pytest.mark.skipif(os.geteuid() != 0 or not BUSYBOX.exists(), reason="needs root and a static busybox")
@pytest.mark.parametrize(
    "added",
    [
        {},
        {SMI: ANSWERS},
        {SMI: b"echo 1\nexit 4\n"},
        {SMI: b""},
        {SMI: (ANSWERS, 0o644)},
        {SMI: None},
        {SMI: (ANSWERS, 0o644), "/sbin/nvidia-smi": ANSWERS},
        {SMI: b"#!/no/such\n", "/bin/nvidia-smi": ANSWERS},
        {SMI: b"#!/bin/sh\necho -n >&2\nexit 3\n", "/bin/nvidia-smi": ANSWERS},
        {SMI: b'#!/bin/sh\nexec /opt/smi "$@"\n', "/opt/smi": ANSWERS},
        {SMI: b'#!/bin/sh\nexec /opt/smi "$@"\n'},
        {SMI: b'#!/bin/sh\nexec /opt/smi "$@"\n', "/opt/smi": (ANSWERS, 0o644)},
        {SMI: Link("../../../opt/smi"), "/opt/smi": ANSWERS},
        {SMI: Link("/nowhere")},
        {SMI: Link(SMI)},
        {SMI: Link("/")},
        {SMI: elf(interpreter="/no/loader")},
        {SMI: NVIDIA_SMI[:4]},
    ],
)
def test_a_real_chroot_says_the_same(tmp_path, added):
    """The import and the model together, against the kernel, a real chroot and a real shell: exit code and output.

    What a shell makes of a binary of another architecture depends on its bytes, so that is not among the cases.
    """
    shell = BUSYBOX.read_bytes()
    host = imported(as_directory(tmp_path, {"/bin/sh": shell, **added})).host
    query = ["chroot", str(tmp_path), "nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    done = subprocess.run(
        query, env={"PATH": ":".join(PATH)}, executable=shutil.which("chroot"), capture_output=True, text=True, check=False
    )
    answer = FakeHost(host, ("/usr/bin", *PATH)).commands.chroot(("chroot", "/host", *query[2:]), PATH)
    assert (answer.exit_code, answer.stdout) == (done.returncode, done.stdout)


@pytest.mark.parametrize(
    ("root", "code"),
    [
        ({SMI: ANSWERS}, 127),
        ({SMI: b"echo 1\n"}, 127),
        ({SMI: elf(interpreter=None), **SHELL}, 0),
        ({SMI: ANSWERS, **SHELL}, 0),
        ({SMI: ANSWERS, "/bin/sh": (b"x", 0o644)}, 126),
        ({SMI: NVIDIA_SMI, **NVML, **MODULE, **SHELL, **LIBC}, 127),
        ({SMI: NVIDIA_SMI, **NVML, **MODULE, **SHELL, **LOADER, **LIBC}, 0),
    ],
)
def test_nothing_is_made_up_for_a_root_that_lacks_it(make, root, code):
    """Where shell, modprobe or loader are missing, the host has none."""
    host = imported(make(root)).host
    assert host.root == "empty"
    assert judge(host, DEFAULT).exit_code == code


def test_a_later_release_looks_into_busybox(make):
    """Every place in which any release looks is imported."""
    host = imported(make({**ORDINARY, "/busybox/nvidia-smi": ANSWERS})).host
    assert not judge(host, DEFAULT).host_check
    assert judge(host, NEWEST).host_check


def test_what_is_known_of_a_system(make):
    """Name, version, kernel, architecture, modules, and packages with dpkg's status."""
    status = (
        "Package: nvidia-utils-580\nStatus: install ok installed\nArchitecture: amd64\nVersion: 580.82.07-0ubuntu1\n\n"
        "Package: libnvidia-compute-580\nStatus: deinstall ok config-files\nArchitecture: amd64\nVersion: 1\n\n"
        "Package: libnvidia-compute-580\nStatus: hold ok installed\nArchitecture: i386\nVersion: 1\n\n"
        "Package: nvidia-dkms-580\nStatus: install ok half-configured\nVersion: 1\n\n"
        "Package: bash\nStatus: install ok installed\nVersion: 1\n"
    )
    found = imported(
        make(
            {
                **ORDINARY,
                **MODULE,
                "/lib/modules/6.8.0-9-generic/kernel/nouveau.ko": b"",
                "/lib/modules/6.8.0-79-generic/kernel/drivers/net/mlx5_core.ko.xz": b"",
                "/lib/modules/6.8.0-79-generic/updates/dkms/nvidia-current-drm.ko": b"",
                "/lib/modules/6.8.0-79-generic/kernel/ext4.ko": b"",
                "/etc/os-release": Link("../usr/lib/os-release"),
                "/usr/lib/os-release": b'NAME="Ubuntu"\nVERSION_ID="24.04"\n',
                "/var/lib/dpkg/status": status.encode(),
            }
        )
    )
    host = found.host
    assert host.os == {"name": "Ubuntu", "version": "24.04", "kernel": "6.8.0-79-generic", "architecture": "x86_64"}
    assert host.installable == ("mlx5_core", "nvidia", "nvidia_drm")
    assert host.packages == {
        "libnvidia-compute-580": Package("1", "rc"),
        "libnvidia-compute-580:i386": Package("1", "hi", depends=""),
        "nvidia-dkms-580": Package("1", "iF", depends=""),
        "nvidia-utils-580": Package("580.82.07-0ubuntu1", depends=""),
    }
    assert [(function.driver, module.name) for function, module in zip(host.pci, host.modules, strict=True)] == [
        ("nvidia", "nvidia")
    ]
    assert found.assumed == (
        "It runs kernel 6.8.0-79-generic, the highest of 2 that have modules in /lib/modules.",
        "It has one GPU, 0000:01:00.0 (10de:2236), on nvidia, whose module is on disk and loads at boot.",
    )


def test_what_vfio_manage_reads(make):
    """The aliases of vfio drivers, of the running kernel; no other line of that long file."""
    path = "/lib/modules/6.8.0-79-generic/modules.alias"
    lines = b"alias pci:v000010DEd* nvidia\nalias vfio_pci:v*d*sv*sd*bc*sc*i* vfio_pci\n"
    host = imported(make({**ORDINARY, **MODULE, path: lines})).host
    assert [file.text for file in host.files if file.path == path] == ["alias vfio_pci:v*d*sv*sd*bc*sc*i* vfio_pci\n"]
    without = imported(make({**ORDINARY, "/lib/modules/6.1.0/modules.alias": b"alias x y\n"})).host
    assert not any("modules.alias" in file.path for file in without.files)


def test_a_driver_that_is_not_built_is_told(make):
    """An image that was made without kernel headers has the source only, and a node may build it at boot."""
    source = {**ORDINARY, "/usr/src/nvidia-580.82.07/dkms.conf": b"", SMI: NVIDIA_SMI, **NVML}
    found = imported(make(source))
    assert "The driver in /usr/src/nvidia-580.82.07 is not built: no module of that name is in /lib/modules." in found.assumed
    assert judge(found.host, DEFAULT).exit_code == 9


def test_what_nvidias_installer_leaves(make):
    """Its uninstaller, a link, and its log: that they are there."""
    added = {
        "/usr/bin/nvidia-uninstall": Link("nvidia-installer"),
        "/usr/bin/nvidia-installer": b"x",
        "/var/lib/nvidia/log": (b"580.82.07\n", 0o644),
    }
    host = imported(make({**ORDINARY, **added})).host
    assert host.links["/usr/bin/nvidia-uninstall"] == "nvidia-installer"
    assert {"/usr/bin/nvidia-installer", "/var/lib/nvidia/log"} <= {file.path for file in host.files}


def test_nouveau_takes_the_gpu_unless_it_is_blacklisted(make):
    """Without NVIDIA's module the GPU is nouveau's, if anybody's."""
    modules = {**ORDINARY, "/lib/modules/6.1.0/kernel/nouveau.ko": b""}
    assert imported(make(modules)).host.pci[0].driver == "nouveau"
    blacklisted = imported(make({**modules, "/usr/lib/modprobe.d/x.conf": b"blacklist nouveau\n"})).host
    assert blacklisted.pci[0].driver == ""
    assert not blacklisted.modules


@pytest.mark.parametrize(
    ("root", "given", "architecture"),
    [
        ({"/bin/sh": elf(machine=ARM)}, "", "aarch64"),
        ({"/lib/ld-linux-aarch64.so.1": b"x"}, "", "aarch64"),
        ({"/lib/ld-linux-aarch64.so.1": b"x"}, "ppc64le", "ppc64le"),
        ({"/bin/sh": elf(machine=3)}, "", "x86_64"),
        ({"/bin/sh": elf()[:20]}, "", "x86_64"),
    ],
)
def test_the_architecture(make, root, given, architecture):
    """The shell tells, else the image, else the loader that is there; else it is assumed."""
    found = imported(make(root), given)
    assert found.host.architecture == architecture
    assert any("The machine is" in sentence for sentence in found.assumed) == (architecture == "x86_64")


def test_what_a_longer_script_prints_is_assumed(make):
    """It counts as one that answers, with the version that the library has, and that is said."""
    found = imported(make({**ORDINARY, **NVML, SMI: b"#!/bin/sh\ncat /proc/driver/nvidia/version\n"}))
    assert found.host.programs[0].stdout == "580.82.07\n"
    assert f'{SMI} is a script that does more than print fixed text: it prints "580.82.07" and exits with 0.' in found.assumed
    assert next(iter(found.comments)) == "Assumed:"


def test_the_version_of_a_driver_without_its_library(make):
    """The package tells it, where there is one."""
    status = b"Package: nvidia-utils-580\nStatus: install ok installed\nVersion: 580.95.05-0ubuntu1\n"
    found = imported(make({**ORDINARY, SMI: NVIDIA_SMI, "/var/lib/dpkg/status": status}))
    assert (found.host.programs[0].driver_version, found.host.programs[0].state) == ("580.95.05", "library-missing")


def test_a_version_that_nothing_tells(make):
    """It is 0.0, and that is said."""
    unknown = imported(make({**ORDINARY, SMI: NVIDIA_SMI}))
    assert unknown.host.programs[0].driver_version == "0.0"
    assert any("of driver 0.0" in sentence for sentence in unknown.assumed)


def test_libraries_are_found_as_the_loader_finds_them(make):
    """By its own path, by ld.so.conf and what it includes; what they need in turn too."""
    root = {
        **ORDINARY,
        SMI: elf(needed=("liba.so", "libb.so", "libc.so.6"), runpath="$ORIGIN/../own:/x"),
        "/usr/own/liba.so": elf(interpreter=None, needed=("libd.so",)),
        "/opt/lib/libb.so": b"x",
        "/etc/ld.so.conf": b"include /etc/ld.so.conf.d/*.conf\n",
        "/etc/ld.so.conf.d/opt.conf": b"# ours\n/opt/lib\n",
    }
    (program,) = imported(make(root)).host.programs
    assert program.needs == ("/usr/own/liba.so", "/opt/lib/libb.so", "/lib/x86_64-linux-gnu/libc.so.6", "/opt/lib/libd.so")
    assert judge(imported(make({**root, "/opt/lib/libd.so": b"x"})).host, DEFAULT).exit_code == 0


def test_names_that_are_no_utf_8_are_not_imported(tmp_path):
    """A host file cannot hold them; what is reached only so counts as missing, and that is said."""
    root = as_directory(tmp_path, {**ORDINARY, SMI: Link("/opt/\udcff"), "/opt/\udcff": ANSWERS})
    found = imported(root)
    assert not found.host.programs
    assert any("no UTF-8" in sentence for sentence in found.assumed)
    assert reread(found.host) == found.host


def test_control_characters_survive_and_cannot_leave_a_comment(make):
    """A name may hold a line feed or an escape; the file is still one, and its comments are lines."""
    found = imported(make({**ORDINARY, SMI: Link("/opt/a\n\x1b[1m"), "/opt/a\n\x1b[1m": b"#!/bin/perl\nx\n", "/bin/perl": b"x"}))
    text = yaml_text(host_document(found.host), found.comments)
    assert read_host(parse_document(text, "x.yaml"), "x") == found.host
    assert "\x1b" not in text


names = st.sampled_from(
    ["usr", "bin", "nvidia-smi", "sh", "lib64", "lib", "etc", "opt", "modules", "..", "run", "sbin", "x\n", "modprobe.d", "a.conf"]
)
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
texts = st.sampled_from(
    [b"", ANSWERS, NVIDIA_SMI, NVIDIA_SMI[:70], b"#!\n", b"#!/bin/sh -e", b"#!../x\necho 1", b"\xff\0", b"blacklist nvidia\n"]
) | st.binary(max_size=40)
things = st.one_of(
    st.tuples(texts, st.sampled_from([0o755, 0o644, 0o4000])), paths.map(Link), paths.map(lambda path: Link(f"/{path}")), st.none()
)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.dictionaries(paths, things, max_size=12))
def test_any_root_makes_a_host(description):
    """Whatever a root holds, the host made of it can be written, read and asked."""
    host = imported(as_tar({**SHELL, **description})).host
    assert reread(host) == host
    judge(host, NEWEST)


def test_every_key_of_a_host_file_that_is_written_is_known(make):
    """The document has no key of its own."""
    assert set(host_document(imported(make({**ORDINARY, SMI: NVIDIA_SMI, **NVML, **MODULE})).host)) <= set(KEYS)


def test_the_machine_this_runs_on_is_a_root_too():
    """A real root with real binaries is imported without a word about damage."""
    from simulator.importing.roots import DirectoryRoot

    found = imported(DirectoryRoot(Path("/")))
    assert found.host.root in {"normal", "empty"}
    assert reread(found.host) == found.host
