"""A named change of vfio-manage: one thing that a release does differently from the one before.

As driver-manager's changes, each can be left out, which is how the tests know that recordings depend on it. All come with
the vendored go-nvlib from v0.11.0 on; vfio-manage's own code has been the same since v0.10.0. Before, it was a script.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulator.named_change import NamedChange
from simulator.vfio.nvpci import NvPci
from simulator.vfio.script import Script


@dataclass(frozen=True, slots=True)
class Change(NamedChange):
    """One named change. `nvpci` and `script` override methods; neither does for the rewrite itself."""

    nvpci: type[NvPci] | None = None
    script: type[Script] | None = None
