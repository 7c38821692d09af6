"""The variables that driver-manager reads: of a container's environment no others are ever taken."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from simulator.manager.v0_10_0 import DRIVER_CONFIG_DIGEST
from simulator.manager.variables import SETTINGS
from simulator.snapshot.secrets import looks_like_secret
from simulator.snapshot.values import text

NAMES: Final = SETTINGS
_DIGEST: Final = re.compile(r"([a-z0-9]{1,16}:)?[0-9a-f]{1,128}")


def is_digest(value: str) -> bool:
    """Is it a digest, which looks as random as a secret and is none?"""
    return _DIGEST.fullmatch(value) is not None


def may_be_kept(name: str, value: str) -> bool:
    """Is this a setting of driver-manager's with a value that can be told?"""
    return name in NAMES and ((name == DRIVER_CONFIG_DIGEST and is_digest(value)) or not looks_like_secret(value))


def known_variables(env: Any) -> Iterator[dict[str, str]]:
    """Those of a container's variables that are driver-manager's and have a value."""
    for item in env if isinstance(env, list) else ():
        name, value = text(item, "name"), text(item, "value")
        if may_be_kept(name, value) and "valueFrom" not in item:
            yield {"name": name, "value": value}
