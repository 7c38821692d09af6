"""`make mutation`'s last step: the score of the last mutmut run, and the survivors that have no reason yet.

Survivors with a reason stand in `tests/mutation-survivors.txt`: a pattern of the mutant's name, then why it changes
nothing that can be seen. Exit code 1 below 90 %.
"""

from __future__ import annotations

import fnmatch
import subprocess
import sys
from collections import Counter
from pathlib import Path

LEAST = 90
REASONS = Path(__file__).with_name("mutation-survivors.txt")
ALIVE = {"survived", "no tests", "suspicious"}


def results() -> dict[str, str]:
    """Mutant -> what became of it."""
    command = [str(Path(sys.executable).with_name("mutmut")), "results", "--all", "true"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    pairs = (line.strip().rsplit(": ", 1) for line in printed.splitlines() if ": " in line)
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def main() -> int:
    """Print the score."""
    found = results()
    reasons = [line.split(maxsplit=1)[0] for line in REASONS.read_text().splitlines() if line and not line.startswith("#")]
    alive = [name for name, status in found.items() if status in ALIVE]
    unexplained = [name for name in alive if not any(fnmatch.fnmatch(name, pattern) for pattern in reasons)]
    counts = Counter(found.values())
    score = 100 * (len(found) - len(alive)) / len(found) if found else 0.0
    sys.stdout.write(f"{len(found)} mutants: {', '.join(f'{count} {status}' for status, count in counts.most_common())}\n")
    sys.stdout.write(f"mutation score {score:.1f} %; {len(alive)} survivors, {len(unexplained)} of them without a reason\n")
    sys.stdout.writelines(f"  {name}\n" for name in unexplained)
    return score < LEAST


if __name__ == "__main__":
    sys.exit(main())
