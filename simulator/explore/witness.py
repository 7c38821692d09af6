"""The ordinary world in which a path is taken: what was made up for a run, as a host, a cluster and settings.

Nothing is in it but what the run asked about. That it does take the path is not claimed but proven, by an ordinary run whose
branches are noted (`proving`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from simulator import labels
from simulator.cluster.objects import Budget, ClusterSpec, Container, Fault, Node, Owner, Pod, ResourceClaim
from simulator.explore.facts import Facts
from simulator.explore.made_up import (
    BLOCKED,
    BLOCKED_ONCE,
    DIGEST,
    FOR_EVER,
    FOREIGN,
    MISSING,
    NO_SELECTOR,
    NODE_NAME,
    OPERATOR_NAMESPACE,
    OTHER_CLAIM,
    OTHER_MOUNT,
    POD_NAMESPACE,
    Failing,
)
from simulator.explore.walking import Whole
from simulator.gocompat import SECOND
from simulator.host.spec import MELLANOX, NVIDIA, File, HostSpec, Module, PciFunction, Program
from simulator.manager.steps import DRIVER_PID_FILE, DRIVER_ROOT, MOFED_READY, PCI_DEVICES
from simulator.manager.v0_10_0 import DRIVER_CONFIG_DIGEST, DRIVER_CONFIG_STATE_FILE
from simulator.manager.v0_12_0 import DRA_DRIVER
from simulator.scenario import in_pod
from simulator.world import PlannedChange, World

_POLL: Final = 5.0
_NVIDIA_SMI: Final = "/usr/bin/nvidia-smi"
_VARIABLES: Final = {
    "enable_auto_drain": "ENABLE_AUTO_DRAIN",
    "enable_gpu_pod_eviction": "ENABLE_GPU_POD_EVICTION",
    "drain_use_force": "DRAIN_USE_FORCE",
    "drain_delete_emptydir_data": "DRAIN_DELETE_EMPTYDIR_DATA",
    "gpu_direct_rdma_enabled": "GPU_DIRECT_RDMA_ENABLED",
    "use_host_mofed": "USE_HOST_MOFED",
    "force_reinstall": "FORCE_REINSTALL",
    "node_label_for_gpu_pod_eviction": "NODE_LABEL_FOR_GPU_POD_EVICTION",
}
_ROWS: Final = {
    "short": "nvidia 1\n",
    "no size": "nvidia x 0 - Live\n",
    "no count": "nvidia 1 x - Live\n",
    "too long": "nvidia " + "x" * 65536 + "\n",
}
_CLAIMED: Final = frozenset(("NVIDIA's", "another driver's", "from a template", "not allocated"))
"""A pod's claim that is there."""
_MLX5: Final = "mlx5_core 1 0 - Live 0x0000000000000000 (OE)\n"


def world_of(run: Whole) -> World:
    """An ordinary world that answers as the run was answered."""
    first = run.facts.first
    changes = tuple(sorted(_changes(run.facts), key=lambda change: change.after))
    return in_pod(World(_host(first), _cluster(run, first), env=dict(_environment(first)), changes=changes))


# --- settings -------------------------------------------------------------------------------------------------------


