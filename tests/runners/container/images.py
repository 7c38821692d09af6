"""Small images for tests: a static BusyBox, and a "driver-manager" that does what the variable SCRIPT says."""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path

import pytest

BUSYBOX = "busybox"
IMAGE = "dmsim-test-busybox:latest"
_PROGRAM = '#!/bin/sh\nsay() { echo "time=2026-01-01T00:00:00Z level=$1 msg=$2" >&2; }\neval "$SCRIPT"\n'
_DOCKERFILE = """\
FROM scratch
COPY busybox /bin/busybox
RUN ["/bin/busybox", "--install", "-s", "/bin"]
COPY driver-manager /usr/local/bin/driver-manager
ENV PATH=/usr/local/bin:/usr/bin:/bin FROM_IMAGE=yes
WORKDIR /work
ENTRYPOINT ["driver-manager"]
"""


def build(client):
    """Build the image that all tests share, or rest others on. It stays, as base images do, and is built once by all workers:
    an engine that is told to remove an image while it builds another one of the same layers loses them.
    """
    found = shutil.which(BUSYBOX)
    if found is None:
        pytest.fail("container tests need busybox-static")
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        for name, data in (
            ("busybox", Path(found).read_bytes()),
            ("driver-manager", _PROGRAM.encode()),
            ("Dockerfile", _DOCKERFILE.encode()),
        ):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o755
            tar.addfile(info, io.BytesIO(data))
    context.seek(0)
    client.images.build(fileobj=context, custom_context=True, tag=IMAGE, rm=True, forcerm=True)
    return IMAGE


def build_on(client, tag, dockerfile):
    """Build an image that rests on the one that all share, and shares nothing else: it can be removed at any time."""
    text = f"FROM {IMAGE}\nLABEL test={tag}\n{dockerfile}"
    client.images.build(fileobj=io.BytesIO(text.encode()), tag=tag, rm=True, forcerm=True)
    return tag
