"""`make atlas`: every path of each Go release, and the ordinary world of each edge's witness, run.

python -m tests.explore.every_witness [faults=0 pods=1 ...]
"""

from __future__ import annotations

import sys
import time

from simulator.explore.atlas import atlas, prove
from simulator.explore.made_up import Bounds
from simulator.explore.walking import walk
from simulator.manager.releases import GO_RELEASES, flow
from simulator.progress import progress


def say(text: str) -> None:
    """A line at once, also into a pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Exits 1 if a witness takes another path than it was made for."""
    bounds = Bounds(**{name: int(value) for name, _, value in (argument.partition("=") for argument in arguments)})
    failed = False
    for release in GO_RELEASES:
        start = time.monotonic()
        with progress(f"{release}, runs", None) as bar:
            graph = walk(flow(release), bounds, bar.advance)
        found = atlas(graph)
        with progress(f"{release}, witnesses", None) as bar:
            proof = prove(graph, advance=bar.advance)
        say(
            f"{release}: {graph.runs:,} runs, {len(graph.nodes):,} nodes, {found.walks:,} walks, {len(found.entries)} outcomes;"
            f" {proof.proven:,} witnesses proven, {len(proof.differing)} not; {time.monotonic() - start:.0f} s"
        )
        for told in proof.differing[:5]:
            say(f"  another path: {told}")
        failed |= bool(proof.differing)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
