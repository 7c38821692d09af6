"""The Python API: its worlds, its results against the command line's, its errors, and that its form stays."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import simulator
from simulator import HostSpec, InputError, Outcome, compare, load_world, predict, simulate
from simulator.cli.main import main
from simulator.report.document import outcome_document
from simulator.scenario import load_cluster, load_host
from tests.api import listing

SAVED = Path(__file__).resolve().parents[2] / "docs/examples/snapshot"
HOST = "ubuntu-24.04-driver-580-open"
WORLD = "host: runfile-580\nrelease: v0.12.0\nenv: {NODE_NAME: gpu-1, FORCE_REINSTALL: 'true'}\n"


def printed(capsys, *argv):
    main([*argv, "-o", "json"])
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def world_file(tmp_path):
    path = tmp_path / "world.yaml"
    path.write_text(WORLD)
    return path


def test_the_public_names_are_those_of_the_listing():
    """A change of a name, a signature or a field shows in tests/api/public.txt (`python -m tests.api.listing`)."""
    assert "\n".join(listing.lines()) + "\n" == listing.FILE.read_text()


def test_the_public_names_are_sorted_and_shown():
    """`__all__` is sorted, `dir` has it, and an unknown name is an AttributeError."""
    assert simulator.__all__ == sorted(simulator.__all__)
    assert set(simulator.__all__) <= set(dir(simulator))
    with pytest.raises(AttributeError, match="simulat0r"):
        _ = simulator.simulat0r


def test_the_import_loads_nothing_of_the_model():
    """Only the use of a name does."""
    code = "import sys, simulator; print(sorted(name for name in sys.modules if name.startswith(('simulator.', 'yaml'))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_simulate_answers_what_run_prints(capsys, world_file):
    """For a world file, its release and variables too."""
    assert outcome_document(simulate(world_file)) == printed(capsys, "run", "--world", str(world_file))


def test_compare_answers_what_the_command_prints(capsys):
    """For a named host, whose node is named."""
    found = compare(HOST, "v0.10.0", "v0.12.0")
    wanted = printed(capsys, "compare", "v0.10.0", "v0.12.0", "--host", HOST)
    assert {**found.document(), "world": ""} == {**wanted, "world": ""}
    assert [cause.name for cause in found.causes] == [change["name"] for change in wanted["changes"]]
    assert (found.differs, found.is_explained, found.left_outcome.release) == (True, True, "v0.10.0")


def test_predict_answers_what_the_command_prints(capsys):
    """For a host and an event."""
    found = predict(HOST, event="mode-switch", to="vm-passthrough", release="v0.12.0")
    argv = ("predict", "--host", HOST, "--event", "mode-switch", "--to", "vm-passthrough", "--release", "v0.12.0")
    assert found.document() == printed(capsys, *argv)


def test_predict_reads_a_bundle_and_what_it_could_not_see(capsys):
    """A folder of saved objects."""
    assert predict(SAVED).document() == printed(capsys, "predict", str(SAVED))


def test_a_world_is_given_in_any_form(tmp_path, world_file):
    """By path, by name, as a description, as itself: the same run."""
    host_file = tmp_path / "host.yaml"
    host_file.write_text("os: {name: made-up}\n")
    host = load_host(HOST)
    assert isinstance(host, HostSpec)
    named = simulate(HOST)
    assert isinstance(named, Outcome)
    assert simulate(host) == named == simulate(load_world(HOST))
    assert simulate(str(world_file)) == simulate(world_file) != named
    assert load_world(host_file).host.os == {"name": "made-up"}
    cluster = load_cluster("bare-node")
    assert load_world(HOST, cluster="bare-node").cluster == load_world(load_world(HOST), cluster=cluster).cluster


def test_variables_go_on_top_of_the_worlds(world_file):
    """Those that are given win; the others stay."""
    env = load_world(world_file, env={"NODE_NAME": "other"}).env
    assert (env["NODE_NAME"], env["FORCE_REINSTALL"]) == ("other", "true")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: simulate("runfile-58"), 'there is no host named "runfile-58"; did you mean runfile-580'),
        (lambda: simulate("no/such.yaml"), "no/such.yaml: does not exist; check the path"),
        (lambda: simulate(7), "world is of the type int; give a path"),
        (lambda: simulate(HOST, cluster=7), "cluster is of the type int; give a path"),
        (lambda: simulate(HOST, release="v9"), 'there is no release "v9"'),
        (lambda: simulate(HOST, what_if="x"), 'there is no what-if "x"'),
        (lambda: simulate(HOST, release="v0.8.1", what_if="force-host-driver-unbind"), "v0.8.1 is a script"),
        (lambda: simulate(HOST, env={"A": 1}), "env['A'] is of the type int, not text; write \"1\""),
        (lambda: simulate(HOST, env={"A=": ""}), "env['A='] is no variable"),
        (lambda: compare(HOST, "v0.10.0", "v9"), 'there is no release "v9"'),
        (lambda: predict(HOST, event="x"), 'event "x" is not known; known: '),
        (lambda: predict(HOST, event="mode-switch"), 'to "" is no mode to switch to'),
        (lambda: predict(HOST, event="mode-switch", to="container"), "it is a container node already"),
        (lambda: predict(HOST, to="container"), 'to is of the event "mode-switch"'),
    ],
)
def test_bad_input_is_one_exception(call, said):
    """With what is wrong and how to mend it."""
    with pytest.raises(InputError) as caught:
        call()
    assert said in str(caught.value)
    assert caught.value.mend


def test_an_error_in_a_file_carries_file_and_place(world_file):
    """So that a program can show it where it belongs."""
    world_file.write_text("host: runfile-580\nsignal: {name: TERM}\n")
    with pytest.raises(InputError) as caught:
        simulate(world_file)
    assert (caught.value.file, caught.value.place) == (str(world_file), "signal")
