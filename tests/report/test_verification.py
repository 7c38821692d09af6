"""What came of verifying an image."""

from __future__ import annotations

import json

from simulator.recordings.comparing import Mismatch
from simulator.report.verification import verification_document, verification_lines
from simulator.verifying.judging import Model, Tally, Verdict
from simulator.verifying.random_runs import Difference

FOUND = (Mismatch("log", "[3]", '"a"', '"b"'), Mismatch("exit_code", "", "1", "0"))
VERDICTS = [
    Verdict("world 1", unobserved=("exec",)),
    Verdict("world 2", found=FOUND),
    Verdict("world 3", excluded="a reason"),
    Verdict("world 4", unsteady=FOUND[1:]),
    Verdict("world 5", broken="no answer\n"),
]
WRITTEN = [(Difference(VERDICTS[1], ["world 9"], 7), "out/difference-1.yaml")]


def tally():
    counted = Tally()
    for verdict in VERDICTS:
        counted.count(verdict)
    return counted


def test_the_lines():
    """First differences, files, the count; what is equal is only counted."""
    assert list(verification_lines(tally(), VERDICTS, WRITTEN)) == [
        "world 2",
        '  log[3]: image "a", model "b"',
        "world 4: equal at a later attempt, at the first exit_code: image 1, model 0",
        "world 5: the runner failed: no answer",
        "out/difference-1.yaml: smallest world of world 2 (and 1 more like it), after 7 tries",
        '  log[3]: image "a", model "b"',
        "2 equal, 1 differ, 1 broken, 1 excluded (1 a reason), 1 fields unobserved",
    ]


def test_the_document():
    """All of it."""
    document = verification_document(Model("v0.12.0", frozenset({"x"})), tally(), VERDICTS, WRITTEN)
    assert json.loads(json.dumps(document)) == document
    assert {key: document[key] for key in ("format", "release", "without", "equal", "differ", "broken")} == {
        "format": 1,
        "release": "v0.12.0",
        "without": ["x"],
        "equal": 2,
        "differ": 1,
        "broken": 1,
    }
    assert (document["excluded"], document["unobserved"]) == ({"a reason": 1}, {"exec": 1})
    assert [len(world["differences"]) for world in document["worlds"]] == [0, 2, 0, 0, 0]
    assert document["worlds"][3]["unsteady"] == [{"field": "exit_code", "place": "", "image": "1", "model": "0"}]
    assert document["smallest"][0]["file"] == "out/difference-1.yaml"
    assert len(document["smallest"][0]["differences"]) == 2
