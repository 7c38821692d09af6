"""Packages, from dpkg's status and rpm's database, whatever bytes those have."""

from __future__ import annotations

import contextlib
import sqlite3
import struct
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from simulator.host.spec import Package
from simulator.importing.packages import installed
from tests.importing.made import Link, as_tar


def rpm_header(version: str, release: str) -> bytes:
    texts = version.encode() + b"\0" + release.encode() + b"\0"
    index = (
        struct.pack(">IIII", 1000, 6, 0, 1)
        + struct.pack(">IIII", 1001, 6, 0, 1)
        + struct.pack(">IIII", 1002, 6, len(version) + 1, 1)
    )
    return struct.pack(">II", 3, len(texts)) + index + texts


def rpm_database(path: Path, *packages: tuple[str, bytes]) -> bytes:
    """A database as rpm leaves it: by a write-ahead log, which its last user has put into the file."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB NOT NULL)")
        database.execute("CREATE TABLE Name (key TEXT NOT NULL, hnum INTEGER NOT NULL, idx INTEGER NOT NULL)")
        for number, (name, blob) in enumerate(packages, 1):
            database.execute("INSERT INTO Packages VALUES (?, ?)", (number, blob))
            database.execute("INSERT INTO Name VALUES (?, ?, 0)", (name, number))
        database.commit()
    return path.read_bytes()


def test_the_packages_of_rpm(tmp_path):
    """Name, version and release, of those that have to do with GPUs."""
    data = rpm_database(tmp_path / "db", ("nvidia-driver-cuda", rpm_header("580.82.07", "1.el9")), ("bash", rpm_header("5", "1")))
    root = as_tar({"var/lib/rpm": Link("/usr/lib/sysimage/rpm"), "usr/lib/sysimage/rpm/rpmdb.sqlite": data})
    assert installed(root) == {"nvidia-driver-cuda": Package("580.82.07-1.el9")}


def test_a_broken_database_of_rpm_is_passed_over(tmp_path):
    """Cut off, or with headers that are none; that is said."""
    data = rpm_database(tmp_path / "db", ("nvidia-driver", b"\0\0\1\0"))
    for broken in (data, data[:3000], b"SQLite format 3\0" + bytes(200)):
        root = as_tar({"var/lib/rpm/rpmdb.sqlite": broken})
        assert installed(root) == {}
        assert root.skipped == {"a database of rpm's that cannot be read": 1}


def test_the_packages_of_an_image_without_a_package_manager():
    """A file for each package, without a status."""
    root = as_tar(
        {
            "var/lib/dpkg/status.d/libcuda1": b"Package: libcuda1\nVersion: 1-2\n",
            "var/lib/dpkg/status.d/x.md5sums": b"Package: cuda\n",
        }
    )
    assert installed(root) == {"libcuda1": Package("1-2", depends="")}


def test_a_package_that_needs_one_of_them_is_one_of_them():
    """A site's own meta package, whatever its name; and what apt took along by itself is marked."""
    status = """\
Package: site-stack
Status: install ok installed
Version: 1
Depends: bash, nvidia-driver-580-open | nvidia-driver-580 (>= 580)

Package: nvidia-driver-580-open
Status: install ok installed
Version: 2
Pre-Depends: dpkg
Depends: nvidia-utils-580 (= 2)

Package: nvidia-fs
Status: deinstall ok config-files
Version: 3
Depends: nvidia-fs-dkms

Package: bash
Status: install ok installed
Version: 5
"""
    marks = b"Package: nvidia-driver-580-open\nArchitecture: amd64\nAuto-Installed: 1\n\nPackage: bash\nAuto-Installed: 0\n"
    root = as_tar({"var/lib/dpkg/status": status.encode(), "var/lib/apt/extended_states": marks})
    assert installed(root) == {
        "nvidia-driver-580-open": Package("2", auto=True, depends="dpkg, nvidia-utils-580 (= 2)"),
        "nvidia-fs": Package("3", "rc"),
        "site-stack": Package("1", auto=False, depends="bash, nvidia-driver-580-open | nvidia-driver-580 (>= 580)"),
    }


@given(st.binary(max_size=300))
def test_any_bytes_are_a_status_file(data):
    """Whatever they are."""
    installed(
        as_tar(
            {"var/lib/dpkg/status": b"Package: nvidia-x\nStatus: " + data, "var/lib/rpm/rpmdb.sqlite": b"SQLite format 3\0" + data}
        )
    )
