"""What every named change says of itself, whichever program it is of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NamedChange:
    """One thing that a release does differently from the one before, in words."""

    name: str
    upstream: str
    """Pull request or commit."""
    summary: str
    """What is different, in one sentence."""
    notice: str
    """What a user notices."""
    action: str = ""
    """What a user has to do about it; empty if nothing."""
