"""What a pull request bumps: the image of k8s-driver-manager, or the GPU Operator's chart, found in a unified diff.

A line that changes a version counts if something near says whose it is: the line itself (an image reference, a
`helm ... --version`, a variable's name), a neighbour in the same block (`name: gpu-operator`, `image:
k8s-driver-manager`, `chart: gpu-operator`), a block around it (`driverManager:`, `manager:` of `driver:`), the comment
above it, or the file's path. So Helm values, Chart.yaml and Chart.lock, Argo and Flux manifests, kustomizations,
helmfiles, Terraform and scripts are read without knowing their formats. Ranges (`~26.3`) are no versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from simulator.reading import InputError

IMAGE: Final = "image"
CHART: Final = "chart"
DIGEST: Final = "sha256:"
_WHAT: Final = {IMAGE: "k8s-driver-manager", CHART: "gpu-operator chart"}

_DIFF: Final = re.compile(r"^(@@ -\d|diff -|--- .*\n\+\+\+ )", re.MULTILINE)
_HUNK: Final = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
_FILE: Final = re.compile(r"\+\+\+ (?:b/)?([^\t\r\n]+)")
_IMAGE_REFERENCE: Final = re.compile(r"k8s-driver-manager(?::v?(0\.\d+\.\d+)[\w.-]*)?(?:@(sha256:[0-9a-f]{8,}))?(?![\w/-])")
_ENTRY: Final = re.compile(r"""(?P<indent>\s*)(?P<item>-\s+)?["']?(?P<key>[A-Za-z_][\w./-]*)["']?\s*[:=]\s*(?P<value>.*)""")
_HELM: Final = re.compile(r"\bgpu-operator\b.*--version[ =]+[\"']?(?P<version>[^\s\"'\\]+)")
_SET: Final = re.compile(r"\bdriver[._-]?[mM]anager\.?[vV]ersion[ =:\"']+v?(0\.\d+\.\d+)")
_RELEASE: Final = re.compile(r"v?(0\.\d+\.\d+)\Z")
_CHART_VERSION: Final = re.compile(r"v?(2\d\.\d{1,2}\.\d+)\Z")
_VERSION_KEYS: Final = frozenset({"version", "tag", "newtag", "targetrevision", "revision", "chartversion", "value"})
_LEVELS: Final = 3
"""So many blocks outwards are looked at."""


class Bump(NamedTuple):
    """A version that a diff changes: of what ("image" or "chart"), from, to, and where in the new file."""

    kind: str
    old: str
    new: str
    file: str
    line: int

    @property
    def is_chart(self) -> bool:
        """The chart's version, not the image's?"""
        return self.kind == CHART

    @property
    def is_digest(self) -> bool:
        """Is one of the two known by its digest only?"""
        return self.old.startswith(DIGEST) or self.new.startswith(DIGEST)

    def __str__(self) -> str:
        """For a message."""
        return f"{self.file}:{self.line}: {_WHAT[self.kind]} {self.old} -> {self.new}"


class _Line(NamedTuple):
    """A line of one side of a hunk."""

    text: str
    changed: bool
    number: int


@dataclass(slots=True)
class _Hunk:
    file: str
    section: str
    """What git shows after the second @@: for YAML the top-level key around the hunk."""
    old: list[_Line] = field(default_factory=list)
    new: list[_Line] = field(default_factory=list)


class _Finding(NamedTuple):
    kind: str
    version: str
    line: int


def find_bumps(diff: str) -> list[Bump]:
    """Every bump, in the diff's order, each version pair of a file once. Raises InputError for what is no diff."""
    if diff.strip() and not _DIFF.search(diff):
        raise InputError("the diff", "", "is no unified diff", "make one with git diff, or diff -u")
    bumps: dict[tuple[str, str, str, str], Bump] = {}
    left_over: dict[str, tuple[list[_Finding], list[_Finding]]] = {}
    for hunk in _hunks(diff):
        olds = list(_findings(hunk.old, hunk))
        news = list(_findings(hunk.new, hunk))
        for kind in (IMAGE, CHART):
            one = [finding for finding in olds if finding.kind == kind]
            other = [finding for finding in news if finding.kind == kind]
            for was, now in zip(one, other, strict=False):
                _note(bumps, was, now, hunk.file)
            rest = left_over.setdefault(hunk.file, ([], []))
            rest[0].extend(one[len(other) :])
            rest[1].extend(other[len(one) :])
    for file, (olds, news) in left_over.items():  # a block that moved: its two halves are in two hunks
        for was in olds:
            moved = next((finding for finding in news if finding.kind == was.kind), None)
            if moved is not None:
                news.remove(moved)
                _note(bumps, was, moved, file)
    return list(bumps.values())


def _note(bumps: dict[tuple[str, str, str, str], Bump], was: _Finding, now: _Finding, file: str) -> None:
    if was.version != now.version:
        bump = Bump(was.kind, was.version, now.version, file, now.line)
        bumps.setdefault((file, *bump[:3]), bump)


# --- the diff -----------------------------------------------------------------------------------------------------


def _hunks(diff: str) -> Iterator[_Hunk]:
    """The hunks. Their headers' counts say where they end, so that a removed line `-- x` is no file header."""
    file, hunk, old_left, new_left, number = "", None, 0, 0, 0
    for raw in diff.splitlines():
        line = raw.rstrip("\r")
        if hunk is not None and (old_left > 0 or new_left > 0):
            mark, text = (line[:1] or " "), line[1:]
            if mark == "\\":
                continue
            if mark in " -":
                hunk.old.append(_Line(text, mark == "-", number))
                old_left -= 1
            if mark in " +":
                hunk.new.append(_Line(text, mark == "+", number))
                new_left -= 1
                number += 1
            if mark in " -+":
                continue
        if hunk is not None:
            yield hunk
            hunk = None
        if match := _HUNK.match(line):
            old_left, new_left = int(match[1] or 1), int(match[3] or 1)
            number = int(match[2])
            hunk = _Hunk(file, match[4])
        elif match := _FILE.match(line):
            file = match[1].strip('"')
    if hunk is not None:
        yield hunk


# --- one side of a hunk -------------------------------------------------------------------------------------------


def _findings(lines: Sequence[_Line], hunk: _Hunk) -> Iterator[_Finding]:
    for index, line in enumerate(lines):
        if line.changed and (found := _finding(lines, index, hunk)) is not None:
            kind, version = found
            yield _Finding(kind, version if version.startswith(DIGEST) else f"v{version}", line.number)


def _finding(lines: Sequence[_Line], index: int, hunk: _Hunk) -> tuple[str, str] | None:
    """Whose version a line holds, and which; None if it holds none of ours."""
    text = lines[index].text
    for reference in _IMAGE_REFERENCE.finditer(text):
        if reference[1] or reference[2]:
            return IMAGE, reference[1] or reference[2]
    if (match := _HELM.search(text)) and (version := _CHART_VERSION.match(match["version"])):
        return CHART, version[1]
    if match := _SET.search(text):
        return IMAGE, match[1]
    entry = _ENTRY.match(text)
    if entry is None:
        return None
    key, value = _squeezed(entry["key"]), _bare(entry["value"])
    for kind, pattern, owner in ((IMAGE, _RELEASE, "drivermanager"), (CHART, _CHART_VERSION, "gpuoperator")):
        if not (version := pattern.match(value)):
            continue
        if owner in key or (key in _VERSION_KEYS and kind in _owners(lines, index, hunk)):
            return kind, version[1]
    return None


def _owners(lines: Sequence[_Line], index: int, hunk: _Hunk) -> set[str]:
    """What the surroundings of a line speak of: the image, the chart, both or none."""
    owners = set()
    if "gpu-operator" in re.split(r"[/.]", hunk.file):
        owners.add(CHART)
    for text in _comment_above(lines, index):
        owners |= {kind for kind, word in ((IMAGE, "k8s-driver-manager"), (CHART, "gpu-operator")) if word in text}
    blocks: list[str] = []
    for text, opens in _surroundings(lines, index, hunk.section):
        entry = _ENTRY.match(text)
        if entry is None:
            continue
        key, value = _squeezed(entry["key"]), _bare(entry["value"])
        name = value.split("@")[0].rsplit("/", 1)[-1].split(":")[0]
        if name == "k8s-driver-manager" or _squeezed(name) == "drivermanagerversion":
            owners.add(IMAGE)
        elif name == "gpu-operator":
            owners.add(CHART)
        if opens:
            blocks.append(key)
    if "drivermanager" in blocks or ("manager" in blocks and "driver" in blocks[blocks.index("manager") :]):
        owners.add(IMAGE)
    if "gpuoperator" in blocks:
        owners.add(CHART)
    return owners


def _surroundings(lines: Sequence[_Line], index: int, section: str) -> Iterator[tuple[str, bool]]:
    """The lines of the same block, then the line that opens it (True), then those beside that, some levels outwards."""
    position: int | None = index
    for _ in range(_LEVELS):
        if position is None:
            break
        block = _block(lines, position)
        yield from ((lines[place].text, False) for place in block if place != position)
        position = _opener(lines, block[0])
        if position is not None:
            yield lines[position].text, True
    if section:
        yield section, True


def _block(lines: Sequence[_Line], position: int) -> list[int]:
    """The lines beside a line: of its mapping, within its item if that is an item of a list."""
    level = _level(lines[position].text)
    out = [position]
    for place in range(position - 1, -1, -1):
        depth = _level(lines[place].text)
        if _starts_item(lines[out[0]].text) or (depth is not None and level is not None and depth < level):
            break
        if depth == level:
            out.insert(0, place)
    for place in range(position + 1, len(lines)):
        depth = _level(lines[place].text)
        if depth is not None and level is not None and (depth < level or (depth == level and _starts_item(lines[place].text))):
            break
        if depth == level:
            out.append(place)
    return out


def _opener(lines: Sequence[_Line], top: int) -> int | None:
    """The line that opens the block whose first line this is; a list may stand as deep as the key that opens it."""
    text = lines[top].text
    level = len(text) - len(text.lstrip()) + (1 if _starts_item(text) else 0)
    for place in range(top - 1, -1, -1):
        depth = _level(lines[place].text)
        if depth is not None and depth < level:
            return place
    return None


def _comment_above(lines: Sequence[_Line], index: int) -> Iterator[str]:
    """The comments directly above a line; of a line that was replaced, above the removed ones too."""
    for position in range(index - 1, -1, -1):
        text = lines[position].text.lstrip()
        if not text.startswith(("#", "//")):
            return
        yield text


def _level(text: str) -> int | None:
    """How deep a line's key stands, a list's dash counted as indentation; None for blank lines and comments."""
    stripped = text.lstrip()
    if not stripped or stripped.startswith(("#", "//")):
        return None
    match = re.match(r"\s*(?:-\s+)*", text)
    return match.end() if match else 0


def _starts_item(text: str) -> bool:
    """Does an item of a list begin here?"""
    return text.lstrip().startswith("- ")


def _squeezed(key: str) -> str:
    """A key without case and punctuation: driverManager, driver_manager and DRIVER-MANAGER are one."""
    return re.sub(r"[^a-z0-9]", "", key.lower())


def _bare(value: str) -> str:
    """A value without quotes, trailing comma, comment."""
    text = re.sub(r"\s+(#|//).*", "", value).strip().rstrip(",;").strip()
    return text.strip("\"'").removeprefix("=").strip()
