"""Where recordings lie: the folders they are read from, and the packed form the project carries.

The recordings of driver-manager and vfio-manage are laid out alike and may lie in one packed folder; a case of vfio-manage is
known by its `steps`. Three layouts are read: a folder `cases/` + `recordings/<release>/` as recorded, a packed folder
(`<program>.json.xz` for the inputs, `<program>-<release>.json.xz` for each release), and what `replay --write` writes.

Their neighbours' recordings, of the sandbox device plugin and of Cozystack's charts, are packed in the same way; as recorded,
they lie in folders of their own forms.
"""

from __future__ import annotations

import json
import lzma
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from simulator.manager.releases import SHELL_RELEASES
from simulator.reading import InputError, Place, read_text

PROGRAM: Final = "driver-manager"
VFIO_MANAGE: Final = "vfio-manage"
PROGRAMS: Final = (PROGRAM, VFIO_MANAGE)
PLUGIN: Final = "sandbox-device-plugin"
COZYSTACK: Final = "cozystack"
NEIGHBOURS: Final = (PLUGIN, COZYSTACK)
"""What stands around driver-manager and is recorded too."""
SHELL_STEM: Final = "shell-releases"
"""The packed files that hold driver-manager's shell releases, and the Go releases on the worlds that are new there."""
_TIME_BOUND: Final = "time_bound"
_OTHERS: Final = "others"
_OTHERWISE: Final = "observed_"
_GIVEN: Final = ("chart", "values", "variant", "values_files")
"""What a rendering was made from."""
_DISCOVERY: Final = "discovery"
_NAMES: Final = "names-*"
_BUNDLED: Final = "names-bundled"
_SHARED: Final = "-shared"
_NAMES_RELEASES: Final = ("v1.5.0", "v1.6.0")
"""Releases whose names were recorded: they gave the same answers."""


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

    neighbour: str = ""
    """The neighbour it is of, "" for a program of driver-manager's image."""
    others: Mapping[str, Any] = field(default_factory=dict)
    """Further observations of the same case, under the names that their recording gives them."""

    @property
    def program(self) -> str:
        """Which program it is of."""
        return self.neighbour or (VFIO_MANAGE if "steps" in self.input else PROGRAM)


def read_folder(folder: Path, program: str = "") -> Iterator[Recording]:
    """Every recording of a folder, by release and id. Raises InputError for a folder of no known form.

    Of a packed folder with recordings of a `program`, those of others may be left unread.
    """
    _check_folder(folder)
    if (folder / "cases").is_dir() and (folder / "recordings").is_dir():
        yield from _read_unpacked(folder)
        return
    if (folder / _DISCOVERY).is_dir() or any(folder.glob(_NAMES)):
        yield from _read_plugin(folder)
        return
    if any(folder.glob("*.json")):
        yield from _read_documents(folder)
        return
    stems = (
        [program] if program in NEIGHBOURS and (folder / f"{program}.json.xz").exists() else [*PROGRAMS, SHELL_STEM, *NEIGHBOURS]
    )
    for path in _packed_inputs(folder, stems):
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


def _read_plugin(folder: Path) -> Iterator[Recording]:
    """The sandbox device plugin's: a file for each case of discovery, lists of names, and odd files of names."""
    yield from _read_documents(folder / _DISCOVERY)
    for path in sorted(folder.glob(_NAMES)):
        given, observed = _names_json(path) if path.suffix == ".json" else _names_table(path)
        for release in _NAMES_RELEASES:
            yield _neighbour(PLUGIN, plain_name(path.stem, "file name", path), release, given, observed, path)


def _releases(given: Any, path: Path) -> list[str]:
    if not isinstance(given, list) or not given:
        raise InputError(str(path), "versions", "is no list of releases", "see the format of recordings")
    return [plain_name(release, "versions", path) for release in given]


def _neighbour(program: str, case: str, release: str, given: Any, observed: Any, path: Path) -> Recording:
    return Recording(case, release, given, observed, str(path), neighbour=program)


def _names_json(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """`names-edge.json`: odd files of names, and what is asked of each."""
    given, observed = [], []
    try:
        for case in _load(path):
            answers = case["answers"]
            given.append({"case": case["case"], "file": case["file"], "ids": [answer["id"] for answer in answers]})
            observed.append({"case": case["case"], "answers": answers})
    except (TypeError, KeyError) as error:
        raise InputError(str(path), "", f"is of another form: {error!r}", "see the format of recordings") from None
    return {"files": given}, {"files": observed}


def _names_table(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """`names-NAME.tsv`: id, name in pci.ids, resource. `names-NAME-shared.tsv`: a resource without its namespace, its ids.

    The pci.ids file is the plugin's own where the NAME is `bundled`; of another it has what the table beside says.
    """
    stem = path.stem.removesuffix(_SHARED)
    rows = [line.split("\t") for line in read_text(path).split("\n") if line and not line.startswith("#")]
    columns = 2 if path.stem.endswith(_SHARED) else 3
    for number, row in enumerate(rows):
        if len(row) != columns:
            raise InputError(
                str(path), f"row {number + 1}", f"has {len(row)} columns, not {columns}", "see the format of recordings"
            )
    listing: dict[str, Any] = {}
    if stem != _BUNDLED:
        beside = path.with_name(f"{stem}.tsv")
        table = (
            rows if beside == path else [line.split("\t") for line in read_text(beside).splitlines() if not line.startswith("#")]
        )
        listing = {"text": "".join(["10de  NVIDIA Corporation\n", *(f"\t{row[0]}  {row[1]}\n" for row in table if len(row) > 1)])}
    kind = "shared" if columns == 2 else "names"
    return {kind: listing or None}, {kind: rows}


def _read_documents(folder: Path) -> Iterator[Recording]:
    """A file each: what the plugin finds on a node, or what Cozystack's charts render. Raises InputError for another file.

    Where another Helm says otherwise, that is a further observation.
    """
    for path in sorted(folder.glob("*.json")):
        document = _load(path)
        observed = _need(document, "observed", path)
        case = plain_name(path.stem, "file name", path)
        words = str(document.get("chart") or "").split()
        if "versions" in document:
            for release in _releases(document["versions"], path):
                yield _neighbour(PLUGIN, case, release, _need(document, "input", path), observed, path)
        elif len(words) > 2 and words[0] == COZYSTACK:
            given = {key: document[key] for key in _GIVEN if key in document}
            others = {key: document[key] for key in sorted(document) if key.startswith(_OTHERWISE)}
            yield replace(_neighbour(COZYSTACK, case, plain_name(words[1], "chart", path), given, observed, path), others=others)
        else:
            raise InputError(str(path), "", "is no recording of a known form", "see the format of recordings")


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
            yield Recording(
                case,
                release,
                cases[case],
                observed,
                place,
                _fields(loose, case, release, path),
                stem if stem in NEIGHBOURS else "",
                (document.get(_OTHERS) or {}).get(case) or {},
            )


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
        packed: dict[str, Any] = {"format": 1, "release": release, "observed": observed}
        if others := {entry.case: entry.others for entry in recordings if entry.release == release and entry.others}:
            packed[_OTHERS] = others
        _write_packed(path, packed)
        written.append(path)
    return written


def _write_packed(path: Path, document: Any) -> None:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
