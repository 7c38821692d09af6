"""What v0.11.0 changed (2026-05-19): its own code, and client-go and kubectl v0.35.4 in place of v0.33.2."""

from __future__ import annotations

from typing import Final

from simulator import messages as m
from simulator.gocompat import SECOND, ErrnoError, GoError, join_errors, wrap
from simulator.kube.waiting import Backoff
from simulator.manager.change import Change
from simulator.manager.kubernetes import KubeClient
from simulator.manager.steps import DriverManager


class _RescheduleFailureIsFatal(DriverManager):
    def reschedule_failed(self, failure: GoError) -> None:
        raise wrap(m.FAILED_TO_RESCHEDULE, failure)


class _JoinsUnloadFailures(DriverManager):
    def unload_failure(self, failures: list[ErrnoError]) -> GoError:
        joined = join_errors(*failures)
        assert joined is not None
        return joined


class _GivesCleanupGuidance(DriverManager):
    def drain_disabled_text(self) -> str:
        return m.DRAIN_SUPERSEDED_BY_POLICY

    def eviction_disabled_text(self) -> str:
        return m.EVICTION_SUPERSEDED_BY_POLICY

    def cleanup_cordon(self) -> None:
        node = self.config.node_name
        if self.is_driver_auto_upgrade_policy_enabled():
            self.log.warning(m.GUIDANCE_POLICY_ENABLED % (node, node))
        elif self.config.enable_gpu_pod_eviction or self.config.enable_auto_drain:
            self.uncordon_in_cleanup()
        else:
            self.log.warning(m.GUIDANCE_FEATURES_DISABLED % node)


class _RetriesLabelPatchLonger(KubeClient):
    label_backoff: Backoff = Backoff(SECOND, 2.0, 0.2, 7)


CHANGES: Final = (
    Change(
        name="reschedule-failure-is-fatal",
        upstream="commits a5d0a79a and 3be7e707, pull requests #141 and #176",
        summary="A run whose restoring label patch fails ends with an error instead of a warning.",
        notice="The init container exits 1 and is restarted, instead of leaving the operands paused behind a success.",
        steps=_RescheduleFailureIsFatal,
    ),
    Change(
        name="label-patch-retried-for-a-minute",
        upstream="commit 3be7e707, pull request #176",
        summary="A label patch that fails is tried seven times over about 63 to 76 seconds.",
        notice="An API server that is away for up to a minute is waited for; a refused patch takes a minute to fail.",
        client=_RetriesLabelPatchLonger,
    ),
    Change(
        name="cleanup-guidance",
        upstream="commit f4b71fc1, pull request #166",
        summary="After a failure the log says what a person can do, where the upgrade policy or the settings forbid eviction.",
        notice="Longer warnings in the log, and other words where the upgrade policy owns eviction and drain.",
        steps=_GivesCleanupGuidance,
    ),
    Change(
        name="unload-failures-joined",
        upstream="commit cf6109c1, pull request #178",
        summary="The error of a failed unload names every module's failure, one a line, instead of the last one's.",
        notice="The last log line may have several lines.",
        steps=_JoinsUnloadFailures,
    ),
    Change(
        name="blocked-eviction-retried-at-once",
        upstream="commit ea6a7423, pull request #183 (kubectl v0.35.4, drain.go)",
        summary="An eviction that a disruption budget blocks is retried without delay after reading the pod again.",
        notice="A blocked eviction costs the API server five requests a second instead of one in five seconds.",
        action="Mind API server load where a budget can block eviction for long; set DRAIN_TIMEOUT_SECONDS.",
        libraries={"blocked_eviction_delay": 0, "blocked_eviction_refreshes_pod": True},
    ),
    Change(
        name="daemonset-owner-needs-apps-v1",
        upstream="commit ea6a7423, pull request #183 (kubectl v0.35.4, filters.go)",
        summary="Only an owner of apiVersion apps/v1 counts as a DaemonSet.",
        notice="A GPU pod owned by a DaemonSet kind of another API group is evicted instead of blocking.",
        libraries={"daemonset_needs_apps_v1": True},
    ),
    Change(
        name="eviction-without-creation-timestamp",
        upstream="commit ea6a7423, pull request #183 (client-go v0.35.4)",
        summary="Eviction bodies no longer hold `creationTimestamp: null`.",
        notice="Nothing, unless a webhook looks at eviction bodies.",
        libraries={"eviction_creation_timestamp": False},
    ),
    Change(
        name="klog-lines-v0.35",
        upstream="commit ea6a7423, pull request #183 (client-go v0.35.4)",
        summary="klog's warnings about the in-cluster configuration name other source lines.",
        notice="Other line numbers in the first lines of the log.",
        libraries={"version": "v0.35.4", "in_cluster_line": 682, "fallback_line": 687},
    ),
)
