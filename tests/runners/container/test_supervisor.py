"""The runner's end of the pipes, and what a container noted."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import threading

import pytest

from simulator.reading import InputError
from simulator.runners.container import supervisor
from simulator.runners.container.supervisor import Broken, Ended, Supervisor, Written, new_mounts, relay, start, tree_of


@pytest.fixture
def pipes(tmp_path):
    output = []
    control = tmp_path / "unbind"
    os.mkfifo(control)
    (tmp_path / "ours").mkdir()
    made = Supervisor(tmp_path / "ours", lambda stream, data: output.append((stream, data)), {"/sys/unbind": control})
    yield made, output, control
    made.close()


def obey(folder, answers):
    """A container that answers each `do` in turn."""

    def serve():
        with (folder / "control").open() as control:
            for answer in answers:
                name = control.readline().split()[1]
                (folder / "status").write_text(f"{answer} {name}\n")

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def test_commands_are_run_one_after_the_other(pipes):
    made, _, _ = pipes
    thread = obey(made.folder, ["did", "did"])
    made.do("first\n")
    made.do("second\n")
    thread.join()
    assert (made.folder / "script-2").read_text() == "second\n"


def test_commands_that_fail_are_told(pipes):
    made, _, _ = pipes
    thread = obey(made.folder, ["failed"])
    with pytest.raises(Broken, match="commands failed in the container: false"):
        made.do("false\n")
    thread.join()


def test_a_container_that_does_not_answer_is_broken(pipes, monkeypatch):
    monkeypatch.setattr(supervisor, "PATIENCE", 0.01)
    with pytest.raises(Broken, match="did not run"):
        pipes[0].do("x\n")


@pytest.fixture
def supervisor_script(pipes):
    """The supervisor's script, which runs on this machine, without a container; its folder, and busybox."""
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("there is no busybox")
    folder = pipes[0].folder
    text = (folder / "supervise").read_text().replace("/.dmsim", str(folder))
    (folder / "supervise").write_text(text.removesuffix("give_back\n"))  # that is for a container
    functions = (folder / "functions").read_text().replace("/.dmsim/busybox", busybox).replace("/.dmsim", str(folder))
    (folder / "functions").write_text(functions)
    shell = subprocess.Popen([busybox, "sh", folder / "supervise"])
    yield folder, busybox
    shell.kill()
    shell.wait()


def test_what_it_is_told_at_the_programs_end_is_done_all_the_same(pipes, supervisor_script):
    """The process that listens while the program runs is not cut off in the middle of it."""
    made, (folder, busybox) = pipes[0], supervisor_script
    made.write("start", f"echo $$ >{folder}/pid\n{busybox} sleep 0.3\nexit 7\n")
    made.tell("run")
    made.do(f"{busybox} sleep 1\n: >{folder}/late\n")
    assert (folder / "late").exists()
    assert made.next_answer(5) == Ended(7)
    made.do(f": >{folder}/later\n")
    assert (folder / "later").exists()


def test_a_signal_finds_a_program_that_has_hardly_begun_and_none_before_or_after(pipes, supervisor_script):
    made, (folder, busybox) = pipes[0], supervisor_script
    slow = f"{busybox} sleep 0.3\necho $$ >{folder}/pid\nexec {busybox} sleep 20\n"
    for body, code in ((slow, -15), ("exit 3\n", 3)):
        made.write("start", body)
        made.tell("kill KILL")
        made.tell("run")
        made.tell("kill TERM")
        assert made.next_answer(10) == Ended(code)
    made.tell("kill KILL")
    made.do(":\n")


def test_output_comes_in_order_and_at_once_when_asked_for(pipes):
    made, output, _ = pipes
    for text in ("a", "b"):
        (made.folder / "stderr").write_text(text)
        made.drain()
    assert b"".join(data for stream, data in output if stream == "stderr") == b"ab"


