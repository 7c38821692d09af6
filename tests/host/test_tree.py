"""The fake tree: what is rendered, and the kernel's way through it."""

from __future__ import annotations

import errno
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyfakefs.fake_file import FakeDirectory

from simulator.host import tree as trees
from simulator.host.spec import LOADERS, SHARED, HostSpec, Program, read_host
from simulator.host.tree import _SHOWN, HOST, Tree, container_path, fresh, render
from simulator.reading import parse_document
from simulator.scenario import load_host, names


def rendered(text: str) -> Tree:
    return render(read_host(parse_document(text, "x.yaml"), "x"))


def number_of(tree: Tree, path: str, **options: object) -> int | None:
    with pytest.raises(OSError) as error:
        tree.find(path, **options)
    return error.value.errno


# --- rendering ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", names("hosts"))
def test_a_named_host_is_rendered(name):
    """Every program, link and file of a named host is where its description says, unless there is no /host."""
    host = load_host(name)
    tree = render(host)
    there = host.root != "absent"
    for path in (*(program.path for program in host.programs), *host.links, *(file.path for file in host.files)):
        place = container_path(path)
        assert tree.exists(place, follow=False) == (there or place == path)
    assert len(tree.snapshot()) < 60


def test_an_ordinary_root_has_what_starts_programs():
    """A normal root has a shell, modprobe and the loader of its architecture; an empty one has none of them."""
    for path in ("/bin/sh", "/sbin/modprobe", LOADERS["x86_64"]):
        assert rendered("root: normal").exists(HOST + path)
        assert not rendered("root: empty").exists(HOST + path)
    assert rendered("os: {architecture: aarch64}").exists(HOST + LOADERS["aarch64"])


def test_where_bin_is_a_link_the_shell_is_where_it_leads():
    """The programs of a merged root land in /usr, and a link to nowhere is left as it is."""
    merged = rendered("directories: [/usr/bin]\nlinks: {/bin: usr/bin, /lib64: /usr/lib64, /sbin: /usr/bin}")
    assert merged.exists(HOST + "/usr/bin/sh")
    assert merged.exists(HOST + "/usr/bin/modprobe")
    assert merged.snapshot()[HOST + "/lib64"] == "-> /usr/lib64"


def test_the_descriptions_own_shell_stands():
    """A program that the description puts in place of an ordinary one is not overwritten."""
    assert rendered("programs: {/bin/sh: {mode: '0644'}}").find(HOST + "/bin/sh").st_mode & 0o777 == 0o644


def test_without_host_only_the_shared_trees_are_there():
    """Without /host nothing of the node's own files is rendered, but /run, /sys and /proc are."""
    tree = rendered("root: absent\nfiles: {/etc/x: y, /run/x: y}\nprograms: {/usr/bin/a: {}}\nlinks: {/b: /a}\ndirectories: [/c]")
    assert not tree.exists(HOST)
    assert tree.exists("/run/x")


def test_a_link_in_the_host_is_resolved_within_the_host():
    """A file put below an absolute link of the host's lands in the host, not in the container."""
    spec = HostSpec("x", directories=("/usr/bin",), programs=(Program("/usr/bin/a"),), links={"/bin": "/usr/bin"})
    tree = render(spec)
    tree.write(HOST + "/bin/b", "")
    assert tree.exists(HOST + "/usr/bin/b")
    assert not tree.exists("/usr/bin/b")


# --- looking up --------------------------------------------------------------------------------------------------------


def test_links_start_at_the_root_they_are_looked_up_in():
    """An absolute link of the host's means the host's path inside the root, and the container's outside it."""
    tree = rendered("links: {/a: /etc/x}\nfiles: {/etc/x: host}\ncontainer: {files: {/etc/x: container}}")
    assert tree.find("/a", root=HOST).contents == "host"
    assert tree.find(HOST + "/a").contents == "container"


def test_the_way_up_ends_at_the_root():
    """`..` in the root is the root, however often."""
    tree = rendered("links: {/a: ../../../../etc/x}\nfiles: {/etc/x: host}\ncontainer: {files: {/etc/x: container}}")
    assert tree.find("/a", root=HOST).contents == "host"
    assert tree.find("/../../etc/x", root=HOST).contents == "host"


@pytest.mark.parametrize("shared", SHARED)
def test_the_shared_trees_are_seen_from_both_roots(shared):
    """/run, /sys and /proc are the same seen from the container and from the host's root."""
    tree = rendered(f"links: {{/a: {shared}/x/y}}\nfiles: {{{shared}/x/y: text}}")
    assert tree.find("/a", root=HOST).contents == "text"
    assert tree.find(f"{shared}/x/../../etc", root=HOST, follow=False) is not None if tree.exists(HOST + "/etc") else True


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("/none", errno.ENOENT),
        ("/dangling", errno.ENOENT),
        ("/loop", errno.ELOOP),
        ("/file/x", errno.ENOTDIR),
        ("/to-file/x", errno.ENOTDIR),
        ("/" + "n" * 256, errno.ENAMETOOLONG),
    ],
)
def test_what_cannot_be_found(path, number):
    """A look-up fails with the kernel's errno."""
    tree = rendered("files: {/file: x}\nlinks: {/dangling: /none, /loop: /pool, /pool: /loop, /to-file: file}")
    assert number_of(tree, path, root=HOST) == number


