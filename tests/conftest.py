"""Hypothesis for all tests: a slow machine is no fault, and where `CI` is set the examples are the same each time."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "dmsim", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], derandomize="CI" in os.environ
)
settings.load_profile("dmsim")
