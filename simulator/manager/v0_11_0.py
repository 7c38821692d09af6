"""What v0.11.0 changed (2026-05-19): its own code, and client-go and kubectl v0.35.4 in place of v0.33.2."""

from __future__ import annotations

from typing import Final

from simulator import messages as m
from simulator.gocompat import SECOND, ErrnoError, GoError, join_errors, wrap
from simulator.kube.waiting import Backoff
from simulator.manager.change import Change
from simulator.manager.kubernetes import KubeClient
from simulator.manager.steps import DriverManager
from simulator.selectors import Words


class _RescheduleFailureIsFatal(DriverManager):
    def reschedule_failed(self, failure: GoError) -> None:
        raise wrap(m.FAILED_TO_RESCHEDULE, failure)


class _JoinsUnloadFailures(DriverManager):
    def unload_failure(self, failures: list[ErrnoError]) -> GoError:
        joined = join_errors(*failures)
        assert joined is not None
        return joined


class _SaysSupersededByPolicy(DriverManager):
    def drain_disabled_text(self) -> str:
        return m.DRAIN_SUPERSEDED_BY_POLICY

    def eviction_disabled_text(self) -> str:
        return m.EVICTION_SUPERSEDED_BY_POLICY


class _GivesCleanupGuidance(DriverManager):
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
        name="superseded-by-policy-worded",
        upstream="commit f4b71fc1, pull request #166",
        summary="Where the upgrade policy owns eviction and drain, the log says so in other words.",
        notice="Other words in the log: `superseded by` in place of `disabled by the upgrade policy`.",
        steps=_SaysSupersededByPolicy,
    ),
    Change(
        name="cleanup-guidance",
        upstream="commit f4b71fc1, pull request #166",
        summary="The clean-up after a failure says what a person can do, where it may not uncordon the node itself.",
        notice="A long warning with the choices there are, and the upgrade policy is looked up once instead of twice.",
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
        summary="An eviction that a disruption budget or an ending namespace blocks is retried without delay.",
        notice="A blocked eviction costs the API server five requests a second instead of one in five seconds.",
        action="Mind API server load where a budget can block eviction for long; set DRAIN_TIMEOUT_SECONDS.",
        libraries={"blocked_eviction_delay": 0},
    ),
    Change(
        name="blocked-eviction-reads-pod-again",
        upstream="commit ea6a7423, pull request #183 (kubectl v0.35.4, drain.go)",
        summary="Before a blocked eviction is retried the pod is read again, so that a pod on its way out ends the retries.",
        notice="One more GET for each retry; in an ending namespace the drain goes on once the pod is terminating.",
        libraries={"blocked_eviction_refreshes_pod": True},
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
        name="selector-errors-reworded",
        upstream="commit ea6a7423, pull request #183 (apimachinery v0.35.4, content/kube.go)",
        summary="Errors about DRAIN_POD_SELECTOR_LABEL say `bytes` and `a valid label key`, not `characters` and `a qualified name`.",
        notice="Other words in the log.",
        libraries={"label_words": Words("a valid label key", "bytes")},
    ),
    Change(
        name="klog-lines-v0.35",
        upstream="commit ea6a7423, pull request #183 (client-go v0.35.4)",
        summary="klog's warnings about the in-cluster configuration name other source lines.",
        notice="Other line numbers in the first lines of the log.",
        libraries={"version": "v0.35.4", "in_cluster_line": 682, "fallback_line": 687},
    ),
)
