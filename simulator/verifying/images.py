"""A local image of driver-manager: its id, the release it is of, and running worlds on it."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from simulator.runners.container.image import look_into
from simulator.trace import Outcome
from simulator.world import World

_TAG: Final = re.compile(r"v\d+\.\d+\.\d+(-[\w.]+)?", re.ASCII)
_LABELS: Final = ("org.opencontainers.image.version", "version")
"""Upstream's image says its release in the second."""


class RunsWorlds(Protocol):
    """What runs worlds: an image, or what a test has in its place."""

    def __call__(self, world: World) -> Outcome:
        """Run a world. Raises Unfit for one that no container can stand for."""

    def cancel(self) -> None:
        """Let the runs that go on end soon."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image. `release` is "" if neither a label nor its tag says one."""

    reference: str
    id: str
    release: str
    tracer: bool | None = None
    """Is the tracer used? None: wherever this machine can."""
    _cancelled: threading.Event = field(default_factory=threading.Event, compare=False)

    def __call__(self, world: World) -> Outcome:
        """Run a world. Raises Unfit, InputError; KeyboardInterrupt once the runs are cancelled."""
        from simulator.runners.container.runner import run_image  # noqa: PLC0415  # needs an extra

        return run_image(world, self.reference, release=self.release, tracer=self.tracer, cancelled=self._cancelled)

    def cancel(self) -> None:
        """Let the runs that go on end soon."""
        self._cancelled.set()


def look_up(reference: str) -> Image:
    """An image by its reference. Raises InputError: no engine, no such image, no image that can be run, the extra is missing."""
    found = look_into(reference)
    return Image(reference, found.id, release_of(reference, found.labels))


def release_of(reference: str, labels: Mapping[str, str]) -> str:
    """The release that an image's labels name, else its tag; "" if neither does."""
    tag = reference.rpartition("/")[2].partition("@")[0].partition(":")[2]
    names = (*(labels.get(label, "") for label in _LABELS), tag)
    return next((match[0] for name in names if (match := _TAG.match(name))), "")
