"""The real host: the same acts on the same tree end as on the fake host; the kernel's answers are passed on."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.gocompat import PathError
from simulator.host.fake import FakeHost
from simulator.host.spec import HostSpec
from simulator.ports import CommandNotFound, IoFailure
from simulator.real import host as module
from simulator.real.host import RealHost

NAMES = st.sampled_from(["a", "b", "ü", "a b", "n" * 256])
TARGETS = st.sampled_from(["a", "b", "./a", "../a", "../b/a", "a/b", ".", "..", "/a", "/b/a", "/", "missing"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
TREES = st.dictionaries(
    PATHS.filter(lambda path: "nn" not in path),
    st.one_of(st.just(None), st.text("xy\n", max_size=5), TARGETS.map(lambda target: ("link", target))),
    max_size=8,
)
ASKED = st.lists(NAMES | st.sampled_from([".", "..", "missing"]), min_size=1, max_size=4).map("/".join)
ACTS = st.sampled_from(["stat", "read_file", "list_directory", "is_directory", "read_link", "resolve", "remove"])


class Trees:
    """The same files in a temporary folder and in a fake host's memory, under the same paths."""

    def __init__(self, folder, files):
        self.base = str(folder)
        self.fake = FakeHost(HostSpec("h", root="absent"), ["/usr/bin"])
        self.real = RealHost({})
        self.fake.tree.make_directory(self.base)
        Path(self.base).mkdir(parents=True)
        for path, what in sorted(files.items()):
            if not os.path.lexists(f"{self.base}/{path}"):
                self.make(path, what)

    def make(self, path, what):
        """A directory, a file or a link, where its parent is a directory of the tree."""
        place = f"{self.base}/{path}"
        parent = Path(place).parent
        if not parent.is_dir() or parent.resolve() != parent:
            return
        match what:
            case None:
                Path(place).mkdir()
                self.fake.tree.make_directory(place)
            case ("link", target):
                target = self.base + target if target.startswith("/") else target
                Path(place).symlink_to(target)
                self.fake.tree.link(place, target)
            case text:
                Path(place).write_text(text)
                self.fake.tree.write(place, text)

    def answer(self, host, act, path):
        """What a host answers, or the errno it raises."""
        try:
            return getattr(host, act)(f"{self.base}/{path}")
        except OSError as error:
            return errno.errorcode[error.errno], isinstance(error, IoFailure)


@given(TREES, st.lists(st.tuples(ACTS, ASKED), min_size=1, max_size=12))
def test_the_same_acts_end_the_same_on_both_hosts(files, acts):
    """Each look at a path and each removal, link chains and ways through files included, errno by errno."""
    folder = tempfile.mkdtemp(prefix="dmsim-test-")
    try:
        trees = Trees(f"{folder}/r/r/r/r/r", files)
        for act, path in acts:
            assert (act, path, trees.answer(trees.real, act, path)) == (act, path, trees.answer(trees.fake, act, path))
    finally:
        shutil.rmtree(folder)


def test_a_text_of_odd_bytes_stays_what_it_is(tmp_path):
    """Bytes that are no UTF-8 survive reading and writing."""
    (tmp_path / "f").write_bytes(b"a\xff\n\0")
    host = RealHost({})
    text = host.read_file(f"{tmp_path}/f")
    assert text == "a\udcff\n\0"
    host.write_file(f"{tmp_path}/g", text)
    assert (tmp_path / "g").read_bytes() == b"a\xff\n\0"


def test_writing_makes_or_empties(tmp_path):
    """As `os.WriteFile`: there is a file afterwards, with this text only."""
    host = RealHost({})
    host.write_file(f"{tmp_path}/f", "long text")
    host.write_file(f"{tmp_path}/f", "short")
    assert (tmp_path / "f").read_text() == "short"
    with pytest.raises(FileNotFoundError):
        host.write_file(f"{tmp_path}/missing/f", "")


def test_a_failure_after_the_opening_is_another():
    """The kernel took the opening and refuses the write."""
    with pytest.raises(IoFailure) as failure:
        RealHost({}).write_file("/dev/full", "x")
    assert failure.value.errno == errno.ENOSPC


def test_a_path_with_a_nul_is_no_path(tmp_path):
    """Go answers EINVAL without asking the kernel."""
    host = RealHost({"PATH": f"{tmp_path}"})
    for act in (host.stat, host.read_file, host.list_directory, host.read_link, host.resolve, host.remove, host.unmount):
        with pytest.raises(OSError) as failure:
            act(f"{tmp_path}/a\0b")
        assert failure.value.errno == errno.EINVAL
    assert not host.is_directory(f"{tmp_path}/a\0b")
    with pytest.raises(CommandNotFound):
        host.run(["a\0b"])


def test_names_are_sorted_by_their_bytes(tmp_path):
    """As `os.ReadDir` sorts them."""
    for name in (b"b", b"\xff", "😀".encode(), "\uffff".encode()):
        (Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))).touch()
    assert [os.fsencode(name) for name in RealHost({}).list_directory(str(tmp_path))] == [
        b"b",
        "\uffff".encode(),
        "😀".encode(),
        b"\xff",
    ]


