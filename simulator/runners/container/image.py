"""What an image has: the program, its environment, and what the program needs, looked for in the image's file system.

A driver-manager without a `chroot` on its PATH finds no driver on any host and says nothing about it; so that is asked
first. The image is looked into without anything of it being run.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final

from simulator.reading import InputError
from simulator.runners.container import engine

PROGRAM: Final = "driver-manager"
_CHROOT: Final = "chroot"
_HELPERS: Final = (_CHROOT, "vfio-manage")
_MOST_LINKS: Final = 40
_LINK: Final = 1 << 27
_DIRECTORY: Final = 1 << 31
_EXECUTABLE: Final = 0o111
_looking = threading.Lock()
"""Several runs of one image look into it once."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image that can be run."""

    reference: str
    id: str
    labels: Mapping[str, str]
    command: tuple[str, ...]
    """What starts the program, before its arguments; the first is a path."""
    env: Mapping[str, str]
    working_directory: str
    helpers: Mapping[str, str]
    """Name -> path of the programs that driver-manager runs, as far as they are there."""


def look_into(reference: str) -> Image:
    """What is known of an image. Raises InputError for one that is not there or lacks what the program needs."""
    client = engine.client()
    with engine.answering(f'the image "{reference}" cannot be looked into') as errors:
        try:
            found = client.images.get(reference)
        except errors.ImageNotFound:
            raise InputError("", "", f'there is no image "{reference}" on this engine', "build it, or docker pull it") from None
        with _looking:
            return _looked_into(reference, str(found.id))


@lru_cache(maxsize=32)
def _looked_into(reference: str, image_id: str) -> Image:
    image = engine.client().images.get(image_id)
    config: Mapping[str, Any] = image.attrs["Config"]
    env = dict(item.partition("=")[::2] for item in config.get("Env") or ())
    if config.get("User") not in {None, "", "0", "root", "0:0", "root:root"}:
        raise InputError("", "", f'the image "{reference}" runs as {config["User"]}', "driver-manager's image runs as root")
    container = engine.client().containers.create(image_id, ["-"], entrypoint=["-"], labels=engine.labels(), network_mode="none")
    try:
        files = _Files(container)
        path = env.get("PATH", "").split(":")
        command = _command(reference, files, path, config.get("Entrypoint") or ())
        helpers = {name: found for name in _HELPERS if (found := files.on_path(name, path)) is not None}
    finally:
        engine.remove(container)
    if _CHROOT not in helpers:
        mend = "without it every host looks as if it had no driver; use an image that has it, or set its PATH"
        raise InputError("", "", f'the image "{reference}" has no {_CHROOT} on its PATH ({":".join(path)})', mend)
    return Image(reference, image_id, image.labels, command, env, config.get("WorkingDir") or "/", helpers)


def _command(reference: str, files: _Files, path: list[str], entrypoint: tuple[str, ...]) -> tuple[str, ...]:
    """driver-manager on PATH, as the GPU Operator calls it; else what the image starts by itself."""
    found = files.on_path(PROGRAM, path)
    if found is not None:
        return (found,)
    if entrypoint:
        first = entrypoint[0] if "/" in entrypoint[0] else files.on_path(entrypoint[0], path)
        if first is not None and files.is_executable(first):
            return (first, *entrypoint[1:])
    raise InputError(
        "",
        "",
        f'the image "{reference}" has neither {PROGRAM} on its PATH nor an ENTRYPOINT that is there',
        "is it the right image?",
    )


class _Files:
    """The file system of a container that was never started."""

    def __init__(self, container: Any) -> None:
        self._container = container

    def on_path(self, name: str, path: list[str]) -> str | None:
        """The path of a program, as a shell would find it."""
        return next((found for directory in path if directory and self.is_executable(found := f"{directory}/{name}")), None)

    def is_executable(self, path: str) -> bool:
        """A file that may be executed, links followed as in the container."""
        mode = self._mode(path)
        return mode is not None and not mode & _DIRECTORY and bool(mode & _EXECUTABLE)

    def _mode(self, path: str, links: int = 0) -> int | None:
        """The mode of what is at a path, as Go counts; None for nothing."""
        api = engine.client().api
        response = api.head(api._url("/containers/{0}/archive", self._container.id), params={"path": path})
        if response.status_code == HTTPStatus.NOT_FOUND:
            return None
        response.raise_for_status()
        status = json.loads(base64.b64decode(response.headers["X-Docker-Container-Path-Stat"]))
        mode = int(status["mode"])
        if not mode & _LINK:
            return mode
        target = status["linkTarget"]  # resolved by the engine, inside the container
        return None if target == path or links >= _MOST_LINKS else self._mode(target, links + 1)
