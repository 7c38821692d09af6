"""Projects that use the plugin, made in a folder and run by a pytest of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

ROOT = Path(__file__).parents[2]
INI = '[tool.pytest.ini_options]\ndmsim_features = ["features"]\naddopts = ["--strict-markers", "--strict-config"]\n'
FEATURE = """\
Feature: Nodes
  Rule: A host driver is left alone
    Scenario: Gives way
      Given the host "runfile-580"
      When driver-manager runs
      Then the exit code is 1
"""
HOST = """\
format: 1
gpus: [{address: "0000:18:00.0", device: "0x2236", class: "0x030200", driver: nvidia}]
modules: [{name: nvidia}]
programs: {/usr/bin/nvidia-smi: {driver_version: 580.82.07}}
"""
_NAMED = any(entry.name == "dmsim" for entry in entry_points(group="pytest11"))


def write(folder: Path, files: dict[str, str]) -> Path:
    """A project's files."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def pytest_in(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pytest there, with this checkout's plugin; by its entry point where this environment's metadata has that."""
    quiet = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "PYTEST_"))}
    named = () if _NAMED else ("-p", "simulator.bdd.plugin")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:benchmark", *named, *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env={**quiet, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