@pytest.mark.parametrize(("told", "status"), [("0", 0), ("3", 3), ("128", 128), ("137", -9), ("192", -64), ("255", 255)])
def test_what_a_shell_says_of_an_end_is_read_as_it_means_it(told, status, pipes):
    made, _, _ = pipes
    (made.folder / "status").write_text(f"exit {told}\n")
    assert made.next_answer(5) == Ended(status)


@pytest.mark.parametrize("status", [-9, 0, 137, 255])
def test_what_somebody_else_says_of_an_end_is_handed_on(status, pipes):
    made, _, _ = pipes
    made.ended(status)
    assert made.next_answer(5) == Ended(status)
    assert made.next_answer(0) is None


def test_what_is_written_to_a_control_file_is_told(pipes):
    made, _, control = pipes
    control.write_text("0000:3b:00.0")
    assert made.next_answer(5) == Written("/sys/unbind", "0000:3b:00.0")
    control.write_text("0000:18:00.0")
    assert list(made.written()) == [Written("/sys/unbind", "0000:18:00.0")]


def test_a_program_is_started_with_its_environment_and_nothing_else():
    scripts = start(["/usr/bin/driver-manager", "a b"], {"A": "it's"}, "/work dir", pid_1=True)
    assert "env -i 'A=it'\"'\"'s' /usr/bin/driver-manager 'a b' </dev/null" in scripts["launch"]
    assert "cd '/work dir'" in scripts["launch"]
    assert "unshare -p -f" in scripts["start"]
    assert "unshare" not in start(["x"], {}, "/", pid_1=False)["start"]


def test_a_relay_leads_from_a_port_of_the_containers_to_one_of_this_machines():
    assert "nc -ll -p 443 -e /.dmsim/busybox nc 172.17.0.1 1 " in relay(443, "172.17.0.1", 1)


def test_new_mounts_are_known_by_their_number():
    before = "21 1 0:1 / / rw - overlay overlay rw\n22 21 0:2 / /run rw - ext4 x rw\n"
    after = before + "30 22 0:3 / /run rw - tmpfs x rw\n31 30 0:4 / /run/a\\040b rw - tmpfs x rw\n"
    assert new_mounts(before, after) == ["/run", "/run/a b"]


def test_an_archive_is_a_tree(tmp_path):
    path = tmp_path / "tree.tar"
    with tarfile.open(path, "w") as tar:
        for name, kind, target, text in (
            ("sys", tarfile.DIRTYPE, "", b""),
            ("sys/link", tarfile.SYMTYPE, "/x", b""),
            ("sys/file", tarfile.REGTYPE, "", b"text\xff"),
            ("sys/unbind", tarfile.FIFOTYPE, "", b""),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, target, len(text)
            tar.addfile(info, io.BytesIO(text))
    assert tree_of(path) == {"/sys/": "", "/sys/link": "-> /x", "/sys/file": "text\udcff", "/sys/unbind": ""}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("#!/bin/sh\necho sh\n", "lacks env"),
        ("#!/bin/sh\nexit 1\n", "is no BusyBox"),
        ("#!/bin/sh\n# ld-linux\nprintf '%s\\n' sh env nc tar unshare mount umount ip\n", "is not static"),
    ],
)
def test_a_busybox_must_be_able_to_do_it(text, problem, tmp_path, monkeypatch):
    path = tmp_path / "busybox"
    path.write_text(text)
    path.chmod(0o755)
    monkeypatch.setenv("DMSIM_BUSYBOX", str(path))
    supervisor.busybox.cache_clear()
    with pytest.raises(InputError, match=problem):
        supervisor.busybox()
    supervisor.busybox.cache_clear()


def test_without_a_busybox_the_mend_is_told(monkeypatch):
    monkeypatch.delenv("DMSIM_BUSYBOX", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    supervisor.busybox.cache_clear()
    with pytest.raises(InputError, match="install busybox-static"):
        supervisor.busybox()
    supervisor.busybox.cache_clear()
