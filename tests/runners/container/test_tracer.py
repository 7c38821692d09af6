"""Programs under the tracer: what they are told, what is seen of them, how they end. No Docker; see `test_in_docker`."""

from __future__ import annotations

import errno
import os
import platform
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from simulator.reading import InputError
from simulator.runners.container import namespaces, seccomp, syscalls
from simulator.runners.container.namespaces import Namespaces
from simulator.runners.container.tracer import Command, Execution, Output, SystemCall, trace
from tests.runners.container import pause
from tests.runners.container.mounting import mount_points, mount_tmpfs

MACHINE = platform.machine()
PATH = {"PATH": "/bin"}


def really(call, argument, flags):
    return errno.ENOENT if call == "delete_module" else None


class Run:
    """A run that has ended."""

    def __init__(self, inside, argv, decide=really, **settings):
        self.events = []
        settings.setdefault("env", PATH)
        with trace(inside, Command(argv, **settings), decide=decide, on_event=self.events.append) as program:
            self.status = program.wait(20)

    def text(self, stream="stdout"):
        return b"".join(e.data for e in self.events if isinstance(e, Output) and e.stream == stream).decode()

    @property
    def calls(self):
        return [(e.call, e.argument, errno.errorcode.get(e.result, "ok")) for e in self.events if isinstance(e, SystemCall)]

    @property
    def executions(self):
        return [(e.argv, e.direct) for e in self.events if isinstance(e, Execution)]


def shell(inside, script, decide=really, **settings):
    return Run(inside, ["busybox", "sh", "-c", script], decide, **settings)


class Assembly:
    """A program of system calls; it exits with the errno of the last one, 0 if that succeeded."""

    def __init__(self):
        self.data, self.code = b"", b""

    def text(self, text: str) -> int:
        """Where a C string is."""
        at = pause.DATA_AT + len(self.data)
        encoded = text.encode() + b"\0"
        self.data += encoded + bytes(-len(encoded) % 4)
        return at

    def call(self, name: str, *arguments: int):
        self.code += pause.call(MACHINE, name, *(argument & 0xFFFFFFFF for argument in arguments))
        return self

    def program(self) -> bytes:
        exit_group = pause.call(MACHINE, "exit_group")
        if MACHINE == "x86_64":
            negate = b"\x89\xc7\xf7\xdf"  # mov edi, eax; neg edi
        else:
            negate = struct.pack("=I", 0x4B0003E0)  # neg w0, w0
        return pause.executable(MACHINE, self.data, self.code + negate + exit_group)


def remove(path: str) -> bytes:
    """Go's os.Remove of a path: unlink, then rmdir (where that failed, but it never matters to ask twice)."""
    made = Assembly()
    at = made.text(path)
    if MACHINE == "x86_64":
        return made.call("unlink", at).call("rmdir", at).program()
    here = syscalls.AT_FDCWD
    return made.call("unlinkat", here, at, 0).call("unlinkat", here, at, syscalls.AT_REMOVEDIR).program()


# --- safety -------------------------------------------------------------------------------------------------------


def delete_module(name: str = "no_such_module_dmsim") -> bytes:
    made = Assembly()
    return made.call("delete_module", made.text(name), 0).program()


@pytest.mark.parametrize("answer", ["EBUSY", "EAGAIN", "EPERM", "ENOENT", "EWOULDBLOCK"])
def test_delete_module_gets_our_answer(inside, sandbox, answer):
    """The answer is an errno that the kernel would not give for a module that does not exist, or by chance the one it would."""
    number = getattr(errno, answer)
    asked = []
    run = Run(inside, [sandbox.program("dm", delete_module())], lambda *call: asked.append(call) or number)
    assert asked == [("delete_module", "no_such_module_dmsim", 0)]
    assert run.status == number
    assert run.calls == [("delete_module", "no_such_module_dmsim", errno.errorcode[number])]


def test_delete_module_succeeds_where_we_say_so(inside, sandbox):
    """Nobody but us would say so of a module that does not exist."""
    run = Run(inside, [sandbox.program("dm", delete_module())], lambda *_: 0)
    assert run.status == 0
    assert run.calls == [("delete_module", "no_such_module_dmsim", "ok")]


