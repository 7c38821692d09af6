"""Every command in README and docs is run, and prints what the page says it prints; every example is read."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.cluster.objects import read_cluster
from simulator.host.spec import read_host
from simulator.node.story import read_story
from simulator.reading import parse_document
from simulator.scenario import read_scenario

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        ROOT / "fixtures/README.md",
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("integrations/**/*.md"),
        *ROOT.glob("examples/**/*.md"),
    ]
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language):
    for page in PAGES:
        for number, match in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8"))):
            if match[1] == language:
                yield pytest.param(match[2], id=f"{page.relative_to(ROOT)}#{number}")


def commands():
    for block in blocks("console"):
        parts = re.split(r"^\$ (.*)\n", block.values[0], flags=re.MULTILINE)
        for index in range(1, len(parts), 2):
            yield pytest.param(parts[index], parts[index + 1], id=f"{block.id}:{index // 2}")


@pytest.mark.slow
@pytest.mark.parametrize(("command", "printed"), list(commands()))
def test_a_command_prints_what_its_page_says(command, printed):
    """Both streams together; a line of three dots stands for any lines."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "80"}
    done = subprocess.run(
        command.replace(".venv/bin/", ""),
        shell=True,
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
        check=False,
    )
    wanted = ".*".join(re.escape(part) for part in re.split(r"^\.\.\.$", printed, flags=re.MULTILINE))
    assert re.fullmatch(wanted, done.stdout, re.DOTALL), done.stdout


@pytest.mark.parametrize("text", list(blocks("yaml")))
def test_a_yaml_example_is_read(text):
    """As a host, a cluster, a world or a node's story, whichever it is."""
    place = parse_document(text, "example")
    if {"chart", "variant"} & set(place.value) and "host" in place.value:
        read_story(place, ROOT)
    elif "host" in place.value:
        read_scenario(place, ROOT)
    elif "node" in place.value or "pods" in place.value:
        read_cluster(place, "example", "gpu-1")
    elif {"gpus", "programs", "modules"} & set(place.value):
        read_host(place, "example")
    else:
        assert {"jobs", "runs", "name", "on"} & set(place.value), "a YAML example that nothing reads"


@pytest.mark.slow
@pytest.mark.parametrize("text", list(blocks("gherkin")))
def test_a_feature_example_runs(text, tmp_path):
    """With the project's own sentences."""
    folder = ROOT / "features"
    path = folder / f"example_{abs(hash(text)) % 10**8}_{os.getpid()}.feature"
    try:
        path.write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", str(path), "-q", "-p", "no:cacheprovider"],
            cwd=ROOT,
            text=True,
            capture_output=True,
            timeout=120,
            check=False,
        )
    finally:
        path.unlink(missing_ok=True)
    assert done.returncode == 0, done.stdout


def test_every_link_inside_the_docs_leads_somewhere():
    """Relative links name files of this project."""
    links = [(page, target) for page in PAGES for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))]
    inside = [(page, target) for page, target in links if not target.startswith(("http:", "https:"))]
    assert [f"{page.relative_to(ROOT)}: {target}" for page, target in inside if not (page.parent / target).exists()] == []


def test_every_make_target_that_a_page_names_exists():
    """`make X` in a page is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name for page in PAGES for name in re.findall(r"(?:`|    )make ([a-z-]+)", page.read_text(encoding="utf-8"))}
    assert named <= targets
