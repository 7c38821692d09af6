"""Stand-ins for images: the model itself, a fault planted by leaving a named change out."""

from __future__ import annotations

import threading

import pytest

from simulator.runners.simulated import simulate


class ModelImage:
    """What runs a world on an "image": the model of a release. Counts its runs, and how many there were at once."""

    def __init__(self, release="v0.12.0", without=(), fails=lambda _: None):
        self.release, self.without, self.fails = release, frozenset(without), fails
        self.worlds = []
        self.cancelled = False
        self.most_at_once = self._now = 0
        self._lock = threading.Lock()

    def __call__(self, world):
        with self._lock:
            self.worlds.append(world)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            if (failure := self.fails(world)) is not None:
                raise failure
            return simulate(world, self.release, without=self.without)
        finally:
            with self._lock:
                self._now -= 1

    def cancel(self):
        self.cancelled = True


@pytest.fixture
def model_image():
    return ModelImage
