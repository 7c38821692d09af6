"""What a run did to node and cluster, whichever program did it: the common view of the shell and the Go releases.

Two programs that do the same in other words and by other requests have the same effects. Left out is what nobody but a reader
of the log notices: texts, reads, requests that changed nothing, calls that failed, and how long it took.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from simulator.gocompat import SECOND
from simulator.report.text import ending
from simulator.trace import ApiRequest, ChildProcess, KernelCall, NodeState, Outcome, Sleep

_KERNEL: Final = {"delete_module": "module %s is unloaded", "umount": "%s is unmounted", "unlink": "%s is removed"}
_POD: Final = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+?)(/eviction)?\Z")
_NODE: Final = re.compile(r"/api/v1/nodes/[^/]+\Z")
_POD_TERMINATION: Final = 60 * SECOND


class Effect(NamedTuple):
    """One thing that was done, in words."""

    what: str


def effects(outcome: Outcome) -> list[Effect]:
    """What a run did, in order, and how it ended. What one request may do or several, is in the order of the alphabet."""
    out: list[Effect] = []
    together: dict[str, Effect] = {}
    kind = ""
    for subject, effect in _told(outcome):
        this = subject.partition(" ")[0]
        if this != kind or subject in together:
            out += [together[key] for key in sorted(together)]
            together, kind = {}, this
        together[subject] = effect
    return [*out, *(together[key] for key in sorted(together)), Effect(ending(outcome))]


def _told(outcome: Outcome) -> Iterator[tuple[str, Effect]]:
    """Each effect with what it is of: the kind, then the thing."""
    node = outcome.before.node or NodeState({}, {}, unschedulable=False)
    labels, cordoned = dict(node.labels), node.unschedulable
    for number, event in enumerate(outcome.events):
        match event:
            case ApiRequest(method="PATCH") if event.body and _NODE.match(event.path) and event.status == 200:
                for key, value in sorted((event.body.get("metadata", {}).get("labels") or {}).items()):
                    if labels.get(key) != value:
                        yield f"label {key}", Effect(f"label {key}: {_shown(labels.get(key))} -> {_shown(value)}")
                        labels[key] = value
                desired = bool(event.body.get("spec", {}).get("unschedulable", cordoned))
                if "unschedulable" in event.body.get("spec", {}) and desired != cordoned:
                    cordoned = desired
                    yield f"node {number:06}", Effect(f"the node is {'cordoned' if cordoned else 'uncordoned'}")
            case ApiRequest(method="POST" | "DELETE") if (pod := _POD.match(event.path)) and int_status(event.status) < 300:
                grace = (event.body or {}).get("gracePeriodSeconds")
                word = "is evicted" if pod[3] else "is deleted" if grace is None else f"is deleted with a grace period of {grace}"
                yield f"pod {pod[1]}/{pod[2]}", Effect(f"pod {pod[1]}/{pod[2]} {word}")
            case KernelCall(result="ok"):
                yield f"kernel {number:06}", Effect(_KERNEL[event.call] % event.argument)
            case ChildProcess(argv=("vfio-manage", *_)):
                yield f"child {number:06}", Effect(f"{' '.join(event.argv)} ends with exit code {event.exit_code}")
            case Sleep(span=span) if span == _POD_TERMINATION:
                yield f"wait {number:06}", Effect("a minute is waited")
            case _:
                pass


def end_of(outcome: Outcome) -> object:
    """How a run ended: exit code and state, but for pods that are about to go."""
    after = outcome.after
    pods = tuple(pod for pod in after.pods if pod not in after.terminating)
    return outcome.exit_code, after.node, pods, after.mounts, after.files, after.modules, after.gpu_drivers


def int_status(status: int | str) -> int:
    """A status as a number; a dropped connection is the worst."""
    return status if isinstance(status, int) else 999


def _shown(value: str | None) -> str:
    return "absent" if value is None else f'"{value}"'
