"""The plugin of pytest is there whether or not the environment's metadata names its entry point (a clone on PYTHONPATH)."""

from __future__ import annotations

import pytest

from simulator.bdd import plugin


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register it, unless its entry point has done so."""
    if not pluginmanager.is_registered(plugin):
        pluginmanager.register(plugin, "dmsim")
