"""Archives, forged ones too: nothing is unpacked, nothing hangs, everything is bounded."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import tarfile
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.importing.archive import Limits, TarRoot, decompressed
from simulator.importing.roots import DIRECTORY, FILE, OTHER, resolve
from simulator.reading import InputError
from tests.importing.made import Link, archive, archive_of, as_tar, member

LINK, HARD, DIR = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE


def root_of(*members, limits: Limits = Limits()) -> TarRoot:  # noqa: B008  # frozen
    return TarRoot("x.tar", io.BytesIO(archive(*members)), limits=limits)


def refusal(data: bytes, limits: Limits = Limits()) -> str:  # noqa: B008  # frozen
    with pytest.raises(InputError) as error:
        TarRoot("x.tar", io.BytesIO(data), limits=limits)
    return str(error.value)


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "a/" + "x" * 300, "a/" * 3000 + "x"])
def test_a_member_that_lies_in_no_root_is_skipped(name):
    """`..`, an absolute name, names that are longer than any file system has."""
    root = root_of(member(name), member("b"))
    assert root.names("/") == ["b"]
    assert root.skipped == {"with a name that lies in no root": 1}


@pytest.mark.parametrize("target", ["../../etc/passwd", "/etc/passwd", "missing", "directory", "self"])
def test_a_hard_link_to_nothing_in_the_root_is_skipped(target):
    """A hard link names an earlier file of the archive, or it is nothing."""
    root = root_of(member("directory", kind=DIR), member("self", kind=HARD, target=target))
    assert root.names("/") == ["directory"]
    assert root.skipped == {"hard links to nothing in the root": 1}


def test_a_hard_link_is_the_file_itself():
    """Its text is the first one's."""
    root = root_of(member("a", b"text", 0o640), member("d/b", kind=HARD, target="./a"))
    assert root.read("/d/b", 10) == b"text"
    assert root.look("/d/b") == root.look("/a")


def test_of_duplicates_the_last_holds():
    """As if it were unpacked. A directory that comes again keeps what is in it."""
    root = root_of(
        member("d", kind=DIR),
        member("d/a", b"1"),
        member("d", mode=0o700, kind=DIR),
        member("d/a", b"22"),
        member("e", kind=DIR),
        member("e", b"x"),
    )
    assert root.read("/d/a", 9) == b"22"
    entry = root.look("/d")
    assert entry is not None
    assert entry.mode == 0o700
    assert root.read("/e", 9) == b"x"
    assert root.skipped == {"that a later one replaces": 2}


@pytest.mark.parametrize("below", [member("a", kind=LINK, target="/"), member("a", b"text"), member("a", kind=tarfile.CHRTYPE)])
def test_nothing_is_put_through_a_link_or_below_a_file(below):
    """A member below a link would land elsewhere."""
    root = root_of(below, member("a/etc/x", b"forged"))
    assert root.names("/a") == []
    assert root.look("/etc") is None
    assert root.skipped == {"below what is no directory": 1}


def test_devices_are_seen_and_hold_nothing():
    """Character and block devices, fifos, and kinds that nobody knows."""
    kinds = (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"Z")
    root = root_of(*(member(f"d{number}", kind=kind) for number, kind in enumerate(kinds)))
    for name in root.names("/"):
        entry = root.look(f"/{name}")
        assert entry is not None
        assert entry.kind == OTHER
        assert root.read(f"/{name}", 10) == b""


def test_whiteouts_are_no_files():
    """They stand in layers; a root has none."""
    root = root_of(member("usr/.wh.bin"), member("usr/.wh..wh..opq"), member("usr/x"))
    assert root.names("/usr") == ["x"]
    assert root.skipped == {"whiteouts: that is a layer, not a whole root": 2}


def test_names_of_any_bytes_are_names():
    """Control characters, no UTF-8."""
    root = root_of(member("a\n\x1b[1m"), member("b\udcff", b"x"))
    assert root.names("/") == ["a\n\x1b[1m", "b\udcff"]
    assert root.read("/b\udcff", 5) == b"x"