def test_delete_module_by_a_child_is_answered_and_seen(inside):
    run = shell(inside, "busybox rmmod no_such_module_dmsim; exit 0", lambda *_: errno.EBUSY)
    assert run.calls == [("delete_module", "no_such_module_dmsim", "EBUSY")]
    assert "Device or resource busy" in run.text("stderr")


def test_delete_module_is_never_done_really(inside, sandbox):
    """Whoever decides that it be done has an error, and the program ends."""
    with (
        trace(
            inside, Command([sandbox.program("dm", delete_module())]), decide=lambda *_: None, on_event=lambda _: None
        ) as program,
        pytest.raises(TypeError, match="delete_module of no_such_module_dmsim be done really; it never is"),
    ):
        program.wait(20)


def test_delete_module_with_an_address_that_is_none(inside, sandbox):
    run = Run(inside, [sandbox.program("dm", Assembly().call("delete_module", 16, 0).program())], lambda *_: 0)
    assert run.status == errno.EFAULT
    assert run.calls == []


def test_without_a_listener_the_kernel_is_not_asked():
    """A filter whose listener is gone says ENOSYS; the kernel would say ENOENT of this mount point."""
    code = """if True:
        import os
        from simulator.runners.container import seccomp, syscalls
        syscalls.limit_capabilities(syscalls.capability_mask(["SYS_ADMIN"]))
        syscalls.set_capabilities(syscalls.capability_mask(["SYS_ADMIN"]), syscalls.capability_mask(["SYS_ADMIN"]))
        os.close(seccomp.install(seccomp.program(["umount2"])))
        try:
            syscalls.unmount("/no/such/directory", 0)
        except OSError as error:
            print(error.strerror)
    """
    if namespaces.why_not():
        pytest.skip(namespaces.why_not())
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "Function not implemented\n"


def test_nobody_has_the_capability_to_unload(inside):
    """All five sets: what was asked for, and nothing that could be had again."""
    run = shell(inside, "busybox grep ^Cap /proc/self/status", capabilities=frozenset({"CHOWN", "SYS_ADMIN"}))
    sets = dict(line.split(":\t") for line in run.text().splitlines())
    mask = f"{syscalls.capability_mask(['CHOWN', 'SYS_ADMIN']):016x}"
    assert sets == {"CapInh": "0" * 16, "CapPrm": mask, "CapEff": mask, "CapBnd": mask, "CapAmb": "0" * 16}


@pytest.mark.parametrize(
    ("capability", "text"), [("SYS_MODULE", "asks for SYS_MODULE"), ("CAP_CHOWN", "has no capability CAP_CHOWN")]
)
def test_capabilities_that_are_refused(inside, capability, text):
    with pytest.raises(InputError, match=text):
        Run(inside, ["busybox"], capabilities=frozenset({capability}))


@pytest.mark.parametrize("name", seccomp.REFUSED)
def test_calls_that_reach_the_machine_fail(inside, sandbox, name):
    """With addresses that are none, which would be EFAULT, EINVAL or EBADF otherwise."""
    status = Run(inside, [sandbox.program("call", Assembly().call(name, 16, 16, 16, 16).program())]).status
    assert status == errno.EPERM


@pytest.mark.skipif(MACHINE != "x86_64", reason="32-bit calls of x86")
def test_no_call_goes_round_the_filter(inside, sandbox):
    """The 32-bit delete_module and the x32 one do not exist."""
    exit_with_errno = b"\x89\xc7\xf7\xdf" + pause.call(MACHINE, "exit_group")
    of_32_bits = b"\xb8" + struct.pack("=I", 129) + b"\xcd\x80"  # mov eax, 129; int 0x80
    x32 = b"\xb8" + struct.pack("=I", 0x40000000 + 176) + b"\x0f\x05"  # mov eax, ...; syscall
    for code in (of_32_bits, x32):
        run = Run(inside, [sandbox.program("round", pause.executable(MACHINE, b"", code + exit_with_errno))], lambda *_: 0)
        assert run.status in {errno.ENOSYS, -signal.SIGSEGV}  # a kernel without 32-bit calls kills
        assert run.calls == []


