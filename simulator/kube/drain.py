"""kubectl's drain library: which pods go, and how they are made to go.

Reads beside k8s.io/kubectl/pkg/drain: `Helper`, `filterPods` with its five filters in order, `evictPods`, `deletePods`,
`waitForDelete`, `RunNodeDrain`, `RunCordonOrUncordon`. A helper without writers panics at its first output, as a nil
`io.Writer` does in Go. Leaves out what driver-manager never sets (dry run, selectors of nodes, callbacks).

Source: v0.27.2 (nvdrain of driver-manager v0.6.2), v0.33.1 (kubectl of the shell releases' images), v0.33.2 (v0.8.1 to
v0.10.0), v0.35.4 (v0.11.0), v0.36.3 (v0.12.0); see `profile`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from simulator.gocompat import MAX_DURATION, NIL_POINTER, SECOND, Duration, GoError, GoPanic, aggregate, format_duration, quote
from simulator.kube.clientset import Clientset, Object
from simulator.kube.rest import (
    StatusError,
    Waiting,
    is_bad_request,
    is_forbidden,
    is_not_found,
    is_too_many_requests,
)
from simulator.kube.waiting import concurrent, deadline, poll
from simulator.ports import Clock, Output
from simulator.selectors import escape_field, parse

CHUNK_SIZE: Final = 500
"""kubectl's page size for a long list (`cmdutil.DefaultChunkSize`)."""

MIRROR_POD: Final = "kubernetes.io/config.mirror"
_NAMESPACE_TERMINATING: Final = "NamespaceTerminating"
_DAEMONSET_FATAL: Final = "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"
_DAEMONSET_WARNING: Final = "ignoring DaemonSet-managed Pods"
_LOCAL_STORAGE_FATAL: Final = "Pods with local storage (use --delete-emptydir-data to override)"
_LOCAL_STORAGE_WARNING: Final = "deleting Pods with local storage"
_UNMANAGED_WARNING: Final = "deleting Pods that declare no controller"
_POLL: Final = SECOND


class PodStatus(NamedTuple):
    """A filter's verdict (`PodDeleteStatus`): does the pod go, and is there a warning or an error?"""

    delete: bool
    reason: str
    message: str = ""


OKAY: Final = PodStatus(delete=True, reason="Okay")
SKIP: Final = PodStatus(delete=False, reason="Skip")
PodFilter: TypeAlias = "Callable[[Object], Waiting[PodStatus]]"


def warning(message: str, *, delete: bool) -> PodStatus:
    """Goes or stays, with a warning."""
    return PodStatus(delete, "Warning", message)


def error(message: str) -> PodStatus:
    """Stays, and is an error."""
    return PodStatus(delete=False, reason="Error", message=message)


class Judged(NamedTuple):
    """A pod and what the filters say of it."""

    pod: Object
    status: PodStatus


class PodList(NamedTuple):
    """`PodDeleteList`: every pod of the node, judged."""

    items: Sequence[Judged]

    def pods(self) -> list[Object]:
        """Those that go."""
        return [item.pod for item in self.items if item.status.delete]

    def warnings(self) -> str:
        """The warnings, pods of one warning together."""
        return "; ".join(f"{text}: {', '.join(names)}" for text, names in self._by_message("Warning").items())

    def errors(self) -> list[GoError]:
        """The errors, pods of one error together."""
        return [GoError(f"cannot delete {text}: {', '.join(names)}") for text, names in self._by_message("Error").items()]

    def _by_message(self, reason: str) -> dict[str, list[str]]:
        groups: dict[str, list[str]] = {}
        for item in self.items:
            if item.status.reason == reason:
                text = item.status.message or ("unexpected error" if reason == "Error" else "")
                groups.setdefault(text, []).append(full_name(item.pod))
        return groups


