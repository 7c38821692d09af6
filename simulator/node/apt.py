"""What apt and dpkg do to a host's packages: dependencies, the swap of `A | B`, marks, what stays as configuration.

apt keeps what is installed consistent. Where a package loses what it needs, apt removes it too, or installs another
alternative of the same dependency; it goes by scores, and bookworm's apt and trixie's do not always choose alike, so both
outcomes are here, by `swaps`. What autoremove takes is decided by marks and dependencies, never by names.

What a package needs is taken from the host's description, else from the archive of packages that the images of hosts are
made of, which has Ubuntu's and NVIDIA's own relations. Of a package that neither knows nothing is concluded.

Leaves out versions in relations, Recommends, essential packages and holds. Source: apt-get 2.6.1 and 3.0.4 by experiment.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from simulator.host.spec import Package
from simulator.scenario import fixtures

Packages = Mapping[str, Package]
Needs = tuple[tuple[str, ...], ...]
"""All of these, and of each any one."""

CONFIGURATION_LEFT: Final = "rc"
MERELY_KNOWN: Final = "un"
_GONE: Final = frozenset({CONFIGURATION_LEFT, MERELY_KNOWN})


@dataclass(frozen=True, slots=True)
class Known:
    """What an archive says of a package."""

    version: str
    depends: str = ""
    provides: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    has_configuration: bool = False
    """Does it have files that are left when it is removed, but not purged?"""


@dataclass(frozen=True, slots=True)
class Transaction:
    """What apt would do: `apt-get -s` prints `Inst` and `Remv` or `Purg` for these."""

    install: tuple[str, ...]
    remove: tuple[str, ...]
    """With all that goes along."""


def plain(name: str) -> str:
    """A package's name without architecture."""
    return name.partition(":")[0]


def is_there(package: Package) -> bool:
    """Is it installed, if only half?"""
    return package.status not in _GONE


@lru_cache(maxsize=1)
def archive() -> Mapping[str, Known]:
    """The archive that the images of hosts are made of."""
    folder = fixtures() / "images/packages"
    text = (folder / "control").read_text("utf-8")
    versions = re.findall(r"^# version: (.*)$", text, re.MULTILINE)
    out = {}
    for paragraph in re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("${version}", versions[0]).split("\n\n"):
        fields = dict(re.findall(r"^([A-Z][A-Za-z-]*): (.*)$", paragraph, re.MULTILINE))
        name = fields["Package"]
        provides, conflicts = (
            tuple(other for group in needs(fields.get(key, "")) for other in group) for key in ("Provides", "Conflicts")
        )
        has_configuration = (folder / "files" / name / "etc").is_dir()
        out[name] = Known(fields["Version"], fields.get("Depends", ""), provides, conflicts, has_configuration)
    return out


@lru_cache(maxsize=1024)
def needs(depends: str) -> Needs:
    """A field like Depends, without versions and architectures."""
    groups = (tuple(re.sub(r"[(\[<:].*", "", one).strip() for one in group.split("|")) for group in depends.split(","))
    return tuple(group for group in groups if group != ("",))


def needs_of(name: str, package: Package) -> Needs | None:
    """What a package needs; None: not known."""
    if package.depends is not None:
        return needs(package.depends)
    known = archive().get(plain(name))
    return needs(known.depends) if known else None


def _names(name: str) -> tuple[str, ...]:
    """What a package answers to."""
    known = archive().get(plain(name))
    return (plain(name), *(known.provides if known else ()))


def _given(names: Iterable[str]) -> set[str]:
    return {other for name in names for other in _names(name)}


def _broken(packages: Packages, before: Collection[str], now: Collection[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Packages of `now` that lack what they had before, each with the alternatives that would do."""
    had, has = _given(before), _given(now)
    for name in now:
        wanted = needs_of(name, packages[name]) if name in packages else needs(archive()[name].depends)
        for group in wanted or ():
            if had.intersection(group) and not has.intersection(group):
                yield name, group


def removal(packages: Packages, names: Iterable[str], *, swaps: bool = True) -> Transaction:
    """`apt-get remove` or `purge` of packages that are there. `swaps`: another alternative is installed where there is one."""
    before = tuple(name for name, package in packages.items() if is_there(package))
    asked = set(names)
    gone = {name for name in before if name in asked}
    come: list[str] = []
    tried: set[str] = set()
    wanted = (group for name in before for group in needs_of(name, packages[name]) or () if len(group) == 1)
    unseen = {one for (one,) in wanted if one not in packages}
    """What must be there, since somebody needs it, though the description leaves it out."""

    def now() -> list[str]:
        return [*(name for name in before if name not in gone), *come]

    while broken := next(_broken(packages, before, now()), None):
        name, group = broken
        sibling = next((other for other in group if other in archive() and other not in tried), "") if swaps else ""
        with_needs = tuple(_with_needs(sibling, [*now(), *unseen])) if sibling else ()
        tried.add(sibling)
        if sibling and asked.isdisjoint(with_needs):
            come += with_needs
            conflicts = {rival for other in with_needs for rival in archive()[other].conflicts}
            gone.update(rival for rival in before if rival not in come and not conflicts.isdisjoint(_names(rival)))
        elif not sibling:
            gone.add(name)
            come = [other for other in come if other != name]
    gone.update(name for name in asked if name in packages and packages[name].status == CONFIGURATION_LEFT)
    return Transaction(tuple(come), tuple(name for name in packages if name in gone))


def _with_needs(name: str, there: Collection[str]) -> Iterator[str]:
    """A package and what it needs that is not there."""
    has = _given(there)
    todo = [name]
    while todo:
        one = todo.pop(0)
        if one in has or one not in archive():
            continue
        has |= set(_names(one))
        yield one
        todo += [group[0] for group in needs(archive()[one].depends) if not has.intersection(group)]


def autoremovable(packages: Packages) -> tuple[str, ...]:
    """What `apt-get autoremove` takes: what came along and is needed no more. A package without a mark counts as asked for."""
    there = {name: package for name, package in packages.items() if is_there(package)}
    by_name: dict[str, list[str]] = {}
    for name in there:
        for other in _names(name):
            by_name.setdefault(other, []).append(name)
    kept: set[str] = set()
    todo = [name for name, package in there.items() if not package.auto]
    while todo:
        name = todo.pop()
        if name not in kept:
            kept.add(name)
            todo += [other for group in needs_of(name, there[name]) or () for one in group for other in by_name.get(one, ())]
    return tuple(name for name in there if name not in kept)


def carried_out(packages: Packages, transaction: Transaction, *, purge: bool) -> dict[str, Package]:
    """The packages after it. What is removed but not purged leaves its configuration, if it has any."""
    out = {}
    for name, package in packages.items():
        if name not in transaction.remove:
            out[name] = package
        elif not purge and (known := archive().get(plain(name))) and known.has_configuration:
            out[name] = Package(package.version, CONFIGURATION_LEFT)
    for name in transaction.install:
        out[name] = Package(archive()[name].version, auto=True)
    return out