# --- programs -------------------------------------------------------------------------------------------------------


def program(path, text, mode=0o755):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def test_a_program_s_output_exit_code_and_environment(tmp_path):
    """Standard output, standard error, exit code; the environment is ours, standard input is empty."""
    program(tmp_path / "bin" / "p", '#!/bin/sh\necho "$A $1"; cat; echo e >&2; exit 3\n')
    host = RealHost({"PATH": f"/nowhere:{tmp_path}/bin:/bin:/usr/bin", "A": "x"})
    assert host.run(["p", "y"]) == (3, "x y\n", "e\n")


def test_a_program_that_a_signal_ends(tmp_path):
    """Its number, below zero."""
    program(tmp_path / "p", "#!/bin/sh\nkill -9 $$\n")
    assert RealHost({"PATH": str(tmp_path)}).run(["p"]).exit_code == -9


def test_what_is_not_found_on_path(tmp_path):
    """Directories, files without the right to execute, and what a relative entry would find do not count."""
    (tmp_path / "a" / "p").mkdir(parents=True)
    program(tmp_path / "b" / "p", "", 0o644)
    for path in ("", str(tmp_path / "a"), str(tmp_path / "b"), "/nowhere"):
        with pytest.raises(CommandNotFound, match=r'^exec: "p": executable file not found in \$PATH$'):
            RealHost({"PATH": path}).run(["p"])
    with pytest.raises(CommandNotFound):
        RealHost({}).run(["p"])


def test_the_first_that_may_be_executed_counts(tmp_path):
    """What cannot be run is passed over."""
    program(tmp_path / "a" / "p", "", 0o644)
    program(tmp_path / "b" / "p", "#!/bin/sh\nexit 4\n")
    program(tmp_path / "c" / "p", "#!/bin/sh\nexit 5\n")
    assert RealHost({"PATH": ":".join(str(tmp_path / name) for name in "abc")}).run(["p"]).exit_code == 4


def test_a_program_beside_us_is_not_run(tmp_path, monkeypatch):
    """Go refuses what it finds through a relative entry of PATH."""
    program(tmp_path / "p", "#!/bin/sh\n")
    monkeypatch.chdir(tmp_path)
    for path in (":/nowhere", "."):
        with pytest.raises(CommandNotFound, match=r"cannot run executable found relative to current directory$"):
            RealHost({"PATH": path}).run(["p"])


def test_a_program_that_cannot_be_started(tmp_path):
    """Its interpreter is missing, or it is of no form that the kernel knows."""
    program(tmp_path / "p", "#!/nowhere/sh\n")
    program(tmp_path / "q", "\x7fELF")
    host = RealHost({"PATH": str(tmp_path)})
    with pytest.raises(PathError, match=rf"^fork/exec {tmp_path}/p: no such file or directory$"):
        host.run(["p"])
    with pytest.raises(PathError, match=rf"^fork/exec {tmp_path}/q: exec format error$"):
        host.run(["q"])


# --- the kernel -----------------------------------------------------------------------------------------------------


def test_mount_points_as_the_kernel_lists_them(tmp_path, monkeypatch):
    """In order, a mount on a mount twice, white space and backslashes unescaped."""
    table = tmp_path / "mountinfo"
    row = "36 35 98:0 / {} rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"
    table.write_text("".join(row.format(point) for point in ("/", r"/run/a\040b\134c", "/run/x", "/run/x")))
    monkeypatch.setattr(module, "_MOUNTS", str(table))
    assert RealHost({}).mount_points() == ["/", "/run/a b\\c", "/run/x", "/run/x"]


def test_this_machine_s_mount_points():
    """There is a root."""
    assert "/" in RealHost({}).mount_points()


def test_unmounting_what_is_no_mount_point(tmp_path):
    """The kernel's own answers."""
    expected = errno.EINVAL if os.geteuid() == 0 else errno.EPERM
    with pytest.raises(OSError) as failure:
        RealHost({}).unmount(str(tmp_path))
    assert failure.value.errno == expected


def test_this_machine_s_kernel():
    """`uname -r`."""
    assert RealHost({}).kernel_release() == os.uname().release


class Library:
    """A C library whose kernel says no."""

    def __init__(self, number):
        self.number, self.calls = number, []

    def syscall(self, *values):
        self.calls.append(tuple(value.value for value in values))
        ctypes.set_errno(self.number)
        return -1 if self.number else 0


@pytest.mark.parametrize(("machine", "call"), [("x86_64", 176), ("aarch64", 106), ("ppc64le", 129), ("riscv64", 106)])
def test_unloading_a_module_is_a_system_call(monkeypatch, machine, call):
    """Its number is the architecture's, the module's name its argument, its errno passed on. No kernel is asked here."""
    library = Library(errno.EAGAIN)
    monkeypatch.setattr(module, "_libc", lambda: library)
    monkeypatch.setattr(module.platform, "machine", lambda: machine)
    with pytest.raises(BlockingIOError):
        RealHost({}).delete_module("nvidia")
    library.number = 0
    RealHost({}).delete_module("nvidia")
    assert library.calls == [(call, b"nvidia", 0)] * 2
