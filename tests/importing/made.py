"""Roots made for tests: one description, as a directory or as a tar archive; and ELF files that say what they are told to."""

from __future__ import annotations

import io
import struct
import tarfile
from collections.abc import Mapping
from pathlib import Path

from simulator.importing.archive import TarRoot
from simulator.importing.host import Imported, import_host
from simulator.importing.roots import DirectoryRoot, Root

PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/busybox")
X86, ARM = 62, 183


class Link(str):
    """A symbolic link's target."""

    __slots__ = ()


Description = Mapping[str, "Link | bytes | tuple[bytes, int] | None"]
"""Path -> a link, a file's text (mode 0755), text and mode, or None for a directory."""


def as_directory(folder: Path, description: Description) -> DirectoryRoot:
    for path, what in description.items():
        place = folder / path.lstrip("/")
        if what is None:
            place.mkdir(parents=True, exist_ok=True)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, Link):
            place.symlink_to(what)
        else:
            text, mode = what if isinstance(what, tuple) else (what, 0o755)
            place.write_bytes(text)
            place.chmod(mode)
    return DirectoryRoot(folder)


def member(
    name: str, text: bytes = b"", mode: int = 0o755, kind: bytes = tarfile.REGTYPE, target: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.type, info.linkname = len(text), mode, kind, target
    return info, text


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, text in members:
            tar.addfile(info, io.BytesIO(text))
    return out.getvalue()


def archive_of(description: Description) -> bytes:
    members = []
    for path, what in description.items():
        if what is None:
            members.append(member(path.lstrip("/"), kind=tarfile.DIRTYPE))
        elif isinstance(what, Link):
            members.append(member(path.lstrip("/"), kind=tarfile.SYMTYPE, target=what))
        else:
            text, mode = what if isinstance(what, tuple) else (what, 0o755)
            members.append(member(path.lstrip("/"), text, mode))
    return archive(*members)


def as_tar(description: Description) -> TarRoot:
    return TarRoot("x.tar", io.BytesIO(archive_of(description)))


def imported(root: Root, architecture: str = "") -> Imported:
    return import_host(root, "x", PATH, architecture=architecture)


def elf(
    *,
    interpreter: str | None = "/lib64/ld-linux-x86-64.so.2",
    needed: tuple[str, ...] = (),
    runpath: str = "",
    machine: int = X86,
    text: bytes = b"",
) -> bytes:
    """A 64-bit ELF file, its one segment mapped at 0."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in (*needed, runpath))
    at, tags = 1, []
    for name in needed:
        tags.append((1, at))
        at += len(name) + 1
    if runpath:
        tags.append((29, at))
    interp = (interpreter or "").encode() + b"\0"
    count = 3 if interpreter is not None else 2
    interp_at = 64 + 56 * count
    names_at = interp_at + len(interp)
    dynamic_at = names_at + len(names)
    tags += [(5, names_at), (10, len(names)), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", *tag) for tag in tags)
    body = interp + names + dynamic + text
    segments = [(1, 0, 64 + 56 * count + len(body)), (2, dynamic_at, len(dynamic))]
    if interpreter is not None:
        segments.append((3, interp_at, len(interp)))
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56, count, 0, 0, 0)
    return (
        header
        + b"".join(struct.pack("<IIQQQQQQ", kind, 4, offset, offset, 0, size, size, 0) for kind, offset, size in segments)
        + body
    )


NVIDIA_SMI = elf(needed=("libc.so.6",), text=b"\0libnvidia-ml.so.1\0")
LOADER = {"/lib64/ld-linux-x86-64.so.2": b"x"}
LIBC = {"/lib/x86_64-linux-gnu/libc.so.6": elf(interpreter=None)}
SHELL = {"/bin/sh": elf()}
NVML = {
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1": Link("libnvidia-ml.so.580.82.07"),
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.82.07": b"x",
}
MODULE = {"/lib/modules/6.8.0-79-generic/updates/dkms/nvidia.ko.zst": (b"", 0o644)}
ORDINARY: dict[str, Link | bytes | tuple[bytes, int] | None] = {**SHELL, "/sbin/modprobe": b"x", **LOADER, **LIBC}
