"""A directory is looked at without being led out of it, and without opening what is no file."""

from __future__ import annotations

import os
import socket

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simulator.importing.roots import DIRECTORY, FILE, LINK, OTHER, DirectoryRoot, Entry, resolve
from simulator.reading import InputError
from tests.importing.made import Link, as_directory, as_tar


@pytest.fixture
def secret(tmp_path):
    """A file beside the root, which nothing may read."""
    path = tmp_path / "secret"
    path.write_text("secret")
    return path


@pytest.mark.parametrize("target", ["{}", "../secret", "../../../../../../../{}", "/../secret"])
def test_a_link_that_leads_out_is_followed_inside(tmp_path, secret, target):
    """As a chroot does: `..` at the top stays there, and an absolute target starts at the root."""
    root = as_directory(tmp_path / "root", {"/link": Link(target.format(secret))})
    found = resolve(root, "/link")
    assert found.entry is None
    assert root.read(found.path, 100) == b""
    assert found.links == {"/link": target.format(secret)}


def test_a_directory_that_is_a_link_is_not_entered_by_look_names_and_read(tmp_path, secret):
    """Even a path that should be canonical and is not leads nowhere."""
    root = as_directory(tmp_path / "root", {"/out": Link(".."), "/inside/x": b"x"})
    assert root.look("/out") == Entry(LINK, 0o777, 2, "..")
    assert root.look("/out/secret") is None
    assert root.names("/out") == []
    assert root.read("/out/secret", 10) == b""


def test_devices_fifos_and_sockets_are_seen_and_not_opened(tmp_path):
    """A fifo that nobody writes to would hang whoever opened it."""
    root = as_directory(tmp_path, {"/x": None})
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    for name in ("fifo", "socket"):
        entry = root.look(f"/{name}")
        assert entry is not None
        assert (entry.kind, entry.is_executable) == (OTHER, False)
        assert root.read(f"/{name}", 10) == b""


def test_a_sparse_giant_is_read_no_further_than_asked(tmp_path):
    """Its size is known; only what is asked for is read."""
    root = as_directory(tmp_path, {"/x": None})
    with (tmp_path / "giant").open("wb") as file:
        file.write(b"start")
        file.truncate(1 << 42)
    assert root.look("/giant") == Entry(FILE, 0o644, 1 << 42)
    assert root.read("/giant", 7) == b"start\0\0"
    assert root.read("/giant", 7, 1 << 70) == b""


def test_a_file_that_is_swapped_is_not_read(tmp_path, monkeypatch):
    """Between looking and opening somebody may put another thing there."""
    root = as_directory(tmp_path, {"/a": b"mine", "/b": b"other"})
    real = os.open

    def swapping(path, flags, *arguments, **keywords):
        if path == "a":
            (tmp_path / "b").replace(tmp_path / "a")
        return real(path, flags, *arguments, **keywords)

    monkeypatch.setattr(os, "open", swapping)
    assert root.read("/a", 10) == b""


def test_what_cannot_be_looked_at_is_noted(tmp_path, monkeypatch):
    """A directory that may not be entered counts as empty, and that is said."""
    root = as_directory(tmp_path, {"/closed/x": b"x"})

    def refused(*_arguments, **_keywords):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "stat", refused)
    monkeypatch.setattr(os, "scandir", refused)
    assert root.look("/closed") is None
    assert root.names("/closed") == []
    assert root.read("/closed/x", 1) == b""
    assert root.skipped == {"could not be looked at: Permission denied": 3}


def test_a_directory_of_too_many_names_is_cut_off(tmp_path, monkeypatch):
    """And that is said."""
    monkeypatch.setattr("simulator.importing.roots._MOST_NAMES", 3)
    root = as_directory(tmp_path, {f"/{name}": b"" for name in "abcde"})
    assert len(root.names("/")) == 3
    assert root.skipped == {"of a directory that has more than 3": 1}


def test_no_directory_is_one_error(tmp_path):
    """A path that is gone is named."""
    with pytest.raises(InputError, match=r"/none: cannot be entered: No such file or directory; check the path"):
        DirectoryRoot(tmp_path / "none")


def test_the_names_and_kinds_in_a_root(tmp_path):
    """Names are sorted; the root itself is a directory."""
    for root in (
        as_directory(tmp_path, {"/b/y": b"", "/a": Link("b"), "/b/x": (b"12", 0o640)}),
        as_tar({"b/y": b"", "a": Link("b"), "b/x": (b"12", 0o640)}),
    ):
        assert root.names("/") == ["a", "b"]
        assert root.names("/b") == ["x", "y"]
        assert root.names("/none") == root.names("/a") == []
        assert root.look("/b/x") == Entry(FILE, 0o640, 2)
        assert root.look("/none/x") is None
        found = resolve(root, "/a/./x")
        assert (found.asked, found.path, found.links) == ("/a/./x", "/b/x", {"/a": "b"})
        top = resolve(root, "/b/..")
        assert top.path == "/"
        assert top.entry is not None
        assert top.entry.kind == DIRECTORY


steps = st.lists(st.sampled_from(["a", "b", "..", ".", "", "c"]), max_size=5).map("/".join)


@example({"b": b"x", "a/a": Link("/b")}, "a/a/.")
@example({"b": b"x", "a": Link("b/.")}, "a")
@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "a/a", "b/c", "c"]),
        st.one_of(steps.map(Link), steps.map(lambda s: Link(f"/{s}")), st.just(b"x")),
    ),
    steps,
)
def test_every_path_is_resolved_as_the_model_resolves_it(description, path):
    """A root and the model's own tree lead to the same place, whatever links there are."""
    from simulator.host.tree import Tree

    root, tree = as_tar({key: what for key, what in description.items() if what != ""}), Tree()
    stack = [("", "/")]
    while stack:
        place, directory = stack.pop()
        for name in root.names(directory):
            here = f"{place}/{name}"
            entry = root.look(here)
            assert entry is not None
            if entry.kind == LINK:
                parent = tree.make_directory(place)
                tree.link(here, entry.target)
                assert name in parent.entries
            elif entry.kind == DIRECTORY:
                tree.make_directory(here)
                stack.append((here, here))
            else:
                tree.write(here, here)
    found = resolve(root, "/" + path)
    assert (found.entry is not None) == tree.exists("/" + path)
    if found.entry is not None:
        assert found.path == tree.resolve("/" + path)
