"""The supported releases: tag -> flow.

A flow is everything the model needs to be one release: the steps, the client, the flags, the libraries' profile. It is
resolved from the named changes up to that tag; `without` leaves one out, `what_if` puts one on top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

from simulator.config import FLAGS
from simulator.kube.profile import Libraries
from simulator.manager import v0_9_1, v0_10_0, v0_11_0, v0_12_0
from simulator.manager.change import Change
from simulator.manager.charts import charts_with
from simulator.manager.kubernetes import KubeClient
from simulator.manager.steps import DriverManager
from simulator.manager.whatif import WHAT_IFS
from simulator.urfave import Flag


@dataclass(frozen=True, slots=True)
class Release:
    """An upstream tag."""

    tag: str
    date: str
    changes: tuple[Change, ...]
    """What it changed against the release before."""
    chroot: str = "busybox"
    """Whose `chroot` the image has."""

    @property
    def charts(self) -> tuple[str, ...]:
        """GPU Operator charts that bring it, oldest first."""
        return charts_with(self.tag)


RELEASES: Final = {
    release.tag: release
    for release in (
        Release("v0.9.0", "2025-10-21", ()),
        Release("v0.9.1", "2025-12-02", v0_9_1.CHANGES),
        Release("v0.10.0", "2026-03-16", v0_10_0.CHANGES),
        Release("v0.11.0", "2026-05-19", v0_11_0.CHANGES),
        Release("v0.12.0", "2026-08-19", v0_12_0.CHANGES),
    )
}
"""Tag -> release, oldest first."""

_IMAGE_PATH: Final = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
"""The base image's PATH."""

NEWEST: Final = "v0.12.0"
DEFAULT: Final = "v0.10.0"
"""What is simulated where nothing else is said: the release issue #191 is about."""


class Flow(NamedTuple):
    """A release, resolved."""

    release: Release
    changes: tuple[Change, ...]
    """All named changes it is made of, oldest first; what-ifs last."""
    steps: type[DriverManager]
    client: type[KubeClient]
    flags: tuple[Flag, ...]
    libraries: Libraries
    container_path: tuple[str, ...]
    """The image's PATH, along which `nvidia-smi` is looked for inside /host."""
    without: frozenset[str] = frozenset()
    """The named changes left out, those of other programs of the image among them."""


@lru_cache(maxsize=128)
def flow(tag: str, *, without: frozenset[str] = frozenset(), what_if: str = "") -> Flow:
    """Resolve a release. Raises KeyError for an unknown tag or what-if."""
    release = RELEASES[tag]
    changes: list[Change] = []
    for known in RELEASES.values():
        changes += (change for change in known.changes if change.name not in without)
        if known is release:
            break
    if what_if:
        changes.append(WHAT_IFS[what_if])
    return Flow(
        release,
        tuple(changes),
        _steps(tag, changes),
        _client(tag, changes),
        (*FLAGS, *(flag for change in changes for flag in change.flags)),
        _libraries(changes),
        _IMAGE_PATH + tuple(folder for change in changes for folder in change.container_path),
        without,
    )


def _steps(tag: str, changes: Sequence[Change]) -> type[DriverManager]:
    mixins = tuple(change.steps for change in reversed(changes) if change.steps)
    base = DriverManager
    tables = {
        "fetched": base.fetched + tuple(label for change in changes for label in change.fetched),
        "always": base.always + tuple(label for change in changes for label in change.always),
        "restored": base.restored + tuple(label for change in changes for label in change.restored),
        "if_deployed": base.if_deployed + tuple(label for change in changes for label in change.if_deployed),
        "waited_for": base.waited_for + tuple(wait for change in changes for wait in change.waited_for),
    }
    return type(f"DriverManager {tag}", mixins or (base,), tables)


def _client(tag: str, changes: Sequence[Change]) -> type[KubeClient]:
    return type(f"KubeClient {tag}", tuple(change.client for change in reversed(changes) if change.client) or (KubeClient,), {})


def _libraries(changes: Sequence[Change]) -> Libraries:
    libraries = Libraries()
    for change in changes:
        libraries = replace(libraries, **change.libraries)  # type: ignore[arg-type]  # field names are checked by a test
    return libraries
