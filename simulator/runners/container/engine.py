"""The Docker engine, by docker and testcontainers, and the mark that everything of ours bears.

A run is known by its process: number, start time, boot. What bears the mark of a process that is gone is left over, and
`sweep` takes it away: containers, and the folders that they had mounted. Another machine's processes (an engine that is
shared over the network) and those of other PID namespaces are not ours to judge.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from simulator.reading import InputError

LABEL: Final = "dmsim.run"
"""On each container: the run that it belongs to."""
_HOME_LABEL: Final = "dmsim.home"
_FOLDER: Final = "dmsim-"
_sweeping = threading.Lock()


def _modules() -> Any:
    """docker, once it is sure that testcontainers starts no helper of its own. Raises InputError."""
    os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")  # its reaper needs a registry; `sweep` does its job
    try:
        import docker  # noqa: PLC0415  # of the extra
        import testcontainers.core.container  # noqa: PLC0415  # of the extra
    except ImportError as error:
        mend = "install the extra: pip install 'driver-manager-simulator[container]'"
        raise InputError("", "", f"running an image needs {error.name}", mend) from None
    return docker, testcontainers.core.container


@cache
def client() -> Any:
    """The client of the engine, for all threads. Raises InputError where none answers."""
    docker, _ = _modules()
    try:
        found = docker.from_env()
    except docker.errors.DockerException as error:
        raise _no_engine(error) from None
    try:
        found.ping()
    except docker.errors.DockerException as error:
        found.close()
        raise _no_engine(error) from None
    atexit.register(found.close)
    return found


def _no_engine(error: Exception) -> InputError:
    return InputError("", "", f"no Docker engine answers: {error}", "start it, or set DOCKER_HOST")


@contextlib.contextmanager
def answering(failed: str) -> Iterator[Any]:
    """A block that asks the engine, which may refuse or be gone: then it raises InputError, which begins with `failed`.

    What is bound is the module `docker.errors`, for answers that the block expects.
    """
    docker, _ = _modules()
    try:
        yield docker.errors
    except (docker.errors.DockerException, OSError) as error:  # what requests raises are OSErrors
        raise InputError("", "", f"{failed}: {error}", "see what the engine says") from None


@contextlib.contextmanager
def running(image: str, volumes: Mapping[str, str], **settings: Any) -> Iterator[Any]:
    """A container by testcontainers, marked as ours, from its start to the end of the block, when it is taken away.

    `volumes`: folder -> where it is mounted. Raises InputError where no engine answers, or it refuses.
    """
    client()
    _, containers = _modules()
    failed = f'a container of the image "{image}" cannot be started'
    with answering(failed):
        made = containers.DockerContainer(image, volumes=[(folder, place, "rw") for folder, place in volumes.items()])
    made.with_kwargs(labels=labels(), **settings)
    with contextlib.closing(made.get_docker_client().client):
        try:
            with answering(failed):
                made.start()
                container = made.get_wrapped_container()
                container.reload()
            yield container
        finally:
            if made._container is not None:
                remove(made._container)


# --- marks and leftovers ----------------------------------------------------------------------------------------------


@cache
def _home() -> str:
    """Where this process's number means something: the machine and its PID namespace."""
    return f"{socket.gethostname()}/{Path('/proc/self/ns/pid').readlink()}"


@cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii")[:8]


def _mark(pid: int) -> str:
    """A process: its number, when it started, in which boot. Raises OSError for one that is gone."""
    started = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()[19]
    return f"{pid}-{started}-{_boot()}"


def own_mark() -> str:
    """This process's mark. Not cached: a fork is another process."""
    return _mark(os.getpid())


def labels() -> dict[str, str]:
    """What a container of this process is labelled with."""
    return {LABEL: own_mark(), _HOME_LABEL: _home()}


def new_folder() -> Path:
    """A new folder for one run, its name bearing this process's mark."""
    return Path(tempfile.mkdtemp(prefix=f"{_prefix()}{own_mark()}-"))


def _prefix() -> str:
    return f"{_FOLDER}{hashlib.sha256(_home().encode()).hexdigest()[:8]}-"


def _is_alive(mark: str) -> bool:
    pid = mark.partition("-")[0]
    try:
        return pid.isdigit() and _mark(int(pid)) == mark
    except OSError:
        return False


def sweep() -> list[str]:
    """Take away what processes that are gone have left: the names of what went. Raises InputError for what cannot be."""
    swept = []
    with answering("containers that were left over cannot be found"):
        ours = client().containers.list(all=True, filters={"label": f"{_HOME_LABEL}={_home()}"}, ignore_removed=True)
    for container in ours:
        if not _is_alive(container.labels.get(LABEL, "")):
            remove(container)
            swept.append(str(container.name))
    for folder in Path(tempfile.gettempdir()).glob(f"{_prefix()}*"):
        mark = folder.name.removeprefix(_prefix()).rpartition("-")[0]
        if not _is_alive(mark) and _is_ours(folder):
            try:
                remove_folder(folder)
            except OSError as error:
                raise InputError(str(folder), "", f"is left over and cannot be removed: {error}", "remove it as root") from None
            swept.append(folder.name)
    return sorted(swept)


def _is_ours(folder: Path) -> bool:
    """May this user take it away, and is it still there?"""
    try:
        return os.getuid() in {0, folder.lstat().st_uid}
    except FileNotFoundError:
        return False


def remove_folder(folder: Path) -> None:
    """Remove a folder of ours, whoever else is at it. Raises OSError for what cannot be removed."""
    while folder.exists():
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)


def sweep_once() -> None:
    """`sweep`, at the first run of a process."""
    with _sweeping:
        _sweep_once()


@cache
def _sweep_once() -> None:
    sweep()


def remove(container: Any) -> None:
    """Kill a container and take it away, its volumes too, if somebody has not done so already. Raises InputError."""
    with answering(f"the container {container.name} cannot be taken away") as errors:
        try:
            container.remove(force=True, v=True)
        except errors.NotFound:
            pass
        except errors.APIError as error:
            if error.status_code != HTTPStatus.CONFLICT:  # its removal is already in progress
                raise


def is_running(container: Any) -> bool:
    """Does it still run? Raises InputError where the engine does not say."""
    with answering(f"the container {container.name} cannot be looked at") as errors:
        try:
            container.reload()
        except errors.NotFound:
            return False
    return bool(container.status == "running")


def said(container: Any) -> str:
    """What a container wrote, "" if it is gone. Raises InputError."""
    with answering(f"what the container {container.name} wrote cannot be read") as errors:
        try:
            return str(container.logs().decode("utf-8", "replace"))
        except errors.NotFound:
            return ""
