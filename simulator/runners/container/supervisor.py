"""The runner's end of a container's supervisor: named pipes in a folder that both have, and what is told through them.

The supervisor is a static BusyBox's shell, the container's first process. It makes what cannot be mounted from outside
(tmpfs mounts, /proc/modules, files of the container's own), starts the program as a process of its own, and notes the end
while the container's mounts still stand. If the runner dies the pipes tell it so, and it ends.
"""

from __future__ import annotations

import os
import queue
import select
import shlex
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final, NamedTuple

from simulator.host.spec import SHARED
from simulator.host.tree import HOST
from simulator.mounts import listed
from simulator.reading import InputError
from simulator.runners.container.layout import Layout
from simulator.runners.container.scripts import HELPER, OURS

_PIPES: Final = ("control", "status", "stdout", "stderr")
_CHUNK: Final = 1 << 16
_SHELLS: Final = 128
"""What a shell adds to a signal's number. It has no other word for one."""
_SIGNALS: Final = range(1, 65)
PATIENCE: Final = 60.0
"""Seconds in which a supervisor that is alive answers, on a machine with much else to do."""
_SCRIPTS: Final = ("supervise", "functions")


@cache
def busybox() -> Path:
    """A static BusyBox of this machine. Raises InputError."""
    named = os.environ.get("DMSIM_BUSYBOX") or shutil.which("busybox")
    if named is None:
        raise InputError("", "", "running an image needs a static BusyBox", "install busybox-static, or set DMSIM_BUSYBOX")
    path = Path(named).resolve()
    try:
        applets = subprocess.run([path, "--list"], capture_output=True, check=True, text=True).stdout.split()  # noqa: S603  # the user's own
    except (OSError, subprocess.CalledProcessError) as error:
        raise InputError(str(path), "", f"is no BusyBox that runs here: {error}", "install busybox-static") from None
    missing = {"sh", "env", "nc", "tar", "unshare", "mount", "umount", "ip"} - set(applets)
    if missing:
        raise InputError(str(path), "", f"lacks {', '.join(sorted(missing))}", "install busybox-static, or set DMSIM_BUSYBOX")
    if b"ld-linux" in path.read_bytes()[:4096] or b"ld-musl" in path.read_bytes()[:4096]:
        raise InputError(str(path), "", "is not static", "install busybox-static, or set DMSIM_BUSYBOX")
    return path


class Broken(RuntimeError):
    """The container did not do what it was told; not the world's fault, nor the program's."""


class Written(NamedTuple):
    """Somebody in the container wrote to a control file; several writes may come at once."""

    path: str
    text: str


class Ended(NamedTuple):
    """The program has ended."""

    status: int
    """Its exit code, or the number of the signal that killed it, negative."""


