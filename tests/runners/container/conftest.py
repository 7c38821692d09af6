"""A container without Docker: namespaces of its own around busybox and the pause program, where we are root on Linux."""

from __future__ import annotations

import os
import platform
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from simulator.runners.container.namespaces import Namespaces, why_not
from tests.runners.container.images import build
from tests.runners.container.pause import pause_program

BUSYBOX = Path("/bin/busybox")


@pytest.fixture(scope="session")
def image(docker_engine):
    """The image of a "driver-manager" that does what the variable SCRIPT says."""
    return build(docker_engine)


class Sandbox:
    """A root directory and a process in namespaces of its own with it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("bin", "dev", "etc", "proc", "run", "tmp"):
            (root / name).mkdir()
        os.mknod(root / "dev/null", 0o020666, os.makedev(1, 3))
        shutil.copy(BUSYBOX, root / "bin/busybox")
        self.program("pause", pause_program(platform.machine()))
        script = f"mount -t proc proc {root}/proc && exec chroot {root} /bin/pause"
        options = ["--mount", "--net", "--uts", "--ipc", "--pid", "--cgroup", "--fork", "--kill-child"]
        self._unshare = subprocess.Popen(["unshare", *options, "/bin/sh", "-c", script])
        children = Path(f"/proc/{self._unshare.pid}/task/{self._unshare.pid}/children")
        while not (first := children.read_text().strip()) or Path(f"/proc/{first}/comm").read_text() != "pause\n":
            assert self._unshare.poll() is None
            time.sleep(0.005)
        self.pid = int(first)
        self._lives = os.pidfd_open(self.pid)

    def program(self, name: str, content: bytes | str) -> str:
        """Put a program into /bin; its path in the sandbox."""
        path = self.root / "bin" / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(0o755)
        return f"/bin/{name}"

    def end(self) -> None:
        """End it, if it has not ended."""
        self._unshare.kill()
        self._unshare.wait()
        select.select([self._lives], [], [])


def make_sandbox(tmp_path_factory):
    reason = why_not() or ("" if BUSYBOX.exists() else f"there is no {BUSYBOX}")
    if reason:
        if os.environ.get("DMSIM_REQUIRE_DOCKER") == "1":
            pytest.fail(f"the tracer cannot be tested: {reason}")
        pytest.skip(f"the tracer cannot be tested: {reason}")
    return Sandbox(tmp_path_factory.mktemp("root"))


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory):
    """A sandbox for all tests that leave it alive."""
    made = make_sandbox(tmp_path_factory)
    yield made
    made.end()


@pytest.fixture
def mortal(tmp_path_factory):
    """A sandbox of this test's own."""
    made = make_sandbox(tmp_path_factory)
    yield made
    made.end()


@pytest.fixture(scope="module")
def inside(sandbox):
    """The namespaces of the sandbox for all tests that stay inside."""
    with Namespaces(sandbox.pid, "the sandbox") as namespaces:
        yield namespaces
