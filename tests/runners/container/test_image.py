"""What an image must have, found out before it is run."""

from __future__ import annotations

import os

import pytest

from simulator.reading import InputError
from tests.runners.container.images import DOCKERFILE, build

pytestmark = pytest.mark.container


@pytest.fixture
def look_into(docker_engine):
    """Build an image and look into it."""
    from simulator.runners.container.image import look_into

    made = []

    def look(dockerfile):
        tag = f"dmsim-test-image-{os.getpid()}-{len(made)}:latest"
        made.append(build(docker_engine, tag, dockerfile))
        return look_into(tag)

    yield look
    for tag in made:
        docker_engine.images.remove(tag, force=True)


def test_the_program_is_found_on_path(look_into):
    image = look_into(DOCKERFILE)
    assert image.command == ("/usr/local/bin/driver-manager",)
    assert image.env == {"PATH": "/usr/local/bin:/usr/bin:/bin", "FROM_IMAGE": "yes"}
    assert image.working_directory == "/work"
    assert image.helpers == {"chroot": "/bin/chroot"}
    assert image.path == ("/usr/local/bin", "/usr/bin", "/bin")


@pytest.mark.parametrize(
    ("entrypoint", "command"),
    [
        ('["/opt/program", "--flag"]', ("/opt/program", "--flag")),
        ('["program", "--flag"]', ("/bin/program", "--flag")),
    ],
)
def test_else_the_entrypoint_is_the_program(entrypoint, command, look_into):
    dockerfile = DOCKERFILE.replace('ENTRYPOINT ["driver-manager"]', f"ENTRYPOINT {entrypoint}")
    dockerfile = (
        dockerfile.replace("/usr/local/bin/driver-manager", "/opt/program") + 'RUN ["/bin/ln", "-s", "/opt/program", "/bin"]\n'
    )
    assert look_into(dockerfile).command == command


def test_an_image_without_either_is_the_wrong_one(look_into):
    dockerfile = DOCKERFILE.replace("/usr/local/bin/driver-manager", "/opt/program")
    with pytest.raises(InputError, match="neither driver-manager on its PATH nor an ENTRYPOINT"):
        look_into(dockerfile)


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
        look_into(DOCKERFILE + lack)


def test_an_image_must_run_as_root(look_into):
    with pytest.raises(InputError, match="runs as 1000"):
        look_into(DOCKERFILE + "USER 1000\n")


def test_an_image_must_be_there(docker_engine):
    from simulator.runners.container.image import look_into

    with pytest.raises(InputError, match='there is no image "dmsim-no-such:image"'):
        look_into("dmsim-no-such:image")


def test_an_image_is_looked_into_once(look_into, docker_engine, monkeypatch):
    from simulator.runners.container import image

    first = look_into(DOCKERFILE)
    monkeypatch.setattr(image, "_Files", None)
    assert image.look_into(first.reference) is first
    assert not [
        found for found in docker_engine.containers.list(all=True, ignore_removed=True) if found.image.tags == [first.reference]
    ]