def full_name(pod: Object) -> str:
    """namespace/name."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def controller_of(pod: Object) -> Object | None:
    """`metav1.GetControllerOf`: the owner that says it is the controller."""
    for owner in pod["metadata"].get("ownerReferences", ()):
        if owner.get("controller"):
            return owner  # type: ignore[no-any-return]  # documents are untyped
    return None


def is_finished(pod: Object) -> bool:
    """Succeeded or Failed."""
    return pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}


@dataclass(slots=True)
class Helper:
    """`drain.Helper`. Timeouts in nanoseconds, 0 means none. A grace period below 0 is the pod's own."""

    client: Clientset
    clock: Clock
    output: Output | None
    """None: the writers were left nil."""
    force: bool = False
    grace_period_seconds: int = 0
    ignore_all_daemonsets: bool = False
    timeout: Duration = 0
    delete_emptydir_data: bool = False
    pod_selector: str = ""
    chunk_size: int = 0
    additional_filters: Sequence[PodFilter] = ()
    on_finished: Callable[[Object, bool, GoError | None], None] | None = None
    """Hears of each pod that is gone, or that could not be waited for: the pod, was it evicted, the error."""

    # --- which pods -------------------------------------------------------------------------------------------

    def get_pods_for_deletion(self, node_name: str) -> Waiting[tuple[PodList | None, list[GoError]]]:
        """Every pod of the node, judged, and the errors. The list is None where upstream's pointer is nil."""
        try:
            selector = str(parse(self.pod_selector, self.client.rest.libraries.label_words))
        except GoError as failure:
            return None, [failure]
        field_selector = f"spec.nodeName={escape_field(node_name)}"
        limit = str(self.chunk_size) if self.chunk_size else ""
        pods: list[Object] = []
        token = ""
        while True:
            try:
                page = yield from self.client.list_pods(
                    "", {"labelSelector": selector, "fieldSelector": field_selector, "limit": limit, "continue": token}
                )
            except GoError as failure:
                return None, [_enhance_list_error(failure, selector, field_selector)]
            pods += page["items"]
            token = page.get("metadata", {}).get("continue", "")
            if not token:
                break
        judged = PodList((yield from self._filter(pods)))
        return judged, judged.errors()

    def _filter(self, pods: Sequence[Object]) -> Waiting[list[Judged]]:
        filters: tuple[PodFilter, ...] = (
            self.daemonset_filter,
            self.mirror_pod_filter,
            self.local_storage_filter,
            self.unreplicated_filter,
            *self.additional_filters,
        )
        judged = []
        for pod in pods:
            status = OKAY
            for judge in filters:
                status = yield from judge(pod)
                if not status.delete:
                    break
            judged.append(Judged(pod, status))
        return judged

    def daemonset_filter(self, pod: Object) -> Waiting[PodStatus]:
        """A DaemonSet's pod stays; one whose DaemonSet is gone goes with force."""
        owner = controller_of(pod)
        if owner is None or owner.get("kind") != "DaemonSet":
            return OKAY
        if self.client.rest.libraries.daemonset_needs_apps_v1 and owner.get("apiVersion") != "apps/v1":
            return OKAY
        if is_finished(pod):
            return OKAY
        try:
            yield from self.client.get_daemonset(pod["metadata"]["namespace"], owner["name"])
        except GoError as failure:
            if is_not_found(failure) and self.force:
                return warning(str(failure), delete=True)
            return error(str(failure))
        if not self.ignore_all_daemonsets:
            return error(_DAEMONSET_FATAL)
        return warning(_DAEMONSET_WARNING, delete=False)

    def mirror_pod_filter(self, pod: Object) -> Waiting[PodStatus]:
        """A static pod's mirror is left alone."""
        yield from ()
        return SKIP if MIRROR_POD in pod["metadata"].get("annotations", {}) else OKAY

    def local_storage_filter(self, pod: Object) -> Waiting[PodStatus]:
        """A pod with an emptyDir goes only if its data may be deleted."""
        yield from ()
        if not any("emptyDir" in volume for volume in pod["spec"].get("volumes", ())) or is_finished(pod):
            return OKAY
        if not self.delete_emptydir_data:
            return error(_LOCAL_STORAGE_FATAL)
        return warning(_LOCAL_STORAGE_WARNING, delete=True)

    def unreplicated_filter(self, pod: Object) -> Waiting[PodStatus]:
        """A pod nobody would replace goes only with force."""
        yield from ()
        if is_finished(pod) or controller_of(pod) is not None:
            return OKAY
        if self.force:
            return warning(_UNMANAGED_WARNING, delete=True)
        return error(self.client.rest.libraries.unmanaged_fatal)

    # --- making them go ---------------------------------------------------------------------------------------

    def delete_or_evict_pods(self, pods: Sequence[Object]) -> Waiting[None]:
        """Evict where the server can, else delete; then wait. Raises GoError."""
        if not pods:
            return
        version = yield from self.client.eviction_version()
        if version:
            yield from self._evict_pods(pods, version)
        else:
            yield from self._delete_pods(pods)

    def _delete_options(self) -> dict[str, int]:
        return {"gracePeriodSeconds": self.grace_period_seconds} if self.grace_period_seconds >= 0 else {}

    def _limit(self) -> Duration:
        return self.timeout or MAX_DURATION

    def _evict_pods(self, pods: Sequence[Object], version: str) -> Waiting[None]:
        ends = deadline(self.clock, self._limit())
        errors = yield from concurrent(self.clock, [self._evict_pod(pod, version, ends) for pod in pods])
        failure = aggregate(errors)
        if failure is not None:
            raise failure

    def _evict_pod(self, pod: Object, version: str, ends: Duration | None) -> Waiting[GoError | None]:
        """One goroutine of `evictPods`: try until evicted, then wait until gone."""
        libraries = self.client.rest.libraries
        while True:
            namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
            self._print(f"evicting pod {namespace}/{name}\n")
            if ends is not None and self.clock.now >= ends:
                limit = format_duration(self._limit())
                return GoError(f"error when evicting pods/{quote(name)} -n {quote(namespace)}: global timeout reached: {limit}")
            try:
                yield from self.client.evict_pod(version, pod, self._delete_options())
            except GoError as failure:
                in_terminating_namespace = (
                    is_forbidden(failure) and isinstance(failure, StatusError) and _NAMESPACE_TERMINATING in failure.causes
                )
                delay = format_duration(libraries.blocked_eviction_delay)
                if is_not_found(failure):
                    return None
                if is_too_many_requests(failure):
                    self._complain(
                        f"error when evicting pods/{quote(name)} -n {quote(namespace)} (will retry after {delay}): {failure}\n"
                    )
                elif in_terminating_namespace and pod["metadata"].get("deletionTimestamp"):
                    break
                elif in_terminating_namespace:
                    self._complain(
                        f"error when evicting pod {quote(name)} from terminating namespace {quote(namespace)}"
                        f" (will retry after {delay}): {failure}\n"
                    )
                else:
                    return GoError(f"error when evicting pods/{quote(name)} -n {quote(namespace)}: {failure}")
                yield libraries.blocked_eviction_delay
                if libraries.blocked_eviction_refreshes_pod:
                    pod = yield from self._fresh(pod)
            else:
                break
        try:
            yield from self._wait_for_delete([pod], MAX_DURATION, ends, evicted=True)
        except GoError as failure:
            return GoError(f"error when waiting for pod {quote(name)} in namespace {quote(namespace)} to terminate: {failure}")
        return None

    def _fresh(self, pod: Object) -> Waiting[Object]:
        try:
            return (yield from self.client.get_pod(pod["metadata"]["namespace"], pod["metadata"]["name"]))
        except GoError:  # upstream lets the eviction sort it out with the pod it has
            return pod

    def _delete_pods(self, pods: Sequence[Object]) -> Waiting[None]:
        for pod in pods:
            try:
                yield from self.client.delete_pod(pod["metadata"]["namespace"], pod["metadata"]["name"], self._delete_options())
            except GoError as failure:
                if not is_not_found(failure):
                    raise
        yield from self._wait_for_delete(pods, self._limit(), None, evicted=False)

    def _wait_for_delete(
        self, pods: Sequence[Object], timeout: Duration, parent: Duration | None, *, evicted: bool
    ) -> Waiting[None]:
        """`waitForDelete`: ask for each pod every second until none of them is left."""
        libraries = self.client.rest.libraries
        pending = list(pods)

        def finished(pod: Object, failure: GoError | None = None) -> None:
            if self.on_finished is not None:
                self.on_finished(pod, evicted, failure)

        def all_gone() -> Waiting[bool]:
            left = []
            for pod in pending:
                try:
                    found = yield from self.client.get_pod(pod["metadata"]["namespace"], pod["metadata"]["name"])
                except GoError as failure:
                    if not is_not_found(failure) and not libraries.unreadable_pod_counts_as_gone:
                        finished(pod, failure)
                        raise
                    finished(pod)
                    continue
                if found["metadata"].get("uid") == pod["metadata"].get("uid"):
                    left.append(pod)
                else:
                    finished(pod)
            pending[:] = left
            if left and libraries.deadline_seen_at_poll and parent is not None and self.clock.now >= parent:
                raise GoError(f"global timeout reached: {format_duration(self._limit())}")
            return not left

        if libraries.deadline_seen_at_poll:
            yield from poll(self.clock, _POLL, deadline(self.clock, timeout), all_gone, late=True)
        else:
            yield from poll(self.clock, _POLL, deadline(self.clock, timeout, parent), all_gone)

    def _print(self, text: str) -> None:
        if self.output is None:
            raise GoPanic(NIL_POINTER)
        self.output.stdout(text)

    def _complain(self, text: str) -> None:
        if self.output is None:
            raise GoPanic(NIL_POINTER)
        self.output.stderr(text)

    def run_node_drain(self, node_name: str) -> Waiting[None]:
        """`drain.RunNodeDrain`. Raises GoError; a warning on a helper without writers is a panic."""
        judged, errors = yield from self.get_pods_for_deletion(node_name)
        failure = aggregate(errors)
        if failure is not None:
            raise failure
        assert judged is not None
        text = judged.warnings()
        if text:
            self._complain(f"WARNING: {text}\n")
        yield from self.delete_or_evict_pods(judged.pods())


def run_cordon_or_uncordon(client: Clientset, node: Object, *, desired: bool) -> Waiting[None]:
    """`drain.RunCordonOrUncordon`: a patch if the node is not so already. Raises GoError `cordon error: ...`."""
    if bool(node.get("spec", {}).get("unschedulable", False)) == desired:
        return
    try:
        yield from client.patch_node(node["metadata"]["name"], {"spec": {"unschedulable": True if desired else None}})
    except GoError as failure:
        raise GoError(f"cordon error: {failure}") from None


def _enhance_list_error(failure: GoError, label_selector: str, field_selector: str) -> GoError:
    """`resource.EnhanceListError`: more words for a bad request or a missing resource."""
    if not (is_bad_request(failure) or is_not_found(failure)):
        return failure
    return GoError(
        f"Unable to find {quote('/v1, Resource=pods')} that match label selector {quote(label_selector)},"
        f" field selector {quote(field_selector)}: {failure}"
    )
