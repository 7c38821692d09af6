"""The pods that have to do with a GPU: what becomes of each, and why.

What happened is read from the trace. What the release sees in a pod that it did not touch is asked of the release's own
filters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from simulator import labels
from simulator import messages as m
from simulator.cluster.objects import ClusterSpec, Pod, pod_document
from simulator.config import Config
from simulator.gocompat import GoError, parse_bool
from simulator.kube import drain
from simulator.kube.drain import Helper, PodStatus, full_name
from simulator.kube.rest import drive
from simulator.manager.kubernetes import GPU_RESOURCES, requests_gpu
from simulator.manager.releases import Flow
from simulator.manager.shell import messages as shell
from simulator.manager.shell.nvdrain import gpu_pod_helper
from simulator.manager.v0_12_0 import DRA_DRIVER
from simulator.predicting.answers import Fate, PodAnswer, PodsAnswer
from simulator.predicting.events import policy_owns_eviction
from simulator.predicting.reading import PodRequest, fatal, pod_requests, says
from simulator.predicting.run import EVICTION, Quiet, Run

_NVIDIA: Final = "nvidia.com/"
_VM: Final = "virt-launcher"
_BUDGET: Final = 429


def pods_answer(run: Run) -> PodsAnswer:
    """Every pod on the node that has to do with a GPU."""
    view = _View(run)
    mine = [pod for pod in run.world.cluster.pods if pod.node_name in {None, run.node_name}]
    evicts, eviction = _eviction(run)
    holders = run.world.host.module_holders
    answers, others = [], 0
    for pod in mine:
        uses, holds = tuple(_uses(run, pod)), tuple(name for name, pods in holders.items() if pod.full_name in pods)
        asked = view.requests.get(pod.full_name)
        if not (uses or holds or asked or _is_waited_for_in_vain(run, pod)):
            others += 1
            continue
        fate, reason = _fate(view, pod, uses, holds, evicts=evicts, eviction=eviction)
        answers.append(PodAnswer(pod.full_name, fate, reason, uses, holds))
    return PodsAnswer(eviction, evicts, tuple(answers), tuple(_drain_blockers(view)), others)


class _View:
    """A run, with what the release's filters say of each pod."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.requests: dict[str, list[PodRequest]] = {}
        for request in pod_requests(run.outcome):
            if request.verb != "get":
                self.requests.setdefault(request.name, []).append(request)

    @cached_property
    def judged(self) -> Mapping[str, PodStatus]:
        """Pod -> the verdict of GPU-pod eviction's filters."""
        run = self.run
        if run.kube is not None:
            if run.steps is None:
                return {}
            return self._judge(run.kube.gpu_pod_helper(run.steps.drain_options()))
        helper = gpu_pod_helper(
            run.clientset,
            run.clock,
            Quiet(),
            force=_flag(run, "DRAIN_USE_FORCE"),
            delete_emptydir_data=_flag(run, "DRAIN_DELETE_EMPTYDIR_DATA"),
        )
        return self._judge(helper)

    @cached_property
    def drained(self) -> Mapping[str, PodStatus]:
        """Pod -> the verdict of the full drain's filters; nothing of a shell release, whose drain is kubectl's own."""
        run = self.run
        if run.kube is None or run.steps is None:
            return {}
        return self._judge(run.kube.node_helper(run.steps.drain_options()))

    def _judge(self, helper: Helper) -> dict[str, PodStatus]:
        found, _ = drive(self.run.clock, helper.get_pods_for_deletion(self.run.node_name))
        return {full_name(item.pod): item.status for item in found.items} if found else {}

    def sees(self, pod: Pod) -> bool:
        """Does the release take it for a GPU pod?"""
        run = self.run
        document = pod_document(pod, run.node_name, "")
        if run.kube is None:
            return _evicts_at_all(run) and requests_gpu(document)
        try:
            return run.kube.uses_gpu_or_fail(document)
        except GoError:
            return False


