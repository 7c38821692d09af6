"""What the files of a bundle hold, told by their text, as people name files as they like."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from simulator import messages as m
from simulator.reading import InputError, Place, printable
from simulator.snapshot.described import described_objects, describes_nodes, labelled_objects, lists_labels
from simulator.snapshot.documents import Budget, Object, TooMuch, read_objects
from simulator.snapshot.files import Files, is_usual
from simulator.snapshot.secrets import without_secrets
from simulator.snapshot.text_root import is_host_output

_OBJECTS: Final = re.compile(r"^(- |\s*\{?\s*)\"?(apiVersion|kind|items)\"?\s*:", re.MULTILINE)
_SAID: Final = (
    "/k8s-driver-manager]",
    m.STARTING,
    m.PRE_INSTALLED,
    m.FETCHING_LABELS,
    "Getting current value of the ",
    "Current value of AUTO_UPGRADE_POLICY_ENABLED",
    "Shutting down all GPU clients",
    "Rescheduling all GPU clients",
    m.CLEANING_UP_ON_FAILURE,
    m.UNLOADING_MODULES,
    m.DRIVER_IN_USE,
    m.UNMOUNTING,
    "vfio-pci driver from all devices",
    "nvidia driver components",
    "nvidia driver module is already loaded",
)
"""What driver-manager says, in any release, and hardly anybody else."""
_MANAGER: Final = re.compile(r"driver[-_]?manager", re.IGNORECASE)
_CHART: Final = re.compile(
    r"(?:helm\.sh/chart[\"']?[ ]{0,4}[:=][ ]{0,4}[\"']?gpu-operator-|/gpu-operator:)v?(\d{1,9}\.\d{1,9}\.\d{1,9})"
)
_TABLE: Final = re.compile(r"(NAMESPACE +)?NAME +(STATUS|READY|DESIRED|AGE)\b")
TABLE: Final = "is a table for people, as kubectl get prints without -o yaml"
_MOST_SKIPPED: Final = 20


@dataclass(slots=True)
class Contents:
    """What there is. `logs` are those that may be driver-manager's, by file."""

    name: str
    objects: list[Object] = field(default_factory=list)
    hosts: dict[str, str] = field(default_factory=dict)
    """Output of the host script, by file."""
    logs: dict[str, str] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)
    """Files that hold a table of `kubectl get`."""
    charts: dict[str, None] = field(default_factory=dict)
    """Versions of the GPU Operator's chart that a label or an image names, anywhere."""
    budget: Budget = field(default_factory=Budget)
    _skipped: dict[str, None] = field(default_factory=dict)

    def skip(self, sentence: str) -> None:
        """Something is passed over."""
        self._skipped.setdefault(printable(without_secrets(sentence)))

    @property
    def skipped(self) -> tuple[str, ...]:
        """What was passed over, sentences for a person; not endlessly many."""
        known = [*self._skipped]
        more = len(known) - _MOST_SKIPPED
        return (*known[:_MOST_SKIPPED], *((f"and {more} more",) if more > 0 else ()))

    def add(self, other: Contents) -> None:
        """What somebody else found, too."""
        self.objects += other.objects
        self.hosts |= other.hosts
        self.logs |= other.logs
        self.tables += other.tables
        self.charts |= other.charts
        self._skipped |= other._skipped

    def has(self, kind: str) -> bool:
        """Is there an object of a kind?"""
        return any(item.kind == kind for item in self.objects)

    def of(self, kind: str, node: str | None = None) -> Iterator[Place]:
        """The objects of a kind; of a node, where one is named: those that are on it. One that cannot be read is passed over."""
        for item in self.objects:
            if item.kind != kind or (node is not None and item.node not in {None, node}):
                continue
            try:
                place = item.read(self.budget)
            except TooMuch as error:
                self.skip(str(error))
                return
            except InputError as error:
                self.skip(str(error))
                continue
            if place is not None and isinstance(place.value.get("metadata"), dict):
                yield place


def read_contents(files: Files, name: str) -> Contents:
    """What is in the files. Raises InputError if nothing of use is, or if the only file cannot be read."""
    found = Contents(name)
    for sentence in files.skipped:
        found.skip(sentence)
    is_alone = len(files.files) == 1
    for path in [*files.files]:
        try:
            text = _decoded(files.files.pop(path))  # what is read need not be kept
        except UnicodeDecodeError as error:
            found.skip(f"{path}: no UTF-8 text (byte {error.start})")
            continue
        try:
            _take(found, path, text)
        except InputError as error:
            if is_alone:
                raise InputError(error.file, error.place, without_secrets(error.problem), error.mend) from None
            found.skip(str(error))
    return found


def _decoded(data: bytes) -> str:
    """The text. PowerShell writes UTF-16. Raises UnicodeDecodeError."""
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    return data.decode(encoding).replace("\r\n", "\n")


def _take(found: Contents, path: str, text: str) -> None:
    """Add what a file holds. Raises InputError."""
    if is_host_output(text):
        found.hosts[path] = text
        return
    found.charts |= dict.fromkeys(f"v{version}" for version in _CHART.findall(text))
    for fits, read in _FORMS:
        if fits(text):
            found.budget.spend(text, "text", path)
            found.objects += read(text, path)
            return
    is_named_so = path.endswith((".yaml", ".yml", ".json"))
    if _OBJECTS.search(text[:4096]):
        found.objects += read_objects(text, path, found.budget)
    elif any(said in text for said in _SAID):
        found.logs[path] = text
    elif _TABLE.match(text):
        found.tables.append(path)
        if is_named_so:
            found.skip(f"{path}: {TABLE}")
    elif is_named_so:
        found.objects += read_objects(text, path, found.budget)
    elif _MANAGER.search(path) and is_usual(path):
        found.logs[path] = text


_FORMS: Final[tuple[tuple[Callable[[str], bool], Callable[[str, str], Iterator[Any]]], ...]] = (
    (describes_nodes, described_objects),
    (lists_labels, labelled_objects),
)