def test_deep_nesting_is_no_trouble():
    """As deep as a path can be."""
    name = "a/" * 2000 + "x"
    root = root_of(member(name, b"x"))
    assert root.read(f"/{name}", 5) == b"x"
    assert resolve(root, f"/{name}").path == f"/{name}"


def test_a_huge_or_sparse_file_is_not_looked_into():
    """It is there, and holds nothing."""
    big = member("big", b"x" * 2000)
    sparse = tarfile.TarInfo("sparse")
    sparse.type, sparse.size = tarfile.GNUTYPE_SPARSE, 0
    root = root_of(big, (sparse, b""), member("small", b"y"), limits=Limits(file=1000))
    assert root.read("/big", 5) == b""
    entry = root.look("/big")
    assert entry is not None
    assert (entry.kind, entry.size) == (FILE, 2000)
    assert root.read("/small", 5) == b"y"
    assert root.skipped == {"too large or sparse, so not looked into": 2}


class Endless(io.RawIOBase):
    """An archive of so many members that come as they are asked for."""

    def __init__(self, count: int) -> None:
        self.count, self.rest = count, b""

    def read(self, size: int = -1) -> bytes:
        if not self.rest and self.count:
            self.count -= 1
            self.rest = tarfile.TarInfo(f"d{self.count}").tobuf()
        piece, self.rest = self.rest[:size], self.rest[size:]
        return piece


def test_a_billion_members_are_too_many():
    """The limit is met long before memory is."""
    with pytest.raises(InputError, match=r"x.tar: has more than 5000 members; leave out what is no host"):
        TarRoot("x.tar", Endless(10**9), io.BytesIO(), Limits(members=5000))


@pytest.mark.slow
def test_a_member_costs_less_than_half_a_kilobyte():
    """So a million, the limit, fit into memory."""
    tracemalloc.start()
    try:
        root = TarRoot("x.tar", Endless(5000), io.BytesIO())
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(root.names("/")) == 5000
    assert used / 5000 < 512


def test_an_archive_that_never_ends_takes_only_so_long():
    """There is a limit of time."""
    started = time.monotonic()
    with pytest.raises(InputError, match=r"takes longer than 0.2 seconds to read"):
        TarRoot("x.tar", Endless(10**9), io.BytesIO(), Limits(seconds=0.2))
    assert time.monotonic() - started < 5


def test_a_bomb_is_cut_off():
    """A small compressed file may unpack to anything; its length is limited."""
    bomb = gzip.compress(archive(member("zeros", bytes(1 << 20))))
    assert len(bomb) < 5000
    unpacked = decompressed(io.BytesIO(bomb))
    assert unpacked is not None
    with pytest.raises(InputError, match=r"is larger than 0 GiB"):
        TarRoot("x.tar.gz", unpacked, io.BytesIO(), Limits(archive=1 << 16))


def forged(size: bytes, kind: bytes = b"0") -> bytes:
    """One header whose field of size holds these twelve bytes."""
    head = bytearray(tarfile.TarInfo("x").tobuf())
    head[124:136], head[156:157] = size, kind
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head)


NEGATIVE = b"\xff" * 10 + b"\xf0\x00"
ENORMOUS = b"\x80\0\0\0" + b"\x7f" + b"\xff" * 7


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is no tar archive, or a damaged one"),
        (b"not a tar" * 200, "is no tar archive, or a damaged one"),
        (archive(member("a", b"x" * 5000))[:1500], "is no tar archive, or a damaged one"),
        (archive(member("a"))[:512] + b"garbage" * 200, "byte 1024 is damaged: no member and no end is there"),
        (forged(NEGATIVE) + archive(member("b")), "has a member of negative size"),
        (forged(ENORMOUS) + archive(member("b")), "x.tar: "),
        (forged(b"77777777777\0", b"x") + archive(member("b")), "has a member with too large a header"),
        (forged(b"77777777777\0", b"L") + archive(member("b")), "has a member with too large a header"),
        (
            archive(member("manifest.json"), member("abc/layer.tar")),
            "is an archive of images' layers, not of a root; `docker load` it",
        ),
    ],
)
def test_what_is_no_archive_of_a_root_is_one_error(data, words):
    """Damaged, forged, of something else: named, with what to do."""
    assert words in refusal(data)


