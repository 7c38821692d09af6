"""Builds the images of host kinds that `fixtures/images` describes: `make images`, or `python -m simulator.images`.

They rest on a minimal Debian that debootstrap makes once and that is kept in a cache folder; where a registry is at hand,
`--base debian:bookworm` takes its place.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from simulator.reading import InputError, nearest
from simulator.runners.container import engine
from simulator.scenario import fixtures

KINDS: Final = ("clean", "package", "run", "converged")
SUITE: Final = "bookworm"
BASE: Final = f"dmsim-debian:{SUITE}"
_ALSO: Final = ("kmod",)
"""Packages that every host has and a minimal Debian lacks."""
_LEFT_OUT: Final = (
    "./dev/",
    "./proc/",
    "./sys/",
    "./var/cache/apt/",
    "./var/lib/apt/lists/",
    "./usr/share/doc/",
    "./usr/share/locale/",
)


def tag(kind: str) -> str:
    """The name of a kind's image."""
    return f"dmsim-host-{kind}"


def default_cache() -> Path:
    """Where the minimal Debian is kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dmsim"


def build(client: Any, kinds: Iterable[str] = KINDS, *, base: str = "", cache: Path | None = None) -> dict[str, str]:
    """Build the images of some kinds: kind -> name. Raises InputError."""
    if not base:
        base = BASE
        with engine.answering(f"the image {BASE} cannot be made"):
            if not client.images.list(name=BASE):
                archive = minimal_debian(cache or default_cache())
                repository, _, version = BASE.partition(":")
                client.api.import_image_from_file(str(archive), repository=repository, tag=version)
    built = {}
    for kind in kinds:
        failed = f"the image {tag(kind)} cannot be built"
        with engine.answering(failed) as errors:
            try:
                client.images.build(
                    path=str(fixtures() / "images"),
                    target=kind,
                    tag=tag(kind),
                    buildargs={"BASE": base},
                    network_mode="none",
                    rm=True,
                )
            except errors.BuildError as error:
                log = "".join(line.get("stream", "") for line in error.build_log)[-2000:]
                raise InputError("", "", f"{failed}: {error.msg}", f"see its log: {log}") from None
        built[kind] = tag(kind)
    return built


def minimal_debian(cache: Path) -> Path:
    """A tar archive of a minimal Debian, made by debootstrap unless the cache has it. Raises InputError."""
    archive = cache / f"debian-{SUITE}-minbase-kmod.tar"
    if archive.exists():
        return archive
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise InputError(
            "", "", "a minimal Debian is made by root, with debootstrap", "become root and install it, or name a --base"
        )
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="debootstrap-", dir=cache) as folder:
        root, part = Path(folder) / "root", Path(folder) / "part.tar"
        done = subprocess.run(  # noqa: S603  # fixed words
            ["debootstrap", "--variant=minbase", f"--include={','.join(_ALSO)}", SUITE, str(root)],  # noqa: S607  # wherever the system has it
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise InputError("", "", "debootstrap failed", "it said: " + " ".join(done.stdout.splitlines()[-3:]))
        with tarfile.open(part, "w") as tar:
            tar.add(root, ".", filter=lambda member: None if member.name.startswith(_LEFT_OUT) else member)
        part.replace(archive)
    return archive


def main(arguments: Sequence[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m simulator.images", description=__doc__)
    parser.add_argument("kinds", metavar="KIND", nargs="*", help=f"any of {', '.join(KINDS)} (default: all)")
    parser.add_argument("--base", metavar="IMAGE", default="", help="build on this Debian image (default: one made by debootstrap)")
    parser.add_argument(
        "--cache", metavar="DIR", type=Path, default=None, help=f"keep the minimal Debian here (default {default_cache()})"
    )
    options = parser.parse_args(arguments)
    try:
        for kind in options.kinds:
            if kind not in KINDS:
                raise InputError("", "", f'there is no kind of image "{kind}"', nearest(kind, KINDS))
        for name in build(engine.client(), options.kinds or KINDS, base=options.base, cache=options.cache).values():
            sys.stdout.write(f"{name}\n")
    except InputError as error:
        sys.stderr.write(f"{parser.prog}: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
