"""A named change of vfio-manage: one thing that a release does differently from the one before.

As driver-manager's changes, each can be left out, which is how the tests know that recordings depend on it. All come with
the vendored go-nvlib; vfio-manage's own code has been the same since v0.10.0.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulator.named_change import NamedChange
from simulator.vfio.nvpci import NvPci


@dataclass(frozen=True, slots=True)
class Change(NamedChange):
    """One named change. `nvpci` overrides methods; None for the rewrite itself."""

    nvpci: type[NvPci] | None = None
