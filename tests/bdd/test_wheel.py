"""The wheel in an empty environment: the example project runs from it, alone, beside other plugins, and to its report."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.bdd.projects import ROOT

OTHERS = ("pytest-asyncio", "pytest-cov", "pytest-randomly")
"""Plugins that many projects have, beside pytest-xdist, in whatever version there is."""
OWN_TEST = """\
import asyncio

import pytest


@pytest.mark.asyncio
async def test_of_our_own():
    await asyncio.sleep(0)
"""
FEW = 'Feature: F\n  Rule: R\n    Scenario: S\n      Given the host "mine"\n      When driver-manager runs\n      Then the exit code is 1\n'


def run(*command, cwd, **environment):
    """Run a program in an environment that knows nothing of this checkout."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "PYTEST_", "PYTHON", "VIRTUAL"))}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**plain, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def well(done):
    """It ended well: what it printed."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    well(run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ".", cwd=ROOT))
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """The `bin` of an environment with the wheel, its extra for pytest, and the other plugins."""
    folder = tmp_path_factory.mktemp("environment")
    well(run(sys.executable, "-m", "venv", folder, cwd=folder))
    same = [f"{name}=={version(name)}" for name in ("pytest", "pytest-bdd", "pytest-xdist", "pyfakefs", "PyYAML")]
    installed = run(
        *(
            folder / "bin/python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            f"{wheel}[pytest]",
            *same,
            *OTHERS,
        ),
        cwd=folder,
    )
    if installed.returncode != 0 and "CI" not in os.environ and "NewConnectionError" in installed.stderr:
        pytest.skip("PyPI cannot be reached")
    well(installed)
    return folder / "bin"


@pytest.fixture
def example(tmp_path):
    """A copy of the example project."""
    return Path(shutil.copytree(ROOT / "examples/downstream", tmp_path / "downstream"))


@pytest.mark.slow
def test_the_wheel_holds_the_step_library_and_the_files_of_pages(wheel):
    """And names the plugin."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (points,) = (archive.read(name).decode() for name in names if name.endswith("entry_points.txt"))
    assert "[pytest11]\ndmsim = simulator.bdd.plugin" in points
    for name in ("bdd/steps/given.py", "report/page/base.css", "report/suite_page.js", "fixtures/verified.json"):
        assert f"simulator/{name}" in names


@pytest.mark.slow
def test_a_project_without_code_runs_beside_other_plugins_and_tests_of_its_own(environment, example):
    """In one process and in two, in random order, with coverage, by release, to a report; the same without the other plugins."""
    (example / "test_own.py").write_text(OWN_TEST)
    assert "4 passed" in well(run(environment / "pytest", "-q", "--cov=features", cwd=example, PYTHONWARNINGS="ignore"))
    assert "4 passed" in well(run(environment / "pytest", "-q", "-n2", "--dmsim-results", "two/results.jsonl", cwd=example))
    assert "3 passed" in well(run(environment / "pytest", "-q", "-m", "not nightly", cwd=example))
    told = well(run(environment / "pytest", "-q", "--dmsim-release", "v0.9.1", cwd=example))
    assert "3 passed, 1 deselected" in told
    assert "driver-manager scenarios: all passed" in well(
        run(environment / "dmsim", "report", "two/results.jsonl", "--html", "report.html", cwd=example)
    )
    assert "A job runs on the node" in (example / "report.html").read_text()
    (example / "test_own.py").unlink()
    alone = [argument for name in ("xdist", "asyncio", "randomly", "pytest_cov") for argument in ("-p", f"no:{name}")]
    assert "3 passed" in well(run(environment / "pytest", "-q", *alone, cwd=example))


@pytest.mark.slow
def test_a_new_user_in_an_empty_folder(environment, tmp_path):
    """One feature, one host file, one line of configuration in any of the forms that pytest knows."""
    (tmp_path / "pytest.ini").write_text("[pytest]\ndmsim_features = features\n")
    (tmp_path / "features").mkdir()
    (tmp_path / "hosts").mkdir()
    (tmp_path / "features/one.feature").write_text(FEW)
    host = 'gpus: [{address: "0000:18:00.0", device: "0x2236", class: "0x030200", driver: nvidia}]\nmodules: [{name: nvidia}]\n'
    (tmp_path / "hosts/mine.yaml").write_text(
        f"format: 1\n{host}programs: {{/usr/bin/nvidia-smi: {{driver_version: 580.82.07}}}}\n"
    )
    assert "1 passed" in well(run(environment / "pytest", "-q", cwd=tmp_path))
    assert "--dmsim-release" in well(run(environment / "pytest", "--help", cwd=tmp_path))