# --- umount and unlink ------------------------------------------------------------------------------------------------


def test_unmounts_are_done_one_after_the_other_and_seen(mortal):
    with Namespaces(mortal.pid) as inside:
        mount_tmpfs(mortal.pid, "/run/nvidia/driver", "/run/nvidia/driver")
        command = ["busybox", "umount", "-l", "/run/nvidia/driver"]
        for left in (["/run/nvidia/driver"], []):
            run = Run(inside, command)
            assert run.status == 0, run.text("stderr")
            assert run.calls == [("umount", "/run/nvidia/driver", "ok")]
            assert mount_points(mortal.pid) == left
        run = Run(inside, command)
        assert run.status == 1
        assert ("umount", "/run/nvidia/driver", "EINVAL") in run.calls


def test_the_flags_of_an_unmount_are_seen(inside, sandbox):
    mount_tmpfs(sandbox.pid, "/run/flags")
    run = Run(inside, ["busybox", "umount", "-l", "/run/flags"])
    assert [e.flags for e in run.events if isinstance(e, SystemCall)] == [syscalls.MNT_DETACH]


def test_an_unmount_that_is_decided_is_not_done(inside, sandbox):
    mount_tmpfs(sandbox.pid, "/run/decided")
    run = Run(inside, ["busybox", "umount", "-l", "/run/decided"], lambda *_: errno.EBUSY)
    assert run.status == 1
    assert set(run.calls) == {("umount", "/run/decided", "EBUSY")}
    run = Run(inside, ["busybox", "umount", "-l", "/run/decided"], lambda *_: 0)
    assert (run.status, run.calls) == (0, [("umount", "/run/decided", "ok")])
    assert mount_points(sandbox.pid, "/run/decided") == ["/run/decided"]


def test_an_unmount_of_a_busy_file_system_fails_as_the_kernel_says(inside, sandbox):
    mount_tmpfs(sandbox.pid, "/run/busy")
    made = Assembly()
    program = sandbox.program("um", made.call("umount2", made.text("/run/busy"), 0).program())
    run = Run(inside, [program], cwd="/run/busy")
    assert run.status == errno.EBUSY
    assert run.calls == [("umount", "/run/busy", "EBUSY")]


def test_without_the_capability_an_unmount_fails(inside, sandbox):
    mount_tmpfs(sandbox.pid, "/run/kept")
    made = Assembly()
    program = sandbox.program("um", made.call("umount2", made.text("/run/kept"), syscalls.MNT_DETACH).program())
    run = Run(inside, [program], capabilities=frozenset())
    assert (run.status, run.calls) == (errno.EPERM, [("umount", "/run/kept", "EPERM")])
    assert mount_points(sandbox.pid, "/run/kept") == ["/run/kept"]


def test_what_children_unmount_and_unlink_is_done_and_not_reported(inside, sandbox):
    mount_tmpfs(sandbox.pid, "/run/childs")
    (sandbox.root / "run/childs-file").touch()
    run = shell(inside, "busybox umount -l /run/childs && (busybox rm /run/childs-file) && exit 7", lambda *_: errno.EIO)
    assert run.status == 7
    assert run.calls == []
    assert mount_points(sandbox.pid, "/run/childs") == []
    assert not (sandbox.root / "run/childs-file").exists()


def make(root, kind):
    path = root / "run" / kind
    if kind in {"empty", "full", "mounted"}:
        path.mkdir(exist_ok=True)
    if kind == "full":
        (path / "x").touch()
    if kind == "file":
        path.touch()
    if kind == "link":
        path.symlink_to("/nowhere")
    return path


