"""What the Go version asks of files: Go's `os` and `path/filepath` on the host's port, with Go's errors.

Source: Go 1.26 os/file.go, os/dir.go, path/filepath/symlink.go, path/filepath/path.go.
"""

from __future__ import annotations

import errno
import posixpath
from typing import Final

from simulator.gocompat import ErrnoError, GoError, PathError, errno_of
from simulator.ports import IoFailure, Stopped, VfioHost
from simulator.vfio import messages as m

SYS_DEVICES: Final = "/sys/bus/pci/devices"
SYS_DRIVERS: Final = "/sys/bus/pci/drivers"


def read_file(host: VfioHost, path: str) -> str:
    """`os.ReadFile`. Raises PathError."""
    try:
        return host.read_file(path)
    except OSError as error:
        was_open = isinstance(error, IoFailure | IsADirectoryError)
        raise PathError("read" if was_open else "open", path, errno_of(error)) from None


def write_file(host: VfioHost, path: str, text: str) -> None:
    """`os.WriteFile`. Raises PathError.

    A write that the kernel answers with EAGAIN never ends: Go's runtime waits for sysfs to say that it is ready.
    """
    try:
        host.write_file(path, text)
    except OSError as error:
        if isinstance(error, IoFailure) and error.errno == errno.EAGAIN:
            raise Stopped from None
        raise PathError("write" if isinstance(error, IoFailure) else "open", path, errno_of(error)) from None


def read_dir(host: VfioHost, path: str) -> list[str]:
    """`os.ReadDir`: the names, sorted. Raises PathError."""
    try:
        return host.list_directory(path)
    except OSError as error:
        raise PathError("open", path, errno_of(error)) from None


def stat(host: VfioHost, path: str) -> None:
    """`os.Stat`. Raises PathError."""
    try:
        host.stat(path)
    except OSError as error:
        raise PathError("stat", path, errno_of(error)) from None


def exists(host: VfioHost, path: str) -> bool:
    """`os.Stat` without an error."""
    try:
        host.stat(path)
    except OSError:
        return False
    return True


def read_link(host: VfioHost, path: str) -> str:
    """`os.Readlink`. Raises PathError."""
    try:
        return host.read_link(path)
    except OSError as error:
        raise PathError("readlink", path, errno_of(error)) from None


def eval_symlinks(host: VfioHost, path: str) -> str:
    """`filepath.EvalSymlinks`. Raises GoError; a PathError where the file system said no."""
    try:
        return host.resolve(path)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise GoError(m.TOO_MANY_LINKS) from None
        if error.errno == errno.ENOTDIR:
            raise ErrnoError(errno.ENOTDIR) from None
        raise PathError("lstat", path, errno_of(error)) from None


def is_not_exist(error: GoError) -> bool:
    """`errors.Is(err, os.ErrNotExist)`; `os.IsNotExist` for an error that nothing wraps."""
    if isinstance(error, PathError | ErrnoError):
        return error.number == errno.ENOENT
    return any(is_not_exist(wrapped) for wrapped in error.wrapped)


def join(*parts: str) -> str:
    """`filepath.Join` of parts of which the first is an absolute path."""
    return posixpath.normpath("/".join(part for part in parts if part))


def base(path: str) -> str:
    """`filepath.Base`."""
    if not path:
        return "."
    return path.rstrip("/").rpartition("/")[2] or "/"


def bound_driver(host: VfioHost, device_path: str) -> str:
    """`getDriver`, of nvpci and of nvpassthrough: the driver a device is bound to, "" for none. Raises GoError."""
    try:
        return base(eval_symlinks(host, join(device_path, "driver")))
    except GoError as error:
        if is_not_exist(error):
            return ""
        raise
