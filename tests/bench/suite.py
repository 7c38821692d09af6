"""`make bench`'s last step: how much longer the feature suite takes than as many empty pytest-bdd scenarios.

Each is run three times in a process of its own, without xdist; the quickest of each counts, by processor time, so that what
else the machine does matters little. The empty scenarios have no steps at all.
"""

from __future__ import annotations

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


def timed(folder: Path, what: str) -> tuple[int, float]:
    """Run pytest in a folder: how many tests passed, and the seconds of processor time it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-m", "pytest", *PLAIN, what], cwd=folder, capture_output=True, text=True, check=False)
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


def main() -> None:
    """Print both times and their ratio."""
    count, suite = quickest(ROOT, "features")
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder)
        scenarios = "".join(f"  Scenario: empty {number}\n" for number in range(count))
        (empty / "empty.feature").write_text(f"Feature: nothing\n{scenarios}")
        (empty / "test_empty.py").write_text('from pytest_bdd import scenarios\n\nscenarios("empty.feature")\n')
        same, nothing = quickest(empty, "test_empty.py")
    assert same == count, (same, count)
    sys.stdout.write(
        f"pytest features/: {suite:.1f} s for {count} scenarios; as many empty ones: {nothing:.1f} s; ratio {suite / nothing:.1f}\n"
    )


if __name__ == "__main__":
    main()