@pytest.mark.parametrize(
    ("kind", "result", "left"),
    [
        ("file", "ok", False),
        ("link", "ok", False),
        ("empty", "ok", False),
        ("full", "ENOTEMPTY", True),
        ("mounted", "EBUSY", True),
        ("missing", "ENOENT", False),
    ],
)
def test_one_removal_is_one_event(inside, sandbox, kind, result, left):
    """os.Remove tries unlink, then rmdir; the event tells what Go reports. What is asked is one question."""
    path = make(sandbox.root, kind)
    if kind == "mounted":
        mount_tmpfs(sandbox.pid, "/run/mounted")
    asked = []
    run = Run(inside, [sandbox.program("remove", remove(f"/run/{kind}"))], lambda *call: asked.append(call))
    assert asked[:1] == [("unlink", f"/run/{kind}", 0)]
    assert run.calls[0] == ("unlink", f"/run/{kind}", result)
    assert len(run.calls) == len(asked) == (2 if kind in {"file", "link"} else 1)  # this program calls rmdir in any case
    assert os.path.lexists(path) is left


@pytest.mark.parametrize("answer", [errno.EPERM, errno.EISDIR, errno.EROFS])
def test_a_removal_that_is_decided_is_not_done(inside, sandbox, answer):
    """Both calls get the answer, which is asked for once and reported once."""
    path = make(sandbox.root, "file")
    asked = []
    program = sandbox.program("remove", remove("/run/file"))
    run = Run(inside, [program], lambda *call: asked.append(call) or answer)
    assert (run.status, len(asked)) == (answer, 1)
    assert run.calls == [("unlink", "/run/file", errno.errorcode[answer])]
    assert path.exists()
    path.unlink()


def test_a_removal_that_is_said_to_succeed_is_not_done(inside, sandbox):
    path = make(sandbox.root, "file")
    made = Assembly()
    here = syscalls.AT_FDCWD
    run = Run(inside, [sandbox.program("u", made.call("unlinkat", here, made.text("/run/file"), 0).program())], lambda *_: 0)
    assert (run.status, run.calls) == (0, [("unlink", "/run/file", "ok")])
    assert path.exists()
    path.unlink()


def test_relative_paths_are_the_programs(inside, sandbox):
    """Seen from the directory that the program is in, or that the descriptor refers to."""
    (sandbox.root / "tmp/dir").mkdir()
    (sandbox.root / "tmp/dir/here").touch()
    (sandbox.root / "tmp/there").touch()
    made = Assembly()
    name, directory, other = made.text("here"), made.text("/tmp"), made.text("there")
    made.call("unlinkat", syscalls.AT_FDCWD, name, 0)
    made.call("openat", syscalls.AT_FDCWD, directory, os.O_RDONLY | os.O_DIRECTORY)  # becomes descriptor 3
    made.call("unlinkat", 3, other, 0)
    run = Run(inside, [sandbox.program("rel", made.program())], cwd="/tmp/dir")
    assert (run.status, run.calls) == (0, [("unlink", "here", "ok"), ("unlink", "there", "ok")])
    assert not (sandbox.root / "tmp/dir/here").exists()
    assert not (sandbox.root / "tmp/there").exists()


# --- children ---------------------------------------------------------------------------------------------------------


def test_children_are_seen_direct_and_nested(inside, sandbox):
    """What a child of the program executes first is direct; what it, or its children, execute then is nested."""
    script = sandbox.program("script", "#!/bin/busybox sh\nbusybox true inner\nexec busybox true last\n")
    run = Run(inside, ["busybox", "sh", "-c", f"{script} one 'two three'; (busybox chroot / busybox true x); exit 0"])
    assert run.status == 0
    assert run.executions == [
        ((script, "one", "two three"), True),
        (("busybox", "true", "inner"), False),
        (("busybox", "true", "last"), False),
        (("busybox", "chroot", "/", "busybox", "true", "x"), True),
        (("busybox", "true", "x"), False),
    ]


def test_the_path_that_is_tried_is_told(inside):
    """chroot looks its program up by trying; each try is seen, the program itself is found or not by nobody's help."""
    run = shell(inside, "busybox chroot / nothing; exit 0", env={"PATH": "/sbin:/bin"})
    paths = [e.path for e in run.events if isinstance(e, Execution) and not e.direct]
    assert paths == ["/sbin/nothing", "/bin/nothing"]


def test_a_command_that_is_not_on_path_makes_no_event(inside):
    run = shell(inside, "nothing; exit 0")
    assert run.executions == []
    assert "not found" in run.text("stderr")


# --- order, streams, files --------------------------------------------------------------------------------------------


