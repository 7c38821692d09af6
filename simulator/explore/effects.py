"""What a run does to node and host, as the ports of a made-up world note it, and what becomes of the node's cordon by it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Effect(NamedTuple):
    """Something that the run did, or that failed: `what`, and to what."""

    what: str
    subject: str = ""


class Cordon(StrEnum):
    """What a run has made of the node's cordon."""

    AS_IT_WAS = "as it was"
    SET = "left cordoned"
    LIFTED = "foreign cordon lifted"

    def after(self, effect: Effect) -> Cordon:
        """What it has made of it after this too. A patch is sent only where it changes something, so the two undo one another."""
        match effect.what:
            case "cordoned":
                return Cordon.AS_IT_WAS if self is Cordon.LIFTED else Cordon.SET
            case "uncordoned":
                return Cordon.AS_IT_WAS if self is Cordon.SET else Cordon.LIFTED
        return self
