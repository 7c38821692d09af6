"""The stand-in's image, built from what this machine runs on: `python -m simulator.standin.image`.

Nothing is fetched. The interpreter that runs this, its standard library, the libraries they are linked with, PyYAML and `chroot`
(busybox', else the machine's own) are packed into an image of one layer on nothing, `dmsim-standin-base`, which all stand-ins
rest on; a Dockerfile in fixtures/images/standin puts the model there. The image runs on the architecture it was built on.

Example:
  python -m simulator.standin.image --release v0.12.0 --tag standin:v0.12.0
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

from simulator.manager.releases import DEFAULT, GO_RELEASES, flow
from simulator.reading import InputError
from simulator.runners.container.engine import answering, client
from simulator.scenario import fixtures
from simulator.standin.program import DRIVER_MANAGER, PROGRAMS, check

if TYPE_CHECKING:
    from docker import DockerClient

_BASE: Final = "dmsim-standin-base"
_HOME: Final = "opt/standin"
"""Where Python lives in the image; it finds its library from there as it did here."""
_UNUSED: Final = re.compile(
    r"(test|tests|idlelib|tkinter|turtledemo|lib2to3|ensurepip|pydoc_data|distutils|venv|unittest|sqlite3|curses|dbm"
    r"|site-packages|dist-packages|config-.*|_tkinter.*|_sqlite3.*|_curses.*|readline.*|_dbm.*|_gdbm.*|_test.*|_ctypes_test.*"
    r"|nis\..*|xx.*|.*\.a)\Z"
)
"""What is left out of the standard library."""
_OWN_UNUSED: Final = re.compile(r"fixtures\Z|.*\.so\Z")
_CACHED: Final = f".{sys.implementation.cache_tag}.pyc"
_DIRECTORIES: Final = {"tmp": 0o1777, "proc": 0o755, "sys": 0o755, "dev": 0o755, "run": 0o755, "etc": 0o755}
_LIBRARY: Final = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_LAUNCHER: Final = """\
#!/{home}/bin/python3 -IS
import os, sys
from simulator.standin.program import run
sys.exit(run({program!r}, {release!r}, sys.argv[1:], os.environ, frozenset({without!r})))
"""


def default_tag(release: str) -> str:
    """What the image is called where nothing else is said."""
    return f"dmsim-standin:{release}"


def build(
    engine: DockerClient, release: str = DEFAULT, *, tag: str = "", without: Sequence[str] = (), package: Path | None = None
) -> str:
    """Build the image of a release; returns its tag.

    `without` leaves named changes out. `package` is the folder `simulator` to pack, where it is not the one this is part of:
    a model with a planted fault. Raises InputError where the machine lacks something, or the engine refuses.
    """
    check(DRIVER_MANAGER, release, without)
    if not sys.platform.startswith("linux"):
        raise InputError(
            "", "", f"the stand-in's image is made of this machine's own files, which are {sys.platform}'s", "use Linux"
        )
    tag = tag or default_tag(release)
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        tar.add(fixtures() / "images" / "standin" / "Dockerfile", "Dockerfile")
        _add_text(tar, "model.tar", model(release, without, package or Path(__file__).parent.parent), 0o644)
    context.seek(0)
    with answering(f"the image {tag} cannot be built"):
        arguments = {"BASE": _base(engine), "RELEASE": release, "PATHS": ":".join(flow(release).container_path)}
        before = _image_of(engine, tag)
        image, _ = engine.images.build(fileobj=context, custom_context=True, tag=tag, buildargs=arguments, rm=True, forcerm=True)
        if before not in {"", image.id}:
            _remove_unused(engine, before)
    return tag


def _base(engine: DockerClient) -> str:
    """The image that all stand-ins rest on, made unless it is there: its tag. Whoever makes it, its id is the same."""
    layer, name = interpreter()
    tag = f"{_BASE}:{name[:12]}"
    if _image_of(engine, tag):
        return tag
    config = {
        "architecture": engine.version()["Arch"],
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{name}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [tag], "Layers": ["layer.tar"]}]
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        _add_text(tar, "config.json", json.dumps(config).encode(), 0o644)
        _add_text(tar, "manifest.json", json.dumps(manifest).encode(), 0o644)
        _add_text(tar, "layer.tar", layer, 0o644)
    engine.images.load(archive.getvalue())
    return tag


def _image_of(engine: DockerClient, tag: str) -> str:
    """The id of the image that has a tag, "" if none has."""
    from docker.errors import ImageNotFound  # noqa: PLC0415  # an optional dependency

    try:
        return str(engine.images.get(tag).id)
    except ImageNotFound:
        return ""


def _remove_unused(engine: DockerClient, image: str) -> None:
    """Remove an image that lost its tag, unless it has another or a container needs it."""
    from docker.errors import APIError  # noqa: PLC0415  # an optional dependency

    with contextlib.suppress(APIError):
        if not engine.images.get(image).tags:
            engine.images.remove(image)


@cache
def interpreter() -> tuple[bytes, str]:
    """What does not depend on the model, as a tar, and its SHA-256: the interpreter and all that it needs."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, mode in _DIRECTORIES.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)
        _add_text(tar, "etc/nsswitch.conf", b"hosts: files dns\n", 0o644)
        programs = [*_add_python(tar), *_add_chroot(tar)]
        for library in _libraries(programs):
            _add_library(tar, library)
        _add_tree(tar, Path(yaml.__file__).parent, f"{_library()}/yaml", _OWN_UNUSED)
    return out.getvalue(), hashlib.sha256(out.getvalue()).hexdigest()


