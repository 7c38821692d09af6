"""What an ELF file says of itself, whatever bytes it has."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.importing.elf import BrokenElf, Elf, read_elf
from tests.importing.made import ARM, elf


def read(data: bytes) -> Elf | None:
    return read_elf(lambda size, offset: data[offset : offset + size])


def test_what_an_elf_file_says():
    """Its machine, interpreter, needed libraries, search path."""
    assert read(elf(needed=("a.so", "b.so"), runpath="/x:$ORIGIN")) == Elf(
        62, "/lib64/ld-linux-x86-64.so.2", ("a.so", "b.so"), ("/x", "$ORIGIN")
    )
    assert read(elf(interpreter=None, machine=ARM)) == Elf(183)
    assert read(b"#!/bin/sh\n") is None
    assert read(b"") is None


def test_the_running_python_is_read_as_the_system_reads_it():
    """A real binary, against readelf's account of it where that is installed."""
    path = Path(sys.executable).resolve()
    found = read(path.read_bytes())
    assert found is not None
    assert found.interpreter is not None
    assert found.interpreter.startswith("/lib")
    with contextlib.suppress(FileNotFoundError):
        told = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
        assert [line.split("[")[1].rstrip("]") for line in told.splitlines() if "(NEEDED)" in line] == [*found.needed]


@pytest.mark.parametrize("length", [4, 15, 16, 40, 63, 100, 200])
def test_a_truncated_elf_file_is_broken(length):
    """The kernel would refuse it."""
    with pytest.raises(BrokenElf):
        read(elf(needed=("a.so",))[:length])


@given(st.integers(0, 400), st.binary(min_size=1, max_size=16), st.booleans())
def test_any_elf_file_is_read_or_broken(position, patch, cut):
    """No number in it leads astray."""
    data = bytearray(elf(needed=("a.so", "b.so"), runpath="/x"))
    data[position : position + len(patch)] = patch
    with contextlib.suppress(BrokenElf):
        read(bytes(data)[: position + len(patch)] if cut else bytes(data))
