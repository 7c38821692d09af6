"""What an image says of itself."""

from __future__ import annotations

import pytest

from simulator.verifying.images import release_of


@pytest.mark.parametrize(
    ("reference", "labels", "release"),
    [
        ("nvcr.io/nvidia/cloud-native/k8s-driver-manager:v0.10.0", {}, "v0.10.0"),
        ("localhost:5000/dm:v0.10.0@sha256:0", {}, "v0.10.0"),
        ("localhost:5000/dm", {}, ""),
        ("dm:latest", {"version": "v0.12.0"}, "v0.12.0"),
        ("dm:v0.10.0", {"org.opencontainers.image.version": "v0.12.1-rc.1"}, "v0.12.1-rc.1"),
        ("dm:v0.10.0", {"version": "9"}, "v0.10.0"),
        ("dm:v0.10.0-ubi9", {}, "v0.10.0-ubi9"),
        ("dm:main", {}, ""),
    ],
)
def test_the_release(reference, labels, release):
    """A label's, else the tag's; a registry's port is no tag."""
    assert release_of(reference, labels) == release