def test_what_was_written_before_a_call_is_delivered_before_it_is_decided(inside, sandbox):
    """The program writes and calls in one breath, ten times; whoever decides has seen all that was written."""
    events, seen = [], []
    made = Assembly()
    text = made.text("written")
    path = made.text("/run/missing")
    for _ in range(10):
        made.call("write", 1, text, 7).call("unlinkat", syscalls.AT_FDCWD, path, 0)
    command = Command([sandbox.program("wr", made.program())])

    def decide(*call):
        seen.append(b"".join(e.data for e in list(events) if isinstance(e, Output)))
        return 0

    with trace(inside, command, decide=decide, on_event=events.append) as program:
        assert program.wait(5) == 0
    assert seen == [b"written" * times for times in range(1, 11)]


def test_what_was_written_before_a_call_stands_before_it(inside):
    """Output, child, call, output: in the order of the script, with times that never go back."""
    run = shell(inside, "echo 1 >&2; busybox rmmod m1; echo 2; busybox rmmod m2; echo 3 >&2", lambda *_: 0)
    told = [
        e.data.decode().strip() if isinstance(e, Output) else e.argument if isinstance(e, SystemCall) else e.argv[2]
        for e in run.events
    ]
    assert told == ["1", "m1", "m1", "2", "m2", "m2", "3"]
    assert [e.at for e in run.events] == sorted(e.at for e in run.events)


def test_what_was_written_before_an_execution_stands_before_it(inside):
    """Also where we were busy with another child while it was written."""
    told = []

    def on_event(event):
        told.append(event.data if isinstance(event, Output) else event.argv[-1])
        if told[-1] == "x":
            time.sleep(0.1)

    command = Command(["busybox", "sh", "-c", "busybox true x & echo b; busybox true y; wait"], env=PATH)
    with trace(inside, command, decide=really, on_event=on_event) as program:
        assert program.wait(5) == 0
    assert [what for what in told if what != "x"] == [b"b\n", "y"]


def test_others_can_have_the_output_delivered(inside):
    """drain delivers what was written by now, while the program goes on."""
    events = []
    command = Command(["busybox", "sh", "-c", "echo before; read x </run/fifo; echo after"], env=PATH)
    shell(inside, "busybox rm -f /run/fifo; busybox mkfifo /run/fifo")
    with trace(inside, command, decide=really, on_event=events.append) as program:
        deadline = time.monotonic() + 5
        while not events and time.monotonic() < deadline:
            program.drain()
        assert [e.data for e in events] == [b"before\n"]
        program.kill()
        assert program.wait(5) == -signal.SIGKILL
    program.drain()
    assert len(events) == 1


def test_both_streams_are_whole(inside):
    """A megabyte on each, more than a pipe holds."""
    run = shell(inside, "busybox seq 150000; busybox seq 150000 >&2")
    whole = "".join(f"{number}\n" for number in range(1, 150001))
    assert run.text() == whole
    assert run.text("stderr") == whole


def test_the_program_gets_its_arguments_environment_directory_and_no_input(inside):
    script = (
        'echo "$0|$1|$2|$(busybox pwd)|$(busybox env | busybox sort | busybox tr "\\n" ,)|$(busybox cat | busybox wc -c)"; umask'
    )
    env = {"PATH": "/bin", "WORD": "é x"}
    run = Run(inside, ["busybox", "sh", "-c", script, "zero", "", "two words"], env=env, cwd="/tmp")
    told, mask = run.text().splitlines()
    assert told.replace("PWD=/tmp,", "").replace("OLDPWD=/,", "").replace("SHLVL=1,", "") == (
        "zero||two words|/tmp|PATH=/bin,WORD=é x,|0"
    )
    assert mask == "0022"


