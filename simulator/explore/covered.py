"""Which branches the paths of a release take, and why it never takes the others.

A branch is a site and one of its outcomes. `BOUNDS` are narrow walks that together take what the default bounds take, and
what needs a second fault. What none of them takes stands in `NEVER`, with the reason, and with the proof where it can be
computed; `IN_OTHERS` is what a release does not take and another one does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from inspect import getsource
from typing import Any, Final, NamedTuple

from simulator.explore.branches import AGAIN, instrumented
from simulator.explore.made_up import Bounds
from simulator.explore.walking import Graph, walk
from simulator.manager.releases import GO_RELEASES, Flow, flow

_NOTHING: Final = Bounds(faults=0, pods=0, polls=0, labels=0, odd_pods=0, modules=0)
BOUNDS: Final = (
    (Bounds(faults=1, pods=1, polls=0, labels=0, odd_pods=1, modules=0), ""),
    (Bounds(faults=0, pods=1, polls=1, labels=1, odd_pods=0, modules=1), ""),
    (Bounds(faults=0, pods=2, polls=0, labels=0, odd_pods=1, modules=0), ""),
    (Bounds(faults=2, pods=0, polls=0, labels=0, odd_pods=0, modules=2), ""),
    (_NOTHING, "force-host-driver-unbind"),
)
"""Bounds, and a what-if, that together take every branch that is taken at all."""


class Branch(NamedTuple):
    """A way that the model can go at a place of its source."""

    function: str
    text: str
    outcome: str
    which: int = 0
    """Of the places of this function with the same text, from 0."""


class Why(StrEnum):
    """Why no path takes a branch."""

    CONSTANT = "a constant of the Go releases"
    """The value is the same in all of them; the model's code is the shell releases' too."""
    IMPOSSIBLE = "impossible"
    """What comes before decides it already."""
    BEYOND = "beyond the bounds"
    """It happens, and tests of the model show it, but not in a world within the bounds."""


class Never(NamedTuple):
    """Why no path of any Go release takes a branch."""

    why: Why
    text: str
    proof: Callable[[Flow], bool] | None = None
    """Of a constant: true for a release that cannot take it."""


def _unset(name: str) -> Callable[[Flow], bool]:
    return lambda of: not getattr(of.libraries, name)


_BY_KUBECTL: Final = "set by kubectl alone, which the shell releases run"
_DEADLINE: Final = "kubectl's drain of the shell releases notices the end of the time at a poll"
_IS_URL_ERROR: Final = "`Connection.send` raises nothing else"

NEVER: Final[Mapping[Branch, Never]] = {
    Branch("DriverManager.remove_or_warn", "may_be_missing", "no"): Never(
        Why.BEYOND, "somebody else removes the PID file between the two calls that look for it and remove it"
    ),
    Branch("DriverManager.unmount_rootfs", "except OSError", "raised"): Never(
        Why.BEYOND, "the driver's root cannot be looked at, for another reason than that it is not there"
    ),
    Branch("KubeClient.drain_node", "self.drain_cordons", "yes"): Never(
        Why.CONSTANT, "the shell releases' drain cordons", lambda of: not of.client.drain_cordons
    ),
    Branch("KubeClient.node_helper", "self.drain_has_writers", "yes"): Never(
        Why.CONSTANT, "the full drain of every Go release lacks writers", lambda of: not of.client.drain_has_writers
    ),
    Branch("recursive_unmount", "except OSError", "raised", 1): Never(Why.BEYOND, "/proc/self/mountinfo cannot be read"),
    Branch("recursive_unmount", "first_failure", "yes"): Never(Why.BEYOND, "three mounts that stay are three faults"),
    Branch("unmount", "number == errno.EINVAL", "yes"): Never(
        Why.BEYOND, "somebody else unmounts it between the calls that list it and unmount it"
    ),
    Branch("PodList._by_message", "item.status.message", "no"): Never(Why.IMPOSSIBLE, "every filter says why"),
    Branch("PodList._by_message", "reason == 'Error'", "no"): Never(Why.IMPOSSIBLE, "asked where a filter does not say why"),
    Branch("PodList._by_message", "reason == 'Error'", "yes"): Never(Why.IMPOSSIBLE, "asked where a filter does not say why"),
    Branch("Helper.get_pods_for_deletion", "token", "yes"): Never(Why.BEYOND, "a second page begins after 500 pods"),
    Branch("Helper._evict_pod", "isinstance(failure, StatusError)", "no"): Never(
        Why.IMPOSSIBLE, "asked of what `is_forbidden` holds for, and that is one"
    ),
    Branch("Helper._wait_for_delete.finished", "self.on_finished is not None", "yes"): Never(
        Why.CONSTANT,
        _BY_KUBECTL,
        lambda of: "on_finished" not in getsource(of.client.gpu_pod_helper) + getsource(of.client.node_helper),
    ),
    Branch("Helper._wait_for_delete.all_gone", "libraries.unreadable_pod_counts_as_gone", "yes"): Never(
        Why.CONSTANT, "so up to kubectl v0.27", _unset("unreadable_pod_counts_as_gone")
    ),
    Branch("Helper._wait_for_delete.all_gone", "found['metadata'].get('uid') == pod['metadata'].get('uid')", "no"): Never(
        Why.BEYOND, "a new pod of the same name, as a StatefulSet makes one, comes between two polls"
    ),
    **{
        Branch("Helper._wait_for_delete.all_gone", text, outcome): Never(Why.CONSTANT, _DEADLINE, _unset("deadline_seen_at_poll"))
        for text in ("parent is not None", "self.clock.now >= parent")
        for outcome in ("no", "yes")
    },
    Branch("Helper._wait_for_delete.all_gone", "libraries.deadline_seen_at_poll", "yes"): Never(
        Why.CONSTANT, _DEADLINE, _unset("deadline_seen_at_poll")
    ),
    Branch("Helper._wait_for_delete", "libraries.deadline_seen_at_poll", "yes"): Never(
        Why.CONSTANT, _DEADLINE, _unset("deadline_seen_at_poll")
    ),
    **{
        Branch("poll", text, outcome, which): Never(Why.CONSTANT, _DEADLINE, _unset("deadline_seen_at_poll"))
        for text, outcome, which in (
            ("late", "yes", 0),
            ("(yield from condition())", "no", 1),
            ("(yield from condition())", "yes", 1),
            ("late", "yes", 1),
        )
    },
    Branch("_has", "error.reason", "no"): Never(Why.BEYOND, "an API server's error says its reason; a proxy's need not"),
    Branch("Connection.send", "except ConnectionFailed", "raised"): Never(
        Why.BEYOND, "a certificate that is not trusted, a name that is not found: as a refused connection"
    ),
    Branch("RestClient.do", "isinstance(error, UrlError)", "no"): Never(Why.IMPOSSIBLE, _IS_URL_ERROR),
    Branch("_retry_delay", "isinstance(failure, UrlError)", "no"): Never(Why.IMPOSSIBLE, _IS_URL_ERROR),
    Branch("_with_previous", "isinstance(previous, UrlError)", "no"): Never(Why.IMPOSSIBLE, _IS_URL_ERROR),
    Branch("RestClient.do", "except GoError", "raised", 1): Never(
        Why.BEYOND, "the pause of a Retry-After outlasts the wait's own five minutes"
    ),
}
"""What no path of any Go release takes."""


class Since(NamedTuple):
    """Why a release does not take a branch that another one takes: the release in which that changes."""

    releases: tuple[str, ...]
    text: str


_APPS: Final = "newer kubectl looks at the owner's API group"
_FRESH: Final = "newer kubectl reads a blocked pod again"
_STAMP: Final = "newer client-go leaves `creationTimestamp` out"
IN_OTHERS: Final[Mapping[Branch, Since]] = {
    Branch("DriverManager.uninstall_driver", "self.done_without_driver()", "yes"): Since(
        ("v0.9.0", "v0.9.1", "v0.10.0", "v0.11.0"), "v0.12.0 is done where no driver is loaded"
    ),
    Branch("DriverManager.uninstall_driver", "self.is_driver_loaded()", "no"): Since(
        ("v0.12.0",), "v0.12.0 is done before, where no driver is loaded"
    ),
    Branch("_KeepsDesiredDriver.should_update_driver_config", "self.is_driver_loaded()", "no"): Since(
        ("v0.12.0",), "v0.12.0 is done before, where no driver is loaded"
    ),
    Branch("DriverManager.uninstall_driver", "self.done_with_desired_driver()", "yes"): Since(
        ("v0.9.0", "v0.9.1"), "v0.10.0 keeps the driver that is wanted"
    ),
    Branch("DriverManager.read_file", "isinstance(error, IsADirectoryError)", "yes"): Since(
        ("v0.9.0", "v0.9.1"), "v0.10.0 reads a file that may be a directory"
    ),
    Branch("DriverManager.remove_or_warn", "isinstance(error, FileNotFoundError)", "yes"): Since(
        ("v0.9.0", "v0.9.1"), "v0.10.0 removes the PID file without looking for it"
    ),
    Branch("DriverManager.remove_or_warn", "may_be_missing", "yes"): Since(
        ("v0.9.0", "v0.9.1"), "v0.10.0 removes the PID file without looking for it"
    ),
    Branch("KubeClient.custom_drain_filter", "except GoError", "raised"): Since(
        ("v0.9.0", "v0.9.1", "v0.10.0", "v0.11.0"), "v0.12.0 asks the server for claims"
    ),
    Branch("RestClient.do", "ends is None", "no"): Since(
        ("v0.9.0", "v0.9.1", "v0.10.0", "v0.11.0"), "v0.12.0's wait for clients lists pods within a time"
    ),
    Branch("Clientset.evict_pod", "self.rest.libraries.eviction_creation_timestamp", "no"): Since(
        ("v0.9.0", "v0.9.1", "v0.10.0"), _STAMP
    ),
    Branch("Clientset.evict_pod", "self.rest.libraries.eviction_creation_timestamp", "yes"): Since(("v0.11.0", "v0.12.0"), _STAMP),
    Branch("Helper.daemonset_filter", "self.client.rest.libraries.daemonset_needs_apps_v1", "yes"): Since(
        ("v0.9.0", "v0.9.1", "v0.10.0"), _APPS
    ),
    Branch("Helper.daemonset_filter", "owner.get('apiVersion') != 'apps/v1'", "no"): Since(("v0.9.0", "v0.9.1", "v0.10.0"), _APPS),
    Branch("Helper.daemonset_filter", "owner.get('apiVersion') != 'apps/v1'", "yes"): Since(("v0.9.0", "v0.9.1", "v0.10.0"), _APPS),
    Branch("Helper.daemonset_filter", "self.client.rest.libraries.daemonset_needs_apps_v1", "no"): Since(
        ("v0.11.0", "v0.12.0"), _APPS
    ),
    Branch("Helper._evict_pod", "libraries.blocked_eviction_refreshes_pod", "yes"): Since(("v0.9.0", "v0.9.1", "v0.10.0"), _FRESH),
    Branch("Helper._evict_pod", "libraries.blocked_eviction_refreshes_pod", "no"): Since(("v0.11.0", "v0.12.0"), _FRESH),
}
"""What some releases do not take in a function that they run."""


@lru_cache(maxsize=1)
def branches() -> Mapping[Branch, tuple[int, int]]:
    """Every branch inside a function, with its site's number and its outcome's."""
    out: dict[Branch, tuple[int, int]] = {}
    for number, site in enumerate(instrumented().sites):
        if not site.function:
            continue  # decided once, when the module is imported
        which = 0
        while Branch(site.function, site.text, site.outcomes[0], which) in out:
            which += 1
        for outcome, name in enumerate(site.outcomes):
            out[Branch(site.function, site.text, name, which)] = (number, outcome)
    return out


def taken(graph: Graph) -> frozenset[tuple[int, int]]:
    """The sites and outcomes that the paths of a graph take."""
    stretches = {id(told.stretch): told.stretch for node in graph.nodes for exit_, _ in node.exits for told in exit_.told}
    return frozenset(pair for stretch in stretches.values() for pair in _pairs(stretch.notes))


def _pairs(notes: Iterable[Any]) -> Iterator[tuple[int, int]]:
    for note in notes:
        if isinstance(note, tuple):
            for tape in note:
                yield from _pairs(tape)
        elif note >= 0:
            yield divmod(note, 2)
        else:
            site, what = divmod(-note - 1, 3)
            if what + 1 == AGAIN:
                yield site, 0


class Coverage(NamedTuple):
    """The branches of a release."""

    taken: frozenset[Branch]
    never: tuple[Branch, ...]
    """Those that no Go release takes."""
    in_others: tuple[Branch, ...]
    """Those that another release takes in the same function."""
    elsewhere: tuple[Branch, ...]
    """Those in functions that this release does not have, or never calls."""
    unexplained: tuple[Branch, ...]
    """Those for which there is no reason: always none, as a test holds."""


@lru_cache
def coverage(release: str) -> Coverage:
    """Walk a Go release within `BOUNDS`, and part its branches."""
    pairs: set[tuple[int, int]] = set()
    for bounds, what_if in BOUNDS:
        pairs |= taken(walk(flow(release, what_if=what_if), bounds))
    all_of = branches()
    sites = instrumented().sites
    called = {(sites[number].module, sites[number].function) for number, _ in pairs}
    parts: dict[str, list[Branch]] = {"taken": [], "never": [], "in_others": [], "elsewhere": [], "unexplained": []}
    for branch, pair in all_of.items():
        site = sites[pair[0]]
        if pair in pairs:
            part = "taken"
        elif branch in NEVER:
            part = "never"
        elif branch in IN_OTHERS and release in IN_OTHERS[branch].releases:
            part = "in_others"
        elif (site.module, site.function) not in called:
            part = "elsewhere"
        else:
            part = "unexplained"
        parts[part].append(branch)
    return Coverage(
        frozenset(parts["taken"]),
        tuple(parts["never"]),
        tuple(parts["in_others"]),
        tuple(parts["elsewhere"]),
        tuple(parts["unexplained"]),
    )


def coverages() -> Mapping[str, Coverage]:
    """Of every Go release."""
    return {release: coverage(release) for release in GO_RELEASES}
