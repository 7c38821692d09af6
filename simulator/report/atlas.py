"""An atlas in words, and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Final

from simulator.explore.atlas import Atlas, Entry, function_of_cut
from simulator.explore.walking import START, Node

FORMAT: Final = 1
"""Of `dmsim explore -o json`."""
_COLUMNS: Final = ("ID", "WALKS", "ENDS", "LABELS", "CORDON", "MODULES", "MOUNTS", "PODS", "FAILED")


def atlas_lines(found: Atlas, text: str) -> Iterator[str]:
    """A table of outcomes, those that hold a text; the worst first."""
    graph = found.graph
    shown = entries_with(found, text)
    rows = [_COLUMNS, *((entry.id, f"{entry.walks:,}", *entry.outcome) for entry in shown)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield ""
    yield (
        f"{graph.flow.release.tag}: {found.walks:,} walks end in {len(found.entries)} outcomes,"
        f" {len(shown)} shown; {len(graph.nodes):,} nodes, {graph.runs:,} runs"
    )


def entries_with(found: Atlas, text: str) -> list[Entry]:
    """The outcomes whose line or ID holds a text."""
    return [entry for entry in found.entries if text.lower() in f"{entry.id} {entry.outcome.text}".lower()]


def atlas_document(found: Atlas, text: str) -> dict[str, Any]:
    """The document of `-o json`."""
    graph = found.graph
    return {
        "format": FORMAT,
        "release": graph.flow.release.tag,
        "bounds": dataclasses.asdict(graph.bounds),
        "runs": graph.runs,
        "nodes": len(graph.nodes),
        "edges": graph.stretches,
        "walks": found.walks,
        "outcomes": [entry_document(found, entry) for entry in entries_with(found, text)],
    }


def entry_document(found: Atlas, entry: Entry) -> dict[str, Any]:
    """One outcome."""
    cuts = [START, *(edge.leads_to.cut for edge in entry.witness.edges if isinstance(edge.leads_to, Node))]
    return {
        "id": entry.id,
        **entry.outcome._asdict(),
        "walks": entry.walks,
        "decisions": [dataclasses.asdict(decision) for decision in entry.decisions],
        "last_lines": list(entry.last_lines),
        "witness": {
            "answers": list(entry.witness.told),
            "functions": [function_of_cut(cut, found.graph.flow) for cut in cuts],
            "log": [f"{level}: {message}" for level, message in entry.witness.log],
        },
    }
