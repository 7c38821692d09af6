"""A node over time: what happens to it while a chart of the GPU Operator runs on it and people do things.

A story names a host, a chart and steps; the page "A node over time" of the documentation says how one is written. The timeline has lanes: people, host,
driver-manager, kubelet, labels, GPU drivers, allocatable.

Example:
  dmsim node run packaged-driver
  dmsim node run packaged-driver --lane kubelet --lane driver-manager
  dmsim node run my-story.yaml -o html > story.html
"""

from __future__ import annotations

import argparse
import json
import sys

from simulator.node.story import load_story, play
from simulator.node.timeline import LANES
from simulator.reading import printable
from simulator.report.node_page import page
from simulator.report.node_story import document, mermaid, table
from simulator.scenario import names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("story", metavar="STORY", help=f"a story file, or one of {', '.join(names('stories'))}")
    parser.add_argument("--lane", choices=LANES, action="append", help="of the text: only this lane; may be repeated")
    parser.add_argument("-o", "--output", choices=("text", "json", "mermaid", "html"), default="text", help="form (default text)")


def run(options: argparse.Namespace) -> int:
    """Play it. Exits 0, however the node ends."""
    played = play(load_story(options.story))
    match options.output:
        case "json":
            text = json.dumps(document(played), indent=2) + "\n"
        case "mermaid":
            text = mermaid(played)
        case "html":
            text = page(played)
        case _:
            text = "".join(f"{printable(line)}\n" for line in table(played, options.lane or LANES))
    sys.stdout.write(text)
    return 0
