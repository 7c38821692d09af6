"""`dmsim record` and `dmsim verify`, with the model in the image's place."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from simulator.cli import record, verify
from simulator.cli.main import main
from simulator.recordings.comparing import mismatches
from simulator.recordings.layout import read_cases
from simulator.runners.container.unfit import Unfit
from simulator.runners.simulated import simulate
from simulator.scenario import fixtures, load_scenario
from simulator.verifying.images import Image
from simulator.verifying.judging import plain


@pytest.fixture
def image(monkeypatch):
    """Puts a model in the image's place; a function that says which, and what it cannot run."""

    def put(release="v0.12.0", without=(), unfit=lambda _: ""):
        @dataclass(frozen=True)
        class InItsPlace(Image):
            def __call__(self, world):
                if reason := unfit(world):
                    raise Unfit(reason)
                return simulate(world, release, without=frozenset(without))

        for module in (record, verify):
            monkeypatch.setattr(
                module, "find_image", lambda options: InItsPlace(options.image, "sha256:1", options.release or release)
            )

    put()
    return put


def call(capsys, *argv):
    """Exit code, lines of standard output, standard error."""
    code = main(argv)
    out, err = capsys.readouterr()
    return code, out.splitlines(), err


def test_an_image_that_is_the_model_is_equal(capsys, image):
    """Each recorded case is run, and all are equal."""
    code, out, err = call(capsys, "verify", "--image", "x", "-k", "pods-")
    number = sum("pods-" in case.case for case in read_cases(fixtures() / "recordings"))
    assert number > 5
    assert (code, out) == (0, [f"{number} equal, 0 differ, 0 excluded, 0 fields unobserved"])
    assert err.count(" equal\n") == number


def test_an_image_of_another_release_differs(capsys, image):
    """The first difference of each case is named, and the exit code is 1."""
    image("v0.12.0")
    code, out, _ = call(capsys, "verify", "--image", "x", "--release", "v0.11.0", "-k", "rnd-")
    assert code == 1
    found = re.fullmatch(r"(\d+) equal, (\d+) differ, 0 excluded, 0 fields unobserved", out[-1])
    assert int(found[1]) + int(found[2]) == 66
    assert len(out) == 2 * int(found[2]) + 1
    assert re.fullmatch(r"  \w+\S*: image .*, model .*", out[1])


@pytest.fixture
def terminal(monkeypatch):
    """Standard error is a terminal, and nothing is quick."""
    monkeypatch.setattr("simulator.progress._is_drawable", lambda _: True)
    monkeypatch.setattr("simulator.progress.QUIET_S", 0.0)


def test_at_a_terminal_only_what_differs_has_a_line(capsys, image, terminal):
    """A bar stands for the rest, and is gone at the end."""
    image("v0.12.0")
    _, out, err = call(capsys, "verify", "--image", "x", "--release", "v0.11.0", "-k", "rnd-00")
    lines = [line.rpartition("\x1b[K")[2] for line in err.split("\n")]
    assert len([line for line in lines if " differs: " in line]) == (len(out) - 1) // 2 > 0
    assert not any(line.endswith(" equal") for line in lines)
    assert "verify [" in err
    assert not any("verify [" in line for line in lines)


def test_recording_at_a_terminal_is_a_bar(capsys, image, terminal, tmp_path):
    """Without a line a case."""
    code, out, err = call(capsys, "record", "--image", "x", "--out", str(tmp_path), "-k", "cli-help")
    assert (code, err.count("\n")) == (0, 0)
    assert err.startswith("\r\x1b[Krecord [")
    assert out[0].endswith(" recorded, 0 kept, 0 excluded")


def test_cases_that_do_not_fit_are_excluded_with_a_reason(capsys, image):
    """If none fits nothing was compared, which is no success."""
    image(unfit=lambda world: "a scripted umount" if world.host.umount else "")
    code, out, _ = call(capsys, "verify", "--image", "x", "-k", "mount")
    assert code == 0
    assert re.fullmatch(r"\d+ equal, 0 differ, (\d+) excluded \(\1 a scripted umount\), 0 fields unobserved", out[-1])
    image(unfit=lambda _: "nothing fits")
    assert call(capsys, "verify", "--image", "x", "-k", "mount")[0] == 1


def test_the_document(capsys, image):
    """All differences of all worlds, with their numbers."""
    code, out, _ = call(capsys, "verify", "--image", "x", "--release", "v0.11.0", "-k", "rnd-1", "-o", "json")
    document = json.loads("\n".join(out))
    assert code == 1
    assert (document["format"], document["release"], document["excluded"]) == (1, "v0.11.0", {})
    differing = [world for world in document["worlds"] if world["differences"]]
    assert len(differing) == document["differ"] > 0
    assert set(differing[0]["differences"][0]) == {"field", "place", "image", "model"}


