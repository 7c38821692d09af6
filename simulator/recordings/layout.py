"""Where recordings lie: the folders they are read from, and the packed form the project carries.

Both programs' recordings are laid out alike and may lie in one packed folder; a case of vfio-manage is known by its
`steps`. Three layouts are read: a folder `cases/` + `recordings/<release>/` as recorded, a packed folder (`<program>.json.xz` for
the inputs, `<program>-<release>.json.xz` for each release), and what `replay --write` writes.
"""

from __future__ import annotations

import json
import lzma
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from simulator.manager.releases import SHELL_RELEASES
from simulator.reading import InputError, Place, read_text

PROGRAM: Final = "driver-manager"
VFIO_MANAGE: Final = "vfio-manage"
PROGRAMS: Final = (PROGRAM, VFIO_MANAGE)
SHELL_STEM: Final = "shell-releases"
"""The packed files that hold driver-manager's shell releases, and the Go releases on the worlds that are new there."""
_TIME_BOUND: Final = "time_bound"


_PLAIN: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded run: the case's id and input, the release, what was observed.

    A case that was not run yet has neither release nor observation.
    """

    case: str
    release: str
    input: Mapping[str, Any]
    observed: Mapping[str, Any]
    file: str
    time_bound: frozenset[str] = frozenset()
    """Fields that depend on how fast the recording machine was, and are not compared."""

    @property
    def program(self) -> str:
        """Which program it is of."""
        return VFIO_MANAGE if "steps" in self.input else PROGRAM


def read_folder(folder: Path) -> Iterator[Recording]:
    """Every recording of a folder, by release and id. Raises InputError for a folder of no known form."""
    _check_folder(folder)
    if (folder / "cases").is_dir() and (folder / "recordings").is_dir():
        yield from _read_unpacked(folder)
        return
    for path in _packed_inputs(folder, (*PROGRAMS, SHELL_STEM)):
        yield from _read_packed(path)


def read_cases(folder: Path, program: str = PROGRAM) -> Iterator[Recording]:
    """A program's cases in a folder of any of the forms, recorded or not, by id. Raises InputError for another folder."""
    _check_folder(folder)
    if (folder / "cases").is_dir():
        found = [
            Recording(plain_name(path.stem, "file name", path), "", _need(_load(path), "input", path), {}, str(path))
            for path in sorted((folder / "cases").glob("*.json"))
        ]
    else:
        found = []
        for path in _packed_inputs(folder, PROGRAMS):
            cases = _need(unpack(path), "cases", path)
            found += [
                Recording(plain_name(case, "cases", path), "", _need(cases, case, path), {}, f"{path}:{case}")
                for case in sorted(cases)
            ]
    yield from (case for case in found if case.program == program)


def _packed_inputs(folder: Path, stems: Sequence[str]) -> list[Path]:
    inputs = [path for stem in stems if (path := folder / f"{stem}.json.xz").exists()]
    if not inputs:
        raise InputError(str(folder), "", "holds no recordings", "name a folder with cases/ and recordings/, or a packed one")
    return inputs


def _check_folder(folder: Path) -> None:
    try:
        is_folder = stat.S_ISDIR(folder.stat().st_mode)
    except FileNotFoundError:
        raise InputError(str(folder), "", "does not exist", "name a folder of recordings") from None
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise InputError(str(folder), "", f"cannot be read: {problem}", "name a folder of recordings") from None
    if not is_folder:
        raise InputError(str(folder), "", "is no folder", "name a folder of recordings")


def _load(path: Path) -> Any:
    text = read_text(path)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(str(path), "", f"is no valid JSON: {error}") from None
    _check_texts(text, document, path)
    return document


_HALF: Final = re.compile("[\ud800-\udfff]")
_PERHAPS_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")


def _check_texts(text: str, document: Any, path: Path) -> None:
    """Raises InputError at half of a surrogate pair, which only an escape can bring in."""
    if _PERHAPS_HALF.search(text) is None:
        return
    places = [Place(document, str(path))]
    while places:
        place = places.pop()
        if isinstance(place.value, dict):
            places += (place.child(key) for key in place.value)
            places += (Place(key, place.file, place.path) for key in place.value)
        elif isinstance(place.value, list):
            places += place.list()
        elif isinstance(place.value, str) and _HALF.search(place.value):
            place.fail("holds half of a surrogate pair, which is no character", "write the character itself")


def _read_unpacked(folder: Path) -> Iterator[Recording]:
    cases: dict[str, Any] = {}
    bound = folder / f"{_TIME_BOUND}.json"
    loose = _load(bound) if bound.exists() else {}
    for release in sorted((folder / "recordings").iterdir()):
        if not release.is_dir():
            continue
        for path in sorted(release.glob("*.json")):
            if path.stem not in cases:
                case = folder / "cases" / path.name
                cases[path.stem] = _need(_load(case), "input", case)
            observed = _need(_load(path), "observed", path)
            yield Recording(
                path.stem, release.name, cases[path.stem], observed, str(path), _fields(loose, path.stem, release.name, bound)
            )


