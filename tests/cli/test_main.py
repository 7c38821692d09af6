"""`dmsim` as a whole: exit codes, one message for bad input, never a traceback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.cli.main import SUBCOMMANDS, main
from simulator.recordings.layout import Recording, write_recording, write_whole
from simulator.recordings.replaying import replayed
from simulator.scenario import fixtures

HOST = "ubuntu-24.04-driver-580-open"


def call(capsys, *argv):
    """Exit code, standard output, standard error."""
    try:
        code = main(argv)
    except SystemExit as end:
        code = int(end.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def refused(capsys, *argv):
    """The one message that bad input gets."""
    code, out, err = call(capsys, *argv)
    assert (code, out) == (2, ""), err
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_subcommand_has_help_with_an_example(capsys, name):
    """Exit code 0, and a line that can be copied."""
    code, out, _ = call(capsys, name, "--help")
    assert code == 0
    assert f"dmsim {name}" in out.split("Example:", 1)[1]


@pytest.mark.parametrize("argv", [(), ("--no-color",)])
def test_without_arguments_it_says_what_to_do_first(capsys, argv):
    """Three commands for three kinds of user, within a screen; exit code 0, as it was asked nothing that could fail."""
    code, out, err = call(capsys, *argv)
    assert (code, err) == (0, "")
    commands = [line for line in out.splitlines() if line.startswith("    ")]
    assert len(commands) == 3
    assert max(map(len, out.splitlines())) <= 80


def test_what_it_says_first_works(capsys):
    """Each command, but for what is read from a cluster."""
    _, out, _ = call(capsys)
    commands = [line.split()[1:] for line in out.splitlines() if line.startswith("    dmsim")]
    assert [call(capsys, *command)[0] for command in commands] == [0, 0]


def test_help_lists_the_subcommands(capsys):
    """A line each."""
    _, out, _ = call(capsys, "--help")
    assert all(f"\n  {name} " in out for name in SUBCOMMANDS)


def test_an_unknown_subcommand_names_the_nearest(capsys):
    """`rum` is near `run`."""
    assert "did you mean run?" in refused(capsys, "rum")


def test_a_host_driver_run(capsys):
    """Upstream's log, what changed, the exit code; the simulation itself succeeded."""
    code, out, err = call(
        capsys, "run", "--host", HOST, "--release", "v0.10.0", "--env", "NODE_NAME=gpu-1", "--env", "FORCE_REINSTALL=true"
    )
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert "time=2026-01-01T00:00:00Z level=info msg=Host driver detected: 580.82.07" in lines
    assert "time=2026-01-01T00:01:00Z level=fatal msg=driver is pre-installed on host" in lines
    assert '  label       nvidia.com/gpu.deploy.driver: "true" -> "pre-installed"' in lines
    assert "--- v0.10.0, 60 s simulated" in lines
    assert lines[-1] == "exit code 1"


def test_the_what_if_goes_on(capsys):
    """With its variable set."""
    _, out, _ = call(
        capsys,
        "run",
        "--host",
        HOST,
        "--env",
        "NODE_NAME=n",
        "--what-if",
        "force-host-driver-unbind",
        "--env",
        "FORCE_HOST_DRIVER_UNBIND=true",
    )
    assert "proceeding with uninstall flow" in out
    assert "Unloading NVIDIA driver kernel modules" in out


def test_the_programs_exit_code_is_passed_on_where_asked(capsys):
    """Only with --exit-code."""
    arguments = ["run", "--host", HOST, "--env", "NODE_NAME=n"]
    assert call(capsys, *arguments)[0] == 0
    assert call(capsys, *arguments, "--exit-code")[0] == 1
    assert call(capsys, *arguments, "--exit-code", "--", "bogus")[0] == 3


def test_the_programs_own_arguments(capsys):
    """After two dashes."""
    _, out, _ = call(capsys, "run", "--host", "clean", "--env", "NODE_NAME=n", "--", "--help")
    assert out.startswith("NAME:\n   driver-manager - ")