def test_random_worlds_of_the_model_are_equal(capsys, image, tmp_path):
    """No difference, no file."""
    code, out, _ = call(capsys, "verify", "--image", "x", "--random", "40", "--seed", "7", "--out", str(tmp_path))
    assert code == 0
    assert re.match(r"(\d+) equal, 0 differ, \d+ excluded", out[-1])
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_planted_fault_is_found_and_made_small(capsys, image, tmp_path):
    """A named change missing from the model: a scenario file with the smallest world, which `dmsim run` runs, and it differs."""
    argv = ("verify", "--image", "x", "--without", "rootfs-unmounted-without-modules", "--random", "12", "--seed", "1")
    code, out, _ = call(capsys, *argv, "--out", str(tmp_path), "--shrink-runs", "80")
    assert code == 1
    files = sorted(tmp_path.glob("difference-*.yaml"))
    assert files
    for path in files:
        text = path.read_text()
        assert text.startswith(
            "# Image x and the model of v0.12.0 differ in this world, without rootfs-unmounted-without-modules:\n#   "
        )
        scenario = load_scenario(path)
        assert scenario.release == "v0.12.0"
        left, right = (
            plain(simulate(scenario.world, "v0.12.0", without=frozenset(without)))
            for without in ((), ("rootfs-unmounted-without-modules",))
        )
        assert mismatches("v0.12.0", left, right)
        parts = (
            *scenario.world.cluster.pods,
            *scenario.world.host.modules,
            *scenario.world.changes,
            *scenario.world.cluster.faults,
        )
        assert len(parts) <= 2
        assert main(("run", "--world", str(path))) == 0
        capsys.readouterr()
        again = ("verify", "--image", "x", "--world", str(path))
        code, lines, _ = call(capsys, *again, "--without", "rootfs-unmounted-without-modules")
        assert (code, lines[0], lines[-1]) == (1, str(path), "0 equal, 1 differ, 0 excluded, 0 fields unobserved")
        assert call(capsys, *again)[:2] == (0, ["1 equal, 0 differ, 0 excluded, 0 fields unobserved"])
    assert sum(line.startswith(str(tmp_path)) for line in out) == len(files)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "one of --image and --recorded is needed"),
        (["--image", "x", "--recorded", "y"], "one of --image and --recorded is needed"),
        (["--image", "x", "--random", "5", "-k", "a"], "--random, --world and cases are three things to run"),
        (["--recorded", "x", "--world", "a.yaml"], "--random, --world and cases are three things to run"),
        (["--image", "x", "--world", "/nowhere.yaml"], "/nowhere.yaml: does not exist"),
        (["--recorded", "/nowhere", "--release", "v0.12.0"], "/nowhere: is no folder"),
        (["--image", "x", "--release", "v9"], 'there is no release "v9"'),
        (["--image", "x", "--release", "v0.8.0"], "v0.8.0 is a script, which is not verified against an image; verify v0.9.0"),
        (["--image", "x", "--without", "nothing"], 'v0.12.0 has no named change "nothing"'),
        (["--image", "x", "-k", "no such case"], 'whose id holds "no such case"; name another folder'),
        (["--image", "x", "/nowhere"], "/nowhere: does not exist"),
    ],
)
def test_bad_input(capsys, image, argv, words):
    """One message, exit code 2."""
    code, out, err = call(capsys, "verify", *argv)
    assert (code, out) == (2, [])
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("number", ["0", "x", "-1", "9" * 30])
def test_a_number_that_is_none(capsys, image, number):
    """One message, exit code 2."""
    with pytest.raises(SystemExit) as end:
        main(("verify", "--image", "x", "--random", number))
    assert end.value.code == 2
    assert "is no number from 1 to 100000" in capsys.readouterr().err


def test_recorded_then_verified(capsys, image, tmp_path):
    """An unknown release is recorded; the nearest known one is held against it without running it again."""
    out = str(tmp_path / "recorded")
    code, lines, _ = call(capsys, "record", "--image", "x", "--release", "v0.13.0", "--out", out, "-k", "rnd-1")
    number = len(list(Path(out, "v0.13.0").glob("*.json")))
    assert (code, lines) == (0, [f"{number} recorded, 0 kept, 0 excluded"])
    code, lines, _ = call(capsys, "record", "--image", "x", "--release", "v0.13.0", "--out", out, "-k", "rnd-1")
    assert (code, lines) == (0, [f"0 recorded, {number} kept, 0 excluded"])
    code, lines, _ = call(capsys, "verify", "--recorded", f"{out}/v0.13.0", "--release", "v0.12.0", "-k", "rnd-")
    assert (code, lines) == (
        0,
        [f"{number} equal, 0 differ, {66 - number} excluded ({66 - number} not recorded), 0 fields unobserved"],
    )
    code, lines, _ = call(capsys, "verify", "--recorded", f"{out}/v0.13.0", "--release", "v0.11.0", "-k", "rnd-1")
    assert code == 1
    code, _, err = call(capsys, "verify", "--recorded", f"{out}/v0.13.0", "-k", "rnd-1")
    assert code == 2
    assert 'there is no release "v0.13.0"' in err


@pytest.mark.parametrize("text", ["{", "[]", '{"observed": 5}', '{"observed": {}}'])
def test_a_damaged_recording(capsys, image, tmp_path, text):
    """One message that names the file."""
    (tmp_path / "pods-shared.json").write_text(text)
    code, _, err = call(capsys, "verify", "--recorded", str(tmp_path), "--release", "v0.12.0", "-k", "pods-shared")
    assert code == 2
    assert "pods-shared" in err
    assert err.count("\n") == 1


def test_a_release_whose_name_leads_out_of_the_folder(capsys, image, tmp_path):
    """Is refused."""
    code, _, err = call(capsys, "record", "--image", "x", "--release", "../v1", "--out", str(tmp_path), "-k", "pods-shared")
    assert code == 2
    assert "which is no name" in err


def test_nothing_recorded_is_no_success(capsys, image, tmp_path):
    """Every case excluded."""
    image(unfit=lambda _: "nothing fits")
    code, lines, err = call(capsys, "record", "--image", "x", "--out", str(tmp_path), "-k", "pods-shared")
    assert (code, lines) == (1, ["0 recorded, 0 kept, 1 excluded (1 nothing fits)"])
    assert err == "1/1 pods-shared excluded: nothing fits\n"