def _fields(loose: Any, case: str, release: str, path: Path) -> frozenset[str]:
    """The fields of a recording that are not compared: only those of the shell releases depend on the machine's speed."""
    found = loose.get(case, []) if isinstance(loose, dict) else None
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise InputError(str(path), _TIME_BOUND, "is no list of fields for each case", "see the format of recordings")
    return frozenset(found) if release in SHELL_RELEASES else frozenset()


def _need(document: Any, key: str, path: Path) -> Any:
    if not isinstance(document, dict) or not isinstance(document.get(key), dict):
        raise InputError(str(path), "", f'lacks the key "{key}"', "see the format of recordings")
    return document[key]


def _read_packed(path: Path) -> Iterator[Recording]:
    inputs = unpack(path)
    cases = _need(inputs, "cases", path)
    loose = inputs.get(_TIME_BOUND, {})
    stem = path.name.removesuffix(".json.xz")
    for released in sorted(path.parent.glob(f"{stem}-v*.json.xz")):
        document = unpack(released)
        observations = _need(document, "observed", released)
        release = plain_name(document.get("release"), "release", released)
        for case, observed in observations.items():
            place = f"{released}:{plain_name(case, 'observed', released)}"
            if not isinstance(observed, dict) or not isinstance(cases.get(case), dict):
                raise InputError(place, "", f"is no recording, or has no input in {path.name}", "pack the recordings anew")
            yield Recording(case, release, cases[case], observed, place, _fields(loose, case, release, path))


def plain_name(name: Any, key: str, path: Path | None = None) -> str:
    """A name that is a file's too (`replay --write`), so that it cannot lead out of the folder. Raises InputError."""
    if not isinstance(name, str) or not _PLAIN.fullmatch(name):
        raise InputError(
            str(path or ""), key, f"holds {name!r:.80}, which is no name", "write letters, digits, dots, dashes: 100 at most"
        )
    return name


def unpack(path: Path) -> Any:
    """The document of a packed file. Raises InputError for a damaged one."""
    try:
        with lzma.open(path, "rt", encoding="utf-8") as file:
            text = file.read()
        document = json.loads(text)
    except (OSError, EOFError, lzma.LZMAError, ValueError, RecursionError) as error:
        raise InputError(str(path), "", f"is damaged: {error}", "fetch it anew") from None
    _check_texts(text, document, path)
    return document


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it. Raises InputError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(str(folder), "", "is no folder", "name a folder to write to") from None
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise InputError(str(folder), "", f"cannot be made: {problem}", "name another folder") from None


def write_recording(out: Path, release: str, case: str, observed: Mapping[str, Any], **more: Any) -> None:
    """`out/<release>/<case>.json`, whole or not at all: no reader ever sees half of it. Raises InputError."""
    document = {"id": case, "upstream": release, **more, "observed": observed}
    write_whole(out / release / f"{case}.json", json.dumps(document, indent=1, ensure_ascii=False))


def write_whole(path: Path, text: str) -> None:
    """A file in a folder that is made where it is missing; what lay there is replaced in one step. Raises InputError."""
    make_folder(path.parent)
    part = path.parent / f".{path.stem}.part"
    try:
        part.unlink(missing_ok=True)  # a link that lies there is not followed
        try:
            part.write_text(text, encoding="utf-8")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(str(path.parent), "", f"cannot be written: {error.strerror}", "name another folder") from None


def pack(folder: Path, out: Path, releases: Sequence[str]) -> list[Path]:
    """Pack a program's recorded folder: each input once, then the observations of each release. Returns the files written."""
    recordings = [recording for recording in read_folder(folder) if recording.release in releases]
    programs = sorted({recording.program for recording in recordings})
    if len(programs) != 1:
        raise InputError(str(folder), "", f"holds recordings of {len(programs)} programs", "pack one program's at a time")
    stem = SHELL_STEM if any(recording.release in SHELL_RELEASES for recording in recordings) else programs[0]
    written = [out / f"{stem}.json.xz"]
    inputs: dict[str, Any] = {"format": 1, "cases": {recording.case: recording.input for recording in recordings}}
    if loose := {recording.case: sorted(recording.time_bound) for recording in recordings if recording.time_bound}:
        inputs[_TIME_BOUND] = loose
    _write_packed(written[0], inputs)
    for release in releases:
        path = out / f"{stem}-{release}.json.xz"
        observed = {
            recording.case: {key: value for key, value in recording.observed.items() if key != "exec_nested"}
            for recording in recordings
            if recording.release == release
        }
        _write_packed(path, {"format": 1, "release": release, "observed": observed})
        written.append(path)
    return written


def _write_packed(path: Path, document: Any) -> None:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