def test_what_the_program_passes_over_without_a_word_gets_a_remark(capsys):
    """On standard error: a variable that nobody reads, and a node that nobody named."""
    code, out, err = call(capsys, "run", "--host", "clean", "--env", "FORCE_REINSTAL=true")
    assert (code, err) == (
        0,
        (
            "remark: no release reads FORCE_REINSTAL; did you mean FORCE_REINSTALL?\n"
            "remark: NODE_NAME is not set, and driver-manager stops without it; add --env NODE_NAME=gpu-1\n"
        ),
    )
    assert "exit code 1" in out


@pytest.mark.parametrize("arguments", [["--env", "NODE_NAME=n"], ["--", "--node-name=n", "uninstall_driver"], ["--", "--help"]])
def test_a_run_that_lacks_nothing_gets_no_remark(capsys, arguments):
    """The node is named, or no node is needed."""
    assert call(capsys, "run", "--host", "clean", *arguments)[2] == ""


def test_json_has_a_format_version(capsys):
    """And the observation in the recordings' form."""
    code, out, _ = call(capsys, "run", "--host", HOST, "--env", "NODE_NAME=n", "-o", "json")
    document = json.loads(out)
    assert (code, document["format"], document["release"]) == (0, 1, "v0.10.0")
    assert document["observed"]["exit_code"] == 1
    assert document["gpu_drivers"]["after"] == {"0000:18:00.0": "nvidia", "0000:3b:00.0": "nvidia"}
    assert {"subject": "label", "what": 'nvidia.com/gpu.deploy.driver: "true" -> "pre-installed"'} in document["changes"]


