"""The kubelet's back-off of containers that end: `flowcontrol.Backoff`, for each container of each pod.

The first restart comes at once; then 10 s after the container ended, and twice as long after each further restart, up to
300 s. A container that ended more than ten minutes after its last restart begins anew, and so does another pod: entries
are kept by the pod's UID. They are lost with the kubelet, but the first start after a boot counts as a restart.

Source: k8s.io/client-go/util/flowcontrol/backoff.go; k8s.io/kubernetes pkg/kubelet/kubelet.go (the constants) and
kuberuntime/kuberuntime_manager.go (doBackOff).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from simulator.gocompat import SECOND, Duration

INITIAL: Final = 10 * SECOND
LONGEST: Final = 300 * SECOND
FORGOTTEN: Final = 600 * SECOND
"""A container that ran this long after its last restart is no crash loop."""


@dataclass(slots=True)
class _Entry:
    span: Duration
    updated: Duration


class Backoff:
    """Entries by container. Times are the node's, in nanoseconds."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], _Entry] = {}

    def until(self, key: tuple[str, str], ended: Duration) -> Duration:
        """When a container that ended may be started again; the time of its end for at once (`IsInBackOffSince`)."""
        entry = self._entries.get(key)
        if entry is None or ended - entry.updated > FORGOTTEN:
            return ended
        return ended + entry.span

    def span(self, key: tuple[str, str]) -> Duration:
        """How long it is waited at present (`Get`)."""
        entry = self._entries.get(key)
        return entry.span if entry else 0

    def next(self, key: tuple[str, str], ended: Duration, now: Duration) -> None:
        """A container that ended is started again (`Next`)."""
        entry = self._entries.get(key)
        if entry is None or ended - entry.updated > FORGOTTEN:
            self._entries[key] = _Entry(INITIAL, now)
        else:
            entry.span, entry.updated = min(2 * entry.span, LONGEST), now

    def forget(self, uid: str) -> None:
        """A pod is gone."""
        for key in [key for key in self._entries if key[0] == uid]:
            del self._entries[key]
