"""A faithful model of NVIDIA's k8s-driver-manager, run against hosts and clusters in memory.

The public names are `__all__`; they are loaded when they are first used, so that this import is cheap. `docs/api.md` says
what they do and what is promised of them; `docs/architecture.md` is the map of what lies behind.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.api import (
        Cause,
        ClusterSpec,
        Comparison,
        HostSpec,
        InputError,
        Outcome,
        Prediction,
        World,
        compare,
        load_world,
        predict,
        simulate,
    )

__version__ = "0.1.0"

__all__ = [
    "Cause",
    "ClusterSpec",
    "Comparison",
    "HostSpec",
    "InputError",
    "Outcome",
    "Prediction",
    "World",
    "compare",
    "load_world",
    "predict",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """A public name, loaded now."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module("simulator.api"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names too, before they are loaded."""
    return sorted({*globals(), *__all__})
