"""What a container cannot stand for, said before it is started, or found out while it runs."""

from __future__ import annotations


class Unfit(Exception):
    """A world that this container cannot stand for; `reason` is one line for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