def _environment(first: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    yield "NODE_NAME", NODE_NAME
    for name, variable in _VARIABLES.items():
        value = first.get(("setting", name))
        if value is not None and value != "":
            yield variable, value if isinstance(value, str) else str(value).lower()
    if first.get(("setting", "drain_timeout")):
        yield "DRAIN_TIMEOUT_SECONDS", "60s"
    if first.get(("setting", "drain_pod_selector_label")) == NO_SELECTOR:
        yield "DRAIN_POD_SELECTOR_LABEL", NO_SELECTOR
    if first.get("digest"):
        yield DRIVER_CONFIG_DIGEST, DIGEST
    for key, value in first.items():
        if isinstance(key, tuple) and key[0] == "what-if" and value:
            yield key[1].replace("-", "_").upper(), "true"


# --- the host -------------------------------------------------------------------------------------------------------


def _host(first: Mapping[Any, Any]) -> HostSpec:
    loaded = tuple(key[1] for key, value in first.items() if isinstance(key, tuple) and key[0] == "module" and value)
    held = {key[1]: value for key, value in first.items() if isinstance(key, tuple) and key[0] == "hold" and value != "free"}
    programs: dict[str, Program | None] = {}
    if first.get("nvidia-smi") == "no chroot":
        programs["chroot"] = None
    if (answer := first.get("vfio-manage")) in {"fails", "absent"}:
        programs["vfio-manage"] = Program("/usr/bin/vfio-manage", exit_code=1) if answer == "fails" else None
    elif first.get("PCI bus") in {"absent", "nothing"} or "unreadable" in first.values():
        programs["vfio-manage"] = Program("/usr/bin/vfio-manage")
    prints = {"answers": "580.95.05\n", "silent": ""}
    found = first.get("nvidia-smi")
    host = HostSpec(
        "witness",
        programs=(Program(_NVIDIA_SMI, stdout=prints[found]),) if found in prints else (),
        container_programs=programs,
        modules=_modules(loaded, held),
        delete_module={name: ("EAGAIN", "real") for name, value in held.items() if value == "held once"},
        files=tuple(_files(first)),
        directories=tuple(_directories(first)),
        mounts=tuple(_mounts(first)),
        pci=tuple(_pci(first)),
        umount={
            key[1]: "EPERM" for key, value in first.items() if isinstance(key, tuple) and key[0] == "mount" and value == "stays"
        },
        unlink={DRIVER_PID_FILE: "EPERM"} if first.get("PID file") == "stays" else {},
    )
    return _with_odd_table(host, first)


def _modules(loaded: tuple[str, ...], held: Mapping[str, str]) -> tuple[Module, ...]:
    companions = tuple(name for name in loaded if name not in {"nvidia", "nouveau"})
    return tuple(
        Module(name, used_by=companions if name == "nvidia" else (), users=1 if held.get(name) == "held" else 0) for name in loaded
    )


def _with_odd_table(host: HostSpec, first: Mapping[Any, Any]) -> HostSpec:
    """A table of modules that no kernel writes stands in place of the modules that would write it."""
    table = first.get("/proc/modules", "usual")
    text = _MLX5 if first.get("mlx5_core") == 0 else ""
    if table == "usual":
        return replace(host, modules=(*host.modules, Module("mlx5_core"))) if text else host
    if table != "absent":
        text = _ROWS[table] + text
    counts = tuple(File(f"/sys/module/{module.name}/refcnt", f"{module.users}\n") for module in host.modules)
    script = {module.name: "EAGAIN" for module in host.modules if module.users}
    script |= {"nvidia": "EAGAIN"} if any(module.used_by and set(module.used_by) & set(script) for module in host.modules) else {}
    return replace(
        host,
        modules=(),
        files=(*host.files, *counts),
        proc_modules=None if table == "absent" else text,
        delete_module={**host.delete_module, **script},
    )


def _files(first: Mapping[Any, Any]) -> Iterator[File]:
    if first.get("PID file") in {"there", "stays"}:
        yield File(DRIVER_PID_FILE, "1\n")
    if first.get("state file") in {"same", "other"}:
        yield File(DRIVER_CONFIG_STATE_FILE, DIGEST if first["state file"] == "same" else "0815")
    if first.get("MOFED's sign") == 0:
        yield File(MOFED_READY, "")


def _directories(first: Mapping[Any, Any]) -> Iterator[str]:
    if first.get("driver's root") in {"directory", "mounts below"}:
        yield DRIVER_ROOT
    if first.get("state file") == "directory":
        yield DRIVER_CONFIG_STATE_FILE
    if first.get("PCI bus") == "nothing":
        yield PCI_DEVICES
    for key, value in first.items():
        if isinstance(key, tuple) and key[0] == "PCI" and value == "unreadable":
            yield f"{PCI_DEVICES}/{key[1]}"


def _mounts(first: Mapping[Any, Any]) -> Iterator[str]:
    if first.get("driver's root") == "mounted":
        yield DRIVER_ROOT
    if first.get("driver's root") in {"directory", "mounts below"}:
        yield OTHER_MOUNT
    for name in ("dev", "sys", "proc", "run")[
        : first.get("mounts below", 1 if first.get("driver's root") == "mounts below" else 0)
    ]:
        yield f"{DRIVER_ROOT}/{name}"


def _pci(first: Mapping[Any, Any]) -> Iterator[PciFunction]:
    bus = first.get("PCI bus", "a GPU")  # without one vfio-manage fails
    if bus in {"a GPU", "a GPU and a card"} and first.get(("PCI", "0000:01:00.0")) != "unreadable":
        yield PciFunction("0000:01:00.0", NVIDIA, "0x2236")
    if bus == "a GPU and a card" and first.get(("PCI", "0000:02:00.0")) != "unreadable":
        yield PciFunction("0000:02:00.0", MELLANOX, "0x101d", class_="0x020000")


# --- the cluster ----------------------------------------------------------------------------------------------------


def _cluster(run: Whole, first: Mapping[Any, Any]) -> ClusterSpec:
    values = {key[1]: value for key, value in first.items() if isinstance(key, tuple) and key[0] == "label" and value}
    policy = first.get("upgrade policy")
    node = Node(
        NODE_NAME,
        labels=values,
        annotations={labels.UPGRADE_ANNOTATION: policy} if policy else {},
        unschedulable=first.get("cordoned") is True,
    )
    pods = [_pod(index, run) for index in range(first.get("pods", 0))]
    slow = [
        Pod(OPERATOR_NAMESPACE, f"{key[1]}-x", labels={"app": key[1]}, owner=Owner("ReplicaSet", "x"))
        for key, value in first.items()
        if isinstance(key, tuple) and key[0] == "slow" and value
    ]
    missing = {path for (_, path, _), (_, failing) in run.failed_at.items() if "/daemonsets/" in path and failing == MISSING}
    return ClusterSpec(
        "witness",
        node,
        pods=(*slow, *pods),
        daemonsets=frozenset(
            (POD_NAMESPACE, pod.name)
            for pod in pods
            if pod.owner and pod.owner.kind == "DaemonSet" and not any(path.endswith(f"/{pod.name}") for path in missing)
        ),
        resource_claims=tuple(_claims(first)),
        faults=tuple(_faults(run.failed_at)),
        eviction=None if first.get("evictions") is False else "policy/v1",
    )


def _pod(index: int, run: Whole) -> Pod:
    first = run.facts.first
    kind = first.get(("owner", index), "ReplicaSet")
    span = first.get(("goes after", index), 0)
    blocked = {failing for (_, path, _), (_, failing) in run.failed_at.items() if path.endswith(f"/pod-{index}/eviction")}
    claim = first.get(("claim", index), "none")
    reference = {"name": "gpu", "resourceClaimTemplateName": "t"}
    if claim in {"gone", *_CLAIMED} - {"from a template"}:
        reference = {"name": "gpu", "resourceClaimName": f"claim-{index}"}
    made = {"name": "gpu", "resourceClaimName": f"claim-{index}"}
    statuses = {"from a template": (OTHER_CLAIM, made), "not made yet": (OTHER_CLAIM, {"name": "gpu"})}
    client = first.get(("client", index)) is True
    deleted = first.get(("deleted", index)) is True
    return Pod(
        POD_NAMESPACE,
        f"pod-{index}",
        annotations={"kubernetes.io/config.mirror": "x"} if first.get(("mirror", index)) else {},
        node_selector={labels.CLIENT: "true"} if client else {},
        phase="Succeeded" if first.get(("finished", index)) else "Running",
        owner=_owner(kind, f"pod-{index}"),
        containers=(Container({"nvidia.com/gpu": "1"}),) if first.get(("GPU", index), True) else (Container(),),
        empty_dir=bool(first.get(("emptyDir", index))),
        termination=None if span == FOR_EVER or client or deleted else max(span - 0.5, 0.0) + _paused(index, run),
        terminating=deleted,
        budget=Budget(None) if BLOCKED in blocked else Budget(1) if BLOCKED_ONCE in blocked else None,
        resource_claims=() if claim == "none" else (reference,),
        resource_claim_statuses=statuses.get(claim, ()),
    )


def _owner(kind: str, name: str) -> Owner | None:
    if not kind:
        return None
    version = "example.com/v1" if kind == FOREIGN else "apps/v1"
    return Owner(kind.split(maxsplit=1)[0], name, controller=kind != "no controller", api_version=version)


def _paused(index: int, run: Whole) -> float:
    """Seconds that a request for the pod made the polls for its end wait."""
    failed = [
        failing for (method, path, _), (_, failing) in run.failed_at.items() if method == "GET" and path.endswith(f"/pod-{index}")
    ]
    return float(sum(failing.retry_after or 0 for failing in failed))


def _claims(first: Mapping[Any, Any]) -> Iterator[ResourceClaim]:
    for key, value in first.items():
        if isinstance(key, tuple) and key[0] == "claim" and value in _CLAIMED:
            driver = "another.example.com" if value == "another driver's" else DRA_DRIVER
            yield ResourceClaim(POD_NAMESPACE, f"claim-{key[1]}", None if value == "not allocated" else (driver,))


def _faults(failed_at: Mapping[tuple[str, str, str], tuple[int, Failing]]) -> Iterator[Fault]:
    for (method, path, selector), (before, failing) in failed_at.items():
        if failing in {BLOCKED, BLOCKED_ONCE} or (failing == MISSING and "/daemonsets/" in path):
            continue  # a budget, a DaemonSet that is not there
        listed = path.endswith("/pods")
        yield Fault(
            method=method,
            path=f"^{re.escape(path)}$",
            query=re.escape(selector.replace("=", "%3D")) + "(&|$)" if selector else "^(?!.*labelSelector)" if listed else "",
            skip=before,
            times=None if failing.for_ever else 1,
            status=failing.status,
            retry_after=failing.retry_after,
            causes=({"reason": failing.cause},) if failing.cause else (),
        )


# --- what happens meanwhile -----------------------------------------------------------------------------------------


def _changes(facts: Facts) -> Iterator[PlannedChange]:
    """What has come or gone by the poll that finds it so: half a poll before."""
    for key, value in facts.first.items():
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            continue
        match key:
            case ("slow", app):
                after = facts.at["operand", app] / SECOND + _POLL * (value - 0.5)
                yield PlannedChange(after, delete_pods=(f"{OPERATOR_NAMESPACE}/{app}-x",))
            case ("goes after", index) if facts.first.get(("deleted", index)) is True:
                yield PlannedChange(facts.at[key] / SECOND + value - 0.5, delete_pods=(f"{POD_NAMESPACE}/pod-{index}",))
            case ("leaves after", index):
                yield PlannedChange(facts.at[key] / SECOND + _POLL * (value - 1.5), delete_pods=(f"{POD_NAMESPACE}/pod-{index}",))
            case "MOFED's sign":
                yield PlannedChange(facts.at[key] / SECOND + _POLL * (value - 0.5), write={MOFED_READY: ""})
            case "mlx5_core":
                yield PlannedChange(facts.at[key] / SECOND + _POLL * (value - 0.5), write={"/proc/modules": _MLX5})
