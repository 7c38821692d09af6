"""What is done in a container's namespaces from outside, and who is refused."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simulator.reading import InputError
from simulator.runners.container import namespaces, seccomp, syscalls
from simulator.runners.container.namespaces import Namespaces, why_not


def test_a_socket_listens_in_the_container_and_is_served_here(inside, sandbox):
    """What connects there arrives here; here nothing listens at that address."""
    inside.add_address("10.9.8.7")  # brings `lo` up, too
    with inside.listen(port=6471) as listening:
        command = ["nsenter", f"--net=/proc/{sandbox.pid}/ns/net", "/bin/busybox", "nc", "127.0.0.1", "6471"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
            listening.settimeout(5)
            with listening.accept()[0] as connection:
                connection.sendall(b"hello")
            assert client.communicate()[0] == b"hello"
        assert not listening.get_inheritable()
        with socket.socket() as sock, pytest.raises(ConnectionRefusedError):
            sock.connect(("127.0.0.1", 6471))


def test_a_port_that_is_taken_is_an_error(inside):
    inside.add_address("10.9.8.7")
    with inside.listen("10.9.8.7", 6444), pytest.raises(OSError, match=r"Address already in use: '10\.9\.8\.7:6444'"):
        inside.listen("10.9.8.7", 6444)


def test_an_address_can_be_added_twice(inside, sandbox):
    inside.add_address("10.9.8.6")
    inside.add_address("10.9.8.6")
    command = ["nsenter", f"--net=/proc/{sandbox.pid}/ns/net", "/bin/busybox", "ip", "address", "show", "lo"]
    assert subprocess.check_output(command, text=True).count("10.9.8.6/32") == 1


def test_a_word_that_is_no_address_is_an_error(inside):
    with pytest.raises(ValueError, match=r"10\.9\.8"):
        inside.add_address("10.9.8.")


def descriptors():
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


def test_leaving_leaves_nothing(sandbox):
    """No process and no descriptor of ours is left, whether one leaves once or twice."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    before = descriptors(), children.read_text()
    inside = Namespaces(sandbox.pid)
    assert len(children.read_text().split()) == len(before[1].split()) + 1
    inside.close()
    inside.close()
    assert (descriptors(), children.read_text()) == before


def test_after_leaving_it_is_closed(sandbox):
    inside = Namespaces(sandbox.pid, "the sandbox")
    inside.close()
    with pytest.raises(InputError, match="the sandbox ended while it was in use"):
        inside.add_address("10.9.8.7")


@pytest.mark.parametrize("pid", [0, -1])
def test_a_container_that_does_not_run_has_no_process(sandbox, pid):
    """Docker says process 0 of a container that was created only, or that ended."""
    with pytest.raises(InputError, match="dmsim-1 does not run; start it first"):
        Namespaces(pid, "dmsim-1")


def test_a_container_that_died_is_one_error(mortal):
    mortal.end()
    with pytest.raises(InputError, match=f"the container of process {mortal.pid} does not run"):
        Namespaces(mortal.pid)


def test_a_container_that_dies_later_is_one_error(mortal):
    with Namespaces(mortal.pid, "dmsim-1") as inside:
        mortal.end()  # the agent is in its PID namespace, so it is dead before the container's first process is
        with pytest.raises(InputError, match="dmsim-1 ended while it was in use"):
            inside.add_address("10.9.8.7")


def test_a_process_of_this_machine_is_no_container(sandbox):
    """Nothing is ever mounted in this machine's own mount namespace."""
    with pytest.raises(InputError, match="is no container: it has this machine's own mounts"):
        Namespaces(os.getpid())


def test_a_user_namespace_of_its_own_is_refused(sandbox):
    command = ["unshare", "--user", "--map-root-user", "--mount", "sleep", "60"]
    with subprocess.Popen(command) as process:
        try:
            while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n":
                time.sleep(0.005)
            with pytest.raises(InputError, match="has a user namespace of its own; switch userns-remap off"):
                Namespaces(process.pid)
        finally:
            process.kill()


# --- machines that cannot trace ---------------------------------------------------------------------------------------


def test_who_is_not_root_is_told(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert why_not() == "this is not root"
    with pytest.raises(InputError, match="the tracer cannot be used: this is not root; run without it"):
        Namespaces(1)


def test_root_of_a_user_namespace_is_told(sandbox):
    code = "from simulator.runners.container.namespaces import why_not; print(why_not())"
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-c", code]
    assert subprocess.check_output(command, text=True) == "this is root in a user namespace only\n"


def test_a_root_without_capabilities_is_told(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    everything = syscalls.capability_mask(syscalls.CAPABILITIES)
    missing = syscalls.capability_mask(["SYS_ADMIN", "NET_ADMIN"])
    monkeypatch.setattr(syscalls, "permitted_capabilities", lambda: everything & ~missing)
    assert why_not() == "this root lacks the capabilities SYS_ADMIN, NET_ADMIN"


@pytest.mark.parametrize(("supported", "release"), [(False, "6.1.0"), (True, "5.8.18-300.fc33"), (True, "4.19")])
def test_a_kernel_without_what_is_needed_is_told(sandbox, monkeypatch, supported, release):
    monkeypatch.setattr(seccomp, "supported", lambda: supported)
    monkeypatch.setattr(platform, "release", lambda: release)
    assert why_not() == f"Linux {release} lacks what is needed of seccomp's user notification, which 5.9 completed"


def test_another_machine_is_told(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert why_not() == "the tracer knows no system calls of riscv64, only those of x86_64 and aarch64"


def test_another_system_is_told(monkeypatch):
    monkeypatch.setattr(namespaces.sys, "platform", "darwin")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert why_not() == "this is Darwin, not Linux"