@given(st.integers(0, 4000), st.binary(min_size=1, max_size=30))
def test_whatever_is_forged_is_an_archive_or_an_error(position, patch):
    """No change of an archive's bytes leads to anything but a root or one message."""
    data = bytearray(archive_of({"a/b": b"text", "l": Link("a/b"), "é" * 120: b"long", "d": None}))
    data[position : position + len(patch)] = patch
    try:
        root = TarRoot("x.tar", io.BytesIO(bytes(data)))
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017  # either may happen
    else:
        root.read("/a/b", 10)


@pytest.mark.parametrize("module", [gzip, bz2, lzma])
def test_compressed_archives_are_read_through_a_spool(module):
    """gzip, bzip2, xz; their texts are kept in the file that is given for it."""
    data = module.compress(archive_of({"a/b": b"text", "c": b"", "d": None}))
    unpacked = decompressed(io.BytesIO(data))
    assert unpacked is not None
    root = TarRoot("x", unpacked, io.BytesIO())
    assert root.read("/a/b", 2, 1) == b"ex"
    assert root.names("/") == ["a", "c", "d"]
    assert decompressed(io.BytesIO(archive_of({"a": b""}))) is None


def test_a_truncated_compressed_archive_is_one_error():
    """It ends within a member, or within the compression."""
    data = gzip.compress(archive_of({"a": b"x" * 50_000}), 0)[:30_000]
    unpacked = decompressed(io.BytesIO(data))
    assert unpacked is not None
    with pytest.raises(InputError, match="is no tar archive, or a damaged one"):
        TarRoot("x.tar.gz", unpacked, io.BytesIO())


def noise(size: int) -> bytes:
    """Bytes that hardly compress, the same ones each time."""
    return random.Random(0).randbytes(size)


@pytest.mark.parametrize("module", [gzip, bz2, lzma])
def test_a_compressed_archive_that_is_mangled_in_the_middle_is_one_error(module):
    """Each way to compress has errors of its own."""
    data = bytearray(module.compress(archive_of({"a": noise(50_000), "b": b"x"})))
    middle = len(data) // 2
    data[middle : middle + 16] = b"\xff" * 16
    unpacked = decompressed(io.BytesIO(bytes(data)))
    assert unpacked is not None
    with pytest.raises(InputError, match=r"x.tar: is no tar archive, or a damaged one"):
        TarRoot("x.tar", unpacked, io.BytesIO())


@pytest.mark.parametrize(("module", "flipped"), [(gzip, -8), (bz2, -2), (lzma, -20)])
def test_a_wrong_checksum_is_one_error(module, flipped):
    """It stands at the very end, behind what tar looks at."""
    data = bytearray(module.compress(archive_of({"a": noise(50_000)})))
    data[flipped] ^= 0x55
    unpacked = decompressed(io.BytesIO(bytes(data)))
    assert unpacked is not None
    with pytest.raises(InputError, match=r"x.tar: is no tar archive, or a damaged one"):
        TarRoot("x.tar", unpacked, io.BytesIO())


def test_what_follows_the_end_of_an_archive_is_read_and_does_not_matter():
    """So that what goes wrong to the very end of a stream is told."""
    stream = io.BytesIO(archive_of({"a": b"x"}) + noise(3 << 20))
    assert TarRoot("x", stream, io.BytesIO()).names("/") == ["a"]
    assert stream.read() == b""


def test_a_full_disk_is_one_error():
    """The spool may not fit."""

    class Full(io.BytesIO):
        def write(self, _data):
            raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match=r"does not fit into the temporary folder; set TMPDIR to a larger one"):
        TarRoot("x", io.BytesIO(archive_of({"a": b"x"})), Full())


def test_an_empty_root_is_a_root():
    """The directory `.` alone."""
    root = as_tar({".": None})
    assert root.names("/") == []
    found = root.look("/")
    assert found is not None
    assert found.kind == DIRECTORY
