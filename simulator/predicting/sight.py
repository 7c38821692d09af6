"""What an answer rests on: how far anybody looked at the node, and what the node itself shows of earlier tries.

What was not seen and what was assumed instead are sentences (`snapshot.Bundle`); those that decide a verdict are known here
by their words. What was tried before is in the status of the pod that runs driver-manager.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from simulator.cluster.objects import Pod
from simulator.node.pods import DRIVER_MANAGER_CONTAINER

_HOST: Final = re.compile(r"the host itself\b")
_PODS_THAT_ASK: Final = re.compile(r"(GPUs?|nvidia\.com/\S+)\b.*\b(asked for|requested)\b.*\bpods?\b", re.IGNORECASE)
_HOLDERS: Final = re.compile(r"\bprocesses\b.*\bhold the modules\b[^:]*: (?P<names>.+)")


@dataclass(frozen=True, slots=True)
class Sight:
    """What was not seen, and what was assumed instead: sentences for a person."""

    unseen: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()

    @property
    def is_host_seen(self) -> bool:
        """Did anybody look at the host? If not, it is made up of what the cluster says."""
        return not any(map(_HOST.match, self.unseen))

    @property
    def pods_that_ask(self) -> str:
        """What says that pods which are not known have asked for GPUs; "" if nothing does."""
        return next((sentence for sentence in self.unseen if _PODS_THAT_ASK.search(sentence)), "")

    @property
    def holders(self) -> str:
        """The processes beside the pods' that hold the modules, by name; "" if none is named."""
        found = next((match for sentence in self.assumed if (match := _HOLDERS.search(sentence))), None)
        return found["names"] if found else ""

    @property
    def gaps(self) -> str:
        """What a success is subject to, in short; "" if all was seen."""
        others = len(self.unseen) - (not self.is_host_seen)
        more = f"{others} {'thing' if others == 1 else 'things'} "
        if not self.is_host_seen:
            return "nobody looked at the host" + (f", and {more}more {'was' if others == 1 else 'were'} not seen" if others else "")
        return f"{more}{'was' if others == 1 else 'were'} not seen, named at the end" if others else ""


@dataclass(frozen=True, slots=True)
class Failing:
    """A driver-manager that fails on the node, as its pod's status tells: it has ended, not with exit code 0, and is not done."""

    pod: str
    """namespace/name."""
    restarts: int
    exit_code: int

    def __str__(self) -> str:
        """In words."""
        times = f", {self.restarts} {'restart' if self.restarts == 1 else 'restarts'} so far" if self.restarts else ""
        return f"{DRIVER_MANAGER_CONTAINER} of pod {self.pod} fails on the node: last exit code {self.exit_code}{times}"


def failing(pod: Pod) -> Failing | None:
    """Does a pod's driver-manager fail? None where it does not, or its status was not saved."""
    for status in _statuses(pod):
        code = next(_ends(status), None)
        if status.get("name") == DRIVER_MANAGER_CONTAINER and status.get("ready") is not True and code:
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
