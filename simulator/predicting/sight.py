"""What an answer rests on: how far anybody looked at the node, and what the node itself shows of earlier tries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from simulator.cluster.objects import Pod
from simulator.manager.charts import DRIVER_MANAGER_CONTAINER


@dataclass(frozen=True, slots=True)
class Sight:
    """How far whoever described the node looked. `unseen` and `assumed` are sentences for a person."""

    unseen: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    is_host_seen: bool = True
    """Did anybody look at the host? If not, it is made up of what the cluster says."""
    unsaved_gpus: int = 0
    """So many GPUs are allocated to pods whose requests are not known."""

    @property
    def gaps(self) -> str:
        """What a success is subject to, in short; "" if all was seen."""
        others = len(self.unseen) - (not self.is_host_seen)
        verb = "was" if others == 1 else "were"
        if not self.is_host_seen:
            more = f", and {_things(others)} more {verb} not seen" if others > 0 else ""
            return f"nobody looked at the host{more}"
        return f"{_things(others)} {verb} not seen, named at the end" if others else ""


def _things(count: int) -> str:
    return f"{count} {'thing' if count == 1 else 'things'}"


@dataclass(frozen=True, slots=True)
class Failing:
    """A driver-manager that fails on the node, as its pod's status tells: its last end was not with exit code 0."""

    pod: str
    """namespace/name."""
    restarts: int
    exit_code: int | None
    """None: the kubelet waits to start it again, and nothing says how it ended."""

    def __str__(self) -> str:
        """In words."""
        code = "" if self.exit_code is None else f", last exit code {self.exit_code}"
        times = f"{self.restarts} {'restart' if self.restarts == 1 else 'restarts'} so far"
        return f"{DRIVER_MANAGER_CONTAINER} of pod {self.pod} fails on the node: {times}{code}"


def failing(pod: Pod) -> Failing | None:
    """Does a pod's driver-manager fail? None where it does not, or its status was not saved."""
    for status in _statuses(pod):
        code = next(_ends(status), None)
        fails = bool(code) if code is not None else _waits_to_start_again(status)
        if fails and status.get("name") == DRIVER_MANAGER_CONTAINER and status.get("ready") is not True:
            restarts = status.get("restartCount")
            return Failing(pod.full_name, restarts if isinstance(restarts, int) else 0, code)
    return None


def _statuses(pod: Pod) -> Iterator[Mapping[str, Any]]:
    found = pod.status.get("initContainerStatuses")
    return (status for status in found if isinstance(status, Mapping)) if isinstance(found, list | tuple) else iter(())


def _ends(status: Mapping[str, Any]) -> Iterator[int]:
    """The exit codes of a container's tries, the latest first."""
    for part in ("state", "lastState"):
        state = status.get(part)
        ended = state.get("terminated") if isinstance(state, Mapping) else None
        code = ended.get("exitCode") if isinstance(ended, Mapping) else None
        if isinstance(code, int):
            yield code


def _waits_to_start_again(status: Mapping[str, Any]) -> bool:
    state = status.get("state")
    waiting = state.get("waiting") if isinstance(state, Mapping) else None
    return isinstance(waiting, Mapping) and waiting.get("reason") == "CrashLoopBackOff"
