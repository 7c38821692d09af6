"""Names of releases, what-ifs and settings as people write them, checked, with the nearest known ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from simulator.manager.releases import GO_RELEASES, RELEASES, modelled
from simulator.manager.variables import KNOWN, SETTINGS
from simulator.manager.whatif import WHAT_IFS
from simulator.reading import InputError, nearest


def check_release(tag: str) -> str:
    """A known tag, or the one that stands for it. Raises InputError with the nearest ones."""
    known = modelled(tag)
    if known is None:
        raise InputError("", "", f'there is no release "{tag}"', nearest(tag, RELEASES))
    return known


def check_what_if(name: str, release: str) -> str:
    """A what-if that is known for a release, or none. Raises InputError."""
    if name and name not in WHAT_IFS:
        raise InputError("", "", f'there is no what-if "{name}"', nearest(name, WHAT_IFS))
    if name and release not in GO_RELEASES:
        first = next(iter(GO_RELEASES))
        raise InputError("", "", f'the what-if "{name}" is of the Go program, {release} is a script', f"use {first} or newer")
    return name


def check_setting(name: str) -> str:
    """A variable that some release reads, or that is there for another reason. Raises InputError with the nearest ones."""
    if name not in KNOWN:
        raise InputError("", "", f"no release reads {name}", nearest(name, SETTINGS))
    return name


def unread_settings(names: Iterable[str]) -> Iterator[str]:
    """A remark for each variable that no release reads, which driver-manager passes over without a word."""
    for name in names:
        if name not in KNOWN:
            yield f"no release reads {name}; {nearest(name, SETTINGS)}"
