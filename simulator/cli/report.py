"""The results of scenarios as a page, as Markdown or as JSON.

`pytest --dmsim-results FILE` writes what each scenario did; files of several runs (releases, a container) make one report. The
page needs nothing but itself: it can be searched, filtered and printed, and shows for each scenario what driver-manager did.

Example:
  pytest --dmsim-results results.jsonl
  dmsim report results.jsonl -o html > report.html
  dmsim report v0.10.0.jsonl v0.12.0.jsonl --html report.html
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from simulator.recordings.layout import write_whole
from simulator.report.results import FAILED, read_results
from simulator.report.suite_markdown import suite_markdown
from simulator.report.suite_page import suite_data, suite_page


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("results", metavar="RESULTS", nargs="+", help="a file that pytest --dmsim-results wrote")
    parser.add_argument("-o", "--output", choices=("markdown", "json", "html"), default="markdown", help="form (default markdown)")
    parser.add_argument("--html", metavar="FILE", help="write the page to a file, and print the form all the same")
    parser.add_argument("--title", metavar="TEXT", default="driver-manager scenarios", help="the page's title")


def run(options: argparse.Namespace) -> int:
    """Make the report. Exits 0, or 1 if a scenario failed. Raises InputError."""
    results = [read_results(Path(name)) for name in options.results]
    if options.html is not None:
        write_whole(Path(options.html), suite_page(results, options.title))
    match options.output:
        case "html":
            text = suite_page(results, options.title)
        case "json":
            text = json.dumps(suite_data(results), indent=1, ensure_ascii=False) + "\n"
        case _:
            text = suite_markdown(results) + "\n"
    sys.stdout.write(text)
    return int(any(ran.outcome == FAILED for one in results for ran in one.scenarios))
