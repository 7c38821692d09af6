"""This project's short options, and what a suite of a thousand scenarios is spared. Everything else is `simulator.bdd`."""

from __future__ import annotations

import gc

import pytest

from simulator.bdd.plugin import add_options


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--release` for `--dmsim-release`, and so on."""
    add_options(parser, "--")


def pytest_collection_finish() -> None:
    """What was collected lives to the end: looking through it again and again for garbage takes a seventh of the time."""
    gc.collect()
    gc.freeze()