def model(release: str, without: Sequence[str], package: Path) -> bytes:
    """The model, and the programs that it plays, as a tar."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        _add_tree(tar, package, f"{_library()}/simulator", _OWN_UNUSED)
        for program in PROGRAMS:
            text = _LAUNCHER.format(home=_HOME, program=program, release=release, without=sorted(without))
            _add_text(tar, f"usr/bin/{program}", text.encode(), 0o755)
    return out.getvalue()


def _library() -> str:
    """Where the standard library lies in the image: seen from Python's home as it is here."""
    return f"{_HOME}/{Path(sysconfig.get_path('stdlib')).relative_to(sys.base_prefix)}"


def _add_python(tar: tarfile.TarFile) -> Iterator[Path]:
    """The interpreter and its library; yields what is linked with further libraries."""
    interpreter = Path(sys.executable).resolve()
    tar.add(interpreter, f"{_HOME}/bin/python3")
    yield interpreter
    standard = Path(sysconfig.get_path("stdlib"))
    _add_tree(tar, standard, _library(), _UNUSED)
    yield from (path for path in (standard / "lib-dynload").glob("*.so") if not _UNUSED.match(path.name))


def _add_library(tar: tarfile.TarFile, path: str) -> None:
    """A shared library under the path by which it is found here; one of the interpreter's own also beside its copy."""
    path = os.path.normpath(path)
    tar.add(os.path.realpath(path), path)
    if path.startswith(sys.base_prefix + "/lib") and sys.base_prefix != "/usr":
        _add_link(tar, f"{_HOME}{path.removeprefix(sys.base_prefix)}", path)


def _add_chroot(tar: tarfile.TarFile) -> Iterator[Path]:
    """`chroot`, which upstream's image has from busybox; yields what is linked with further libraries."""
    found = shutil.which("busybox") or shutil.which("chroot", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if found is None:
        raise InputError("", "", "neither busybox nor chroot is on PATH", "install busybox-static")
    program = Path(found).resolve()
    tar.add(program, f"busybox/{program.name}")
    _add_link(tar, "usr/bin/chroot", f"/busybox/{program.name}")
    yield program


def _add_tree(tar: tarfile.TarFile, folder: Path, place: str, unused: re.Pattern[str]) -> None:
    """A package and what is below it; of compiled files those of this interpreter, which are good while the times are the same."""

    def wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        name = entry.name.rpartition("/")[2]
        if entry.name != place and (unused.match(name) or (name.endswith(".pyc") and not name.endswith(_CACHED))):
            return None
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    tar.add(folder, place, filter=wanted)


def _add_text(tar: tarfile.TarFile, place: str, text: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(place)
    entry.size, entry.mode = len(text), mode
    tar.addfile(entry, io.BytesIO(text))


def _add_link(tar: tarfile.TarFile, place: str, target: str) -> None:
    entry = tarfile.TarInfo(place)
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    tar.addfile(entry)


def _libraries(programs: Iterable[Path]) -> list[str]:
    """The shared libraries that programs are linked with, the loader among them, as the loader here finds them."""
    told = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False)  # noqa: S603, S607  # no outsider's words
    if "not found" in told.stdout:
        lacking = ", ".join(re.findall(r"(\S+) => not found", told.stdout))
        raise InputError("", "", f"the loader does not find {lacking}", "mend this machine's libraries")
    return sorted(set(_LIBRARY.findall(told.stdout)))


def main(argv: Sequence[str]) -> int:
    """Build an image and say what it is called."""
    parser = argparse.ArgumentParser(
        prog="python -m simulator.standin.image", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--release", metavar="R", default=DEFAULT, help=f"upstream tag (default {DEFAULT}): {', '.join(GO_RELEASES)}"
    )
    parser.add_argument("--tag", metavar="TAG", default="", help="what to call it (default dmsim-standin:R)")
    parser.add_argument("--without", metavar="NAME", action="append", default=[], help="leave a named change of the release out")
    options = parser.parse_args(argv)
    try:
        check(DRIVER_MANAGER, options.release, options.without)
        print(build(client(), options.release, tag=options.tag, without=options.without))  # noqa: T201  # what it is for
    except InputError as error:
        sys.stderr.write(f"{parser.prog}: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
