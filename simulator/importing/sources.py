"""What a person names: a directory, a tar archive (also compressed), or else a container image."""

from __future__ import annotations

import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from simulator.importing.archive import TarRoot, decompressed
from simulator.importing.host import Imported, import_host
from simulator.importing.image import exported
from simulator.importing.roots import DirectoryRoot, Root
from simulator.manager.releases import RELEASES, resolve
from simulator.reading import InputError

_REFERENCE: Final = re.compile(r"[a-zA-Z0-9][\w.:/@-]{0,511}")


def import_image(reference: str) -> Imported:
    """The host of a container image. Raises InputError."""
    if not _REFERENCE.fullmatch(reference):
        raise InputError("", "", f'there is no file "{reference}", and no image can be named so', "check the path")
    with exported(reference) as (root, architecture):
        return import_host(root, _name(reference), _path(), architecture=architecture, source=f"the image {reference}")


def import_named(reference: str) -> Imported:
    """The host of a directory, an archive or an image, whichever there is of that name. Raises InputError."""
    place = Path(reference)
    try:
        mode = place.stat().st_mode if reference else None
    except (OSError, ValueError):
        mode = None
    if mode is None:
        return import_image(reference)
    with _directory(place) if stat.S_ISDIR(mode) else _archive(place, mode) as root:
        return import_host(root, _name(place.name), _path(), source=reference)


@contextmanager
def _directory(place: Path) -> Iterator[Root]:
    with closing(DirectoryRoot(place)) as root:
        yield root


@contextmanager
def _archive(place: Path, mode: int) -> Iterator[Root]:
    if not stat.S_ISREG(mode):
        raise InputError(str(place), "", "is neither a directory nor a regular file", "name a directory, a tar file or an image")
    try:
        with place.open("rb") as file, tempfile.TemporaryFile() as spool:
            unpacked = decompressed(file)
            yield TarRoot(str(place), file) if unpacked is None else TarRoot(str(place), unpacked, spool)
    except OSError as error:
        raise InputError(str(place), "", f"cannot be read: {error.strerror}", "check the file and its permissions") from None


def _path() -> tuple[str, ...]:
    """The directories in which any release looks for nvidia-smi."""
    return tuple(dict.fromkeys(directory for tag in RELEASES for directory in resolve(tag).container_path))


def _name(reference: str) -> str:
    """A host's name from what it was imported from."""
    return re.sub(r"[^\w.-]+", "-", reference.rpartition("/")[2]).strip("-") or "imported"
