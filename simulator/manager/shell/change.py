"""A named change of a shell release: what it does differently from the one before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from simulator.manager.shell.script import Script
from simulator.named_change import NamedChange


@dataclass(frozen=True, slots=True)
class ShellChange(NamedChange):
    """One named change. `script` overrides methods."""

    script: type[Script] | None = None
    lines: Mapping[str, int] = field(default_factory=dict)
    """Where in the script the commands stand that bash's own messages are about."""
    libraries: Mapping[str, object] = field(default_factory=dict)
    """Fields of nvdrain's `kube.profile.Libraries` that differ."""