def test_the_start_can_be_moved(capsys):
    """A date, in UTC if it says nothing else."""
    _, out, _ = call(capsys, "run", "--host", "clean", "--start", "2030-06-01T14:00:00+02:00", "--env", "NODE_NAME=n")
    assert "time=2030-06-01T12:00:00Z level=info msg=Starting" in out
    assert out.startswith("W0601 12:00:00.000000       1 client_config.go:667] ")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--host", "ubuntu-24.04-driver-580"], f"did you mean {HOST}"),
        (["--host", "zzz"], "For a file of your own give its path"),
        (["--host", ""], "there is no host"),
        (["--host", "/nonexistent.yaml"], "does not exist"),
        (["--host", "/tmp/"], "is a directory"),
        (["--host", "clean", "--release", "v0.10"], "did you mean v0.10.0"),
        (["--host", "clean", "--release", ""], "there is no release"),
        (["--host", "clean", "--cluster", "container"], "did you mean container-node"),
        (["--host", "clean", "--env", "NODE_NAME"], "write --env NAME=VALUE"),
        (["--host", "clean", "--env", "=x"], "write --env NAME=VALUE"),
        (["--host", "clean", "--what-if", "force"], "did you mean force-host-driver-unbind"),
        (["--host", "clean", "--start", "yesterday"], "is no date"),
        (["--host", "clean", "-o", "xml"], "invalid choice"),
        (["--bogus"], "see dmsim run --help"),
        ([], "one of the arguments --host --host-image --world is required"),
        (["--world", "/nonexistent.yaml"], "does not exist"),
    ],
)
def test_bad_arguments(capsys, argv, words):
    """One message with the mend, exit code 2."""
    assert words in refused(capsys, "run", *argv)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("format: 1\nbogus: 1\n", 'has the unknown key "bogus"'),
        ("gpus: {}\n", "gpus is a mapping, not a list"),
        ("gpus:\n  - {address: '3b:00.0'}\n", 'gpus[0].address "3b:00.0" lacks the PCI domain; write "0000:3b:00.0"'),
        ("gpus:\n  - {address: 0000:3B:00.0}\n", 'is upper case; write "0000:3b:00.0"'),
        ("gpus:\n  - {device: '0x2236'}\n", 'gpus[0] lacks the key "address"'),
        ("modules: [{name: nvidia-uvm}]\n", 'write "nvidia_uvm"'),
        ("programs: {/usr/bin/nvidia-smi: {exit_code: '0'}}\n", "not a whole number"),
        ("programs: {usr/bin/nvidia-smi: {}}\n", 'write "/usr/bin/nvidia-smi"'),
        ("files: {/etc/../../x: y}\n", 'leads up with ".."'),
        ("files: {/etc/x: 1}\n", 'put it in quotes: "1"'),
        ("kernel: {delete_module: {nvidia: EBUZY}}\n", "the name of an errno"),
        ("format: 99\n", "which this version does not read"),
        ("- a\n", "is a list, not a mapping"),
        ("just text\n", "is text, not a mapping"),
        ("", "is empty"),
        ("a: [\n", "is no valid YAML"),
        ("a: 1\na: 2\n", 'the key "a" stands twice'),
        ("a: !!python/object:os.system {}\n", "is no valid YAML"),
        ("? [a]\n: b\n", "is no valid YAML"),
        ("description: !!binary gICA\n", "not text"),
        (
            "a: &a [x]\nb: &b [*a, *a]\n"
            + "".join(f"c{n}: &c{n} [{', '.join(['*' + ('b' if n == 0 else f'c{n - 1}')] * 9)}]\n" for n in range(9)),
            "aliases",
        ),
        ("[" * 5000, "nested"),
        ("a: " + "[" * 5000, "nested"),
        ("- " * 3000 + "a", "nested"),
        ("a: " + "{a: " * 3000 + "1" + "}" * 3000, "nested"),
        ("".join(" " * depth + "a:\n" for depth in range(900)), "nested"),
    ],
)
def test_bad_host_files(capsys, tmp_path, text, words):
    """File, place and mend."""
    path = tmp_path / "host.yaml"
    path.write_text(text)
    message = refused(capsys, "run", "--host", str(path))
    assert words in message
    assert "host.yaml" in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("node: {labels: {nvidia.com/gpu.deploy.dcgm: true}}\n", 'put it in quotes: "true"'),
        ("node: {labels: {a: 'x y'}}\n", "is an impossible label value"),
        ("node: {labels: {'a b': x}}\n", "impossible label key"),
        ("node: {name: Upper}\n", "is no name"),
        ("pods: [{name: p, termination_s: -1}]\n", "out of range"),
        ("pods: [{name: p, termination_s: .nan}]\n", "not a number of seconds"),
        ("pods: [{name: p}, {name: p}]\n", 'has the pod "default/p" twice'),
        ("pods: [{name: p, owner: ReplicaSet}]\n", "not a mapping"),
        ("pods: [{name: p, phase: Sleeping}]\n", 'write "Pending" or'),
        ("faults: [{status: 99}]\n", "write a number from 400 to 599"),
        ("faults: [{}]\n", 'lacks the key "status"'),
        ("faults: [{status: 500, path: '('}]\n", "is no regular expression"),
        ("eviction: policy/v2\n", 'write "policy/v1" or "policy/v1beta1"'),
    ],
)
def test_bad_cluster_files(capsys, tmp_path, text, words):
    """File, place and mend."""
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    message = refused(capsys, "run", "--host", "clean", "--cluster", str(path))
    assert words in message
    assert "cluster.yaml" in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("host: nowhere\n", 'host names nothing: there is no host named "nowhere"'),
        ("cluster: container-node\n", 'lacks the key "host"'),
        ("host: clean\nenv: {NODE_NAME: 1}\n", 'put it in quotes: "1"'),
        ("host: clean\nrelease: v9\n", "there is no release"),
        ("host: clean\nsignal: {name: HUP, after_s: 1}\n", 'write "TERM" or'),
        ("host: clean\nchanges: [{write: {/x: y}}]\n", 'lacks the key "after_s"'),
        ("host: clean\nchanges: [{after_s: 1, write: {x: y}}]\n", 'write "/x"'),
        ("host: {gpus: [{address: x}]}\n", "host.gpus[0].address"),
    ],
)
def test_bad_world_files(capsys, tmp_path, text, words):
    """File, place and mend."""
    path = tmp_path / "world.yaml"
    path.write_text(text)
    assert words in refused(capsys, "run", "--world", str(path))