def _flag(run: Run, name: str) -> bool:
    try:
        return parse_bool(run.variable(name, "false"))
    except GoError:
        return False


def _evicts_at_all(run: Run) -> bool:
    """Is there a step that evicts GPU pods? Not in the first shell release."""
    return not run.resolved.release.is_script or any(change.name == "gpu-pods-evicted" for change in run.resolved.changes)


def _eviction(run: Run) -> tuple[bool, str]:
    """Does the run come to evicting GPU pods, and what is to be said of it?"""
    outcome = run.outcome
    if says(outcome, m.IDENTIFYING_GPU_PODS):
        return True, "GPU pods are evicted, all of them or none"
    if says(outcome, m.PRE_INSTALLED, shell.PRE_INSTALLED):
        return False, "nothing is evicted: the run ends at the host's own driver"
    if says(outcome, m.ALREADY_LOADED):
        return False, "nothing is evicted: the driver that is loaded is the desired one, and stays"
    if says(outcome, m.NO_DRIVER_LOADED):
        return False, f"nothing is evicted: no driver is loaded, and {run.release} then leaves workloads alone"
    if not _evicts_at_all(run):
        return False, f"{run.release} evicts no GPU pods"
    if policy_owns_eviction(run.world):
        return False, "driver-manager evicts nothing: by the upgrade policy (an annotation) the operator's upgrade controller does"
    off = not run.settings.enable_gpu_pod_eviction if isinstance(run.settings, Config) else run.variable(EVICTION, "true") != "true"
    if off:
        return False, f"nothing is evicted: {EVICTION} is false"
    return False, "nothing is evicted: the run does not get that far"


# --- how a pod has to do with a GPU -----------------------------------------------------------------------------------


def _resources(containers: tuple[Any, ...]) -> list[str]:
    names = (name for container in containers for amounts in (container.limits, container.requests) for name in amounts)
    return [name for name in dict.fromkeys(names) if name.startswith(_NVIDIA)]


def _uses(run: Run, pod: Pod) -> Iterator[str]:
    """In words."""
    yield from (f"requests {name}" for name in _resources(pod.containers))
    yield from (f"an init container requests {name}" for name in _resources(pod.init_containers))
    yield from (f"holds the claim {name}, allocated by {driver}" for name, driver in claims_of(run.world.cluster, pod))
    if pod.labels.get("kubevirt.io") == _VM or pod.name.startswith(f"{_VM}-"):
        yield "runs a virtual machine"
    if (key := _operand_label(run, pod)) is not None:
        yield f"runs where {key} says so"


def claims_of(cluster: ClusterSpec, pod: Pod) -> Iterator[tuple[str, str]]:
    """The pod's claims that a driver gave something to: the claim's name, the driver's."""
    claims = {(claim.namespace, claim.name): claim.drivers or () for claim in cluster.resource_claims}
    for reference in pod.resource_claims:
        name = reference.get("resourceClaimName")
        if name is None:
            known = (status for status in pod.resource_claim_statuses if status.get("name") == reference.get("name"))
            name = next((status.get("resourceClaimName") for status in known), None)
        for driver in claims.get((pod.namespace, str(name)), ()):
            yield str(name), driver


def _operand_label(run: Run, pod: Pod) -> str | None:
    """The label that a DaemonSet's pod selects on, and by which it can be told to go."""
    if pod.owner is None or pod.owner.kind != "DaemonSet":
        return None
    keys = (key for key in pod.node_selector if key.startswith(labels.PREFIX) or key == run.custom_label)
    return next(keys, None)


# --- what becomes of it -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Words:
    """Words for a drain filter's verdict."""

    part: str
    words: str


_FILTERS: Final = (
    _Words("DaemonSet-managed", "it belongs to a DaemonSet, whose pods are counted but cannot be evicted"),
    _Words("local storage", "it has an emptyDir volume, and DRAIN_DELETE_EMPTYDIR_DATA is false"),
    _Words("no controller", "it has no controller that would make it anew, and DRAIN_USE_FORCE is false"),
)


