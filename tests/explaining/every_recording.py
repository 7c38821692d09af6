"""`explain` on the log of every recording, whole and cut: `make explain-recordings`, and a sample of it as a test.

Held: the true release is always found, with its exit code (None where the log is cut); so is every other release whose recording
of the same world prints the same log; and each flow that is found prints the log when its choices are made once more.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from simulator.explaining import go_answers, shell_answers
from simulator.explaining.explanation import Explanation, explain, last_run
from simulator.explaining.matching import Matcher
from simulator.explaining.search import Candidate
from simulator.explaining.shell_steering import steer as shell_steer
from simulator.explaining.steering import steer
from simulator.explaining.text import ECHO, LOG, read, unwrapped
from simulator.explore.choosing import Chooser
from simulator.manager.releases import GO_RELEASES, flow, shell_flow
from simulator.recordings.layout import PROGRAM, Recording
from simulator.recordings.logs import ended_with, log_lines
from tests.recorded import recorded

CUTS = ("whole", "tail missing", "head missing")


def recordings() -> list[Recording]:
    """Those of driver-manager that left a log."""
    found = (recording for recording in recorded() if recording.program == PROGRAM)
    return [recording for recording in found if log_lines(recording)]


def cut(lines: Sequence[str], how: str, chance: random.Random) -> list[str]:
    """The log without its end or its beginning, at least a line of it."""
    if how == "whole" or len(lines) < 2:
        return list(lines)
    at = chance.randrange(1, len(lines))
    return list(lines[:at] if how == "tail missing" else lines[at:])


def problems(recording: Recording, lines: Sequence[str], found: Explanation, how: str, twins: Iterable[Recording]) -> Iterator[str]:
    """What is wrong with an explanation, a line each."""
    have = {(candidate.release, candidate.exit_code) for candidate in found.candidates}
    is_cut = how == "tail missing" and len(log_lines(recording)) > len(lines)
    wanted = [(recording.release, None if is_cut else ended_with(recording))]
    if how == "whole":
        wanted += [(twin.release, ended_with(twin)) for twin in twins if log_lines(twin) == list(lines)]
    for release, exit_code in wanted:
        if (release, exit_code) not in have:
            yield f"{recording.release} {recording.case} ({how}): lacks {release} with exit code {exit_code}"
    if found.from_beginning:
        text = "".join(lines)
        for candidate in found.candidates:
            if not replayed(candidate, text):
                yield f"{recording.release} {recording.case} ({how}): {candidate.release} does not print it once more"


def replayed(candidate: Candidate, text: str) -> bool:
    """Does the run that a candidate's choices make print the log, with the same decisions? Of a log that has its beginning."""
    entries, raws, _ = last_run(max((read(text), *map(read, unwrapped(text))), key=lambda log: len(log.entries) + len(log.raws)))
    chooser = Chooser(candidate.choices)
    if candidate.release in GO_RELEASES:
        matcher = Matcher(entries, LOG, started=True)
        run = steer(flow(candidate.release), matcher, go_answers.harvest(entries, raws), chooser)
    else:
        lines, beside = shell_answers.told(entries, raws)
        matcher = shell_answers.ShellMatcher(lines, ECHO, started=True)
        run = shell_steer(shell_flow(candidate.release), matcher, shell_answers.harvest(lines, beside), chooser)
    made = run.decisions if candidate.exit_code is not None else run.decisions[: run.at_last_line]
    return run.fits and candidate.exit_code in {run.exit_code, None} and made == candidate.decisions


def main(seed: int) -> int:
    """All of them. Exits 1 if anything is wrong."""
    every = recordings()
    twins = defaultdict(list)
    for recording in every:
        twins[recording.case].append(recording)
    failed = 0
    for how in CUTS:
        chance = random.Random(seed)
        sizes, times, wrong = [], [], []
        for recording in every:
            lines = cut(log_lines(recording), how, chance)
            begun = time.perf_counter()
            found = explain("".join(lines))
            times.append(time.perf_counter() - begun)
            sizes.append(len(found.candidates))
            wrong += problems(recording, lines, found, how, twins[recording.case])
        sys.stdout.write(
            f"{how}: {len(every)} logs, {len(wrong)} wrong, candidates: median {statistics.median(sizes):g}, most {max(sizes)};"
            f" ms: median {1000 * statistics.median(times):.0f}, most {1000 * max(times):.0f}\n"
        )
        sys.stdout.writelines(f"  {line}\n" for line in wrong)
        sys.stdout.flush()
        failed += len(wrong) if how != "head missing" else 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1))
