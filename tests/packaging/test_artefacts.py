"""Wheel and sdist, built and used as somebody does who has nothing else: files, size, dependencies, commands, imports.

Built once for this module. The environment is an empty one that sees just what the wheel declares, from this one's copies, so
that no network is needed.
"""

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LARGEST_WHEEL = 2_500_000
LARGEST_SDIST = 3_500_000
"""Bytes: nearly twice of what they are. What makes them larger should be seen, not be a surprise on PyPI."""
HOST = "ubuntu-24.04-driver-580-open"
HEAVY = ("aiohttp", "asyncio", "docker", "hypothesis", "pyfakefs", "pytest", "testcontainers", "trustme", "yaml")
"""What a command that does not need it must not load."""

pytestmark = pytest.mark.slow


def started(*command, cwd):
    """A process that sees nothing of this checkout."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "VIRTUAL", "COV"))}
    return subprocess.run([*map(str, command)], cwd=cwd, env=plain, capture_output=True, text=True, timeout=300, check=False)


def run(*command, cwd):
    """As `started`: it ends well, and prints this."""
    done = started(*command, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(source, kind, folder):
    """An artefact of a source tree."""
    run(sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", folder, ".", cwd=source)
    (path,) = (path for path in folder.iterdir() if path.name.endswith({"wheel": ".whl", "sdist": ".tar.gz"}[kind]))
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def unpacked(sdist, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (tree,) = folder.iterdir()
    return tree


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of an environment with the wheel and copies of what it declares, nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    interpreter = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", interpreter, "install", "-q", "--no-deps", "--no-index", wheel, cwd=folder)
    for requirement in PROJECT["dependencies"]:
        _copy(metadata.distribution(re.match(r"[\w.-]+", requirement)[0]), site)
    return interpreter


def _copy(distribution, site):
    """A distribution's files, as another environment has them."""
    for file in distribution.files:
        source = Path(distribution.locate_file(file))
        if ".." not in file.parts and source.suffix != ".pyc":
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            (site / file).write_bytes(source.read_bytes())


def names(path):
    with zipfile.ZipFile(path) as archive:
        return sorted(name for name in archive.namelist() if not name.endswith("/"))


def tracked(*folders):
    """What of these folders is under version control."""
    listed = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("no checkout: the list of files is git's")
    return [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def test_the_wheel_holds_the_package_and_its_data(wheel):
    """All of `simulator/` and of `fixtures/`, and nothing else but what describes it."""
    held = {name for name in names(wheel) if ".dist-info/" not in name}
    package = set(tracked("simulator"))
    data = {f"simulator/{name}" for name in tracked("fixtures")}
    assert package | data <= held
    extra = {name for name in held - package - data if (ROOT / name.replace("simulator/fixtures", "fixtures")).is_file()}
    assert held - package - data == extra, "files that are not of this tree"
    assert {"simulator/py.typed", "simulator/fixtures/REUSE.toml"} <= held


def test_the_wheel_carries_its_licence_and_its_command(wheel):
    """And no file that Python or an editor left."""
    held = names(wheel)
    assert any(re.search(r"\.dist-info/licenses/LICENSE$", name) for name in held)
    with zipfile.ZipFile(wheel) as archive:
        (entry,) = (name for name in held if name.endswith("entry_points.txt"))
        assert "dmsim = simulator.cli.main:entry" in archive.read(entry).decode()
    assert [name for name in held if re.search(r"__pycache__|\.pyc$|~$|\.orig$", name)] == []


def test_a_wheel_made_of_the_sdist_is_the_same(wheel, unpacked, tmp_path):
    """The same files with the same bytes, but for the list of their hashes' own line."""
    again = build(unpacked, "wheel", tmp_path)
    assert names(again) == names(wheel)
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(again) as other:
        assert [name for name in one.namelist() if one.read(name) != other.read(name)] == []


def test_the_artefacts_are_small(wheel, sdist):
    """Bars that are nearly twice the size of today."""
    assert wheel.stat().st_size < LARGEST_WHEEL
    assert sdist.stat().st_size < LARGEST_SDIST


def test_the_wheel_needs_what_is_declared(wheel):
    """Just the dependencies of pyproject.toml; extras bring theirs only when asked for."""
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(next(name for name in names(wheel) if name.endswith(".dist-info/METADATA"))).decode()
    required = re.findall(r"^Requires-Dist: (.*)$", text, re.MULTILINE)
    plain = {re.sub(r"\s", "", line).lower() for line in required if "extra ==" not in line}
    assert plain == {re.sub(r"\s", "", line).lower() for line in PROJECT["dependencies"]}


def test_the_sdist_tests_itself(unpacked):
    """A smoke of its own tests, in its own folder: a unit, a scenario, the API."""
    chosen = ("tests/test_labels.py", "tests/api", "features/host_detection")
    done = run(sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:benchmark", *chosen, cwd=unpacked)
    assert re.search(r"\d+ passed", done)
    assert "failed" not in done


def test_the_installed_command_runs(python, tmp_path):
    """`run`, `hosts`, and `replay` of a small part of the recordings that came along."""
    command = python.with_name("dmsim")
    assert "driver is pre-installed on host" in run(command, "run", "--host", HOST, "--env", "NODE_NAME=gpu-1", cwd=tmp_path)
    assert len(json.loads(run(command, "hosts", "-o", "json", cwd=tmp_path))["hosts"]) == 60
    found = run(python, "-c", "from simulator.scenario import fixtures; print(fixtures())", cwd=tmp_path).strip()
    assert found.startswith(str(python.parent.parent)), "the wheel's own data, not the checkout's"
    replayed = run(command, "replay", f"{found}/recordings", "--release", "v0.10.0", "-k", "digest", cwd=tmp_path)
    assert re.fullmatch(r"[1-9]\d* passed, 0 failed", replayed.splitlines()[-1])


def test_the_installed_package_answers_python(python, tmp_path):
    """By the public names."""
    code = f"from simulator import simulate; print(simulate({HOST!r}).exit_code)"
    assert run(python, "-c", code, cwd=tmp_path) == "1\n"


@pytest.mark.parametrize(
    ("argv", "allowed"),
    [
        (["--help"], set()),
        (["--version"], set()),
        (["releases"], {"yaml", "pyfakefs"}),
        (["run", "--host", HOST, "--env", "NODE_NAME=gpu-1"], {"yaml", "pyfakefs", "asyncio"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command_loads_only_what_it_needs(python, tmp_path, argv, allowed):
    """Counted in modules, not in seconds: nothing of the optional dependencies, and no file system for `--help`."""
    code = (
        "import sys\nfrom simulator.cli.main import main\n"
        f"try:\n    main({argv!r})\nexcept SystemExit:\n    pass\n"
        f"print('loaded', sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    last = run(python, "-c", code, cwd=tmp_path).splitlines()[-1]
    loaded = set(re.findall(r"'(\w+)'", last))
    assert last.startswith("loaded")
    assert loaded <= allowed


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ("fixtures", "fixtures: is missing: the data that dmsim brings along; install dmsim again"),
        ("fixtures/hosts", "fixtures/hosts: is missing: the hosts that dmsim brings along; install dmsim again"),
    ],
)
def test_an_installation_without_its_data_says_so(python, tmp_path, gone, said):
    """One message and exit code 2, as for other bad input."""
    (package,) = python.parent.parent.glob("lib/python*/site-packages/simulator")
    hidden = (package / gone).rename(package / "hidden")
    try:
        done = started(python.with_name("dmsim"), "hosts", cwd=tmp_path)
    finally:
        hidden.rename(package / gone)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"dmsim hosts: {package}/{said}\n")
