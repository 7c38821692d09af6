"""Small images for tests: a static BusyBox, and a "driver-manager" that does what the variable SCRIPT says."""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path

BUSYBOX = "busybox"
PROGRAM = '#!/bin/sh\nsay() { echo "time=2026-01-01T00:00:00Z level=$1 msg=$2" >&2; }\neval "$SCRIPT"\n'
DOCKERFILE = """\
FROM scratch
COPY busybox /bin/busybox
RUN ["/bin/busybox", "--install", "-s", "/bin"]
COPY driver-manager /usr/local/bin/driver-manager
ENV PATH=/usr/local/bin:/usr/bin:/bin FROM_IMAGE=yes
WORKDIR /work
ENTRYPOINT ["driver-manager"]
"""


def build(client, tag, dockerfile=DOCKERFILE, program=PROGRAM):
    """Build an image from scratch. Its tag."""
    with Path(shutil.which(BUSYBOX)).open("rb") as file:
        busybox = file.read()
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        for name, data in (("busybox", busybox), ("driver-manager", program.encode()), ("Dockerfile", dockerfile.encode())):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o755
            tar.addfile(info, io.BytesIO(data))
    context.seek(0)
    client.images.build(fileobj=context, custom_context=True, tag=tag, rm=True, forcerm=True)
    return tag