@pytest.mark.parametrize("command", [["run", "--world"], ["predict"]])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gpus: [{address: '0000:18:00.0'}]\n", "is a host file, not a world file; use --host "),
        ("node: {labels: {a: b}}\n", "is a cluster file, not a world file; use --cluster "),
    ],
)
def test_a_file_of_another_kind(capsys, tmp_path, command, text, words):
    """Says what it is and which option takes it."""
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    assert words in refused(capsys, *command, str(path))


def test_a_name_whose_file_is_there(capsys, tmp_path, monkeypatch):
    """Is told by its path, and not by twenty other names."""
    monkeypatch.chdir(tmp_path)
    write_whole(tmp_path / "hosts/ml-node.yaml", "modules: []\n")
    assert refused(capsys, "hosts", "ml-node").endswith("write hosts/ml-node.yaml for the file that is there\n")


def test_a_world_file(capsys, tmp_path):
    """Host, cluster, settings, release and what happens meanwhile in one; paths relative to it."""
    (tmp_path / "mine.yaml").write_text("gpus: [{address: '0000:18:00.0'}]\npci: [{address: '0000:19:00.0', vendor: '0x15b3'}]\n")
    path = tmp_path / "world.yaml"
    path.write_text(
        "host: mine.yaml\nrelease: v0.11.0\nenv: {NODE_NAME: gpu-7, GPU_DIRECT_RDMA_ENABLED: 'true'}\n"
        "changes: [{after_s: 12, write: {/run/mellanox/drivers/.driver-ready: ''}}]\n"
    )
    code, out, err = call(capsys, "run", "--world", str(path))
    assert (code, err) == (0, "")
    assert "msg=Mellanox device found at 0000:19:00.0" in out
    assert "--- v0.11.0, " in out
    assert out.count("Waiting for MOFED to be installed...") == 2
    assert "Cordoning node gpu-7" in out


def test_no_file_can_steer_the_terminal(capsys, tmp_path):
    """Control characters in messages are escaped."""
    path = tmp_path / "host.yaml"
    path.write_text('"\\x1b[31mred": 1\n')
    message = refused(capsys, "run", "--host", str(path))
    assert "\x1b" not in message
    assert "\\x1b[31mred" in message


def test_half_a_surrogate_pair_is_no_character(capsys, tmp_path):
    """JSON can write one; nothing can print it."""
    path = tmp_path / "host.json"
    path.write_text('{"description": "\\ud800"}')
    assert "surrogate" in refused(capsys, "run", "--host", str(path))


def test_a_run_that_never_ends_is_stopped(capsys, tmp_path):
    """After an hour of simulated time, which the last line says."""
    path = tmp_path / "cluster.yaml"
    path.write_text("pods: [{name: p, owner: {kind: Job, name: j}, containers: [{limits: {nvidia.com/gpu: 1}}], budget: {}}]\n")
    _, out, _ = call(capsys, "run", "--host", "clean", "--cluster", str(path), "--env", "NODE_NAME=n", "--release", "v0.11.0")
    assert out.splitlines()[-1] == "it was still running when the simulation stopped, after 3600 s"


def test_a_binary_file_is_no_text(capsys, tmp_path):
    """Not UTF-8."""
    path = tmp_path / "host.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    assert "is no UTF-8 text" in refused(capsys, "run", "--host", str(path))


def test_replay(capsys):
    """The last line counts; exit code 0."""
    code, out, _ = call(capsys, "replay", str(fixtures() / "recordings"), "--release", "v0.10.0", "-k", "hostdrv")
    assert code == 0
    assert out.splitlines()[-1].endswith(" passed, 0 failed")


