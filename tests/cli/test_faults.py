"""`dmsim faults`: its forms, the world files of its rows, bad input."""

from __future__ import annotations

import json

import pytest

from simulator.cli.main import main

RUN = ("--host", "runfile-580", "--release", "v0.11.0", "--env", "NODE_NAME=gpu-1")


@pytest.fixture
def faults(capsys):
    """Runs it. Gives exit code, standard output and standard error."""

    def run(*arguments):
        code = main(["faults", *arguments])
        return code, *capsys.readouterr()

    return run


def test_the_table(faults):
    """The run itself, then the rows; nothing on standard error, which is no terminal."""
    code, out, err = faults(*RUN)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "v0.11.0, without a fault: exit code 1 after 60 s"
    assert lines[1].startswith("4 requests and host operations, ")
    assert lines[3].split() == ["#", "where", "fault", "exit", "heals", "damage"]
    assert lines[4].split()[:2] == ["1", "execve"]
    assert "in isHostDriver" in out
    assert not any(line.endswith(" none") for line in lines[3:])


def test_a_host_s_node_has_a_name(faults):
    """Without it the run would end before it began, and the table would say that all is well."""
    code, out, err = faults("--host", "runfile-580", "--release", "v0.11.0")
    assert (code, err) == (0, "")
    assert out == faults(*RUN)[1]


def test_a_world_without_a_node_name_gets_a_remark(faults, tmp_path):
    """And what the table counts is one run."""
    world = tmp_path / "world.yaml"
    world.write_text("host: clean\n")
    code, out, err = faults("--world", str(world), "--release", "v0.12.0")
    assert (code, err) == (
        0,
        "remark: NODE_NAME is not set, and driver-manager stops without it; add --env NODE_NAME=gpu-1\n",
    )
    assert "operations, 1 run: 0 faults do damage, 0 do none" in out


def test_all_rows(faults):
    """With those that do no damage."""
    _, out, _ = faults(*RUN, "--all")
    assert any(line.endswith(" none") for line in out.splitlines()[3:])


def test_the_document(faults):
    """Has a format, and every row."""
    code, out, _ = faults(*RUN, "-o", "json")
    document = json.loads(out)
    assert (code, document["format"], document["release"], document["calls"]) == (0, 1, "v0.11.0", 4)
    assert document["without_fault"] == {"exit_code": 1, "elapsed_s": 60.0}
    first = document["rows"][0]
    assert first["number"] == 1
    assert first["places"][0]["call"] == "execve"
    assert first["faults"][:2] == ["EACCES", "EAGAIN"]
    assert first["damages"][0]["kind"] == "host-driver-unloaded"
    assert (first["heals"], first["restarts"]) == (False, False)
    assert document["rows"][-1]["damages"] == []


def test_a_row_s_world_file_runs(faults, tmp_path, capsys):
    """To the exit code and the damage of its row."""
    _, text, _ = faults(*RUN, "--show", "1")
    assert text.startswith("# Row 1 of dmsim faults: unloaded, though the run leaves it alone: nvidia, ")
    path = tmp_path / "worst.yaml"
    path.write_text(text)
    assert main(["run", "--world", str(path)]) == 0
    out = capsys.readouterr().out
    assert "module      nvidia is unloaded" in out
    assert out.endswith("exit code 0\n")


def test_the_rows_are_written(faults, tmp_path):
    """One file for each row that does damage, all with --all, beside the table."""
    _, out, _ = faults(*RUN, "--write", str(tmp_path / "some"))
    _, every, _ = faults(*RUN, "--all", "--write", str(tmp_path / "all"))
    some, all_ = (sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("some", "all"))
    assert some == all_[: len(some)] == [f"row-{number}.yaml" for number in range(1, len(some) + 1)]
    assert len(some) < len(all_)
    assert out.splitlines()[0] == every.splitlines()[0]


def test_a_world_with_faults_of_its_own(faults, tmp_path):
    """They are part of the run without a fault; the table's own world can be asked about again."""
    _, text, _ = faults(*RUN, "--show", "1")
    path = tmp_path / "worst.yaml"
    path.write_text(text)
    code, out, _ = faults("--world", str(path))
    assert code == 0
    assert out.startswith("v0.11.0, without a fault: exit code 0")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "one of the arguments --host --host-image --world is required"),
        (("--host", "nowhere"), 'there is no host named "nowhere"'),
        ((*RUN, "--show", "0"), '"0" is no number from 1'),
        ((*RUN, "--show", "9999"), "--show 9999: the table has 5 rows; name one of these"),
        ((*RUN, "--show", "1", "--write", "x"), "not allowed with argument"),
        ((*RUN, "--what-if", "wishing"), 'there is no what-if "wishing"'),
    ],
)
def test_bad_input(arguments, problem, capsys):
    """One message, exit code 2."""
    try:
        code = main(["faults", *arguments])
    except SystemExit as ended:
        code = ended.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert problem in err
    assert err.count("\n") == 1


def test_a_folder_that_holds_something(faults, tmp_path):
    """Is left as it is, and said so before anything is run."""
    (tmp_path / "mine").write_text("")
    code, out, err = faults(*RUN, "--write", str(tmp_path))
    assert (code, out, err) == (2, "", f"dmsim faults: {tmp_path}: is not empty; name a new folder\n")
    assert faults(*RUN, "--write", str(tmp_path / "mine"))[0] == 2
