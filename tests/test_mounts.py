"""Mounts: mountinfo as the kernel writes it, and the walk from the root."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from simulator.mounts import covering, listed


def test_a_line_of_mountinfo_is_a_mount():
    r"""Space, tab, newline and backslash are octal; a carriage return and other ends of lines stand as they are."""
    table = (
        "21 1 0:1 / / rw - overlay overlay rw\n"
        "30 21 0:3 / /run/a\\040b\\011c\\012d\\134040 rw - tmpfs x rw\n"
        "7 30 0:4 / /run/\r\x0b\u2028\udcff rw - tmpfs x rw\n"
    )
    assert listed(table) == [("21", "/"), ("30", "/run/a b\tc\nd\\040"), ("7", "/run/\r\x0b\u2028\udcff")]


@dataclass(frozen=True, eq=False)
class Mount:
    path: str
    parent: Mount | None = None


@pytest.mark.parametrize(("path", "place"), [("/run", None), ("/run/a", 1), ("/run/ab", None), ("/run/a/b", 2), ("/run/a/b/c", 2)])
def test_a_path_is_looked_up_in_the_last_mount_on_its_way(path, place):
    first = Mount("/run/a")
    second = Mount("/run/a", first)
    mounts = [first, second, Mount("/run/a/b", second), Mount("/run/a/b", first)]
    assert covering(mounts, path) is (None if place is None else mounts[place])


def test_a_mount_above_hides_those_that_were_there_before():
    mounts = [Mount("/run/a"), Mount("/run")]
    assert covering(mounts, "/run/a/b") is mounts[1]
