"""The report's page: what it holds, and what Chromium makes of it at a desk and on a phone."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.report.results import Results, read_results
from simulator.report.suite_page import suite_data, suite_page
from tests.browser import Browser
from tests.report.test_results import FAILED, RAN, RUN

ROOT = Path(__file__).parents[2]
LARGEST = 5_000_000
"""Bytes of the whole suite's page."""


def test_runs_of_one_scenario_stand_together_and_equal_traces_once():
    """Two releases; a row with other tags is another scenario."""
    other = replace(RUN, release="v0.12.0")
    data = suite_data([Results(RUN, (RAN,)), Results(other, (replace(RAN, release="v0.12.0"), replace(RAN, tags=("slow",))))])
    ((one, two),) = [[scenario for rule in feature["rules"] for scenario in rule["scenarios"]] for feature in data["features"]]
    assert [(ran["run"], ran["release"], ran["traces"]) for ran in one["ran"]] == [(0, "v0.10.0", [0]), (1, "v0.12.0", [0])]
    assert len(two["ran"]) == 1
    assert len(data["traces"]) == 1


def test_an_upstream_function_has_its_name_and_its_recordings():
    """As `docs/fidelity.md` counts them."""
    found = suite_data([Results(RUN, (RAN,))])["functions"]["v0.10.0"]["uninstall_driver"]
    assert found["name"] == "uninstallDriver"
    assert found["recordings"] > 300


def test_texts_cannot_become_the_page():
    """Scenarios and logs are anybody's."""
    nasty = "</script><script>alert(1)</script>@@BODY@@"
    text = suite_page([Results(RUN, (replace(RAN, scenario=nasty, why=nasty),))], title=nasty)
    assert "<script>alert" not in text
    assert text.count("<script") == 3


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    made = Browser(tmp_path_factory.mktemp("chromium"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The page of a part of the suite, on the default release and on the newest, and of a scenario that failed."""
    folder = tmp_path_factory.mktemp("report")
    for name, more in {"default": (), "newest": ("--release", "v0.12.0")}.items():
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:benchmark", "features/issue_191"]
        subprocess.run([*command, *more, "--dmsim-results", folder / f"{name}.jsonl"], cwd=ROOT, check=True, capture_output=True)
    results = [read_results(folder / f"{name}.jsonl") for name in ("default", "newest")]
    (folder / "report.html").write_text(suite_page([*results, Results(replace(RUN, image="img:1", runner="container"), (FAILED,))]))
    return f"file://{folder}/report.html"


def search(browser, text):
    """Type it, and wait until the page has looked."""
    browser.type("#query", text)
    browser.wait("$('features').dataset.shown === $('query').value")
    return browser.ask("[...document.querySelectorAll('.scenario .name')].map((name) => name.textContent)")


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_opened_and_searched(browser, whole, width):
    """By words of a scenario, of a log line; nothing is fetched, nothing fails, nothing is wider than the window."""
    browser.errors.clear()
    browser.open(whole, width)
    assert browser.ask("document.title") == "driver-manager scenarios"
    assert browser.ask("document.querySelectorAll('.feature').length") == 3
    assert search(browser, "minute label runfile-580") == ["The label, the minute, the failure runfile-580"]
    assert search(browser, "NVIDIA GPU driver is already pre-installed on the node, disabling nosuchword") == []
    assert "No scenario is like this." in browser.ask("document.body.textContent")
    found = search(browser, "the minute runfile-580 disabling the containerized")
    assert found
    browser.ask("document.querySelector('.scenario summary').click()")
    browser.wait("document.querySelector('.scenario[open] .events') !== null")
    shown = browser.ask("document.querySelector('.scenario[open]').innerText")
    for words in (
        "nothing else on the node or host changed",
        "isHostDriver",
        "driver is pre-installed on host",
        "by the recordings",
    ):
        assert words in shown
    assert browser.ask("document.querySelectorAll('mark').length") > 0
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.errors == []


@pytest.mark.slow
def test_filters_links_and_colours(browser, whole):
    """A failure is found by its outcome; a link opens its scenario; the colours are the reader's choice."""
    browser.open(whole)
    browser.ask("$('outcome').value = 'failed'; $('outcome').dispatchEvent(new Event('change'))")
    assert browser.ask("$('found').textContent").startswith("1 of ")
    browser.ask("document.querySelector('.scenario summary').click()")
    browser.wait("document.querySelector('.steps li.failed') !== null")
    assert "a | b" in browser.ask("document.querySelector('.why').textContent")
    link = browser.ask("location.href")
    assert link.endswith("#features%2Fa_b.feature%3A3%3Aclean")
    browser.open(link)
    browser.wait("document.querySelector('.scenario[open]') !== null")
    before = browser.ask("getComputedStyle(document.body).backgroundColor")
    browser.ask("$('colours').click()")
    assert browser.ask("getComputedStyle(document.body).backgroundColor") != before


@pytest.mark.slow
def test_the_whole_suites_page_is_small(tmp_path):
    """Every scenario, with its traces."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:benchmark", "-p", "no:xdist", "features"]
    subprocess.run([*command, "--dmsim-results", tmp_path / "r.jsonl"], cwd=ROOT, check=True, capture_output=True)
    results = read_results(tmp_path / "r.jsonl")
    assert len(results.scenarios) > 700
    assert len(suite_page([results]).encode()) < LARGEST
