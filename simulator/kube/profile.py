"""What the vendored Kubernetes libraries of a release look like from outside.

A release of driver-manager pins client-go and kubectl. Their visible behaviour changed between the pins; each
difference is a field here, so that `client` and `drain` read as one.

Source: go.mod and vendor/k8s.io of each tag.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulator.gocompat import SECOND, Duration
from simulator.selectors import WORDS, Words


@dataclass(frozen=True, slots=True)
class Libraries:
    """client-go and kubectl as vendored by v0.9.0 to v0.10.0 (v0.33.2), unless a release says otherwise."""

    version: str = "v0.33.2"
    in_cluster_line: int = 667
    """Line of client_config.go in klog's warning that the in-cluster configuration is used."""
    fallback_line: int = 672
    """Line of client_config.go in klog's warning that it could not be used."""
    root_ca_line: int = 562
    """Line of config.go in klog's error that the root certificate could not be loaded."""
    throttled_line: int = 752
    """Line of request.go in klog's message about a long wait for the client's own rate limit."""
    structured_throttling: bool = True
    """That message has its parts as key="value" (contextual logging)."""
    blocked_eviction_delay: Duration = 5 * SECOND
    """Pause before an eviction that a disruption budget blocked is tried again."""
    blocked_eviction_refreshes_pod: bool = False
    """The pod is read again before its eviction is retried."""
    unmanaged_fatal: str = "cannot delete Pods that declare no controller (use --force to override)"
    """Why a pod without a controller stays; up to v0.35 the sentence then says "cannot delete" twice."""
    label_words: Words = WORDS
    """How the errors about a selector's keys and values are worded."""
    eviction_creation_timestamp: bool = True
    """Eviction bodies hold `creationTimestamp: null`."""
    unreadable_pod_counts_as_gone: bool = False
    """A pod that cannot be read (whatever the error) counts as deleted: up to v0.27 the identity of an empty object was compared."""
    deadline_seen_at_poll: bool = False
    """The end of the time for evictions is only noticed when the next poll finds a pod, and then is an error of its own."""
    daemonset_needs_apps_v1: bool = False
    """A DaemonSet owner counts only with an apps/v1 apiVersion."""