def test_signals_are_as_at_the_start_of_a_container(sandbox):
    """Python's ignored SIGPIPE is not inherited, nor what this thread blocks."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    with Namespaces(sandbox.pid) as inside:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        run = Run(inside, ["busybox", "grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status"])
    assert run.text() == f"SigBlk:\t{'0' * 16}\nSigIgn:\t{'0' * 16}\n"


def test_a_file_is_opened_in_place_of_another(inside, sandbox, tmp_path):
    """Afresh each time, by children too, also where there is no such file; not for writing; not in another root."""
    instead = tmp_path / "modules"
    instead.write_text("first\n")

    def decide(call, argument, flags):
        (tmp_path / "new").write_text("second\n")
        (tmp_path / "new").rename(instead)
        return 0

    (sandbox.root / "tmp/root/bin").mkdir(parents=True)
    (sandbox.root / "tmp/root/bin/busybox").hardlink_to(sandbox.root / "bin/busybox")
    script = "busybox cat /no/file; busybox rmmod m; read x </no/file; echo $x; echo no >/no/file; busybox chroot /tmp/root busybox cat /no/file"
    run = shell(inside, script, decide, opened_instead={"/no/file": instead})
    assert run.text() == "first\nsecond\n"
    assert run.text("stderr").count("o such file") + run.text("stderr").count("nonexistent") == 2
    assert instead.read_text() == "second\n"


def test_a_file_that_is_not_to_be_there_is_not_there(inside, sandbox, tmp_path):
    """None hides it; so does a file of this machine that is gone."""
    (sandbox.root / "etc/there").write_text("text")
    for instead in (None, tmp_path / "gone"):
        run = shell(inside, "busybox cat /etc/there", opened_instead={"/etc/there": instead})
        assert "No such file" in run.text("stderr")
        assert run.text() == ""
    assert shell(inside, "busybox cat /etc/there").text() == "text"


# --- processes, signals, ends -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pid_1", "pid"), [(True, "1"), (False, "2")])
def test_the_program_is_process_1_or_it_is_not(inside, sandbox, pid_1, pid):
    """/proc tells the same; and it is as it was, afterwards."""
    run = shell(
        inside, "echo $$; busybox readlink /proc/self/../$$/exe; busybox awk '/^NSpid/ {print NF}' /proc/$$/status", pid_1=pid_1
    )
    assert run.text().split() == [pid, "/bin/busybox", "2"]
    assert mount_points(sandbox.pid, "/proc") == ["/proc"]


@pytest.mark.parametrize("pid_1", [True, False])
@pytest.mark.parametrize("status", [0, 1, 42, 255])
def test_the_exit_status_is_the_programs(inside, pid_1, status):
    assert shell(inside, f"exit {status}", pid_1=pid_1).status == status


def started(inside, script, **settings):
    """A script that has said something, and goes on."""
    said = threading.Event()
    program = trace(
        inside, Command(["busybox", "sh", "-c", script], env=PATH, **settings), decide=really, on_event=lambda _: said.set()
    )
    assert said.wait(5)
    return program


def test_process_1_gets_only_the_signals_it_handles(inside):
    with started(inside, "echo; while :; do busybox sleep 0.05; done") as program:
        program.signal(signal.SIGTERM)
        with pytest.raises(TimeoutError, match=r"busybox still runs after 0\.2 s"):
            program.wait(0.2)
    with started(inside, "trap 'exit 9' TERM; echo; while :; do busybox sleep 0.05; done") as program:
        program.signal(signal.SIGTERM)
        assert program.wait(5) == 9


def test_another_process_is_killed_by_a_signal(inside):
    with started(inside, "echo; while :; do busybox sleep 0.05; done", pid_1=False) as program:
        program.signal(signal.SIGTERM)
        assert program.wait(5) == -signal.SIGTERM
    program.signal(signal.SIGTERM)
    program.kill()
    assert program.wait() == -signal.SIGTERM


def sleepers() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"busybox\0sleep\x004711\0"):
                found.append(path.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("pid_1", [True, False])
def test_what_the_program_started_ends_with_it(inside, pid_1):
    """Orphans too, whether the program exits or is killed."""
    run = shell(inside, "(busybox sleep 4711 &) ; busybox sleep 4711 & exit 5", pid_1=pid_1)
    assert run.status == 5
    assert sleepers() == []
    with started(inside, "(busybox sleep 4711 &); busybox sleep 0.1; echo; busybox sleep 4711", pid_1=pid_1) as program:
        while len(sleepers()) < 2:
            time.sleep(0.01)
        program.kill()
        assert program.wait(5) == -signal.SIGKILL
    assert sleepers() == []


@pytest.mark.parametrize("pid_1", [True, False])
def test_leaving_ends_the_program(sandbox, pid_1):
    """The end of `with` for the namespaces, or for the program, kills."""
    with Namespaces(sandbox.pid) as inside:
        program = started(inside, "echo; busybox sleep 4711", pid_1=pid_1)
    assert program.wait(5) == -signal.SIGKILL
    assert sleepers() == []
    with Namespaces(sandbox.pid) as inside:
        with started(inside, "echo; busybox sleep 4711", pid_1=pid_1):
            pass
        assert sleepers() == []


def until(true):
    deadline = time.monotonic() + 5
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert true()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.slow
@pytest.mark.parametrize("forked", [True, False])
@pytest.mark.parametrize("pid_1", [True, False])
def test_if_we_are_killed_the_program_dies(sandbox, pid_1, forked):
    """By SIGKILL, while the program waits for an answer: it dies, with its children and the agent, though a fork of us lives."""
    code = f"""if True:
        import os, time
        from simulator.runners.container.tracer import *
        from simulator.runners.container.namespaces import Namespaces
        def decide(*call):
            print("asked", flush=True)
            time.sleep(60)
        inside = Namespaces({sandbox.pid})
        if {forked} and os.fork() == 0:
            time.sleep(60)
        command = Command(["busybox", "sh", "-c", "busybox sleep 4711 & busybox rmmod m"], env={PATH}, pid_1={pid_1})
        trace(inside, command, decide=decide, on_event=lambda _: None).wait()
    """
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "asked\n"
        agent, *forks = children(process.pid)
        assert len(forks) == forked
        process.kill()
    try:
        until(lambda: not sleepers() and not Path(f"/proc/{agent}").exists())
    finally:
        for fork in forks:
            os.kill(fork, signal.SIGKILL)


@pytest.mark.parametrize("pid_1", [True, False])
def test_if_the_agent_is_killed_the_program_dies(sandbox, pid_1):
    with Namespaces(sandbox.pid, "dmsim-1") as inside:
        (inner,) = children(inside._agent.pid)
        with started(inside, "echo; busybox sleep 4711", pid_1=pid_1) as program:
            os.kill(inner, signal.SIGKILL)
            with pytest.raises(InputError, match="dmsim-1 ended while it was in use"):
                program.wait(5)
        until(lambda: not sleepers())


def test_a_container_that_ends_meanwhile_is_one_error(mortal):
    with Namespaces(mortal.pid, "dmsim-1") as inside, started(inside, "echo; busybox sleep 4711") as program:
        mortal.end()
        with pytest.raises(InputError, match="dmsim-1 ended while it was in use"):
            program.wait(5)
    assert sleepers() == []


def test_programs_can_run_one_after_the_other_but_not_at_once(inside):
    assert [shell(inside, "echo $$; exit 3", pid_1=pid_1).status for pid_1 in (True, False, True)] == [3, 3, 3]
    with started(inside, "echo; busybox sleep 4711"), pytest.raises(InputError, match=r"busybox cannot be started .* busy"):
        shell(inside, "exit 0")
    assert shell(inside, "exit 4").status == 4


def descriptors():
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


def test_nothing_is_left_open(inside):
    shell(inside, "exit 0")
    before, threads = descriptors(), threading.active_count()
    for _ in range(3):
        shell(inside, "busybox rmmod m; exit 1")
        with pytest.raises(InputError):
            Run(inside, ["nothing"])
    assert descriptors() == before
    assert threading.active_count() == threads


def test_programs_of_two_containers_run_at_once(inside, mortal):
    """Each waits until both were asked, so neither holds the other up."""
    both = threading.Barrier(2, timeout=10)
    with Namespaces(mortal.pid) as other:
        command = Command(["busybox", "rmmod", "m"], env=PATH)
        programs = [
            trace(where, command, decide=lambda *_: both.wait() and 0, on_event=lambda _: None) for where in (inside, other)
        ]
        assert [program.wait(10) for program in programs] == [0, 0]


# --- what cannot be started, and what fails ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "settings", "text"),
    [
        (["nothing"], {}, "nothing cannot be started in the container: No such file or directory"),
        (["/bin/nothing"], {}, "/bin/nothing cannot be started in the container: No such file or directory"),
        (["plain"], {}, r"plain cannot be started in the container: Permission denied \(/bin/plain\)"),
        (["/bin/text"], {}, "/bin/text cannot be started in the container: Exec format error"),
        (["busybox"], {"cwd": "/nowhere"}, r"busybox cannot be started in the container: No such file or directory \(/nowhere\)"),
        (["busybox"], {"env": {}}, "busybox cannot be started in the container: No such file or directory"),
        ([], {}, "the tracer's command has no program to start"),
        (
            ["busybox", "x" * 200_000],
            {},
            "the sandbox cannot be told 200[0-9]{3} bytes at once; at most 200000, environment included",
        ),
    ],
)
@pytest.mark.parametrize("pid_1", [True, False])
def test_a_program_that_cannot_be_started(inside, sandbox, argv, settings, text, pid_1):
    sandbox.program("text", "no program")
    (sandbox.root / "bin/plain").touch(mode=0o644)
    with pytest.raises(InputError, match=text):
        Run(inside, argv, pid_1=pid_1, **settings)


def test_a_program_that_could_not_be_started_is_gone(inside):
    """The next can be started at once."""
    for _ in range(20):
        with pytest.raises(InputError, match="/nowhere"):
            Run(inside, ["busybox"], cwd="/nowhere")


def test_what_decides_may_fail(inside):
    """The program is killed, its call is not made, and who waits is told."""

    def decide(*call):
        raise ZeroDivisionError("planned")

    command = Command(["busybox", "sh", "-c", "busybox rmmod m; busybox sleep 4711"], env=PATH)
    with (
        trace(inside, command, decide=decide, on_event=lambda _: None) as program,
        pytest.raises(ZeroDivisionError, match="planned"),
    ):
        program.wait(5)
    assert sleepers() == []


def test_what_is_told_may_fail(inside):
    def on_event(event):
        raise ZeroDivisionError("planned")

    command = Command(["busybox", "sh", "-c", "echo; busybox sleep 4711"], env=PATH)
    with trace(inside, command, decide=really, on_event=on_event) as program, pytest.raises(ZeroDivisionError, match="planned"):
        program.wait(5)
    assert sleepers() == []


@pytest.mark.parametrize("killable", [True, False])
def test_a_signal_does_not_make_a_call_twice(sandbox, monkeypatch, killable):
    """Where the kernel lets a signal interrupt the call (before 5.19) it comes again, and hears the answer it did not hear."""
    if not killable:
        without = "import simulator.runners.container.seccomp as s; s._FLAG_WAIT_KILLABLE_RECV = 1 << 30\n"
        head, _, tail = namespaces._AGENT.partition("\n")
        monkeypatch.setattr(namespaces, "_AGENT", f"{head}\n{without}{tail}")
    asked = []
    program = None

    def decide(*call):
        asked.append(call)
        os.kill(program.pid, signal.SIGSTOP)
        time.sleep(0.05)
        os.kill(program.pid, signal.SIGCONT)
        time.sleep(0.05)
        return errno.EBUSY

    path = sandbox.program("dm", delete_module())
    with Namespaces(sandbox.pid) as inside:
        started = threading.Event()
        program = trace(inside, Command([path]), decide=lambda *call: started.wait(5) and decide(*call), on_event=lambda _: None)
        started.set()
        assert program.wait(5) == errno.EBUSY
    assert len(asked) == 1


def test_a_thread_that_is_killed_while_it_waits_is_no_failure(inside):
    """Its answer reaches nobody."""
    program = None
    asked = threading.Event()

    def decide(*call):
        asked.wait(5)
        program.kill()
        time.sleep(0.05)
        return 0

    program = trace(inside, Command(["busybox", "rmmod", "m"], env=PATH), decide=decide, on_event=lambda _: None)
    asked.set()
    assert program.wait(5) == -signal.SIGKILL
