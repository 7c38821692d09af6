"""The tracer in containers of a real engine: an image FROM scratch with nothing but busybox, held by the pause program."""

from __future__ import annotations

import errno
import platform
import signal
import time
import uuid

import pytest

from simulator.reading import InputError
from simulator.runners.container.namespaces import Namespaces, why_not
from simulator.runners.container.tracer import Command, Execution, Output, SystemCall, trace
from tests.runners.container.mounting import mount_points, mount_tmpfs
from tests.runners.container.pause import pause_program

pytestmark = pytest.mark.container

PATH = {"PATH": "/bin"}


@pytest.fixture
def container(docker_engine, image, tmp_path):
    """A container that waits; `tmp_path/run` is its /run/nvidia, `tmp_path/module` its /sys/module."""
    if why_not():
        pytest.skip(f"the tracer cannot be tested: {why_not()}")
    (tmp_path / "pause").write_bytes(pause_program(platform.machine()))
    (tmp_path / "pause").chmod(0o755)
    for name in ("run", "module"):
        (tmp_path / name).mkdir()
    volumes = {
        str(tmp_path / "pause"): {"bind": "/pause", "mode": "ro"},
        str(tmp_path / "run"): {"bind": "/run/nvidia", "mode": "rw"},
        str(tmp_path / "module"): {"bind": "/sys/module", "mode": "ro"},
    }
    name = f"dmsim-tracer-test-{uuid.uuid4().hex[:12]}"
    made = docker_engine.containers.run(
        image, entrypoint=["/pause"], detach=True, name=name, hostname="gpu-1", network_mode="none", volumes=volumes
    )
    made.reload()
    yield made
    made.remove(force=True)


def pid(container) -> int:
    return container.attrs["State"]["Pid"]


def run(inside, script, decide=lambda *_: None, **settings):
    events = []
    command = Command(["busybox", "sh", "-c", script], env=PATH, **settings)
    with trace(inside, command, decide=decide, on_event=events.append) as program:
        status = program.wait(20)
    return status, b"".join(e.data for e in events if isinstance(e, Output)).decode(), events


@pytest.mark.parametrize("pid_1", [True, False])
def test_a_program_runs_in_the_container(container, pid_1):
    """Its root, its host name, its network, its mounts; a /proc of its own, with all that Docker mounted there."""
    script = (
        "busybox hostname; busybox ls -d /bin/busybox /pause; busybox ip -o link | busybox wc -l; echo $$; busybox ls -d /proc/$$;"
        "echo x > /proc/sys/kernel/domainname; busybox awk '{print $5}' /proc/self/mountinfo"
    )
    with Namespaces(pid(container), container.name) as inside:
        docker = mount_points(pid(container), "/proc")
        status, text, _ = run(inside, script, pid_1=pid_1)
        assert mount_points(pid(container), "/proc") == docker
    number = 1 if pid_1 else 2
    told = text.splitlines()
    readonly = "sh: can't create /proc/sys/kernel/domainname: Read-only file system"
    assert status == 0
    assert readonly in told
    told.remove(readonly)
    assert told[:6] == ["gpu-1", "/bin/busybox", "/pause", "1", str(number), f"/proc/{number}"]
    assert len(docker) > 3
    assert sorted(line for line in told[6:] if line.startswith("/proc")) == sorted(docker + docker)


def test_a_world_on_disk_changes_with_the_calls(container, tmp_path):
    """The module's directory goes when we say that it is unloaded; what is unlinked and unmounted is gone."""
    (tmp_path / "module/nvidia").mkdir()
    (tmp_path / "run/nvidia-driver.pid").write_text("1")

    def decide(call, argument, flags):
        if call != "delete_module":
            return None
        if argument != "nvidia":
            return errno.EBUSY
        (tmp_path / "module/nvidia").rmdir()
        return 0

    with Namespaces(pid(container), container.name) as inside:
        mount_tmpfs(pid(container), "/run/nvidia/driver", "/run/nvidia/driver")
        assert mount_points(pid(container)) == ["/run/nvidia", "/run/nvidia/driver", "/run/nvidia/driver"]
        script = "busybox rmmod nvidia_uvm; busybox rmmod nvidia; busybox ls /sys/module; exec busybox umount -l /run/nvidia/driver"
        status, text, events = run(inside, script, decide)
        assert status == 0, text
        assert mount_points(pid(container)) == ["/run/nvidia", "/run/nvidia/driver"]
        unlink = Command(["busybox", "unlink", "/run/nvidia/nvidia-driver.pid"], env=PATH)
        with trace(inside, unlink, decide=decide, on_event=events.append) as program:
            assert program.wait(5) == 0
    assert [(e.call, e.argument, e.result) for e in events if isinstance(e, SystemCall)] == [
        ("delete_module", "nvidia_uvm", errno.EBUSY),
        ("delete_module", "nvidia", 0),
        ("umount", "/run/nvidia/driver", 0),
        ("unlink", "/run/nvidia/nvidia-driver.pid", 0),
    ]
    assert [e.argv[1] for e in events if isinstance(e, Execution)] == ["rmmod", "rmmod", "ls"]
    assert not (tmp_path / "run/nvidia-driver.pid").exists()


def test_the_api_server_can_be_served_at_the_containers_loopback(container):
    """Two containers can each have their own 127.0.0.1:6443."""
    with Namespaces(pid(container), container.name) as inside, inside.listen() as listening:
        listening.settimeout(5)
        events = []
        command = Command(["busybox", "wget", "-q", "-O", "-", "http://127.0.0.1:6443/api"], env=PATH)
        with trace(inside, command, decide=lambda *_: None, on_event=events.append) as program:
            with listening.accept()[0] as connection:
                assert connection.recv(4096).startswith(b"GET /api HTTP/1.1\r\n")
                connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")
            assert program.wait(5) == 0
    assert b"".join(e.data for e in events if isinstance(e, Output)) == b"ok"


def test_a_container_that_is_removed_takes_the_program_with_it(container):
    with Namespaces(pid(container), container.name) as inside:
        command = Command(["busybox", "sleep", "4712"], env=PATH)
        with trace(inside, command, decide=lambda *_: None, on_event=lambda _: None) as program:
            container.kill()
            with pytest.raises(InputError, match=f"{container.name} ended while it was in use"):
                program.wait(10)
        with pytest.raises(InputError, match="ended while it was in use"):
            inside.add_address("10.9.8.7")
    with pytest.raises(InputError, match=f"{container.name} does not run"):
        Namespaces(pid(container), container.name)


def test_the_pause_program_ends_when_docker_stops_it(container):
    start = time.monotonic()
    container.stop(timeout=30)
    assert time.monotonic() - start < 10
    assert container.wait()["StatusCode"] == 0


def test_a_program_that_ignores_everything_can_be_killed(container):
    with Namespaces(pid(container), container.name) as inside:
        command = Command(["busybox", "sh", "-c", "trap '' TERM INT; busybox sleep 4712 & wait"], env=PATH)
        with trace(inside, command, decide=lambda *_: None, on_event=lambda _: None) as program:
            program.signal(signal.SIGTERM)
            program.kill()
            assert program.wait(5) == -signal.SIGKILL
        assert run(inside, "busybox ps -o args | busybox grep -c '[s]leep'")[1] == "0\n"
