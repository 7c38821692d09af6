"""The Renovate recipe: well-formed, and its patterns find the versions."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "integrations/renovate/renovate.json5"


def recipe():
    """The little of JSON5 that the file uses: comments, bare keys, trailing commas."""
    lines = [line for line in RECIPE.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("//")]
    text = re.sub(r"^(\s*)([$\w]+):", r'\1"\2":', "\n".join(lines), flags=re.MULTILINE)
    return json.loads(re.sub(r",(\s*[}\]])", r"\1", text))


def matched(text, path):
    """What Renovate's regex managers capture in a file, by manager."""
    out = []
    for manager in recipe()["customManagers"]:
        patterns = [pattern.strip("/") for pattern in manager["managerFilePatterns"]]
        if any(re.search(pattern, path) for pattern in patterns):
            for pattern in manager["matchStrings"]:
                found = re.finditer(pattern.replace("(?<", "(?P<"), text)
                out += [(match["depName"], match["currentValue"]) for match in found]
    return out


VALUES = """\
driver:
  manager:
    repository: nvcr.io/nvidia/cloud-native
    image: k8s-driver-manager
    # When choosing a different version of k8s-driver-manager, DO NOT downgrade to a version lower than v0.6.4
    # to ensure k8s-driver-manager stays compatible with gpu-operator starting from v24.3.0
    version: v0.10.0
toolkit:
  repository: nvcr.io/nvidia/k8s
  image: container-toolkit
  version: v1.17.8
vfioManager:
  driverManager:
    repository: "nvcr.io/nvidia/cloud-native"
    image: "k8s-driver-manager"
    version: "v0.11.0"
"""


@pytest.mark.parametrize("path", ["values.yaml", "charts/gpu/my-values.prod.yml", "apps/gpu-operator/release.yaml"])
def test_the_versions_in_values_are_found(path):
    """Of each DaemonSet, comments between or not, quoted or not; no other image's."""
    assert matched(VALUES, path) == [("k8s-driver-manager", "v0.10.0"), ("k8s-driver-manager", "v0.11.0")]


def test_a_version_under_a_comment_is_found():
    """In a variable of any name."""
    text = '# renovate: depName=nvcr.io/nvidia/cloud-native/k8s-driver-manager\ndriver_manager_version = "v0.10.0"\n'
    assert matched(text, "main.tf") == [("nvcr.io/nvidia/cloud-native/k8s-driver-manager", "v0.10.0")]
    assert matched(text, "main.txt") == []


def test_the_patterns_are_re2():
    """Renovate has no look-around and no back-references."""
    for manager in recipe()["customManagers"]:
        assert not re.search(r"\(\?[=!]|\(\?<[=!]|\\[1-9]", "".join(manager["matchStrings"]))
        assert manager["datasourceTemplate"] == "docker"
    assert all(rule["description"] for rule in recipe()["packageRules"])
