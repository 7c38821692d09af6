"""The schemas of what `-o json` prints.

They were read off what the commands print for many inputs (`python -m tests.schemas.printing` reads it again), and lie
beside this module as data; a test holds every output against them. A key that is not there today may come: programs pass over
what they do not know.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, Final

from simulator.schemas.words import Schema

RESULTS: Final = {
    "cluster": "dmsim clusters NAME -o json",
    "clusters": "dmsim clusters -o json",
    "compare": "dmsim compare R1 R2 --host NAME -o json",
    "compare-all": "dmsim compare R1 R2 -o json",
    "compare-diff": "dmsim compare --diff FILE -o json",
    "diagnose": "dmsim diagnose -o json",
    "explain": "dmsim explain -o json",
    "explore": "dmsim explore -o json",
    "faults": "dmsim faults -o json",
    "flow": "dmsim releases --flow R -o json",
    "host": "dmsim hosts NAME -o json",
    "host-plan": "dmsim host plan -o json",
    "hosts": "dmsim hosts -o json",
    "node-run": "dmsim node run -o json",
    "passthrough-check": "dmsim passthrough check -o json",
    "passthrough-migrate": "dmsim passthrough migrate -o json",
    "predict": "dmsim predict -o json",
    "predict-compare": "dmsim predict --compare R2 -o json",
    "releases": "dmsim releases -o json",
    "resource-names": "dmsim resource-names -o json",
    "verdicts": "dmsim hosts --verdict -o json",
    "vfio": "dmsim vfio bind|unbind -o json",
}
"""Name -> the command that prints it."""


@cache
def _all() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(resources.files("simulator.schemas").joinpath("results.json").read_text("utf-8"))
    return found


def result(name: str) -> Schema:
    """The schema of one of `RESULTS`."""
    return {**_all()[name]}