def _refusal(status: PodStatus) -> str:
    """Why a drain filter lets a pod stay."""
    if status == drain.SKIP:
        return "it is a static pod's mirror, which is counted but cannot be evicted"
    return next((words.words for words in _FILTERS if words.part in status.message), status.message)


def _fate(view: _View, pod: Pod, uses: tuple[str, ...], holds: tuple[str, ...], *, evicts: bool, eviction: str) -> tuple[Fate, str]:
    run, name = view.run, pod.full_name
    gone = name not in run.outcome.after.pods
    if asked := view.requests.get(name):
        return _asked_to_go(pod, asked, gone=gone)
    key = _operand_label(run, pod)
    terminating = name in run.outcome.after.terminating and not pod.terminating
    if key is not None and gone:
        return Fate.PAUSED, "the label is changed on which its DaemonSet selects"
    if gone:
        return Fate.DELETED, "it was terminating already" if pod.terminating else "somebody else deletes it meanwhile"
    if _is_waited_for_in_vain(run, pod):
        return Fate.BLOCKING, f"pods with app={pod.labels['app']} are waited for, and it does not go: {_why_not(run, pod, key)}"
    if key is not None and terminating:
        return Fate.PAUSED, "the label is changed on which its DaemonSet selects; it is still on its way out when the run ends"
    if name in _claim_holders(run):
        return Fate.BLOCKING, "it still holds a GPU claim, so the DRA kubelet plugin is not drained and the run fails"
    in_the_way = _is_in_the_way(run, holds)
    holding = f"; it holds {', '.join(holds)}, so unloading fails" if in_the_way else ""
    if not view.sees(pod):
        if key is not None and not (holds or _resources(pod.containers)):
            return Fate.UNTOUCHED, "its label is not changed in this run"
        return Fate.INVISIBLE, _unseen(run, pod, uses) + holding
    status = view.judged.get(name)
    if evicts and status is not None:
        if not status.delete:
            return Fate.BLOCKING, _refusal(status) + holding
        if says(run.outcome, m.CANNOT_DELETE_ALL):
            return Fate.UNTOUCHED, "it could go, but is not evicted while another GPU pod cannot go: all of them or none" + holding
        return Fate.UNTOUCHED, "the run ends before its eviction" + holding
    would = "" if status is None or status.delete else f"; if it were: {_refusal(status)}"
    return (Fate.BLOCKING if in_the_way else Fate.UNTOUCHED), eviction + would + holding


def _is_in_the_way(run: Run, holds: tuple[str, ...]) -> bool:
    """Does a pod that holds these modules keep one from being unloaded?"""
    tried = says(run.outcome, m.UNLOADING_MODULES, shell.UNLOADING)
    return tried and any(name in run.outcome.after.modules for name in holds)


def _asked_to_go(pod: Pod, asked: list[PodRequest], *, gone: bool) -> tuple[Fate, str]:
    """Of a pod that the release itself asked to go."""
    blocked = sum(request.status == _BUDGET for request in asked)
    budget = f"a disruption budget blocks its eviction, {blocked} attempts" if blocked else ""
    done = next((request for request in asked if request.is_done), None)
    if done is None:
        return Fate.BLOCKING, budget or f"the request to {asked[-1].verb} it is answered with {asked[-1].status}"
    if not gone:
        return Fate.BLOCKING, f"it was told to go, and is still there: {_terminating(pod)}"
    word = "evicted" if done.verb == "evict" else "deleted"
    return (Fate.EVICTED if done.verb == "evict" else Fate.DELETED), f"{word} as a GPU pod" + (
        f"; before, {budget}" if budget else ""
    )


def _terminating(pod: Pod) -> str:
    already = "it was terminating before the run, and " if pod.terminating else ""
    if pod.termination is None:
        return f"{already}its termination never ends"
    return f"{already}its termination takes {pod.termination:g} s"


