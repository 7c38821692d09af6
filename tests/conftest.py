"""For all tests: Hypothesis (a slow machine is no fault; where `CI` is set the examples are the same each time), and Docker."""

from __future__ import annotations

import functools
import gc
import os
import sys
import warnings

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "dmsim", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], derandomize="CI" in os.environ
)
settings.load_profile("dmsim")


def pytest_collection_modifyitems(items):
    """What takes long is left out, with its reason, unless it is asked for."""
    if os.environ.get("DMSIM_EXHAUSTIVE") == "1":
        return
    for item in items:
        if item.get_closest_marker("exhaustive"):
            item.add_marker(pytest.mark.skip(reason="takes long: make exhaustive"))


if "mutmut" in sys.modules:  # which tests run a function, and what a fork finds, must not depend on what was computed before

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup():
        for cached in _caches():
            cached.cache_clear()

    @functools.cache
    def _caches():
        return [thing for thing in gc.get_objects() if isinstance(thing, functools._lru_cache_wrapper) and thing is not _caches]


@pytest.fixture(scope="session")
def docker_engine():
    """A Docker engine that answers: its client. Where none does the test is skipped, unless DMSIM_REQUIRE_DOCKER forbids it."""
    import docker

    missing = ""
    try:
        client = docker.from_env()
        client.ping()
    except docker.errors.DockerException as error:
        missing = f"no Docker engine answers: {error}"
    if missing:
        with warnings.catch_warnings():  # the client leaves its socket to the garbage collector
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
        if os.environ.get("DMSIM_REQUIRE_DOCKER") == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    yield client
    client.close()
