"""What an image must have, found out before it is run."""

from __future__ import annotations

import os
import time

import pytest

from simulator.reading import InputError
from tests.runners.container.images import build_on

pytestmark = pytest.mark.container


@pytest.fixture
def look_into(docker_engine, image):
    """Build an image on the one that all share, and look into it."""
    from simulator.runners.container.image import look_into

    made = []

    def look(dockerfile):
        made.append(build_on(docker_engine, f"dmsim-test-image-{os.getpid()}-{len(made)}:latest", dockerfile))
        return look_into(made[-1])

    yield look
    for tag in made:
        docker_engine.images.remove(tag, force=True)


MOVED = 'RUN ["/bin/sh", "-c", "mkdir /opt; mv /usr/local/bin/driver-manager /opt/program; ln -s /opt/program /bin"]\n'


def test_the_program_is_found_on_path(look_into, docker_engine):
    image = look_into("")
    assert image.id == docker_engine.images.get(image.reference).id
    assert image.labels == {"test": image.reference}
    assert image.command == ("/usr/local/bin/driver-manager",)
    assert image.env == {"PATH": "/usr/local/bin:/usr/bin:/bin", "FROM_IMAGE": "yes"}
    assert image.working_directory == "/work"
    assert image.helpers == {"chroot": "/bin/chroot"}


@pytest.mark.parametrize(
    ("entrypoint", "command"),
    [
        ('["/opt/program", "--flag"]', ("/opt/program", "--flag")),
        ('["program", "--flag"]', ("/bin/program", "--flag")),
    ],
)
def test_else_the_entrypoint_is_the_program(entrypoint, command, look_into):
    assert look_into(f"{MOVED}ENTRYPOINT {entrypoint}\n").command == command


def test_an_image_without_either_is_the_wrong_one(look_into):
    with pytest.raises(InputError, match="neither driver-manager on its PATH nor an ENTRYPOINT"):
        look_into(MOVED)


@pytest.mark.parametrize(
    "lack",
    [
        'RUN ["/bin/busybox", "rm", "/bin/chroot"]\n',
        'RUN ["/bin/busybox", "ln", "-sf", "/nowhere", "/bin/chroot"]\n',
        'RUN ["/bin/busybox", "sh", "-c", "rm /bin/chroot; mkdir /bin/chroot"]\n',
        "ENV PATH=/usr/local/bin\n",
    ],
)
def test_an_image_without_chroot_would_find_no_driver(lack, look_into):
    with pytest.raises(InputError, match=r"has no chroot on its PATH.*every host looks as if it had no driver"):
        look_into(lack)


def test_an_image_must_run_as_root(look_into):
    with pytest.raises(InputError, match="runs as 1000"):
        look_into("USER 1000\n")


def test_an_image_must_be_there(docker_engine):
    from simulator.runners.container.image import look_into

    with pytest.raises(InputError, match='there is no image "dmsim-no-such:image"'):
        look_into("dmsim-no-such:image")


def test_a_word_that_can_be_no_images_name_is_one_error(docker_engine):
    from simulator.runners.container.image import look_into

    with pytest.raises(InputError, match=r'the image "No such:image:" cannot be looked into: .*invalid reference format'):
        look_into("No such:image:")


def test_looking_leaves_no_volume(look_into, docker_engine):
    def volumes():
        return {volume.name for volume in docker_engine.volumes.list()}

    before = volumes()
    look_into('VOLUME ["/data"]\n')
    deadline = time.monotonic() + 10
    while volumes() - before:  # somebody else's may come and go meanwhile
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_an_image_is_looked_into_once(look_into, docker_engine, monkeypatch):
    from simulator.runners.container import image

    first = look_into("")
    monkeypatch.setattr(image, "_Files", None)
    assert image.look_into(first.reference) is first
    assert not [
        found for found in docker_engine.containers.list(all=True, ignore_removed=True) if found.image.tags == [first.reference]
    ]