def _waited_for_in_vain(run: Run) -> list[str]:
    """The `app` labels of the pods for which a Go release waits until it gives up, or as long as it is watched."""
    if run.outcome.exit_code == 0 or not isinstance(run.resolved, Flow):
        return []
    waits = (*run.resolved.steps.waited_for, *(wait for _, wait in run.resolved.steps.waited_for_if_deployed))
    begun = [wait.app for line in run.outcome.log for wait in waits if line.message == m.WAITING_FOR_OPERAND % wait.name]
    failed = says(run.outcome, m.FAILED_TO_WAIT_FOR_OPERAND)
    hangs = run.outcome.exit_code is None and bool(run.outcome.log) and run.outcome.log[-1].message.endswith("to shutdown")
    return begun[-1:] if failed or hangs else []


def _is_waited_for_in_vain(run: Run, pod: Pod) -> bool:
    left = pod.full_name in run.outcome.after.pods and pod.namespace == _namespace(run)
    return left and pod.labels.get("app") in _waited_for_in_vain(run)


def _namespace(run: Run) -> str:
    return run.settings.operator_namespace if isinstance(run.settings, Config) else ""


def _why_not(run: Run, pod: Pod, key: str | None) -> str:
    if pod.full_name in run.outcome.after.terminating:
        return _terminating(pod)
    if key is not None:
        return f"{run.release} does not change {key}, on which its DaemonSet selects"
    return "no label that is changed makes it go"


def _claim_holders(run: Run) -> list[str]:
    """The pods that a release names when it fails because of their claims."""
    head = m.CLAIMS_STILL_HELD.partition("%s")[0]
    _, found, names = fatal(run.outcome).partition(head)
    return names.split(", ") if found else []


def _unseen(run: Run, pod: Pod, uses: tuple[str, ...]) -> str:
    """Why a release does not take a pod for a GPU pod."""
    names, inits = _resources(pod.containers), _resources(pod.init_containers)
    if not _evicts_at_all(run):
        return f"{run.release} evicts no GPU pods, whatever they request"
    if names:
        return f"it requests {', '.join(names)}, and only names beginning with {' or '.join(GPU_RESOURCES)} count"
    if any(name.startswith(GPU_RESOURCES) for name in inits):
        return "only an init container requests a GPU, and those do not count"
    claims = [driver for _, driver in claims_of(run.world.cluster, pod)]
    if DRA_DRIVER in claims:
        return f"its GPU comes by a resource claim, which {run.release} does not look at (v0.12.0 does)"
    if claims:
        return f"its claim was allocated by {', '.join(claims)}, and only {DRA_DRIVER} counts"
    return "it requests no GPU" + (f", although it {uses[0]}" if uses else "")


def _drain_blockers(view: _View) -> Iterator[PodAnswer]:
    """Where the full drain was tried: what makes it fail, and the GPU's users that it leaves out."""
    run = view.run
    if run.kube is None or not says(run.outcome, m.ATTEMPTING_DRAIN, m.RETRYING_WITH_DRAIN):
        return
    for pod in run.world.cluster.pods:
        status = view.drained.get(pod.full_name)
        uses = tuple(_uses(run, pod))
        if status is None:
            if uses and run.world.env.get("DRAIN_POD_SELECTOR_LABEL") and pod.node_name in {None, run.node_name}:
                yield PodAnswer(pod.full_name, Fate.INVISIBLE, "DRAIN_POD_SELECTOR_LABEL leaves it out of the full drain", uses, ())
        elif status.reason == "Error":
            yield PodAnswer(pod.full_name, Fate.BLOCKING, f"the full drain stops at it: {_refusal(status)}", uses, ())
        elif status.delete and not run.kube.drain_has_writers:
            yield PodAnswer(pod.full_name, Fate.BLOCKING, "the full drain panics when it comes to it", uses, ())
