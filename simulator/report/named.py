"""The named changes of an image: those of driver-manager and those of vfio-manage, one registry to ask."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from simulator.manager.releases import RELEASES
from simulator.vfio.releases import CHANGES as VFIO_CHANGES

DRIVER_MANAGER: Final = "driver-manager"
VFIO_MANAGE: Final = "vfio-manage"


class Change(Protocol):
    """What the changes of both programs have in common; the fields are described where each is defined."""

    @property
    def name(self) -> str:
        """Its name, of which there is only one."""

    @property
    def upstream(self) -> str:
        """Pull request or commit."""

    @property
    def summary(self) -> str:
        """What is different."""

    @property
    def notice(self) -> str:
        """What a user notices."""

    @property
    def action(self) -> str:
        """What a user has to do; empty if nothing."""


class Named(NamedTuple):
    """A named change, the release that brought it, the program it is of."""

    change: Change
    release: str
    program: str


def named_changes(release: str) -> tuple[Named, ...]:
    """What a release brought. Raises KeyError for an unknown one."""
    known = RELEASES[release]
    own = tuple(Named(change, release, DRIVER_MANAGER) for change in (*known.shell_changes, *known.changes))
    return own + tuple(Named(change, release, VFIO_MANAGE) for change in VFIO_CHANGES.get(release, ()))


def named_between(one: str, other: str) -> tuple[Named, ...]:
    """What the newer of two releases has and the older has not, oldest first. Raises KeyError."""
    tags = list(RELEASES)
    first, last = sorted((tags.index(check(one)), tags.index(check(other))))
    return tuple(named for tag in tags[first + 1 : last + 1] for named in named_changes(tag))


def check(release: str) -> str:
    """A known release. Raises KeyError."""
    if release not in RELEASES:
        raise KeyError(release)
    return release