class Supervisor:
    """The pipes, and a thread that reads them.

    `on_output(stream, data)` is told of everything that the program writes, in order; `drain` delivers what is written by
    now. `controls` are named pipes in place of control files, by their path in the container.
    """

    def __init__(self, folder: Path, on_output: Callable[[str, bytes], None], controls: Mapping[str, Path]) -> None:
        self.folder = folder
        self._on_output = on_output
        self._lock = threading.RLock()
        self._answers: queue.Queue[Ended | Written] = queue.Queue()
        self._done: dict[str, queue.Queue[bool]] = {}
        self._scripts = 0
        self._rest = b""
        for script in _SCRIPTS:
            text = (resources.files(__package__) / f"{script}.sh").read_text("utf-8")
            (folder / script).write_text(text, "utf-8")
        self._fds: dict[str, int] = {}
        self._controls: dict[int, str] = {}
        try:
            for name in _PIPES:
                os.mkfifo(folder / name)
                (folder / name).chmod(0o666)
                self._fds[name] = os.open(folder / name, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            for path, place in controls.items():
                self._controls[os.open(place, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)] = path
            self._wake, self._woken = os.pipe2(os.O_CLOEXEC)
        except OSError:
            self._close()
            raise
        self._thread = threading.Thread(target=self._read, name="dmsim-pipes", daemon=True)
        self._thread.start()

    def write(self, name: str, body: str) -> None:
        """A script for the supervisor to run."""
        (self.folder / name).write_bytes(os.fsencode(body))

    def tell(self, line: str) -> None:
        """Say something to it."""
        os.write(self._fds["control"], f"{line}\n".encode("ascii"))

    def do(self, body: str) -> None:
        """Have commands run in the container, and wait until they are. Raises Broken."""
        with self._lock:
            self._scripts += 1
            name = f"script-{self._scripts}"
            done = self._done[name] = queue.Queue(1)
        self.write(name, body)
        self.tell(f"do {name}")
        try:
            succeeded = done.get(timeout=PATIENCE)
        except queue.Empty:
            raise Broken(f"the container did not run its commands within {PATIENCE:.0f} s: {body}") from None
        if not succeeded:
            raise Broken(f"commands failed in the container: {body}")

    def ended(self, status: int) -> None:
        """The program has ended, seen by somebody else."""
        self._answers.put(Ended(status))

    def next_answer(self, timeout: float) -> Ended | Written | None:
        """The program's end, or what was written to a control file; None if nothing comes in time."""
        try:
            return self._answers.get(timeout=timeout)
        except queue.Empty:
            return None

    def written(self) -> Iterator[Written]:
        """What was written to control files and not yet told, once there is no program any more."""
        with self._lock:
            self._read_controls(self._controls)
        while not self._answers.empty():
            answer = self._answers.get()
            if isinstance(answer, Written):
                yield answer

    def drain(self) -> None:
        """Deliver what the program has written so far."""
        with self._lock:
            for stream in ("stdout", "stderr"):
                while data := _read(self._fds[stream]):
                    self._on_output(stream, data)

    def close(self) -> None:
        """Stop reading. A supervisor that still lives ends by it."""
        os.write(self._woken, b"!")
        self._thread.join()
        self._close()

    def _close(self) -> None:
        for fd in (*self._fds.values(), *self._controls, *(getattr(self, name, -1) for name in ("_wake", "_woken"))):
            if fd >= 0:
                os.close(fd)
        self._fds = {}
        self._controls = {}

    def _read(self) -> None:
        poll = select.poll()
        for fd in (self._fds["status"], self._fds["stdout"], self._fds["stderr"], *self._controls, self._wake):
            poll.register(fd, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if self._wake in ready:
                return
            self.drain()
            with self._lock:
                self._read_controls(ready & self._controls.keys())
            if self._fds["status"] in ready:
                self._hear(_read(self._fds["status"]))

    def _read_controls(self, fds: Iterable[int]) -> None:
        for fd in fds:
            if data := _read(fd):
                self._answers.put(Written(self._controls[fd], os.fsdecode(data)))

    def _hear(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            word, _, rest = line.decode("ascii", "replace").partition(" ")
            if word in {"did", "failed"} and rest in self._done:
                self._done[rest].put(word == "did")
            elif word == "exit":
                status = int(rest)
                self.ended(_SHELLS - status if status - _SHELLS in _SIGNALS else status)


def _read(fd: int) -> bytes:
    """What there is to read, b"" for nothing."""
    try:
        return os.read(fd, _CHUNK)
    except BlockingIOError:
        return b""


# --- scripts ----------------------------------------------------------------------------------------------------------


def prepare(layout: Layout, modules: str, mounts: Sequence[str]) -> str:
    """What is done before the program: the container's own files, the world's mounts, the host's view of them.

    `modules` are the commands that make /proc/modules.
    """
    parts = [layout.commands, modules, f"$b cat /proc/self/mountinfo > {OURS}/mounts-before\n"]
    parts += [f"$b mkdir -p {shlex.quote(path)}\n$b mount -t tmpfs tmpfs {shlex.quote(path)}\n" for path in mounts]
    parts.append(_packed("tree-before", layout))
    if "host" in layout.mounted:
        parts += [f"$b mkdir -p {HOST}{path}\n$b mount --rbind {path} {HOST}{path}\n" for path in SHARED]
    return "".join(parts)


def _packed(name: str, layout: Layout) -> str:
    return f"$b tar -c -f {OURS}/{name}.tar -C / {' '.join(layout.mounted)}\n"


def add_address(address: str) -> str:
    """The command that makes an address the container's own."""
    return f"$b ip addr add {address}/32 dev lo\n"


def relay(port: int, to: str, to_port: int) -> str:
    """The command by which a port of the container's own leads to one of this machine's."""
    return f"$b nc -ll -p {port} -e {HELPER} nc {to} {to_port} </dev/null >/dev/null 2>&1 &\n"


def start(argv: Sequence[str], env: Mapping[str, str], directory: str, *, pid_1: bool) -> dict[str, str]:
    """The scripts that start the program, by name: as the first process of a PID namespace of its own, or not."""
    words = " ".join(shlex.quote(word) for word in (*(f"{key}={value}" for key, value in env.items()), *argv))
    launch = (
        f"cd {shlex.quote(directory)}\n"
        "read -r pid rest </proc/self/stat\n"
        f'echo "$pid" >{OURS}/pid\n'
        f"exec {HELPER} env -i {words} </dev/null >{OURS}/stdout 2>{OURS}/stderr 3<&-\n"
    )
    isolated = f"{HELPER} unshare -p -f " if pid_1 else ""
    return {"start": f"exec {isolated}{HELPER} sh {OURS}/launch\n", "launch": launch}


def note(layout: Layout, watched: Sequence[str]) -> str:
    """What is noted at the end: mounts, whether the watched files are there, every file of the shared folders."""
    tests = "".join(f"if [ -e {shlex.quote(path)} ]; then echo {shlex.quote(path)}; fi\n" for path in watched)
    parts = [f"$b cat /proc/self/mountinfo > {OURS}/mounts-after\n", f"{{\n{tests}}} > {OURS}/existing\n"]
    if "host" in layout.mounted:
        parts += [f"$b umount -l {HOST}{path}\n" for path in SHARED]
    return "".join([*parts, _packed("tree-after", layout)])


# --- what was noted ---------------------------------------------------------------------------------------------------


def new_mounts(before: str, after: str) -> list[str]:
    """The mount points that were not there before, in mount order, from two texts of /proc/self/mountinfo."""
    known = {mount.id for mount in listed(before)}
    return [mount.point for mount in listed(after) if mount.id not in known]


def tree_of(archive: Path) -> dict[str, str]:
    """The files of a tar archive as `Tree.snapshot` has them: path -> text, directories with a slash, links with an arrow."""
    out: dict[str, str] = {}
    with tarfile.open(archive, encoding="utf-8", errors="surrogateescape") as tar:
        for member in tar:
            path = f"/{member.name.strip('/')}"
            if member.isdir():
                out[f"{path}/"] = ""
            elif member.issym():
                out[path] = f"-> {member.linkname}"
            elif member.isreg() and (file := tar.extractfile(member)) is not None:
                out[path] = os.fsdecode(file.read())
            else:
                out[path] = ""
    return out
