"""Settings that a run reads otherwise than they were meant, and the one that makes it wait."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from simulator.config import UNINSTALL_DRIVER, read
from simulator.diagnosing.commands import Command, patch_policy
from simulator.diagnosing.finding import Finding
from simulator.diagnosing.situation import Situation
from simulator.host.spec import MELLANOX
from simulator.manager.releases import Flow, is_since, resolve
from simulator.manager.steps import MOFED_READY
from simulator.predicting.modes import Mode
from simulator.predicting.run import CUSTOM_LABEL
from simulator.urfave import End, Flag

_MANAGERS: Final = {
    Mode.CONTAINER: ("driver", "manager"),
    Mode.VM_PASSTHROUGH: ("vfioManager", "driverManager"),
    Mode.VM_VGPU: ("vgpuManager", "driverManager"),
}
"""Workload type -> where in the ClusterPolicy's spec driver-manager's variables are."""
_TRUE, _FALSE = frozenset({"1", "t", "y", "yes", "on"}), frozenset({"0", "f", "n", "no", "off"})


def find(situation: Situation) -> Iterator[Finding]:
    """Findings about settings."""
    flow = resolve(situation.release)
    if isinstance(flow, Flow):
        yield from _flags(situation, flow)
    yield from _mofed(situation)


def _flags(situation: Situation, flow: Flow) -> Iterator[Finding]:
    for flag in flow.flags:
        value = situation.env.get(flag.env) if flag.env else None
        if value is None:
            continue
        refused = read(flow.flags, (UNINSTALL_DRIVER,), {"NODE_NAME": "node", flag.env: value})
        if isinstance(refused, End):
            yield _refused(situation, flag, value, refused.fatal or "")
        elif flag.kind == "bool" and not value and flag.default:
            yield _empty(situation, flag)
    custom = situation.env.get(CUSTOM_LABEL, "")
    if "=" in custom:
        yield _with_value(situation, custom)


def _set(situation: Situation, name: str, value: str) -> tuple[Command, ...]:
    """What gives a variable of driver-manager another value; nothing where the ClusterPolicy was not seen."""
    where = _MANAGERS[situation.mode]
    manager = situation.of_policy("spec", *where)
    if situation.policy is None:
        return ()
    path = "/".join(("/spec", *where))
    entry: dict[str, Any] = {"name": name, "value": value}
    operations: list[dict[str, Any]] = []
    if not isinstance(situation.of_policy("spec", where[0]), Mapping):
        return ()
    if not isinstance(manager, Mapping):
        operations.append({"op": "add", "path": path, "value": {"env": [entry]}})
    elif not isinstance(manager.get("env"), list):
        operations.append({"op": "add", "path": f"{path}/env", "value": [entry]})
    else:
        names = [item.get("name") if isinstance(item, Mapping) else None for item in manager["env"]]
        index = names.index(name) if name in names else None
        if index is None:
            operations.append({"op": "add", "path": f"{path}/env/-", "value": entry})
        else:
            operations += (
                {"op": "test", "path": f"{path}/env/{index}/name", "value": name},
                {"op": "replace", "path": f"{path}/env/{index}", "value": entry},
            )
    return (patch_policy(situation.policy_name, operations, "json"),)


_RESTARTS: Final = (
    "The DaemonSet's template changes. Of the driver's the upgrade controller restarts the pods, if it is on, and evicts GPU pods for"
    " that; of the others the pods restart at once, and vfio-manager's takes every GPU from its driver."
)


def _written(situation: Situation, name: str, value: str) -> str:
    """Where the value is set, for a person without the ClusterPolicy."""
    where = ".".join((*_MANAGERS[situation.mode], "env"))
    return f" Set {name} to {value} in the chart's value {where}."


def _refused(situation: Situation, flag: Flag, value: str, said: str) -> Finding:
    proposal = _meant(flag, value)
    return Finding(
        "setting-refused",
        f"{flag.env} is {value!r}, which is no {flag.kind}.",
        f"Every run ends with exit code 1 before it does anything: {said}.{_written(situation, flag.env, proposal)}",
        _set(situation, flag.env, proposal),
        _RESTARTS,
        (f"{flag.env}={value}",),
    )


def _meant(flag: Flag, value: str) -> str:
    """What was probably meant."""
    word = value.strip().lower()
    if flag.kind == "duration" and re.fullmatch(r"\d+", word):
        return f"{word}s"
    if flag.kind == "bool" and word in _TRUE | _FALSE:
        return "true" if word in _TRUE else "false"
    return "0s" if flag.kind == "duration" else str(bool(flag.default)).lower()


def _empty(situation: Situation, flag: Flag) -> Finding:
    return Finding(
        "setting-empty",
        f"{flag.env} is empty.",
        f"An empty variable means false, though without the variable it would be true.{_written(situation, flag.env, 'false')}"
        " Or to true, if that is what was meant.",
        _set(situation, flag.env, "false"),
        f"With false nothing changes but what people read. {_RESTARTS}",
        (f'{flag.env}=""',),
    )


def _with_value(situation: Situation, custom: str) -> Finding:
    key = custom.partition("=")[0]
    return Finding(
        "eviction-label-with-value",
        f"{CUSTOM_LABEL} is {custom!r}, with a value.",
        "The shell releases cut off the value; the Go releases take the whole for the label's key, which no node can have. Nothing"
        f" behind the label is told to go.{_written(situation, CUSTOM_LABEL, key)}",
        _set(situation, CUSTOM_LABEL, key),
        f"DaemonSets behind {key} leave the node at each run of driver-manager. {_RESTARTS}",
        (f"{CUSTOM_LABEL}={custom}",),
    )


# --- MOFED ----------------------------------------------------------------------------------------------------------


def _mofed(situation: Situation) -> Iterator[Finding]:
    card = next((function.address for function in situation.host.pci if function.vendor == MELLANOX), "")
    wanted, of_host = (situation.is_on(name) for name in ("GPU_DIRECT_RDMA_ENABLED", "USE_HOST_MOFED"))
    if not card or not wanted or not is_since(situation.release, "v0.8.1"):
        return
    is_loaded, is_ready = "mlx5_core" in situation.modules, situation.has_file(MOFED_READY)
    is_swapped = situation.release == "v0.9.0"
    looks_at_host = of_host != is_swapped
    if is_loaded if looks_at_host else is_ready:
        return
    missing = "module mlx5_core" if looks_at_host else f"the file {MOFED_READY}"
    other = "the file that a MOFED container writes when it is ready" if looks_at_host else "the host's module mlx5_core"
    is_there = is_ready if looks_at_host else is_loaded
    rdma = {"spec": {"driver": {"rdma": {"useHostMofed": not of_host}}}}
    yield Finding(
        "waits-for-mofed",
        f"A run waits for {missing}, which is not there, as long as it takes.",
        "Meanwhile the operands are paused and, where eviction is on, the node is cordoned; not so from v0.12.0 on where no driver is"
        " loaded. It goes on by itself within 5 seconds once the sign is there."
        + (f" {other[0].upper()}{other[1:]} is there: the setting USE_HOST_MOFED does not fit the host." if is_there else "")
        + (" v0.9.0 looks for the sign of the other setting (issue #123); v0.9.1 mends that." if is_swapped else ""),
        (patch_policy(situation.policy_name, rdma),) if is_there else (),
        "The driver is built against the other MOFED: the host's must be NVIDIA's own, not the distribution's, for peermem to work."
        " The DaemonSet's template changes, see the upgrade controller."
        if is_there
        else "Nothing to run: the network operator has to bring MOFED, or GPUDirect RDMA has to be switched off in the ClusterPolicy.",
        (
            f"card {card}",
            f"GPU_DIRECT_RDMA_ENABLED={situation.env['GPU_DIRECT_RDMA_ENABLED']}",
            f"no {missing.removeprefix('the ')}",
        ),
    )
