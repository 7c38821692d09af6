"""The pytest plugin in somebody else's project: asleep until asked, and what it collects, finds and refuses then."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.bdd.projects import FEATURE, HOST, INI, ROOT, pytest_in, write

pytestmark = pytest.mark.slow
OWN_BDD = """\
from pytest_bdd import given, scenarios, then

scenarios("own.feature")


@given("a thing of ours")
def thing():
    pass


@then('the host "x" is ours')
def ours():
    pass
"""
OWN_FEATURE = 'Feature: Ours\n  @anything\n  Scenario: Own\n    Given a thing of ours\n    Then the host "x" is ours\n'


def passed(done, **counts):
    """A run ended well, with so many of each kind."""
    assert done.returncode == 0, done.stdout + done.stderr
    found = {word: int(number) for number, word in re.findall(r"(\d+) (passed|skipped|deselected)", done.stdout.splitlines()[-1])}
    assert found == counts, done.stdout
    return done


def test_it_is_asleep_where_no_folder_is_named(tmp_path):
    """No feature file is collected, and nothing of the simulator is loaded but the plugin itself."""
    test = (
        "import sys\n\ndef test_asleep():\n"
        "    assert sorted(name for name in sys.modules if name.split('.')[0] == 'simulator') == "
        "['simulator', 'simulator.bdd', 'simulator.bdd.plugin']\n"
    )
    write(tmp_path, {"pyproject.toml": "[tool.pytest.ini_options]\n", "features/a.feature": FEATURE, "test_it.py": test})
    passed(pytest_in(tmp_path, "-q"), passed=1)


def test_the_plugin_loads_little():
    """What each start of pytest pays for, in every project: modules of pytest and of Python's own that pytest has loaded anyway."""
    code = "import sys, pytest; before = set(sys.modules); import simulator.bdd.plugin; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['simulator', 'simulator.bdd', 'simulator.bdd.plugin']"


@pytest.mark.parametrize(
    ("ini", "arguments", "words"),
    [
        ("[tool.pytest.ini_options]\n", ["--dmsim-release", "v0.12.0"], "--dmsim-release has nothing to act on"),
        ("[tool.pytest.ini_options]\n", ["--dmsim-results", "r.jsonl"], 'write `dmsim_features = ["features"]`'),
        (INI.replace('"features"', '"fetaures"'), [], 'fetaures", which is no folder; name one that is there'),
        (INI, ["--dmsim-release", "v0.10"], 'there is no release "v0.10"'),
        (INI, ["--dmsim-runner", "container"], "--dmsim-runner=container needs --dmsim-image REF"),
        (INI, ["--dmsim-image", "x"], "--dmsim-image is for --dmsim-runner=container"),
        (INI, ["--dmsim-results", "features"], "is a folder; name a file"),
        (INI, ["-p", "no:pytest-bdd"], "pytest-bdd is not there"),
    ],
)
def test_what_does_not_fit_is_one_clear_error(tmp_path, ini, arguments, words):
    """A usage error, in one line, before anything is run."""
    write(tmp_path, {"pyproject.toml": ini, "features/a.feature": FEATURE})
    done = pytest_in(tmp_path, *arguments)
    assert done.returncode == 4, done.stdout + done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_own_hosts_are_found_beside_the_feature_and_above_it(tmp_path):
    """The nearest counts, before one of dmsim's own with the same name; a path is relative to the feature's folder."""
    exit_code = "      When driver-manager runs\n      Then the exit code is {}\n"
    feature = "Feature: F\n  Rule: R\n" + "".join(
        f'    Scenario: {name}\n      Given the host "{host}"\n' + exit_code.format(code)
        for name, host, code in [("a name", "mine", 1), ("a path", "../hosts/mine.yaml", 1), ("a name of dmsim's", "clean", 1)]
    )
    write(
        tmp_path,
        {
            "pyproject.toml": INI,
            "features/deep/a.feature": feature.replace("../hosts", "../../hosts"),
            "hosts/mine.yaml": HOST,
            "features/hosts/clean.yaml": HOST,
            "features/b.feature": feature.replace('"mine"', '"runfile-580"'),
        },
    )
    passed(pytest_in(tmp_path, "-q"), passed=6)
    passed(pytest_in(tmp_path / "features", "-q", "deep"), passed=3)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"features/a.feature": FEATURE.replace("runfile-580", "mien")}, ['there is no host named "mien"', "hosts/mien.yaml in"]),
        (
            {"features/a.feature": FEATURE.replace("runfile-580", "mine"), "hosts/mine.yaml": HOST.replace("0000:18", "18")},
            ["hosts/mine.yaml: gpus[0].address", 'write "0000:'],
        ),
        (
            {"features/a.feature": FEATURE.replace("driver-manager runs", "driver-manager run")},
            ["Step definition is not found", "Line 5", "the nearest sentence: When driver-manager runs"],
        ),
        ({"features/a.feature": FEATURE + "      Foo bar\n"}, ["features/a.feature", "Foo bar"]),
        ({"features/a.feature": ""}, ["features/a.feature: holds no feature"]),
        (
            {"features/a.feature": FEATURE, "conftest.py": "import pytest\n\n@pytest.fixture\ndef stage():\n    return 1\n"},
            ['the fixture "stage"'],
        ),
    ],
)
def test_a_mistake_in_a_file_is_told_without_our_own_lines_of_python(tmp_path, files, words):
    """The file, what is wrong, what to write."""
    done = pytest_in(write(tmp_path, {"pyproject.toml": INI, **files}))
    assert done.returncode in {1, 2}, done.stdout + done.stderr
    for word in words:
        assert word in done.stdout
    assert "simulator/" not in done.stdout


