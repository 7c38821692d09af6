"""A container image as a root: a container of it is created, never started, exported and removed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Final, cast

from simulator.importing.archive import TarRoot
from simulator.reading import InputError

LABEL: Final = "dmsim"
"""On every container of ours, so that one left behind by a killed process is found."""
_ARCHITECTURES: Final = {"amd64": "x86_64", "arm64": "aarch64", "ppc64le": "ppc64le"}
_CHUNK: Final = 1 << 20


def connect() -> Any:
    """The Docker engine that the environment names, as a client. Raises InputError."""
    try:
        import docker  # noqa: PLC0415  # only who asks for images needs it
    except ImportError:
        raise InputError("", "", "images need the package docker", 'pip install "driver-manager-simulator[container]"') from None
    try:
        return docker.from_env()
    except docker.errors.DockerException as error:
        raise InputError("", "", f"no Docker engine answers: {error}", "start one, or set DOCKER_HOST") from None


@contextmanager
def exported(reference: str) -> Iterator[tuple[TarRoot, str]]:
    """An image's root, and its architecture as `uname -m` has it. Raises InputError. The image is not pulled."""
    client = connect()
    import docker  # noqa: PLC0415

    try:
        image = client.images.get(reference)
        architecture = _ARCHITECTURES.get(image.attrs.get("Architecture", ""), "")
        # A command is asked for where the image has none; it is never run.
        created = client.api.create_container(image.id, command=["none"], labels={LABEL: "import"})
        try:
            with tempfile.TemporaryFile() as spool:
                chunks = cast("IO[bytes]", _Chunks(client.api.export(created["Id"], chunk_size=_CHUNK)))
                yield TarRoot(reference, chunks, spool), architecture
        finally:
            client.api.remove_container(created["Id"], v=True, force=True)
    except docker.errors.ImageNotFound:
        raise InputError(
            "", "", f'there is no file and no image "{reference}"', "`docker pull` it first, or name a folder or a tar file"
        ) from None
    except (docker.errors.DockerException, OSError) as error:  # what requests raises are OSErrors
        raise InputError("", "", f'the image "{reference}" cannot be looked into: {error}', "see what the engine says") from None
    finally:
        client.close()


class _Chunks:
    """Chunks of bytes as a file that is read forward."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def read(self, size: int) -> bytes:
        """As many bytes as are at hand, at most `size`; none at the end."""
        while not self._rest:
            piece = next(self._chunks, None)
            if piece is None:
                return b""
            self._rest = piece
        piece, self._rest = self._rest[:size], self._rest[size:]
        return piece
