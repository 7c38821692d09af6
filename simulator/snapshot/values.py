"""Values out of untyped documents: what is there if it is of the right type. What is not counts as missing.

A saved object may have been edited, cut or forged; an API server would not have taken what is of another type.
"""

from __future__ import annotations

from typing import Any


def mapping(value: Any, *keys: str) -> dict[str, Any]:
    """The mapping below some keys, empty if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def elements(value: Any, *keys: str) -> list[dict[str, Any]]:
    """The mappings in the list below some keys."""
    found = mapping(value, *keys[:-1]).get(keys[-1])
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def text(value: Any, *keys: str) -> str:
    """The text below some keys, "" if there is none."""
    found = mapping(value, *keys[:-1]).get(keys[-1])
    return found if isinstance(found, str) else ""


def texts(value: Any, *keys: str) -> dict[str, str]:
    """The mapping of texts to texts below some keys."""
    found: dict[Any, Any] = mapping(value, *keys)
    return {name: item for name, item in found.items() if isinstance(name, str) and isinstance(item, str)}


def flag(value: Any, *keys: str) -> bool:
    """Is it true, and nothing else?"""
    return mapping(value, *keys[:-1]).get(keys[-1]) is True
