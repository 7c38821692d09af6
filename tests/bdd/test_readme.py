"""What the README tells somebody who has the package alone: its files, written as they stand there, and its commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bdd.projects import pytest_in, write

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "README.md").read_text(encoding="utf-8").partition("## From the package alone")[2].partition("\n## ")[0]
FILES = {"toml": "pyproject.toml", "yaml": "hosts/render-farm.yaml", "gherkin": "features/nodes.feature", "python": "ask.py"}


@pytest.fixture
def project(tmp_path):
    """The README's files in an empty folder."""
    for language, name in FILES.items():
        (block,) = re.findall(rf"```{language}\n(.*?)```", SECTION, re.DOTALL)
        assert name == "ask.py" or name in SECTION
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(block, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_the_files_and_commands_of_the_readme_work(project):
    """As they stand there, one after the other; but for the installation, which the wheel's own test does."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    said = {}
    for line in re.findall(r"^    (\S.*)$", SECTION, re.MULTILINE):
        if line.split()[0] not in {"dmsim", "pytest"}:
            continue
        command = (
            line.replace("pytest ", f"{sys.executable} -m pytest -p no:cacheprovider ", 1) if line.startswith("pytest") else line
        )
        done = subprocess.run(
            command, shell=True, cwd=project, env=environment, capture_output=True, text=True, check=False
        )  # the README's own words
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        said[line.split()[0]] = done.stdout
    assert "1 passed" in said["pytest"]
    assert "The render farm" in (project / "report.html").read_text(encoding="utf-8")
    subprocess.run([sys.executable, "ask.py"], cwd=project, env=environment, check=True)


@pytest.mark.slow
def test_the_files_of_the_downstream_page_work(tmp_path):
    """Its three files, as they stand there."""
    text = (ROOT / "docs/downstream.md").read_text(encoding="utf-8")
    files = {}
    for language, name in FILES.items():
        if name != "ask.py":
            files[name] = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)[0]
            assert name in text
    write(tmp_path, files)
    done = pytest_in(tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
