"""Recordings of an image, made: each case run once, what it did written in the recordings' form.

A recording is written whole or not at all, so one that was interrupted is gone on with: what is there, of this very image
and input, is kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.recordings.layout import Recording, write_recording
from simulator.recordings.worlds import world_of
from simulator.runners.container.unfit import Unfit
from simulator.runners.parallel import in_parallel
from simulator.verifying.images import RunsWorlds
from simulator.verifying.judging import plain


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of one case: written, kept from an earlier time, or excluded with a reason."""

    case: str
    kept: bool = False
    excluded: str = ""


@dataclass(frozen=True, slots=True)
class Recorder:
    """Where recordings go, of which release, and which image they are of (its id, "" if unknown)."""

    out: Path
    release: str
    image: str = ""

    def record(self, cases: Iterable[Recording], run: RunsWorlds, *, jobs: int = 1, again: bool = False) -> Iterator[Recorded]:
        """Record the cases, `jobs` at once; yields each as it is done. `again` keeps nothing. Raises InputError."""
        todo = []
        for case in cases:
            if not again and self.is_recorded(case):
                yield Recorded(case.case, kept=True)
            else:
                todo.append((case, world_of(case)))

        def act(item: tuple[Recording, Any]) -> Recorded:
            case, world = item
            try:
                observed = plain(run(world))
            except Unfit as unfit:
                return Recorded(case.case, excluded=unfit.reason)
            write_recording(self.out, self.release, case.case, observed, made=self._made(case))
            return Recorded(case.case)

        for _, recorded in in_parallel(act, todo, jobs, run.cancel):
            yield recorded

    def is_recorded(self, case: Recording) -> bool:
        """Is a whole recording of this image and this input there?"""
        try:
            document = json.loads((self.out / self.release / f"{case.case}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return False
        return (
            isinstance(document, dict)
            and isinstance(document.get("observed"), dict)
            and (document.get("id"), document.get("upstream"), document.get("made")) == (case.case, self.release, self._made(case))
        )

    def _made(self, case: Recording) -> dict[str, str]:
        text = json.dumps(case.input, sort_keys=True, separators=(",", ":"))
        return {"image": self.image, "input": "sha256:" + hashlib.sha256(text.encode()).hexdigest()}
