"""Every command in README and docs is run, and prints what the page says it prints; every example is read."""

from __future__ import annotations

import doctest
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

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
LOADED = re.compile(r"""(?:<link [^>]*href|<(?:script|img|iframe|source)[^>]* src)=["']?([^"' >]+)""")
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
@pytest.mark.parametrize(
    "text", [block for block in blocks("gherkin") if not block.id.startswith(("README.md", "docs/downstream.md"))]
)
def test_a_feature_example_runs(text, tmp_path):
    """With the project's own sentences. Those with a host of their own beside them `tests/bdd/test_readme.py` runs."""
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


def test_every_page_stands_once_in_the_navigation():
    """So that a stranger finds it."""
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    named = [page for section in navigation for entries in section.values() for entry in entries for page in entry.values()]
    assert sorted(named) == sorted(str(page.relative_to(ROOT / "docs")) for page in ROOT.glob("docs/**/*.md"))


@pytest.mark.slow
def test_the_site_is_built_and_asks_nothing_of_others(tmp_path):
    """A warning is an error; no page loads a font, script, style or picture from elsewhere; the search knows every page."""
    argv = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    pages = {
        page.relative_to(tmp_path / "site").as_posix(): page.read_text(encoding="utf-8") for page in tmp_path.glob("site/**/*.html")
    }
    loaded = [(name, url) for name, text in pages.items() for url in LOADED.findall(text)]
    assert [(name, url) for name, url in loaded if url.startswith(("http:", "https:", "//"))] == []
    styles = "".join(style.read_text(encoding="utf-8") for style in tmp_path.glob("site/**/*.css"))
    assert re.findall(r"@import|url\([\"']?(?:https?:)?//", styles) == []
    entries = json.loads((tmp_path / "site/search/search_index.json").read_text(encoding="utf-8"))["docs"]
    assert {entry["location"].partition("#")[0] for entry in entries} == pages.keys() - {"404.html"}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```pycon" in page.read_text(encoding="utf-8")], ids=lambda page: page.name
)
def test_a_python_example_answers_what_its_page_says(page, monkeypatch):
    """The examples of a page are one session."""
    monkeypatch.chdir(ROOT)
    text = "".join(match[2] for match in BLOCK.finditer(page.read_text(encoding="utf-8")) if match[1] == "pycon")
    session = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    said = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session, out=said.append)
    assert (result.failed, result.attempted > 0) == (0, True), "".join(said)
