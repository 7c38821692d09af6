"""A container image as a root: a container of it is created, never started, exported and removed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Final, cast

from simulator.importing.archive import TarRoot
from simulator.reading import InputError
from simulator.runners.container import engine

_ARCHITECTURES: Final = {"amd64": "x86_64", "arm64": "aarch64", "ppc64le": "ppc64le"}
_CHUNK: Final = 1 << 20


@contextmanager
def exported(reference: str) -> Iterator[tuple[TarRoot, str]]:
    """An image's root, and its architecture as `uname -m` has it. Raises InputError. The image is not pulled."""
    client = engine.client()
    engine.sweep_once()
    with engine.answering(f'the image "{reference}" cannot be looked into') as errors:
        try:
            image = client.images.get(reference)
        except errors.ImageNotFound:
            mend = "`docker pull` it first, or name a folder or a tar file"
            raise InputError("", "", f'there is no file and no image "{reference}"', mend) from None
        # A command is asked for where the image has none; it is never run.
        container = client.containers.create(image.id, ["none"], labels=engine.labels())
        try:
            with tempfile.TemporaryFile() as spool:
                chunks = cast("IO[bytes]", _Chunks(container.export(_CHUNK)))
                root = TarRoot(reference, chunks, spool)
                yield root, _ARCHITECTURES.get(image.attrs.get("Architecture", ""), "")
        finally:
            engine.remove(container)


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
