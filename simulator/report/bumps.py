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

_HUNK: Final = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
_FILE: Final = re.compile(r"\+\+\+ (?:b/)?([^\t\r\n]+)")
_IMAGE_REFERENCE: Final = re.compile(r"k8s-driver-manager(?::v?(0\.\d+\.\d+)[\w.-]*)?(?:@(sha256:[0-9a-f]{8,}))?(?![\w/-])")
_ENTRY: Final = re.compile(r"""(?P<indent>\s*)(?P<item>-\s+)?["']?(?P<key>[A-Za-z_][\w./-]*)["']?\s*[:=]\s*(?P<value>.*)""")
_HELM: Final = re.compile(r"\bgpu-operator\b.*--version[ =]+[\"']?(?P<version>[^\s\"'\\]+)")
_RELEASE: Final = re.compile(r"v?(0\.\d+\.\d+)\Z")
_CHART_VERSION: Final = re.compile(r"v?(2\d\.\d{1,2}\.\d+)\Z")
_VERSION_KEYS: Final = frozenset({"version", "tag", "newtag", "targetrevision", "revision", "chartversion", "defaultversion"})
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
    if diff.strip() and not re.search(r"^(@@ |diff |--- |\+\+\+ )", diff, re.MULTILINE):
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
    for text in _surroundings(lines, index, hunk.section):
        entry = _ENTRY.match(text)
        if entry is None:
            continue
        key, name = _squeezed(entry["key"]), _bare(entry["value"]).split("@")[0].rsplit("/", 1)[-1].split(":")[0]
        if name == "k8s-driver-manager" or key == "drivermanager":
            owners.add(IMAGE)
        elif name == "gpu-operator" or key == "gpuoperator":
            owners.add(CHART)
        if not _bare(entry["value"]):
            blocks.append(key)
    if "manager" in blocks and "driver" in blocks[blocks.index("manager") :]:
        owners.add(IMAGE)
    return owners


def _surroundings(lines: Sequence[_Line], index: int, section: str) -> Iterator[str]:
    """The lines of the same block, then the line that opens it, then those beside that, some levels outwards."""
    level = _indent(lines[index].text)
    start, end = index, index
    for _ in range(_LEVELS):
        opener = None
        for position in range(start - 1, -1, -1):
            depth = _indent(lines[position].text)
            if depth is None or level is None:
                continue
            if depth < level:
                opener = position
                break
            start = position
            if depth == level:
                yield lines[position].text
                if _starts_item(lines[position].text, level):
                    break
        if not _starts_item(lines[start].text, level):
            start = min(start, index)
        for position in range(end + 1, len(lines)):
            depth = _indent(lines[position].text)
            if depth is None or level is None:
                continue
            if depth < level or _starts_item(lines[position].text, level):
                break
            end = position
            if depth == level:
                yield lines[position].text
        if opener is None:
            opener = _opener_of(lines, start, level)
        if opener is None:
            break
        yield lines[opener].text
        level, start = _indent(lines[opener].text), opener
    if section:
        yield section


def _opener_of(lines: Sequence[_Line], start: int, level: int | None) -> int | None:
    """The first line above with less indentation."""
    for position in range(start - 1, -1, -1):
        depth = _indent(lines[position].text)
        if depth is not None and level is not None and depth < level - (2 if _starts_item(lines[start].text, level) else 0):
            return position
    return None


def _comment_above(lines: Sequence[_Line], index: int) -> Iterator[str]:
    """The comments directly above a line; of a line that was replaced, above the removed ones too."""
    for position in range(index - 1, -1, -1):
        text = lines[position].text.lstrip()
        if not text.startswith(("#", "//")):
            return
        yield text


def _indent(text: str) -> int | None:
    """How deep a line's key stands, a list's dash counted as indentation; None for blank lines and comments."""
    stripped = text.lstrip()
    if not stripped or stripped.startswith(("#", "//")):
        return None
    entry = re.match(r"\s*(?:-\s+)*", text)
    return entry.end() if entry else 0


def _starts_item(text: str, level: int | None) -> bool:
    """Does a list's item begin here, its keys at this level?"""
    return text.lstrip().startswith("- ") and _indent(text) == level


def _squeezed(key: str) -> str:
    """A key without case and punctuation: driverManager, driver_manager and DRIVER-MANAGER are one."""
    return re.sub(r"[^a-z0-9]", "", key.rsplit(".", 1)[-1].lower()) if key.lower().endswith(".version") else _plain(key)


def _plain(key: str) -> str:
    return re.sub(r"[^a-z0-9]", "", key.lower())


def _bare(value: str) -> str:
    """A value without quotes, trailing comma, comment."""
    text = re.sub(r"\s+(#|//).*", "", value).strip().rstrip(",;").strip()
    return text.strip("\"'").removeprefix("=").strip()
