"""The packages of a root that have to do with GPUs: what dpkg's database says, or rpm's if it is of the newer form.

Of dpkg's also those that depend on one of these, whatever their names; what each needs; and which apt took along by itself.
"""

from __future__ import annotations

import re
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from typing import Final

from simulator.host.spec import Package
from simulator.importing.roots import Root, resolve

_NAMES: Final = re.compile(
    r"nvidia|cuda|gdrdrv|gdrcopy|gdrapi|doca|mlnx|ofed|rdma|ibverbs|nv-peer|nvlsm|mft|knem|xpmem|^dkms$|^datacenter-gpu-manager"
)
_DPKG: Final = "/var/lib/dpkg/status"
_DPKG_PARTS: Final = "/var/lib/dpkg/status.d"
"""Images without a package manager have a file for each package."""
_MARKS: Final = "/var/lib/apt/extended_states"
_RPM: Final = ("/usr/lib/sysimage/rpm/rpmdb.sqlite", "/var/lib/rpm/rpmdb.sqlite")
_FIELD: Final = re.compile(r"^(Package|Status|Version|Architecture|Pre-Depends|Depends|Auto-Installed): *(\S.*)$", re.MULTILINE)
_LARGEST: Final = 64 << 20
_MOST: Final = 10_000
_LONGEST: Final = 255
_STATES: Final = {
    "not-installed": "un",
    "config-files": "rc",
    "half-installed": "iU",
    "unpacked": "iU",
    "half-configured": "iF",
    "triggers-awaiting": "ii",
    "triggers-pending": "ii",
    "installed": "ii",
}
_RPM_VERSION, _RPM_RELEASE = 1001, 1002
_SQLITE_VERSIONS: Final = slice(18, 20)
"""Of SQLite's header: who may write and read the file, 1 by a rollback journal, 2 by a write-ahead log (as rpm does)."""


def installed(root: Root) -> dict[str, Package]:
    """Name -> package, sorted; a name that has an architecture beside another of that name carries it, as dpkg writes it."""
    found = {**_dpkg(root), **_rpm(root)}
    return {name: found[name] for name in sorted(found)[:_MOST]}


def _dpkg(root: Root) -> dict[str, Package]:
    folder = resolve(root, _DPKG_PARTS).path
    paths = [_DPKG, *(f"{folder}/{name}" for name in root.names(folder) if not name.endswith(".md5sums"))]
    paragraphs = [fields for path in paths for fields in _paragraphs(root, path) if len(fields.get("Package", "")) <= _LONGEST]
    names = {fields["Package"] for fields in paragraphs if _NAMES.search(fields.get("Package", ""))}
    auto = {fields.get("Package", "") for fields in _paragraphs(root, _MARKS) if fields.get("Auto-Installed") == "1"}
    knows_marks = bool(root.read(resolve(root, _MARKS).path, 1))
    out: dict[str, Package] = {}
    for fields in paragraphs:
        name, depends = fields.get("Package", ""), ", ".join(fields[key] for key in ("Pre-Depends", "Depends") if key in fields)
        if name not in names and not names.intersection(re.split(r"[^a-z0-9+.-]+", depends)):
            continue
        words = fields.get("Status", "install ok installed").split()
        status = _STATES.get(words[-1], "ii")
        key = name if name not in out else f"{name}:{fields.get('Architecture', '')}"
        is_there = status not in {"un", "rc"}
        out[key] = Package(
            fields.get("Version", ""),
            "hi" if status == "ii" and words[0] == "hold" else status,
            (name in auto) if is_there and knows_marks else None,
            depends if is_there else None,
        )
    return out


def _paragraphs(root: Root, path: str) -> Iterator[dict[str, str]]:
    text = root.read(resolve(root, path).path, _LARGEST).decode("utf-8", "replace")
    for paragraph in text.split("\n\n"):
        yield dict(_FIELD.findall(paragraph))


def _rpm(root: Root) -> dict[str, Package]:
    for path in _RPM:
        data = root.read(resolve(root, path).path, _LARGEST)
        if data:
            try:
                return dict(_rows(data))
            except (sqlite3.Error, struct.error, ValueError):
                root.skipped["a database of rpm's that cannot be read"] += 1
    return {}


def _rows(data: bytes) -> Iterator[tuple[str, Package]]:
    with closing(sqlite3.connect(":memory:")) as database:
        image = bytearray(data)
        image[_SQLITE_VERSIONS] = b"\1\1"  # in memory there is no write-ahead log, and SQLite refuses to open what wants one
        database.deserialize(image)
        rows = database.execute("SELECT Name.key, Packages.blob FROM Name JOIN Packages ON Packages.hnum = Name.hnum LIMIT 100000")
        for key, blob in rows:
            name = key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)
            if _NAMES.search(name) and len(name) <= _LONGEST and isinstance(blob, bytes):
                version, release = _header(blob, _RPM_VERSION), _header(blob, _RPM_RELEASE)
                yield name, Package(f"{version}-{release}" if release else version)


def _header(blob: bytes, wanted: int) -> str:
    """A text of an rpm header: a count, a size, an index of (tag, type, offset, count), the texts."""
    count, _ = struct.unpack_from(">II", blob)
    for index in range(min(count, 4096)):
        tag, _, offset, _ = struct.unpack_from(">IIII", blob, 8 + 16 * index)
        if tag == wanted:
            return blob[8 + 16 * count + offset :].partition(b"\0")[0][:_LONGEST].decode("utf-8", "replace")
    return ""