def test_forty_links_are_followed_and_no_more():
    """A chain of forty links is followed, as by the kernel; the next one is too many."""
    chain = {f"/l{n}": f"/l{n + 1}" for n in range(1, 41)}
    tree = render(HostSpec("x", links={**chain, "/l41": "/end", "/l0": "/l1"}, programs=(Program("/end"),)))
    assert tree.find("/l2", root=HOST) is tree.find("/end", root=HOST)
    assert number_of(tree, "/l1", root=HOST) == errno.ELOOP


steps = st.sampled_from(["..", ".", "", "etc", "x", "up", "out", "run", "proc", "sys", "usr", "bin", "host", "again"])


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(steps, max_size=8), st.lists(steps, max_size=6), st.booleans())
def test_no_look_up_leaves_the_host(path, target, absolute):
    """Whatever a path or a link in the host says, what is found lies in the host or in what it shares."""
    link = ("/" if absolute else "") + "/".join(target) or "."
    spec = HostSpec(
        "x",
        links={"/up": "../../..", "/out": link, "/etc/again": "../out", "/usr/bin/x": "/up/etc/x"},
        programs=(Program("/etc/x"), Program("/host/x")),
        directories=("/run/x", "/usr/bin"),
    )
    tree = render(spec)
    tree.write("/etc/secret", "the container's")
    try:
        found = tree.find("/" + "/".join(path), root=HOST)
    except OSError:
        return
    assert id(found) in inside(tree)


def inside(tree: Tree) -> set[int]:
    """What is in the host or in what it shares."""
    stack = [tree.find(path) for path in (HOST, *SHARED)]
    seen = set()
    while stack:
        node = stack.pop()
        seen.add(id(node))
        if isinstance(node, FakeDirectory):
            stack += node.entries.values()
    return seen


@settings(max_examples=200)
@given(path=st.lists(st.sampled_from(["a", "b", "f", "l", "up", "loop", ".", "..", "x" * 70, "x" * 256, ""]), max_size=5))
def test_the_short_way_is_the_walk(path):
    """What is looked up name by name is what the whole walk finds, error for error, links followed or not."""
    tree = rendered(f"files: {{/a/b/f: x, /a/{'x' * 70}: y}}\nlinks: {{/l: a, /a/up: .., /a/b/loop: loop}}")
    tree.write(f"{HOST}/{'x' * 256}", "a description cannot say so")
    base = tree.find(HOST)
    text = "/" + "/".join(path)
    for follow in (True, False):
        assert met(lambda: tree.find(text, root=HOST, follow=follow)) == met(  # noqa: B023  # called at once
            lambda: tree._walk(base, text, base, follow=follow)[0]  # noqa: B023  # called at once
        )


def met(look) -> object:
    """What a look-up gives, or the number of its error."""
    try:
        return id(look())
    except OSError as error:
        return error.errno


# --- many of one host --------------------------------------------------------------------------------------------------


def test_every_caller_has_a_tree_of_its_own():
    """What is written, linked or removed in one is not in the next."""
    spec = read_host(parse_document("files: {/etc/x: y, /etc/z: y}", "x.yaml"), "x")
    one = fresh(spec)
    one.write(HOST + "/etc/x", "other")
    one.remove_tree(HOST + "/etc/z")
    one.link("/run/l", "/host")
    assert fresh(spec).snapshot() == render(spec).snapshot() != one.snapshot()


class _Slow(dict):
    """A memory that others get at while one of them deletes."""

    def __delitem__(self, key):
        time.sleep(0.001)
        super().__delitem__(key)


def test_threads_may_ask_at_once(monkeypatch):
    """`dmsim verify --jobs` does, for more hosts than are kept."""
    monkeypatch.setattr(trees, "_rendered", _Slow())
    specs = [read_host(parse_document(f"files: {{/etc/x: '{number}'}}", "x.yaml"), "x") for number in range(100)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(fresh, specs))
    assert [tree.find(HOST + "/etc/x").contents for tree in found] == [str(number) for number in range(100)]


def test_what_is_rendered_once_is_all_that_is_looked_at():
    """Hosts that agree in these fields share a rendering, so no other field may decide what a tree shows."""
    spec = load_host("ubuntu-24.04-driver-580-open")
    shown = SimpleNamespace(**{field: getattr(spec, field) for field in _SHOWN})
    assert render(shown).snapshot() == render(spec).snapshot()


# --- changing ----------------------------------------------------------------------------------------------------------


def test_a_file_in_the_way_makes_room():
    """A directory is made where a file or a link to nowhere was."""
    tree = Tree()
    tree.write("/a/file", "x")
    tree.link("/a/link", "/none")
    assert isinstance(tree.make_directory("/a/file/b"), FakeDirectory)
    assert isinstance(tree.make_directory("/a/link/b"), FakeDirectory)
    assert tree.exists("/a/link/b")


def test_a_directory_is_found_through_links():
    """`directory` is the directory that a path leads to, and None for anything else."""
    tree = rendered("links: {/d: etc, /gone: /none}\nfiles: {/etc/x: y}")
    assert tree.directory("/d", root=HOST) is tree.find(HOST + "/etc")
    assert tree.directory("/d/x", root=HOST) is None
    assert tree.directory("/gone", root=HOST) is None