def test_replay_without_a_folder_takes_what_the_package_brings(capsys):
    """Wherever it is started."""
    arguments = ("--release", "v0.10.0", "-k", "hostdrv-force")
    assert call(capsys, "replay", *arguments) == call(capsys, "replay", str(fixtures() / "recordings"), *arguments)


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_no_help_names_a_file_that_the_package_does_not_bring(capsys, name):
    """Pages are called by their titles, which stand in the navigation."""
    with pytest.raises(SystemExit):
        main([*name.split(), "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert not re.search(r"\b(docs|fixtures)/\S", said)
    pages = re.findall(r'page "([^"]+)"', said)
    navigation = (fixtures().parent / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page for page in pages if f"- {page}: " not in navigation] == []


def test_replay_shows_how_far_it_is(capsys, monkeypatch):
    """At a terminal, erased before a mismatch and at the end."""
    monkeypatch.setattr("simulator.progress.QUIET_S", 0.0)
    monkeypatch.setattr("simulator.progress._is_drawable", lambda _: True)
    _, out, err = call(capsys, "replay", str(fixtures() / "recordings"), "--release", "v0.10.0", "-k", "hostdrv-force")
    assert out == "1 passed, 0 failed\n"
    assert "replay [" in err
    assert err.endswith("\r\x1b[K")


def test_replay_of_nothing_fails(capsys):
    """Exit code 1."""
    assert call(capsys, "replay", str(fixtures() / "recordings"), "-k", "no-such-case")[:2] == (
        1,
        "no recording fits\n0 passed, 0 failed\n",
    )


def test_replay_names_each_mismatch(capsys, tmp_path):
    """With the first differing place; exit code 1."""
    assert (
        call(
            capsys,
            "replay",
            str(fixtures() / "recordings"),
            "--release",
            "v0.10.0",
            "-k",
            "hostdrv-force",
            "--write",
            str(tmp_path / "o"),
        )[0]
        == 0
    )
    document = json.loads((tmp_path / "o/v0.10.0/hostdrv-force.json").read_text())
    assert set(document) == {"id", "upstream", "observed"}
    document["observed"]["log"][0]["msg"] = "other"
    folder = tmp_path / "again"
    (folder / "cases").mkdir(parents=True)
    (folder / "recordings/v0.10.0").mkdir(parents=True)
    recording = {"id": "x", "input": _input("hostdrv-force")}
    (folder / "cases/x.json").write_text(json.dumps(recording))
    (folder / "recordings/v0.10.0/x.json").write_text(json.dumps(document))
    code, out, _ = call(capsys, "replay", str(folder))
    assert code == 1
    assert out.splitlines()[0] == "v0.10.0 x"
    assert 'log[0][1]: recorded "other", simulated "Starting driver uninstallation process"' in out
    assert out.splitlines()[-1] == "0 passed, 1 failed"


def _input(case):
    from simulator.recordings.layout import unpack

    return unpack(fixtures() / "recordings/driver-manager.json.xz")["cases"][case]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["/nonexistent"], "does not exist"),
        ([str(fixtures() / "hosts")], "holds no recordings"),
        ([str(fixtures() / "recordings"), "--release", "v1"], "there is no release"),
        ([str(fixtures() / "recordings"), str(fixtures() / "recordings"), "--write", "/tmp/x"], "--write takes one DIR"),
    ],
)
def test_replay_bad_arguments(capsys, argv, words):
    """One message, exit code 2."""
    assert words in refused(capsys, "replay", *argv)


