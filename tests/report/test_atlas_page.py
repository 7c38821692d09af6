"""The atlas' page: what it holds, and what Chromium makes of it at a desk and on a phone."""

from __future__ import annotations

import pytest

from simulator.explore.atlas import atlas
from simulator.report.atlas_page import atlas_page, page_data
from tests.browser import Browser
from tests.explore.test_atlas import graph_of


def test_places_lead_to_places_and_ends():
    """A witness's path goes along edges that the page has."""
    data = page_data(atlas(graph_of("v0.12.0")))
    edges = {(number, edge["to"]) for number, place in enumerate(data["places"]) for edge in place["edges"]}
    for outcome in data["outcomes"]:
        assert set(zip(outcome["path"], outcome["path"][1:], strict=False)) <= edges
        assert outcome["path"][-1] == outcome["ends"]


def test_a_place_names_upstreams_function_and_its_answers():
    """The beginning leads to isHostDriver."""
    places = page_data(atlas(graph_of("v0.12.0")))["places"]
    host = next(place for place in places if place["name"] == "isHostDriver")
    assert places[0]["name"] == "main"
    assert host["file"] == "cmd/driver-manager/main.go"
    assert {answer for edge in host["edges"] for _, text, answer in edge["answers"] if text == "self.is_host_driver()"} == {
        "no",
        "yes",
    }


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    made = Browser(tmp_path_factory.mktemp("chromium"))
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_filtered_searched_and_marked(browser, tmp_path, width):
    """Nothing is fetched, nothing fails, nothing is wider than the window."""
    (tmp_path / "atlas.html").write_text(atlas_page(atlas(graph_of("v0.12.0"))))
    browser.errors.clear()
    browser.open(f"file://{tmp_path}/atlas.html", width)
    assert browser.ask("document.title") == "Atlas of driver-manager v0.12.0"
    browser.ask("$('filter-labels').value = 'pre-installed'; $('filter-labels').dispatchEvent(new Event('change'))")
    assert browser.ask("document.querySelectorAll('.outcome').length") == 1
    browser.ask("document.querySelector('.outcome summary').click()")
    browser.wait("document.querySelector('.place.on .edge.on') !== null")
    assert "driver is pre-installed on host" in browser.ask("document.querySelector('.outcome').innerText")
    browser.type("#query", "disableContainerizedDriver")
    browser.wait("$('places').dataset.shown === 'disableContainerizedDriver'")
    assert 0 < browser.ask("document.querySelectorAll('.place').length") < 10
    browser.ask("$('open').click()")
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.errors == []
