"""One recording, replayed: what the model does in its world, and how that differs, whichever program it is of."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from simulator.kubevirt.cozystack import releases
from simulator.manager.releases import RELEASES, SHELL_RELEASES
from simulator.node.plugin.releases import PLUGINS
from simulator.reading import InputError
from simulator.recordings.comparing import Mismatch, exact_mismatches, mismatches, vfio_mismatches
from simulator.recordings.cozystack_observation import cozystack_observation, cozystack_others
from simulator.recordings.form import OBSERVED, SHELL_OBSERVED, VFIO_OBSERVED, check
from simulator.recordings.layout import COZYSTACK, PLUGIN, VFIO_MANAGE, Recording
from simulator.recordings.observation import observation
from simulator.recordings.plugin_observation import plugin_observation
from simulator.recordings.shell_comparing import shell_mismatches
from simulator.recordings.shell_observation import shell_observation
from simulator.recordings.vfio_observation import vfio_observation
from simulator.recordings.vfio_worlds import vfio_world_of
from simulator.recordings.worlds import world_of
from simulator.runners.simulated import simulate
from simulator.runners.vfio import simulate_vfio

NEIGHBOUR_OBSERVATIONS: Final[Mapping[str, Callable[[Recording], dict[str, Any]]]] = {
    PLUGIN: plugin_observation,
    COZYSTACK: cozystack_observation,
}
"""A neighbour -> what the model makes of a recorded case."""

NEIGHBOUR_RELEASES: Final = frozenset({*PLUGINS, *releases()})
"""The neighbours' releases that are modelled; none is called like one of driver-manager's."""


def replayed(recording: Recording, *, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The model's own observation of a case. `without` leaves named changes out. Raises InputError."""
    if recording.neighbour:
        return _plain(NEIGHBOUR_OBSERVATIONS[recording.neighbour](recording))
    if recording.release not in RELEASES:
        raise InputError(recording.file, "", f"is of {recording.release}, which the model does not know", "use --release")
    if recording.program == VFIO_MANAGE:
        observed = vfio_observation(simulate_vfio(vfio_world_of(recording), recording.release, without=without))
    elif recording.release in SHELL_RELEASES:
        observed = shell_observation(simulate(world_of(recording), recording.release, without=without))
    else:
        observed = observation(simulate(world_of(recording), recording.release, without=without))
    return _plain(observed)


def replayed_others(recording: Recording) -> dict[str, Any]:
    """The model's further observations of a case, under their recordings' names. Raises InputError."""
    return _plain(cozystack_others(recording)) if recording.neighbour == COZYSTACK else {}


def _others_that_differ(recording: Recording) -> list[Mismatch]:
    """The further observations, held against the model's. One that is not recorded equals the first."""
    simulated = replayed_others(recording)
    return exact_mismatches(recording.others, simulated) if recording.others or simulated else []


def _plain(observed: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON has it."""
    plain: dict[str, Any] = json.loads(json.dumps(observed))
    return plain


def differences(recording: Recording, simulated: Mapping[str, Any]) -> list[Mismatch]:
    """Every field in which an observation differs from the recording; empty if they agree. Raises InputError."""
    with _observed_form(recording):
        if recording.neighbour:
            return [*exact_mismatches(recording.observed, simulated), *_others_that_differ(recording)]
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
