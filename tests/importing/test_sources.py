"""What a person names is found, as a directory, an archive or an image."""

from __future__ import annotations

import gzip
import os

import pytest

from simulator.importing.sources import import_named
from simulator.reading import InputError
from simulator.runners.container import engine
from tests.importing.made import ORDINARY, archive_of, as_directory

ANSWERING = {**ORDINARY, "/usr/bin/nvidia-smi": b"#!/bin/sh\necho 580.82.07\n"}


def test_the_same_root_in_every_form_is_the_same_host(tmp_path):
    """Directory, archive, compressed archive; the host has the name of what it was imported from."""
    as_directory(tmp_path / "node", ANSWERING).close()
    (tmp_path / "node.tar").write_bytes(archive_of(ANSWERING))
    (tmp_path / "node.tar.gz").write_bytes(gzip.compress(archive_of(ANSWERING)))
    found = [import_named(str(tmp_path / name)).host for name in ("node", "node.tar", "node.tar.gz")]
    assert [host.name for host in found] == ["node", "node.tar", "node.tar.gz"]
    assert found[0].programs == found[1].programs == found[2].programs
    assert found[0].files == found[1].files == found[2].files
    assert found[1].description == f"Imported from {tmp_path}/node.tar."


def test_a_directory_may_be_named_by_a_link(tmp_path):
    """Only what is inside is not followed out."""
    as_directory(tmp_path / "node", ANSWERING).close()
    (tmp_path / "link").symlink_to("node")
    assert import_named(str(tmp_path / "link")).host.programs


def test_what_is_no_file_is_refused_unopened(tmp_path):
    """A fifo would hang."""
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(InputError, match=r"fifo: is neither a directory nor a regular file"):
        import_named(str(tmp_path / "fifo"))


@pytest.mark.parametrize("name", ["", "a b", "/no/such/file", "../x", "a\0b", "-x", "x" * 600])
def test_what_can_be_no_image_is_not_asked_for(name, monkeypatch, tmp_path):
    """The engine is not troubled with a path that does not exist."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.setattr(engine, "client", lambda: pytest.fail("asked"))
    with pytest.raises(InputError, match="no image can be named so"):
        import_named(name)


# --- with an engine -----------------------------------------------------------------------------------------------------


@pytest.fixture
def imported_image(docker_engine):
    """An image made of an archive, removed afterwards."""
    names = []

    def make(description):
        name = f"dmsim-test-import-{os.getpid()}-{len(names)}"
        docker_engine.api.import_image_from_data(archive_of(description), repository=name, tag="x")
        names.append(f"{name}:x")
        return names[-1]

    yield make
    for name in names:
        docker_engine.images.remove(name, force=True)


@pytest.mark.container
def test_an_image_is_a_root(imported_image, docker_engine):
    """Its host is that of the same root as an archive; no container is left."""
    reference = imported_image(ANSWERING)
    found = import_named(reference)
    assert found.host.programs[0].stdout == "580.82.07\n"
    assert found.host.description == f"Imported from the image {reference}."
    assert docker_engine.containers.list(all=True, filters={"ancestor": reference}) == []


@pytest.mark.container
@pytest.mark.usefixtures("docker_engine")
def test_an_image_that_is_not_there():
    """It is not pulled."""
    with pytest.raises(InputError, match=r'there is no file and no image "dmsim-no/such:image"; `docker pull` it first'):
        import_named("dmsim-no/such:image")
