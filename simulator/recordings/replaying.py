"""One recording, replayed: what the model does in its world, and how that differs, whichever program it is of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from simulator.manager.releases import RELEASES, SHELL_RELEASES
from simulator.reading import InputError
from simulator.recordings.comparing import Mismatch, mismatches, vfio_mismatches
from simulator.recordings.form import OBSERVED, SHELL_OBSERVED, VFIO_OBSERVED, check
from simulator.recordings.layout import VFIO_MANAGE, Recording
from simulator.recordings.observation import observation
from simulator.recordings.shell_comparing import shell_mismatches
from simulator.recordings.shell_observation import shell_observation
from simulator.recordings.vfio_observation import vfio_observation
from simulator.recordings.vfio_worlds import vfio_world_of
from simulator.recordings.worlds import world_of
from simulator.runners.simulated import simulate
from simulator.runners.vfio import simulate_vfio


def replayed(recording: Recording, *, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The model's own observation of a case. `without` leaves named changes out. Raises InputError."""
    if recording.release not in RELEASES:
        raise InputError(recording.file, "", f"is of {recording.release}, which the model does not know", "use --release")
    if recording.program == VFIO_MANAGE:
        observed = vfio_observation(simulate_vfio(vfio_world_of(recording), recording.release, without=without))
    elif recording.release in SHELL_RELEASES:
        observed = shell_observation(simulate(world_of(recording), recording.release, without=without))
    else:
        observed = observation(simulate(world_of(recording), recording.release, without=without))
    plain: dict[str, Any] = json.loads(json.dumps(observed))
    return plain


def differences(recording: Recording, simulated: Mapping[str, Any]) -> list[Mismatch]:
    """Every field in which an observation differs from the recording; empty if they agree. Raises InputError."""
    with _observed_form(recording):
        if recording.program == VFIO_MANAGE:
            return vfio_mismatches(recording.release, recording.observed, simulated)
        if recording.release in SHELL_RELEASES:
            return shell_mismatches(recording.observed, simulated, recording.time_bound)
        return mismatches(recording.release, recording.observed, simulated)


@contextmanager
def _observed_form(recording: Recording) -> Iterator[None]:
    """What breaks on an observation of another form is an InputError that names its place. Looked for only where something breaks."""
    try:
        yield
    except RecursionError:
        raise InputError(recording.file, "observed", "is nested too deeply", "see the format of recordings") from None
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        form = OBSERVED
        if recording.program == VFIO_MANAGE:
            form = VFIO_OBSERVED
        elif recording.release in SHELL_RELEASES:
            form = SHELL_OBSERVED
        check(recording.observed, form, recording.file, "observed")
        raise  # it is of the form; the mistake is the comparison's
