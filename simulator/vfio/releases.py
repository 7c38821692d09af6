"""The supported releases of vfio-manage: tag -> flow, resolved from the named changes up to that tag."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from simulator.vfio import v0_8_1, v0_10_0, v0_11_0, v0_12_0
from simulator.vfio.change import Change
from simulator.vfio.nvpci import NvPci
from simulator.vfio.script import Script

CHANGES: Final[Mapping[str, tuple[Change, ...]]] = {
    "v0.4.2": (),
    "v0.6.2": (),
    "v0.8.1": v0_8_1.CHANGES,
    "v0.9.0": (),
    "v0.9.1": (),
    "v0.10.0": v0_10_0.CHANGES,
    "v0.11.0": v0_11_0.CHANGES,
    "v0.12.0": v0_12_0.CHANGES,
}
"""Tag -> what it changed against the release before, oldest first."""


class Flow(NamedTuple):
    """A release, resolved. `nvpci` is None for the shell script, `script` is what it would be otherwise."""

    tag: str
    changes: tuple[Change, ...]
    nvpci: type[NvPci] | None
    script: type[Script]

    @property
    def is_script(self) -> bool:
        """Is it the shell script of v0.9.1 and before?"""
        return self.nvpci is None


@lru_cache(maxsize=64)
def flow(tag: str, *, without: frozenset[str] = frozenset()) -> Flow:
    """Resolve a release; `without` leaves named changes out. Raises KeyError for an unknown tag."""
    changes: list[Change] = []
    for known, changed in CHANGES.items():
        changes += (change for change in changed if change.name not in without)
        if known == tag:
            break
    else:
        raise KeyError(tag)
    script = type(f"Script {tag}", tuple(change.script for change in reversed(changes) if change.script) or (Script,), {})
    if v0_10_0.REWRITE not in changes:
        return Flow(tag, tuple(changes), None, script)
    mixins = tuple(change.nvpci for change in reversed(changes) if change.nvpci)
    return Flow(tag, tuple(changes), type(f"NvPci {tag}", mixins or (NvPci,), {}), script)
