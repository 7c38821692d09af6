"""The pci.ids file of the sandbox device plugin's image."""

from __future__ import annotations

from functools import cache

from simulator.scenario import fixtures


@cache
def bundled() -> str:
    """NVIDIA's part of the pci.ids file that v1.4.0 to v1.6.0 carry."""
    return (fixtures() / "pci.ids").read_text("utf-8")
