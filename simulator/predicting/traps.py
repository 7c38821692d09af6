"""Settings that do not do what they seem to: each trap with a name, the setting, and what it does instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from simulator import labels
from simulator.config import FORCE_REINSTALL, Config
from simulator.gocompat import GoError, parse_duration
from simulator.host.spec import MELLANOX
from simulator.manager.releases import Flow, is_since
from simulator.manager.shell.releases import CHANGES
from simulator.manager.v0_10_0 import DRIVER_CONFIG_DIGEST
from simulator.manager.v0_12_0 import DRA_DRIVER
from simulator.manager.whatif import WHAT_IFS
from simulator.predicting.answers import Trap
from simulator.predicting.events import cluster_policy, knows_digest, policy_owns_eviction
from simulator.predicting.reading import pod_requests
from simulator.predicting.run import CUSTOM_LABEL, SCRIPT_SINCE, Run

_SINCE: Final = {
    **{variable: tag for tag, changes in CHANGES.items() for change in changes for variable in SCRIPT_SINCE.get(change.name, ())},
    FORCE_REINSTALL.env: "v0.10.0",
    DRIVER_CONFIG_DIGEST: "v0.10.0",
}
"""Variable that not every release reads -> the first that does."""
_OPERAND_APPS: Final = ("nvidia-operator-validator", "nvidia-device-plugin-daemonset", "nvidia-sandbox-validator")


def traps(run: Run) -> Iterator[Trap]:
    """Those of a run."""
    for find in _FINDERS:
        yield from find(run)


def _is_go(run: Run) -> bool:
    return isinstance(run.resolved, Flow)


def _duration_without_unit(run: Run) -> Iterator[Trap]:
    name = "DRAIN_TIMEOUT_SECONDS"
    given = run.world.env.get(name)
    if not given:
        return
    try:
        parse_duration(given)
    except GoError:
        what = "the program ends at once with exit code 1" if _is_go(run) else "the drain fails when it comes to it"
        mend = f"; write {given}s" if given.isdecimal() else ""
        yield Trap(
            "duration-without-unit", name, f"{name}={given} is no duration, as it lacks a unit or has a wrong one: {what}{mend}"
        )


def _no_timeout(run: Run) -> Iterator[Trap]:
    name = "DRAIN_TIMEOUT_SECONDS"
    evicts = any(request.verb == "evict" for request in pod_requests(run.outcome))
    try:
        limited = parse_duration(run.world.env.get(name) or "0s") != 0
    except GoError:
        return
    if evicts and not limited:
        yield Trap(
            "no-drain-timeout", name, f"{name} is 0, which means no limit: a GPU pod that does not go is waited for without end"
        )


def _custom_label(run: Run) -> Iterator[Trap]:
    name = CUSTOM_LABEL
    given = run.world.env.get(name, "")
    if not given or not run.custom_label:
        return
    if _is_go(run) and "=" in given:
        yield Trap(
            "custom-label-with-value",
            name,
            f"{name}={given}: a Go release takes the whole text for the label's key, so it matches nothing; write"
            f" {given.partition('=')[0]}",
        )
    elif not run.node_labels.get(run.custom_label):
        yield Trap(
            "custom-label-absent",
            name,
            f"the node has no value for the label {run.custom_label}, so {name} does nothing here",
        )


def _custom_label_goes_first(run: Run) -> Iterator[Trap]:
    """The operand pods behind the custom label are paused before the pods that hold claims are evicted."""
    behind = [pod.full_name for pod in run.world.cluster.pods if run.custom_label and run.custom_label in pod.node_selector]
    claimed = any(DRA_DRIVER in (claim.drivers or ()) for claim in run.world.cluster.resource_claims)
    if behind and claimed and run.node_labels.get(run.custom_label):
        yield Trap(
            "custom-label-goes-first",
            CUSTOM_LABEL,
            f"{', '.join(behind)} goes before the pods that hold GPU claims: if it is the DRA kubelet plugin, those cannot end"
            f" without it. Since v0.12.0 {labels.DRA_DRIVER} lets the plugin go last",
        )


def _selector(run: Run) -> Iterator[Trap]:
    name = "DRAIN_POD_SELECTOR_LABEL"
    if run.world.env.get(name):
        yield Trap(
            "selector-ignored-by-eviction",
            name,
            f"{name} holds for the full drain only: GPU pods are evicted whether or not it matches",
        )


def _full_drain(run: Run) -> Iterator[Trap]:
    if isinstance(run.settings, Config) and run.settings.enable_auto_drain and not policy_owns_eviction(run.world):
        yield Trap(
            "full-drain-cannot-succeed",
            "ENABLE_AUTO_DRAIN",
            "the full drain of the Go releases fails at any DaemonSet's pod on the node (the driver's own too) and panics at the"
            " first pod that it evicts: do not rely on ENABLE_AUTO_DRAIN=true",
        )


def _empty_boolean(run: Run) -> Iterator[Trap]:
    if not isinstance(run.resolved, Flow):
        return
    for flag in run.resolved.flags:
        if flag.kind == "bool" and flag.default and run.world.env.get(flag.env) == "":
            yield Trap("empty-boolean-means-false", flag.env, f'{flag.env}="" means false, although its default is true')


def _not_exactly_true(run: Run) -> Iterator[Trap]:
    if _is_go(run):
        return
    for name in ("ENABLE_AUTO_DRAIN", "ENABLE_GPU_POD_EVICTION", "GPU_DIRECT_RDMA_ENABLED", "USE_HOST_MOFED"):
        given = run.world.env.get(name, "")
        if given and given != "true" and given.lower() in {"1", "t", "true", "yes"}:
            yield Trap("only-true-means-true", name, f'{name}={given} means false: the script knows "true" and nothing else')


def _unknown_variable(run: Run) -> Iterator[Trap]:
    for name, since in _SINCE.items():
        if name in run.world.env and not is_since(run.release, since):
            yield Trap("unknown-to-this-release", name, f"{run.release} does not read {name}; the first that does is {since}")
    known = {flag.env for flag in run.resolved.flags} if isinstance(run.resolved, Flow) else set()
    for what_if in WHAT_IFS.values():
        for flag in what_if.flags:
            if flag.env in run.world.env and flag.env not in known:
                yield Trap(
                    "no-release-reads-it", flag.env, f"no release reads {flag.env}: it is only proposed ({what_if.upstream})"
                )


def _force_reinstall(run: Run) -> Iterator[Trap]:
    if isinstance(run.settings, Config) and run.settings.force_reinstall:
        yield Trap(
            "force-reinstall-evicts",
            FORCE_REINSTALL.env,
            "FORCE_REINSTALL=true goes the full way at each restart of the pod, evicting GPU pods and unloading the driver; it does"
            " not get past a host's own driver",
        )


def _superseded(run: Run) -> Iterator[Trap]:
    if not policy_owns_eviction(run.world) or (not _is_go(run) and not is_since(run.release, "v0.6.2")):
        return
    yield Trap(
        "superseded-by-upgrade-policy",
        labels.UPGRADE_ANNOTATION,
        "this annotation of the node, true, turns driver-manager's own eviction, drain and uncordon off, whatever"
        " ENABLE_GPU_POD_EVICTION and ENABLE_AUTO_DRAIN say; the operator's upgrade controller has to evict"
        f" (label {labels.UPGRADE_STATE}=upgrade-required asks it to)",
    )
    if _driver_disabled(cluster_policy(run.world)):
        yield Trap(
            "annotation-without-driver",
            labels.UPGRADE_ANNOTATION,
            "the annotation is true although the ClusterPolicy has driver.enabled=false: no upgrade controller acts on it, and"
            " driver-manager still takes it at its word",
        )


def _driver_disabled(document: object) -> bool:
    spec = document.get("spec") if isinstance(document, dict) else None
    driver = spec.get("driver") if isinstance(spec, dict) else None
    return isinstance(driver, dict) and driver.get("enabled") is False


def _nobody_evicts(run: Run) -> Iterator[Trap]:
    config = run.settings
    if isinstance(config, Config) and not config.enable_gpu_pod_eviction and not config.enable_auto_drain:
        yield Trap(
            "nobody-evicts",
            "ENABLE_GPU_POD_EVICTION",
            "eviction and drain are both off: pods that hold a GPU have to be ended by somebody else, else the modules stay in use",
        )


def _rdma(run: Run) -> Iterator[Trap]:
    if _is_go(run):
        config = run.settings
        if not isinstance(config, Config):
            return
        enabled, of_host = config.gpu_direct_rdma_enabled, config.use_host_mofed
    else:
        enabled, of_host = run.variable("GPU_DIRECT_RDMA_ENABLED") == "true", run.variable("USE_HOST_MOFED") == "true"
    if enabled and run.release == "v0.9.0":
        yield Trap(
            "mofed-checks-swapped",
            "USE_HOST_MOFED",
            "v0.9.0 looks for the wrong one: USE_HOST_MOFED=true waits for the MOFED container's file, false for the host's module;"
            " mended in v0.9.1",
        )
    if enabled and not any(function.vendor == MELLANOX for function in run.world.host.pci):
        yield Trap(
            "rdma-without-card", "GPU_DIRECT_RDMA_ENABLED", "there is no Mellanox card on this node, so MOFED is not waited for"
        )
    if of_host and not enabled:
        yield Trap(
            "host-mofed-without-rdma", "USE_HOST_MOFED", "USE_HOST_MOFED does nothing unless GPU_DIRECT_RDMA_ENABLED is true"
        )


def _digest(run: Run) -> Iterator[Trap]:
    if knows_digest(run.release) and not run.world.env.get(DRIVER_CONFIG_DIGEST) and "nvidia" in run.outcome.before.modules:
        yield Trap(
            "no-digest",
            DRIVER_CONFIG_DIGEST,
            f"{DRIVER_CONFIG_DIGEST} is not set (only the driver DaemonSet of the chart v26.3.0 and later sets it), so each restart"
            " goes the full way",
        )


def _namespace(run: Run) -> Iterator[Trap]:
    default = "gpu-operator" if _is_go(run) else "gpu-operator-resources"
    namespace = run.settings.operator_namespace if isinstance(run.settings, Config) else run.variable("OPERATOR_NAMESPACE", default)
    homes = {pod.namespace for pod in run.world.cluster.pods if pod.labels.get("app") in _OPERAND_APPS}
    if homes and namespace not in homes:
        yield Trap(
            "operands-elsewhere",
            "OPERATOR_NAMESPACE",
            f"operands are waited for in {namespace}, but run in {', '.join(sorted(homes))}: nothing is waited for",
        )


def _node_name(run: Run) -> Iterator[Trap]:
    node = run.world.cluster.node
    if node is not None and run.node_name != node.name:
        yield Trap("another-node", "NODE_NAME", f'NODE_NAME is "{run.node_name}", the node that is described is "{node.name}"')


_FINDERS: Final[tuple[Callable[[Run], Iterator[Trap]], ...]] = (
    _node_name,
    _duration_without_unit,
    _no_timeout,
    _custom_label,
    _custom_label_goes_first,
    _selector,
    _superseded,
    _full_drain,
    _nobody_evicts,
    _empty_boolean,
    _not_exactly_true,
    _unknown_variable,
    _force_reinstall,
    _digest,
    _rdma,
    _namespace,
)