def test_python_m_simulator():
    """Is the same command."""
    done = subprocess.run(
        [sys.executable, "-m", "simulator", "--version"], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    assert done.stdout.startswith("dmsim ")


def test_a_reader_that_goes_away_early_is_no_error():
    """`dmsim run ... | head -1`."""
    done = subprocess.run(
        f"{sys.executable} -m simulator run --host {HOST} --env NODE_NAME=n -o json | head -c 1",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert (done.stdout, done.stderr) == ("{", "")


SNOWMAN = """\
description: "a \N{SNOWMAN}"
gpus: [{address: "0000:3b:00.0"}]
programs: {/usr/bin/nvidia-smi: {stdout: "\N{SNOWMAN}\\n"}}
"""


ASCII = {"PYTHONIOENCODING": "ascii"}
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize(
    ("settings", "arguments"),
    [
        (ASCII, ("run", "--host", "h.yaml", "--env", "NODE_NAME=n")),
        (C_LOCALE, ("run", "--host", "h.yaml", "--env", "NODE_NAME=n")),
        (ASCII, ("hosts", "h.yaml")),
        (ASCII, ("compare", "v0.9.0", "v0.12.0", "--host", "h.yaml", "--env", "FORCE_REINSTALL=\N{SNOWMAN}", "-o", "markdown")),
        (ASCII, ("replay", "recordings")),
        (C_LOCALE, ("replay", "recordings")),
    ],
)
def test_characters_that_the_output_has_not(settings, arguments, tmp_path):
    """Are written escaped, by every subcommand; none ends in a traceback."""
    (tmp_path / "h.yaml").write_text(SNOWMAN, encoding="utf-8")
    case = Recording("c", "v0.9.0", {"args": ["--help"]}, {}, "")
    write_whole(tmp_path / "recordings/cases/c.json", json.dumps({"input": case.input}))
    write_recording(tmp_path / "recordings/recordings", case.release, case.case, {**replayed(case), "stdout": "\N{SNOWMAN}"})
    done = subprocess.run(
        [sys.executable, "-m", "simulator", *arguments],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **settings},
    )
    assert (done.returncode, done.stderr) == (int("replay" in arguments), b"")
    assert b"\\u2603" in done.stdout


def test_a_start_that_no_clock_shows(capsys):
    """Dates near the ends of the calendar, and no date, are one error."""
    for text, words in [
        ("0001-01-01T00:00:00+14:00", "out of range"),
        ("9999-12-31T23:59:59", "out of range"),
        ("", "is no date"),
    ]:
        assert words in refused(capsys, "run", "--host", "clean", "--start", text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("host: clean\nstop_after_s: 100000000\n", "stop_after_s is 100000000, out of range; write seconds from 0 to 86400"),
        (f"host: clean\nstop_after_s: 1{'0' * 400}\n", "line 2, column 15"),
        (f"host: clean\nseed: 0x{'f' * 5000}\n", "a number is longer than any that is needed"),
    ],
)
def test_numbers_beyond_all_bounds(capsys, tmp_path, text, words):
    """Refused before Python refuses to print them."""
    path = tmp_path / "world.yaml"
    path.write_text(text)
    assert words in refused(capsys, "run", "--world", str(path))


def test_an_expression_that_python_warns_of(capsys, tmp_path):
    """It is an expression all the same, and the warning is not the reader's."""
    path = tmp_path / "cluster.yaml"
    path.write_text("faults: [{path: '[[a]', status: 500}]\n")
    code, _, stderr = call(capsys, "run", "--host", "clean", "--env", "NODE_NAME=n", "--cluster", str(path))
    assert (code, stderr) == (0, "")


@pytest.mark.parametrize("full", [">/dev/full", ">&-"])
def test_standard_output_that_takes_nothing(full):
    """One line on standard error, exit code 2."""
    command = f"exec {sys.executable} -m simulator hosts {full}"
    ended = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("dmsim: standard output ")
    assert ended.stderr.count("\n") == 1


def test_written_observations_follow_no_link(capsys, tmp_path):
    """A link in the place of the unfinished file is replaced, and nothing unfinished is left."""
    (tmp_path / "v0.12.0").mkdir()
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "v0.12.0/.cli-help-flag.part").symlink_to(victim)
    arguments = ("--release", "v0.12.0", "-k", "cli-help-flag", "--write", str(tmp_path))
    code, _, _ = call(capsys, "replay", str(fixtures() / "recordings"), *arguments)
    assert code == 0
    assert victim.read_text() == "mine"
    assert [path.name for path in (tmp_path / "v0.12.0").iterdir()] == ["cli-help-flag.json"]


def test_paths_that_no_file_can_have(capsys):
    """Too long, or with a NUL: one error for what is read and for what is written."""
    recordings = str(fixtures() / "recordings")
    for path in ("a" * 5000, "a\0b"):
        assert "cannot be read" in refused(capsys, "replay", path)
        assert "cannot be made" in refused(capsys, "replay", recordings, "-k", "cli-help-flag", "--write", path)


def test_a_key_that_stands_twice_in_json(capsys, tmp_path):
    """Is refused as it is in YAML, however deep."""
    path = tmp_path / "host.json"
    path.write_text('{"container": {"files": {"/a": "x", "/a": "y"}}}')
    assert 'holds the key "/a" twice in one object; each key stands once' in refused(capsys, "run", "--host", str(path))
