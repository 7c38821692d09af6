"""The mark that everything of ours bears, and what is left over by it."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from simulator.reading import InputError
from simulator.runners.container import engine


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """A folder for temporary folders of this test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def gone():
    """The mark of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        return engine._mark(process.pid)


def test_a_process_bears_the_same_mark_as_long_as_it_lives():
    assert engine.own_mark() == engine.own_mark()
    assert engine.own_mark().startswith(f"{os.getpid()}-")
    assert engine._is_alive(engine.own_mark())


@pytest.mark.parametrize("mark", ["", "x", "-1", "0-1-2", "999999999-1-2"])
def test_what_is_no_mark_of_a_process_is_of_none(mark):
    assert not engine._is_alive(mark)


def test_a_process_of_the_same_number_is_another():
    pid, started, boot = engine.own_mark().split("-")
    assert not engine._is_alive(f"{pid}-{int(started) + 1}-{boot}")
    assert not engine._is_alive(f"{pid}-{started}-00000000")


def test_the_mark_of_what_has_ended_is_of_nobody():
    assert not engine._is_alive(gone())


@pytest.mark.container
def test_folders_of_processes_that_are_gone_are_taken_away_and_no_others(docker_engine, elsewhere):
    mine = engine.new_folder()
    dead = elsewhere / f"{engine._prefix()}{gone()}-abc"
    others = elsewhere / f"dmsim-00000000-{gone()}-abc"
    for folder in (dead, others):
        (folder / "tree").mkdir(parents=True)
        (folder / "tree/link").symlink_to("/")
    assert dead.name in engine.sweep()
    assert not dead.exists()
    assert mine.exists()
    assert others.exists()
    assert Path("/etc").exists()


@pytest.mark.container
def test_containers_of_processes_that_are_gone_are_taken_away_and_no_others(docker_engine, image):
    mine = docker_engine.containers.create(image, labels=engine.labels())
    dead = docker_engine.containers.create(image, labels={**engine.labels(), engine.LABEL: gone()})
    others = docker_engine.containers.create(image, labels={engine.LABEL: gone(), "dmsim.home": "another machine"})
    try:
        assert dead.name in engine.sweep()
        names = {container.name for container in docker_engine.containers.list(all=True, ignore_removed=True)}
        assert {mine.name, others.name} <= names
        assert dead.name not in names
    finally:
        for container in (mine, dead, others):
            engine.remove(container)


def test_another_users_folder_is_not_ours_unless_we_are_root(elsewhere, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: elsewhere.stat().st_uid + 1)
    assert not engine._is_ours(elsewhere)
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert engine._is_ours(elsewhere)
    assert not engine._is_ours(elsewhere / "gone")


@pytest.mark.parametrize(("taken", "attempts"), [("folder/a", 2), ("folder", 1)])
def test_a_folder_that_somebody_else_removes_meanwhile_is_no_error(taken, attempts, elsewhere, monkeypatch):
    """Whether he has taken a part of it by then, or all."""
    (elsewhere / "folder/a").mkdir(parents=True)
    (elsewhere / "folder/b").mkdir()
    remove, asked = shutil.rmtree, []

    def race(path):
        asked.append(path)
        if len(asked) == 1:
            remove(elsewhere / taken)
            raise FileNotFoundError(2, "gone", str(elsewhere / taken))
        remove(path)

    monkeypatch.setattr(shutil, "rmtree", race)
    engine.remove_folder(elsewhere / "folder")
    assert not (elsewhere / "folder").exists()
    assert len(asked) == attempts
    engine.remove_folder(elsewhere / "folder")
    assert len(asked) == attempts, "what is gone is not asked for"


class Refusing:
    """An engine that answers each request with an error."""

    def __init__(self, error):
        self._error = error

    def __getattr__(self, name):
        return Refusing(self._error)

    def __call__(self, *_args, **_kwargs):
        raise self._error


REFUSED = "cannot be .*: it is full; see what the engine says"


@pytest.fixture(params=["an answer", "no answer", "docker's own"])
def refusing(request, monkeypatch):
    """An engine that refuses, in each way that docker knows."""
    docker = pytest.importorskip("docker")
    import requests

    kind = {
        "an answer": docker.errors.APIError,
        "no answer": requests.exceptions.ConnectionError,
        "docker's own": docker.errors.DockerException,
    }[request.param]
    made = Refusing(kind("it is full"))
    monkeypatch.setattr(engine, "client", lambda: made)
    return made


def test_an_engine_that_refuses_to_look_at_an_image_is_one_error(refusing, monkeypatch):
    from simulator.importing.image import exported
    from simulator.runners.container.image import look_into

    with pytest.raises(InputError, match=f'^the image "x" {REFUSED}'):
        look_into("x")
    monkeypatch.setattr(engine, "sweep_once", lambda: None)
    with pytest.raises(InputError, match=f'^the image "x" {REFUSED}'), exported("x"):
        pass


def test_an_engine_that_refuses_to_build_is_one_error(refusing, monkeypatch):
    from simulator import images
    from simulator.standin import image as standin

    with pytest.raises(InputError, match=f"^the image dmsim-debian:bookworm {REFUSED}"):
        images.build(refusing)
    with pytest.raises(InputError, match=f"^the image dmsim-host-clean {REFUSED}"):
        images.build(refusing, base="x")
    monkeypatch.setattr(standin, "interpreter", lambda: (b"", ""))
    with pytest.raises(InputError, match=f"^the image dmsim-standin:v0.12.0 {REFUSED}"):
        standin.build(refusing, "v0.12.0")


def test_an_engine_that_refuses_anything_of_a_container_is_one_error(refusing):
    with pytest.raises(InputError, match=f"^containers that were left over {REFUSED}"):
        engine.sweep()
    for act in (engine.remove, engine.is_running, engine.said):
        with pytest.raises(InputError, match=f"^(the|what the) container .* {REFUSED}"):
            act(refusing)


def test_what_is_no_error_of_the_engines_is_left_as_it_is():
    pytest.importorskip("docker")
    with pytest.raises(KeyError), engine.answering("never said"):
        raise KeyError


@pytest.mark.container
def test_a_container_that_cannot_be_started_is_one_error_and_leaves_nothing(docker_engine, image):
    with (
        pytest.raises(InputError, match=r"^a container of the image .* cannot be started: .*/no/such/program"),
        engine.running(image, {}, entrypoint=["/no/such/program"]),
    ):
        pass
    assert not docker_engine.containers.list(all=True, filters={"label": f"{engine.LABEL}={engine.own_mark()}"})


@pytest.mark.container
def test_a_container_that_somebody_takes_away_does_not_run_and_says_nothing(docker_engine, image):
    container = docker_engine.containers.create(image, labels=engine.labels())
    assert not engine.is_running(container)
    engine.remove(container)
    engine.remove(container)
    assert not engine.is_running(container)
    assert engine.said(container) == ""


@pytest.mark.container
def test_a_folder_that_cannot_be_removed_is_told(docker_engine, elsewhere, monkeypatch):
    folder = elsewhere / f"{engine._prefix()}{gone()}-abc"
    folder.mkdir()

    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "no")

    monkeypatch.setattr(os, "rmdir", refuse)
    with pytest.raises(InputError, match=f"{folder.name}: is left over and cannot be removed.*; remove it as root"):
        engine.sweep()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_where_no_engine_answers_the_mend_is_told(monkeypatch):
    pytest.importorskip("docker")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(InputError, match=r"no Docker engine answers.*set DOCKER_HOST"):
        engine.client.__wrapped__()
    gc.collect()  # docker does not close a socket that could not be connected


def test_without_the_extra_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "docker", None)
    with pytest.raises(InputError, match=r"install the extra: pip install 'driver-manager-simulator\[container\]'"):
        engine._modules()
