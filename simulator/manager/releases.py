"""The supported releases: tag -> flow.

A flow is everything the model needs to be one release: the steps, the client, the flags, the libraries' profile. It is
resolved from the named changes up to that tag; `without` leaves one out, `what_if` puts one on top.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

from simulator.config import FLAGS
from simulator.kube.profile import Libraries
from simulator.manager import v0_9_0, v0_9_1, v0_10_0, v0_11_0, v0_12_0
from simulator.manager.change import Change, Read
from simulator.manager.charts import charts_with
from simulator.manager.kubernetes import KubeClient
from simulator.manager.shell import releases as shell
from simulator.manager.shell.change import ShellChange
from simulator.manager.shell.script import Script
from simulator.manager.steps import DriverManager
from simulator.manager.whatif import WHAT_IFS
from simulator.urfave import Flag


@dataclass(frozen=True, slots=True)
class Release:
    """An upstream tag."""

    tag: str
    date: str
    changes: tuple[Change, ...] = ()
    """What it changed against the release before."""
    shell_changes: tuple[ShellChange, ...] = ()
    """The same, of a shell release."""
    chroot: str = "busybox"
    """Whose `chroot` the image has."""

    @property
    def is_script(self) -> bool:
        """Is it one of the shell releases?"""
        return self.tag in shell.CHANGES

    @property
    def charts(self) -> tuple[str, ...]:
        """GPU Operator charts that bring it, oldest first."""
        return tuple(chart for tag in self.tags for chart in charts_with(tag))

    @property
    def tags(self) -> tuple[str, ...]:
        """The releases that it stands for, oldest first, itself last."""
        return (*(tag for tag, stand_in in shell.STANDS_FOR.items() if stand_in == self.tag), self.tag)


_SHELL_DATES: Final = {"v0.4.2": "2022-09-12", "v0.6.2": "2023-07-12", "v0.8.1": "2025-09-03"}
SHELL_RELEASES: Final = {tag: Release(tag, _SHELL_DATES[tag], (), changes, "coreutils") for tag, changes in shell.CHANGES.items()}
"""Tag -> release, oldest first: those that are a bash script."""
GO_RELEASES: Final = {
    release.tag: release
    for release in (
        Release("v0.9.0", "2025-10-21", v0_9_0.CHANGES),
        Release("v0.9.1", "2025-12-02", v0_9_1.CHANGES),
        Release("v0.10.0", "2026-03-16", v0_10_0.CHANGES),
        Release("v0.11.0", "2026-05-19", v0_11_0.CHANGES),
        Release("v0.12.0", "2026-08-19", v0_12_0.CHANGES),
    )
}
"""Tag -> release, oldest first: those that are a Go program."""
RELEASES: Final = {**SHELL_RELEASES, **GO_RELEASES}
"""Tag -> release, oldest first."""


def modelled(tag: str) -> str | None:
    """The release of the model that stands for a tag, itself if it is one; None if there is none."""
    stand_in = shell.STANDS_FOR.get(tag, tag)
    return stand_in if stand_in in RELEASES else None


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
    before_reads: tuple[Callable[[Read], Read], ...] = ()
    """What is put around the reading of settings, for changes of it that are left out."""
    deaf: bool = False
    """Is a signal that is not handled lost on process 1?"""
    image: Mapping[str, str] = {}
    """Programs of the image beside chroot and vfio-manage -> where they are."""


class ShellFlow(NamedTuple):
    """A shell release, resolved."""

    release: Release
    changes: tuple[ShellChange, ...]
    """All named changes it is made of, oldest first."""
    script: type[Script]
    libraries: Libraries
    """nvdrain's."""
    container_path: tuple[str, ...]
    """The image's PATH, along which `nvidia-smi` is looked for inside /host."""
    without: frozenset[str] = frozenset()
    """The named changes left out."""
    deaf: bool = True
    """Is a signal that is not handled lost on process 1?"""
    image: Mapping[str, str] = shell.IMAGE
    """Programs of the image beside chroot and vfio-manage -> where they are."""


def is_since(release: str, first: str) -> bool:
    """Is a release `first` or a later one? Raises ValueError for an unknown one."""
    tags = list(RELEASES)
    return tags.index(release) >= tags.index(first)


def resolve(tag: str, *, without: frozenset[str] = frozenset(), what_if: str = "") -> Flow | ShellFlow:
    """Resolve any release. Raises KeyError for an unknown tag or what-if, and for a what-if on a shell release."""
    if tag in GO_RELEASES:
        return flow(tag, without=without, what_if=what_if)
    if what_if:
        raise KeyError(what_if)
    return shell_flow(tag, without=without)


@lru_cache(maxsize=128)
def shell_flow(tag: str, *, without: frozenset[str] = frozenset()) -> ShellFlow:
    """Resolve a shell release. Raises KeyError for another tag."""
    changes, script, libraries = shell.resolve(tag, without)
    return ShellFlow(SHELL_RELEASES[tag], changes, script, libraries, shell.PATH, without)


@lru_cache(maxsize=128)
def flow(tag: str, *, without: frozenset[str] = frozenset(), what_if: str = "") -> Flow:
    """Resolve a Go release. Raises KeyError for another tag, and for an unknown what-if."""
    release = GO_RELEASES[tag]
    changes: list[Change] = []
    missing: list[Change] = []
    tags = list(GO_RELEASES)
    for known in tags[: tags.index(tag) + 1]:
        for change in GO_RELEASES[known].changes:
            (missing if change.name in without else changes).append(change)
    if what_if:
        changes.append(WHAT_IFS[what_if])
    return Flow(
        release,
        tuple(changes),
        _steps(tag, changes, missing),
        _client(tag, changes, missing),
        (*FLAGS, *(flag for change in changes for flag in change.flags)),
        _libraries(changes),
        _IMAGE_PATH + tuple(folder for change in changes for folder in change.container_path),
        without,
        tuple(change.before_read for change in missing if change.before_read),
        any(change.before_deaf for change in missing),
        shell.IMAGE if any(change.before for change in missing) else {},
    )


def _steps(tag: str, changes: Sequence[Change], missing: Sequence[Change]) -> type[DriverManager]:
    """The changes on top of each other, the newest first; below them what was done before those that are left out."""
    mixins = tuple(change.steps for change in reversed(changes) if change.steps)
    mixins += tuple(change.before for change in missing if change.before)
    base = DriverManager
    tables = {
        "fetched": base.fetched + tuple(label for change in changes for label in change.fetched),
        "always": base.always + tuple(label for change in changes for label in change.always),
        "restored": base.restored + tuple(label for change in changes for label in change.restored),
        "if_deployed": base.if_deployed + tuple(label for change in changes for label in change.if_deployed),
        "waited_for": base.waited_for + tuple(wait for change in changes for wait in change.waited_for),
    }
    return type(f"DriverManager {tag}", mixins or (base,), tables)


def _client(tag: str, changes: Sequence[Change], missing: Sequence[Change]) -> type[KubeClient]:
    mixins = tuple(change.client for change in reversed(changes) if change.client)
    mixins += tuple(change.before_client for change in missing if change.before_client)
    return type(f"KubeClient {tag}", mixins or (KubeClient,), {})


def _libraries(changes: Sequence[Change]) -> Libraries:
    libraries = Libraries()
    for change in changes:
        libraries = replace(libraries, **change.libraries)  # type: ignore[arg-type]  # field names are checked by a test
    return libraries
