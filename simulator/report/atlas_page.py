"""An atlas as a page: the outcomes, and the graph of decisions at the level of upstream's functions."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from simulator.explore.atlas import Atlas, Outcome, calls_of_cut, decision_of, file_of_cut, function_of_cut
from simulator.explore.branches import notes_of
from simulator.explore.stretches import Cut, End
from simulator.report.atlas import entry_document
from simulator.report.page import make_page, part

_PACKAGE = "simulator.report"
_MOST_LINES = 12
"""So many lines of a place's log are shown."""


def atlas_page(found: Atlas) -> str:
    """The page's text."""
    return make_page(
        f"Atlas of driver-manager {found.graph.flow.release.tag}",
        body=part(_PACKAGE, "atlas_page.html"),
        style=part(_PACKAGE, "atlas_page.css"),
        script=part(_PACKAGE, "atlas_page.js"),
        data=page_data(found),
    )


def page_data(found: Atlas) -> dict[str, Any]:
    """What the page's script draws: nodes of one cut are one place, edges between two places with one answer are one."""
    graph = found.graph
    numbers: dict[Cut, int] = {}
    for node in reversed(graph.nodes):
        numbers.setdefault(node.cut, len(numbers))
    places: list[dict[str, Any]] = [
        {
            "name": function_of_cut(cut, graph.flow),
            "file": file_of_cut(cut),
            "calls": list(calls_of_cut(cut, graph.flow)),
            "edges": [],
            "log": [],
        }
        for cut in numbers
    ]
    edges: dict[tuple[int, int | str], Counter[int]] = {}
    stretches: Counter[tuple[int, int | str]] = Counter()
    for node in graph.nodes:
        place = places[numbers[node.cut]]
        for edge in node.edges:
            to: int | str = _end(edge.leads_to) if isinstance(edge.leads_to, End) else numbers[edge.leads_to.cut]
            key = numbers[node.cut], to
            stretches[key] += 1
            edges.setdefault(key, Counter()).update(set(notes_of(edge.way)))
            for _, line in edge.log:
                if len(place["log"]) < _MOST_LINES and line not in place["log"]:
                    place["log"].append(line)
    for (start, to), notes in edges.items():
        common = {note for note, count in notes.items() if count == stretches[start, to]}
        here: Counter[int] = Counter()
        for (other, _), more in edges.items():
            here.update(more.keys() if other == start else ())
        ways = sum(other == start for other, _ in edges)
        telling = [decision_of(note) for note in sorted(common) if ways == 1 or here[note] < ways]
        places[start]["edges"].append(
            {"to": to, "stretches": stretches[start, to], "answers": [[one.function, one.text, one.answer] for one in telling[:6]]}
        )
    outcomes = [
        {**entry_document(found, entry), "path": [0, *(_place(edge.leads_to, numbers) for edge in entry.witness.edges)]}
        for entry in found.entries
    ]
    return {
        "release": graph.flow.release.tag,
        "walks": found.walks,
        "nodes": len(graph.nodes),
        "runs": graph.runs,
        "options": " ".join(f"--{name.replace('_', '-')} {value}" for name, value in asdict(graph.bounds).items()),
        "columns": list(Outcome._fields),
        "places": places,
        "outcomes": outcomes,
    }


def _end(end: End) -> str:
    return "panic" if end.panics else "never" if end.exit_code is None else f"exit {end.exit_code}"


def _place(leads_to: Any, numbers: dict[Cut, int]) -> int | str:
    return _end(leads_to) if isinstance(leads_to, End) else numbers[leads_to.cut]