def test_an_unknown_tag_is_refused_and_a_registered_one_is_the_projects_own(tmp_path):
    """A tag is a marker; `-m` chooses by it."""
    write(tmp_path, {"pyproject.toml": INI, "features/a.feature": "@nightly\n" + FEATURE})
    done = pytest_in(tmp_path)
    assert done.returncode == 2
    assert "features/a.feature: the tag @nightly is not registered" in done.stdout
    assert "simulator/" not in done.stdout
    write(tmp_path, {"pyproject.toml": INI + 'markers = ["nightly: at night"]\n'})
    passed(pytest_in(tmp_path, "-q", "-m", "nightly"), passed=1)


def test_a_release_leaves_out_what_does_not_hold_for_it(tmp_path):
    """Tests of the project's own are run whatever the release."""
    tagged = FEATURE.replace("    Scenario", "    @until-v0.10.0\n    Scenario")
    write(tmp_path, {"pyproject.toml": INI, "features/a.feature": tagged, "test_own.py": "def test_own():\n    pass\n"})
    passed(pytest_in(tmp_path, "-q", "--dmsim-release", "v0.12.0"), passed=1, deselected=1)
    passed(pytest_in(tmp_path, "-q", "--dmsim-release", "v0.9.1"), passed=2)


def test_a_step_of_the_projects_own_stands_beside_the_library(tmp_path):
    """It asks for the fixture `stage`; of two that match the project's own counts, in its folder only."""
    conftest = (
        "from pytest_bdd import given, then\nfrom simulator.bdd.sentences import Sentence\n\n\n"
        "@given(Sentence('our node, with {count:number} GPUs'))\ndef our_node(stage, count):\n    stage.host = stage.named_host('mine')\n"
        "    assert count == 1\n\n\n"
        "@then(Sentence('the exit code is {code:number}'))\ndef own_exit_code(stage, code):\n    assert stage.outcome.exit_code == code - 100\n"
    )
    own = FEATURE.replace('the host "runfile-580"', "our node, with 1 GPUs").replace("is 1", "is 101")
    write(
        tmp_path,
        {
            "pyproject.toml": INI,
            "features/own/conftest.py": conftest,
            "features/own/a.feature": own,
            "features/b.feature": FEATURE,
            "hosts/mine.yaml": HOST,
        },
    )
    passed(pytest_in(tmp_path, "-q"), passed=2)


def test_a_project_that_uses_pytest_bdd_itself_is_left_alone(tmp_path):
    """Its features outside the folder, with its own steps and tags; a sentence of its own may look like one of the library's."""
    ini = INI + 'markers = ["anything: of ours"]\n'
    write(
        tmp_path,
        {"pyproject.toml": ini, "features/a.feature": FEATURE, "tests/own.feature": OWN_FEATURE, "tests/test_own.py": OWN_BDD},
    )
    passed(pytest_in(tmp_path, "-q"), passed=2)


@pytest.mark.parametrize("arguments", [["features/a.feature"], ["features"], ["-k", "gives"], ["-n2"], ["--import-mode=importlib"]])
def test_scenarios_are_chosen_as_tests_are(tmp_path, arguments):
    """By file, folder, name; in several processes."""
    write(tmp_path, {"pyproject.toml": INI, "features/a.feature": FEATURE})
    passed(pytest_in(tmp_path, "-q", *arguments), passed=1)


def test_this_projects_short_options_are_its_own(tmp_path):
    """Another project may have a `--release` that means something else."""
    conftest = (
        "def pytest_addoption(parser):\n    for name in ('release', 'runner', 'image'):\n        parser.addoption(f'--{name}')\n"
    )
    write(tmp_path, {"pyproject.toml": INI, "features/a.feature": FEATURE, "conftest.py": conftest})
    passed(pytest_in(tmp_path, "-q", "--release", "of ours"), passed=1)
