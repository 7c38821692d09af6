"""driver-manager's container that fails again and again, and who has to go for it to succeed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simulator.cluster.objects import Pod
from simulator.diagnosing.commands import delete_pod
from simulator.diagnosing.finding import Finding
from simulator.diagnosing.gpu_operator import UPGRADE_FAILED
from simulator.diagnosing.pods import is_daemon, uses_gpu
from simulator.diagnosing.situation import Situation, is_finished
from simulator.labels import UPGRADE_STATE
from simulator.manager.charts import DRIVER_MANAGER_CONTAINER
from simulator.predicting.sight import Failing

_MOST_RESTARTS: Final = 10
"""k8s-operator-libs pkg/upgrade/common_manager.go isDriverPodFailing."""


def find(situation: Situation) -> Iterator[Finding]:
    """Findings about runs that fail."""
    failures = situation.failures
    is_given_up = situation.node.labels.get(UPGRADE_STATE) == UPGRADE_FAILED
    if not failures and not is_given_up:
        return
    exit_code = situation.next_run().exit_code
    holders = [pod for pod in situation.pods if uses_gpu(situation, pod) and not is_finished(pod) and not is_daemon(pod)]
    if holders and exit_code and situation.next_run(without=tuple(holders)).exit_code == 0:
        yield _held(holders, is_given_up=is_given_up)
    for failure in failures:
        yield _fails(situation, failure, exit_code)


def _held(pods: list[Pod], *, is_given_up: bool) -> Finding:
    names, is_one = ", ".join(pod.full_name for pod in pods), len(pods) == 1
    leaving = [pod for pod in pods if pod.terminating]
    controller = " The upgrade controller then goes on by itself, and lifts its cordon." if is_given_up else ""
    told = " What is Terminating was told so: pod-stuck-terminating says what keeps it." if leaving else ""
    return Finding(
        "driver-held",
        f"{names} {'holds' if is_one else 'hold'} the driver; once {'it has' if is_one else 'they have'} ended the next run succeeds.",
        "This first, then look again: the model was asked both ways, and as long as the driver is held each run fails with 'driver is"
        f" in use'. The run that succeeds restores the operands' labels, and the driver's pod becomes Ready.{controller}{told}",
        tuple(delete_pod(pod.namespace, pod.name) for pod in pods if not pod.terminating),
        "Its work ends. What owns it makes another pod, here unless the node is cordoned.",
        tuple(f"pod {pod.full_name} uses a GPU{' and is terminating' if pod.terminating else ''}" for pod in pods),
    )


def _fails(situation: Situation, failure: Failing, exit_code: int | None) -> Finding:
    restarts, code = failure.restarts, failure.exit_code
    namespace, _, name = failure.pod.partition("/")
    if exit_code == 0:
        unseen = "" if situation.bundle.is_host_seen else ": nobody looked at the host"
        next_run = f"By what was seen of the node the next run would succeed, so what makes it fail was not seen{unseen}."
    else:
        ends = "does not end" if exit_code is None else f"ends with exit code {exit_code}"
        next_run = f"By what was seen of the node the next run {ends}, too: `dmsim predict` says why."
    if situation.bundle.logs:
        log = "What its log says is told above."
    else:
        log = f"Its log says why: kubectl logs --namespace {namespace} {name} --container {DRIVER_MANAGER_CONTAINER} --previous | dmsim explain -."
    counts = situation.is_upgrade_policy_on and restarts > _MOST_RESTARTS
    given_up = f" After more than {_MOST_RESTARTS} restarts the upgrade controller gives the node up." if counts else ""
    return Finding(
        "init-container-fails",
        f"{failure}.",
        f"{next_run} {log}{given_up}",
        (),
        "None; the kubelet tries again after a pause that grows to five minutes.",
        (f"pod {failure.pod}: restartCount {restarts}", *(() if code is None else (f"last exit code {code}",))),
    )
