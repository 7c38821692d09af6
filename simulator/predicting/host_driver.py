"""Host driver or container driver, and why: the release's host check, asked once more of a fresh host."""

from __future__ import annotations

import os
from typing import Final

from simulator import messages as m
from simulator.host.commands import Started
from simulator.host.tree import HOST
from simulator.manager.shell import messages as shell
from simulator.manager.shell.script import HOST_NVIDIA_SMI
from simulator.manager.steps import HOST_QUERY
from simulator.predicting.answers import DriverAnswer
from simulator.predicting.reading import says
from simulator.predicting.run import Run
from simulator.trace import ChildProcess

_COMMAND: Final = "nvidia-smi"


def driver_answer(run: Run) -> DriverAnswer:
    """The host check of a run."""
    asked = next((event for event in run.outcome.events if isinstance(event, ChildProcess) and _COMMAND in event.argv), None)
    host = run.host
    found = host.commands.look_up(_COMMAND, host.path, HOST) if host.tree.exists(HOST) else None
    place = found.path if isinstance(found, Started) else ""
    before, bound = set(host.kernel.loaded()), host.kernel.gpu_drivers()
    exit_code, printed = None, ""
    argv = asked.argv if asked else HOST_QUERY
    if asked is not None:
        exit_code, host = asked.exit_code, run.fresh_host()
        result = host.run(argv)
        printed = (result.stdout or result.stderr).strip()
    if says(run.outcome, m.FORCED_HOST_DRIVER_UNBIND):
        kind = "host-overridden"
    elif says(run.outcome, m.HOST_DRIVER_DETECTED, shell.PRE_INSTALLED):
        kind = "host"
    elif asked is None and not _was_reached(run):
        kind = "unknown"
    else:
        kind = "container"
    label = run.node_labels.get(run.workload.selector)
    return DriverAnswer(
        kind=kind,
        why=_as_far_as_seen(run, _why(run, kind, place, found, asked, printed)),
        seen=run.sight.is_host_seen,
        found=place,
        command=" ".join(argv),
        exit_code=exit_code,
        printed=printed,
        elsewhere=_elsewhere(run, place),
        loads=tuple(name for name in host.kernel.loaded() if name not in before),
        binds=tuple(f"{address} -> {driver}" for address, driver in host.kernel.gpu_drivers().items() if driver != bound[address]),
        label=label,
        scheduled=label in {None, "true"},
        nouveau="nouveau" in run.outcome.before.modules,
    )


def _was_reached(run: Run) -> bool:
    """Did the run come to the host check?"""
    return says(run.outcome, m.FETCHING_LABELS, shell.GETTING_LABEL, m.FAILED_TO_GET_NODE) or says(run.outcome, m.STARTING)


def _why(run: Run, kind: str, place: str, found: Started | int | None, asked: ChildProcess | None, printed: str) -> str:
    if kind == "unknown":
        return "the run ends before it asks the host"
    if asked is None and run.resolved.release.is_script:
        return f"there is no {HOST_NVIDIA_SMI.removeprefix(HOST)} on the host, and the script looks nowhere else"
    if asked is None:
        return "the image has no chroot to ask with, which counts as: no host driver"
    if kind in {"host", "host-overridden"}:
        said = f'prints "{_first(printed)}"' if printed else "prints nothing but white space"
        return f"{place} is started in the host's root, exits 0 and {said}; any output with exit code 0 counts"
    if isinstance(found, int):
        return f"no nvidia-smi can be started in the host's root along the image's PATH: {os.strerror(found)}"
    if found is None:
        return "the host's root is not at /host"
    if asked.exit_code:
        return f"{place} exits {asked.exit_code}" + (f': "{_first(printed)}"' if printed else "")
    return f"{place} exits 0 but prints nothing"


def _as_far_as_seen(run: Run, why: str) -> str:
    """A reason that lies in a host which nobody looked at is no fact."""
    return why if run.sight.is_host_seen else f"nobody looked at the host; what is assumed of it: {why}"


def _first(text: str) -> str:
    return text.splitlines()[0] if text else ""


def _elsewhere(run: Run, place: str) -> tuple[str, ...]:
    """Programs and links of that name that are not the one that is started."""
    host = run.world.host
    paths = {program.path for program in host.programs} | set(host.links)
    return tuple(sorted(path for path in paths if path.rpartition("/")[2] == _COMMAND and path != place))
