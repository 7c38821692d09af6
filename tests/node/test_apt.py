"""What apt does to a host's packages; some of it held against a real apt."""

from __future__ import annotations

import os

import pytest

from simulator import images
from simulator.host.spec import Package
from simulator.importing.sources import import_image
from simulator.node import apt

DRIVER = ("nvidia-driver-580-open", "nvidia-dkms-580-open")


def installed(*manual, also=()):
    """The archive's packages that these need, marked as apt marks them."""
    packages, todo = {}, [*manual, *also]
    while todo:
        name = todo.pop(0)
        if name in packages or name not in apt.archive():
            continue
        packages[name] = Package(apt.archive()[name].version, auto=name not in manual)
        todo += [group[0] for group in apt.needs(apt.archive()[name].depends)]
    return packages


def test_the_field_depends():
    """Versions and architectures are left out."""
    assert apt.needs("a (>= 1), b:any | c [amd64], d") == (("a",), ("b", "c"), ("d",))
    assert apt.needs("") == ()


def test_what_an_archive_knows():
    """Relations of Ubuntu's packages, and which have configuration of their own."""
    known = apt.archive()["nvidia-kernel-common-580"]
    assert known.version == "580.82.07-0ubuntu0.24.04.1"
    assert known.has_configuration
    assert apt.archive()["nvidia-dkms-580"].conflicts == ("nvidia-dkms-kernel",)


def test_what_needs_a_removed_package_goes_along():
    """The site's meta package; RDMA itself stays."""
    packages = installed("site-gpu-rdma-stack")
    done = apt.removal(packages, DRIVER, swaps=False)
    assert done == apt.Transaction((), ("site-gpu-rdma-stack", "nvidia-driver-580-open", "nvidia-dkms-580-open"))


def test_another_alternative_may_be_installed():
    """H6: what needs one flavour or the other gets the other, with all it needs; rivals go."""
    packages = installed("nvidia-driver-580-open", "cuda-drivers-580", "nvidia-peermem-loader")
    done = apt.removal(packages, DRIVER)
    assert set(done.install) == {"nvidia-driver-580", "nvidia-dkms-580", "nvidia-kernel-source-580"}
    assert set(done.remove) == {*DRIVER, "nvidia-kernel-source-580-open"}
    assert set(apt.removal(packages, DRIVER, swaps=False).remove) == {*DRIVER, "cuda-drivers-580", "nvidia-peermem-loader"}


def test_a_sibling_that_needs_what_is_removed_is_no_way_out():
    """Both flavours need nvidia-kernel-common."""
    packages = installed("nvidia-driver-580-open", "cuda-drivers-580")
    done = apt.removal(packages, [*DRIVER, "nvidia-kernel-common-580"])
    assert done.install == ()
    assert "cuda-drivers-580" in done.remove


def test_of_what_is_not_known_nothing_is_concluded():
    """Neither a package without relations nor one whose need was unmet before."""
    packages = {"a": Package("1"), "nvidia-peermem-loader": Package("1"), "b": Package("1", depends="a")}
    assert apt.removal(packages, ["a"], swaps=False).remove == ("a", "b")
    assert apt.needs_of("a", packages["a"]) is None
    assert apt.needs_of("b", packages["b"]) == (("a",),)


def test_autoremove_goes_by_marks_not_by_names():
    """H7: RDMA hangs on the site's meta package alone; marked as asked for, it stays."""
    packages = installed("site-gpu-rdma-stack")
    after = apt.carried_out(packages, apt.removal(packages, DRIVER, swaps=False), purge=True)
    gone = set(apt.autoremovable(after))
    assert {"doca-ofed", "rdma-core", "libibverbs1", "mlnx-ofed-kernel-dkms", "nvidia-utils-580"} <= gone
    for name in ("doca-ofed", "rdma-core"):
        after[name] = Package(after[name].version, auto=False)
    assert {"doca-ofed", "rdma-core", "libibverbs1", "mlnx-ofed-kernel-dkms"}.isdisjoint(apt.autoremovable(after))


def test_what_has_no_mark_was_asked_for():
    """So a description without marks loses nothing by autoremove."""
    assert apt.autoremovable({"nvidia-utils-580": Package("1"), "doca-ofed": Package("1")}) == ()


def test_remove_leaves_configuration_and_purge_takes_it():
    """State rc, for those that have any."""
    packages = installed("nvidia-driver-580-open")
    names = ("nvidia-driver-580-open", "nvidia-dkms-580-open", "nvidia-kernel-common-580")
    done = apt.removal(packages, names)
    left = apt.carried_out(packages, done, purge=False)
    assert left["nvidia-kernel-common-580"].status == "rc"
    assert "nvidia-dkms-580-open" not in left
    again = apt.removal(left, ["nvidia-kernel-common-580"])
    assert again.remove == ("nvidia-kernel-common-580",)
    assert "nvidia-kernel-common-580" not in apt.carried_out(left, again, purge=True)


@pytest.mark.container
def test_a_real_apt_says_the_same(docker_engine):
    """In bookworm's: what goes along, and what autoremove takes then.

    It also removes the source of the flavour that it gave up to try the other. What a swap installs is in tests/test_images.py.
    """
    image = images.build(docker_engine, ["converged"])["converged"]
    packages = import_image(image).host.packages
    container = docker_engine.containers.run(
        image, ["sleep", "300"], detach=True, network_mode="none", labels={"dmsim": f"test-{os.getpid()}"}
    )

    def asked(command, *words):
        _, output = container.exec_run(["sh", "-c", command], environment={"DEBIAN_FRONTEND": "noninteractive"})
        lines = [line.split() for line in output.decode().splitlines()]
        return {line[1] for line in lines if line and line[0] in words}

    try:
        done = apt.removal(packages, DRIVER, swaps=False)
        tried = {"nvidia-kernel-source-580-open"}
        assert asked(f"apt-get -s purge {' '.join(DRIVER)}", "Purg") - tried == set(done.remove)
        container.exec_run(["apt-get", "purge", "-qy", *DRIVER])
        after = apt.carried_out(packages, done, purge=True)
        assert asked("apt-get -s autoremove", "Remv") == set(apt.autoremovable(after)) - tried
    finally:
        container.remove(force=True)
