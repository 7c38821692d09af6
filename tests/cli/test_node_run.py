"""`dmsim node run`."""

from __future__ import annotations

import json

import pytest

from simulator.cli.main import main


def test_a_named_story(capsys):
    """As text."""
    assert main(["node", "run", "clean-host", "--lane", "allocatable"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("clean, chart v26.3.1, old operator\n\n     0:37  allocatable     nvidia.com/GA102GL_A10: 2\n")


@pytest.mark.parametrize(("form", "start"), [("json", "{"), ("mermaid", "gantt\n"), ("html", "<!doctype html>\n")])
def test_other_forms(form, start, capsys):
    """Each begins as it must."""
    assert main(["node", "run", "clean-host", "-o", form]) == 0
    out = capsys.readouterr().out
    assert out.startswith(start)
    if form == "json":
        assert json.loads(out)["story"]["name"] == "clean-host"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["run", "cleanhost"], 'there is no story named "cleanhost"; did you mean clean-host?'),
        (["run", "missing.yaml"], "missing.yaml: does not exist"),
    ],
)
def test_bad_input(argv, message, capsys):
    """One message, exit code 2."""
    assert main(["node", *argv]) == 2
    assert message in capsys.readouterr().err


def test_help_names_the_stories(capsys):
    """Whoever has no checkout has no folder to look into."""
    with pytest.raises(SystemExit):
        main(["node", "run", "--help"])
    out = capsys.readouterr().out
    assert all(name in "".join(out.split()) for name in ("clean-host", "packaged-driver"))  # lines break at hyphens


def test_node_alone_is_no_command(capsys):
    """It says what is meant."""
    with pytest.raises(SystemExit) as ended:
        main(["node"])
    assert ended.value.code == 2
    assert 'there is no subcommand "node"; did you mean node run' in capsys.readouterr().err


@pytest.mark.parametrize("form", ["text", "mermaid", "html", "json"])
def test_a_terminal_cannot_be_steered(form, tmp_path, capsys):
    """Control characters of a story are shown escaped."""
    story = tmp_path / "s.yaml"
    story.write_text('host: clean\nuntil: 40\nsteps: [{at: 1, write: {"/x\\u001b[31m": y}}]\n')
    assert main(["node", "run", str(story), "-o", form]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert ("writes /x\\u001b[31m" if form == "json" else "writes /x\\x1b[31m") in out
