"""Completion: what may stand next, and that bash, zsh and fish really offer it."""

from __future__ import annotations

import argparse
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simulator.cli.completing import NOTHING, by_metavar, complete
from simulator.cli.main import SUBCOMMANDS, main, subparser
from simulator.manager.releases import RELEASES
from simulator.scenario import names

ROOT = Path(__file__).resolve().parents[2]


def words(*line):
    return list(complete(line).words)


def test_the_first_word_is_a_subcommand():
    """Of subcommands of two words the first one."""
    assert set(words("")) == {name.split()[0] for name in SUBCOMMANDS}
    assert words("rel") == ["releases"]


def test_the_second_word_of_a_subcommand():
    """Beside what the shorter subcommand takes, if there is one."""
    assert words("passthrough", "") == ["check", "migrate"]
    assert words("host", "") == ["plan"]
    assert words("hosts", "imp") == ["import"]
    assert words("hosts", "cle") == ["clean"]


def test_options_and_commands_within_a_subcommand():
    """Those of the innermost command."""
    assert words("vfio", "b") == ["bind"]
    assert words("vfio", "bind", "--bind") == ["--bind-nvswitches"]
    assert {"--host", "--env", "--no-color"} <= set(words("run", "--"))
    assert words("--v") == ["--version"]


def test_an_option_that_stands_already_is_offered_no_more():
    """Unless it may be repeated."""
    assert words("run", "--host", "clean", "--env", "A=b", "--host") == ["--host-image"]
    assert words("run", "--host", "clean", "--env", "A=b", "--env") == ["--env"]


@pytest.mark.parametrize(
    ("option", "offered"),
    [
        ("--host", names("hosts")),
        ("--cluster", names("clusters")),
        ("--release", list(RELEASES)),
        ("--what-if", ["force-host-driver-unbind"]),
        ("--output", ["text", "json"]),
        ("--env", []),
    ],
)
def test_what_stands_behind_an_option(option, offered):
    """Names, releases, choices; nothing where only the user knows."""
    assert words("run", option, "") == offered


def test_files_are_completed_where_one_may_stand():
    """By the shell itself."""
    assert complete(["run", "--host", ""]).files
    assert complete(["run", "--world", ""]).files
    assert complete(["passthrough", "check", "--vm", "a.yaml", ""]).files
    assert not complete(["run", "--release", ""]).files
    assert not complete(["passthrough", "check", ""]).files


def test_a_value_behind_an_equals_sign():
    """As one word, and as bash cuts it."""
    assert words("run", "--host=cle") == ["--host=clean"]
    assert words("run", "--host", "=", "cle") == ["clean"]
    assert words("run", "--host", "=") == names("hosts")


def test_what_cannot_be_completed():
    """An unknown subcommand, and the program's own arguments."""
    assert complete(["nonsense", ""]) == NOTHING
    assert complete(["run", "--", ""]) == NOTHING


def test_every_metavar_is_known():
    """So that a new argument is completed, or left alone on purpose."""

    def actions(parser):
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for inner in action.choices.values():
                    yield from actions(inner)
            elif action.nargs != 0 and action.choices is None:
                yield action

    used = {(name, action.metavar) for name in SUBCOMMANDS for action in actions(subparser(name))}
    assert {(name, metavar) for name, metavar in used if metavar not in by_metavar("")} == set()


def test_the_scripts_question(capsys):
    """A line a word, its meaning after a tab; a colon for files."""
    assert main(["completion", "words", "--", "hosts", "import"]) == 0
    assert capsys.readouterr().out == f"import\t{SUBCOMMANDS['hosts import']}\n:\n"


def test_a_word_after_the_shell_is_refused(capsys):
    """Exit code 2."""
    assert main(["completion", "bash", "extra"]) == 2
    assert capsys.readouterr().err == 'dmsim completion: "extra" follows the shell; leave it out\n'


# --- in the shells themselves --------------------------------------------------------------------------------------


@pytest.fixture
def environment(tmp_path):
    """A PATH with dmsim on it, an empty home, and a folder with one file."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/dmsim"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m simulator "$@"\n')
    program.chmod(0o755)
    (tmp_path / "here").mkdir()
    (tmp_path / "here/my world.yaml").write_text("")
    return {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path),
        "TERM": "xterm",
        "LC_ALL": "C.UTF-8",
    }


def shell(name):
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def typed(argv, environment, before, line, wanted, keys="\t\t"):
    """What an interactive shell shows once a line and two tabs are typed, up to what is wanted; half a minute at most."""
    leader, follower = pty.openpty()
    folder = Path(environment["HOME"]) / "here"
    process = subprocess.Popen(
        argv, stdin=follower, stdout=follower, stderr=follower, env=environment, cwd=folder, start_new_session=True
    )
    os.close(follower)
    shown = ""
    try:
        os.write(leader, f"{before}; echo rea''dy\n".encode())
        deadline = time.monotonic() + 30
        is_ready = False
        while time.monotonic() < deadline and wanted not in shown.rpartition("ready")[2]:
            if select.select([leader], [], [], 0.2)[0]:
                shown += os.read(leader, 65536).decode("utf-8", "replace")
            if not is_ready and "ready\r\n" in shown:
                is_ready = True
                os.write(leader, f"{line}{keys}".encode())
    finally:
        process.kill()
        process.wait()
        os.close(leader)
    return shown.rpartition("ready")[2]


CASES = [
    ("dmsim rele", "dmsim releases"),
    ("../bin/dmsim rele", "dmsim releases"),
    ("dmsim run --host container-dr", "--host container-driver-loaded"),
    ("dmsim run --cluster=vm-pass", "--cluster=vm-passthrough-node"),
    ("dmsim run --host-im", "--host-image"),
    ("dmsim vfio unb", "vfio unbind"),
    ("dmsim run --world my", "my\\ world.yaml"),
    ("dmsim run --release v0.1", "v0.11.0"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("line", "wanted"), CASES)
def test_in_bash(environment, line, wanted):
    """Typed into an interactive bash."""
    argv = [shell("bash"), "--norc", "--noprofile", "-i"]
    assert wanted in typed(argv, environment, 'eval "$(dmsim completion bash)"', line, wanted)


@pytest.mark.slow
@pytest.mark.parametrize(("line", "wanted"), CASES)
def test_in_zsh(environment, line, wanted):
    """Typed into an interactive zsh, which is asked for the whole line afterwards: it draws only what is new."""
    before = (
        'autoload -U compinit && compinit -u; eval "$(dmsim completion zsh)"; '
        "show() { zle -M -- $BUFFER }; zle -N show; bindkey ^Xs show"
    )
    assert wanted in typed([shell("zsh"), "-f", "-i"], environment, before, line, wanted, "\t\t\x18s")


@pytest.mark.slow
@pytest.mark.parametrize(("line", "wanted"), CASES)
def test_in_fish(environment, line, wanted):
    """Asked of fish, which answers for a line that is not typed."""
    done = subprocess.run(
        [shell("fish"), "--no-config", "-c", f"dmsim completion fish | source; complete -C '{line}'"],
        env=environment,
        cwd=Path(environment["HOME"]) / "here",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    last = wanted.rpartition(" ")[2] if "\\" not in wanted else wanted
    offered = [row.partition("\t")[0] for row in done.stdout.splitlines()]
    assert last in [word.replace(" ", "\\ ") for word in offered], done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_the_script_is_one_that_the_shell_can_read(environment, name):
    """And says nothing while it is read."""
    done = subprocess.run(
        [shell(name), "-n"], input=_script(name), env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def _script(name):
    from simulator.cli.completion import _SCRIPTS

    return _SCRIPTS[name]
