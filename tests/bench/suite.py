"""`make bench`'s last step: how much longer the feature suite takes than as many empty pytest-bdd scenarios.

Two kinds of empty ones, both plain pytest-bdd: the very scenarios of the suite (their rules, backgrounds, examples, steps and
tables), where each step does nothing; and as many scenarios that have no step. The first is what a suite of this size costs
before anything is simulated, and what the ratio is meant of; the second is the least that pytest can take for so many tests.

Each is run three times in a process of its own, without xdist; the quickest of each counts, by processor time, so that what
else the machine does matters little. All find their compiled modules from the second time on.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PLAIN: Final = ("-q", "-p", "no:xdist", "-p", "no:benchmark", "-p", "no:cacheprovider")
ROUNDS: Final = 3
STEPLESS: Final = 'from pytest_bdd import scenarios\n\nscenarios("empty.feature")\n'
DO_NOTHING: Final = """\
from pathlib import Path

from pytest_bdd import parsers, scenarios, step


@step(parsers.re("(?s).*"))
def nothing():
    pass


for path in sorted(Path(__file__).parent.rglob("*.feature")):
    scenarios(str(path))
"""


def timed(folder: Path, what: str) -> tuple[int, float]:
    """Run pytest in a folder: how many tests passed, and the seconds of processor time it took."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *PLAIN, what], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    passed = re.search(r"(\d+) passed", done.stdout)
    if done.returncode != 0 or passed is None:
        sys.exit(done.stdout + done.stderr)
    return int(passed[1]), took


def quickest(folder: Path, what: str) -> tuple[int, float]:
    """The best of a few rounds."""
    rounds = [timed(folder, what) for _ in range(ROUNDS)]
    return rounds[0][0], min(took for _, took in rounds)


def write_stepless(folder: Path, count: int) -> None:
    """So many scenarios without a step."""
    scenarios = "".join(f"  Scenario: empty {number}\n" for number in range(count))
    (folder / "empty.feature").write_text(f"Feature: nothing\n{scenarios}")
    (folder / "test_empty.py").write_text(STEPLESS)


def write_doing_nothing(folder: Path) -> None:
    """The suite's own feature files, with one step definition that fits every step. Tags are left out: they need registering."""
    for path in (ROOT / "features").glob("*/*.feature"):
        place = folder / path.parent.name
        place.mkdir(exist_ok=True)
        lines = path.read_text().splitlines(keepends=True)
        (place / path.name).write_text("".join(line for line in lines if not line.lstrip().startswith("@")))
    (folder / "test_empty.py").write_text(DO_NOTHING)


def main() -> None:
    """Print the three times and the two ratios."""
    count, suite = quickest(ROOT, "features")
    told = [f"pytest features/: {suite:.1f} s for {count} scenarios"]
    for title, write in (
        ("the same with steps that do nothing", write_doing_nothing),
        ("as many without a step", lambda folder: write_stepless(folder, count)),
    ):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write(folder)
            same, nothing = quickest(folder, "test_empty.py")
        assert same == count, (title, same, count)
        told.append(f"{title}: {nothing:.1f} s, ratio {suite / nothing:.1f}")
    sys.stdout.write("; ".join(told) + "\n")


if __name__ == "__main__":
    main()
