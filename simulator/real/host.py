"""The real host: the `Host` and `VfioHost` ports on the machine this runs on, act by act as Go's library performs them.

System calls that Python lacks go through the C library; what fails is an `OSError` with the kernel's own errno. Whoever
uses this unmounts, unloads and removes for real: it is for a container's inside.

Source: Go 1.26 os/exec lp_unix.go, os/file_unix.go; github.com/moby/sys mountinfo_linux.go; Linux umount2(2), delete_module(2).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import posixpath
import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from simulator.gocompat import PathError, errno_of
from simulator.mounts import listed
from simulator.ports import CommandNotFound, IoFailure, ProcessResult

_MOUNTS: Final = "/proc/self/mountinfo"
_MNT_DETACH: Final = 2
_DELETE_MODULE: Final = {"x86_64": 176, "i686": 129, "ppc64le": 129, "s390x": 129, "armv7l": 129}
"""The number of the system call, where it is not that of Linux' newer architectures."""
_DELETE_MODULE_ELSEWHERE: Final = 106
_BLOCK: Final = 1 << 20


class RealHost:
    """This machine. Paths and arguments are text whose odd bytes are surrogates, as in `os.fsdecode`."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = dict(env)

    # --- programs -------------------------------------------------------------------------------------------------

    def run(self, argv: Sequence[str]) -> ProcessResult:
        """Run a program found on PATH to its end, nothing on its standard input. Raises CommandNotFound, PathError."""
        path = self._look_path(argv[0])
        try:
            done = subprocess.run(argv, executable=path, env=self._env, stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603  # upstream's own command lines
        except OSError as error:
            raise PathError("fork/exec", path, errno_of(error)) from None
        return ProcessResult(done.returncode, os.fsdecode(done.stdout), os.fsdecode(done.stderr))

    def _look_path(self, name: str) -> str:
        """`exec.LookPath` of a name without a slash: the first file on PATH that may be executed. Raises CommandNotFound."""
        path = self._env.get("PATH", "")
        for directory in path.split(":") if path else ():
            candidate = posixpath.normpath(posixpath.join(directory or ".", name))
            if not _is_executable(candidate):
                continue
            if not candidate.startswith("/"):
                raise CommandNotFound(name, "cannot run executable found relative to current directory")
            return candidate
        raise CommandNotFound(name)

    # --- files ----------------------------------------------------------------------------------------------------

    def stat(self, path: str) -> None:
        """Does the path exist, links followed? Raises OSError."""
        with _kernel_path(path):
            os.stat(path)

    def is_directory(self, path: str) -> bool:
        """Is it a directory, a link to one not counting?"""
        try:
            with _kernel_path(path):
                return stat.S_ISDIR(os.lstat(path).st_mode)
        except OSError:
            return False

    def read_file(self, path: str) -> str:
        """A file's text. Raises OSError; IoFailure if it could be opened."""
        with _opened(path, os.O_RDONLY) as file:
            blocks = list(iter(lambda: os.read(file, _BLOCK), b""))
        return os.fsdecode(b"".join(blocks))

    def write_file(self, path: str, text: str) -> None:
        """Open a file for writing, made or emptied, and write to it. Raises OSError; IoFailure if it could be opened."""
        rest = os.fsencode(text)
        with _opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
            while rest:
                rest = rest[os.write(file, rest) :]

    def list_directory(self, path: str) -> list[str]:
        """The names in a directory, sorted by their bytes. Raises OSError."""
        with _kernel_path(path):
            return sorted(os.listdir(path), key=os.fsencode)

    def read_link(self, path: str) -> str:
        """Where a link points. Raises OSError."""
        with _kernel_path(path):
            return os.readlink(path)

    def resolve(self, path: str) -> str:
        """The path without links. Raises OSError."""
        with _kernel_path(path):
            os.stat(path)  # Python's own walk goes through files
            return os.path.realpath(path)

    def kernel_release(self) -> str:
        """`uname -r`."""
        return os.uname().release

    def remove(self, path: str) -> None:
        """`os.Remove`: unlink, else rmdir, and of the two errors the telling one. Raises OSError."""
        with _kernel_path(path):
            try:
                os.unlink(path)
            except OSError as unlinking:
                try:
                    os.rmdir(path)
                except OSError as removing:
                    raise (unlinking if removing.errno == errno.ENOTDIR else removing) from None

    # --- the kernel -----------------------------------------------------------------------------------------------

    def mount_points(self) -> list[str]:
        """The mount points of this process' namespace, in mount order."""
        return [mount.point for mount in listed(self.read_file(_MOUNTS))]

    def unmount(self, path: str) -> None:
        """`umount2(path, MNT_DETACH)`. Raises OSError."""
        _call(_libc().umount2, path, ctypes.c_char_p(_bytes(path)), _MNT_DETACH)

    def delete_module(self, name: str) -> None:
        """`delete_module(name, 0)`. Raises OSError."""
        number = _DELETE_MODULE.get(platform.machine(), _DELETE_MODULE_ELSEWHERE)
        _call(_libc().syscall, name, ctypes.c_long(number), ctypes.c_char_p(_bytes(name)), ctypes.c_long(0))


def _is_executable(path: str) -> bool:
    """`findExecutable`: no directory, and this process may execute it."""
    try:
        is_directory = stat.S_ISDIR(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False
    return not is_directory and os.access(path, os.X_OK, effective_ids=os.access in os.supports_effective_ids)


def _bytes(path: str) -> bytes:
    """A path for the kernel. One with a NUL is no path: Go does not ask the kernel then, and says EINVAL."""
    if "\0" in path:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
    return os.fsencode(path)


@contextmanager
def _kernel_path(path: str) -> Iterator[None]:
    """A block that hands a path to the kernel. Raises OSError for what is no path."""
    _bytes(path)
    yield


@contextmanager
def _opened(path: str, flags: int) -> Iterator[int]:
    """An open file. What fails while it is open is an IoFailure, but for a directory that is read."""
    with _kernel_path(path):
        file = os.open(path, flags | os.O_CLOEXEC, 0o644)
    try:
        yield file
    except IsADirectoryError:
        raise
    except OSError as error:
        raise IoFailure(error.errno, error.strerror, path) from None
    finally:
        os.close(file)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(function: Callable[..., int], argument: str, *values: object) -> None:
    """Call a function of the C library. Raises OSError."""
    ctypes.set_errno(0)
    if function(*values) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), argument)
