"""What happens to a node before driver-manager runs there: each event as a change of the world.

An event that cannot be known in full says what it assumes instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from simulator import labels
from simulator.config import UNINSTALL_DRIVER
from simulator.host import modprobe
from simulator.host.spec import File, HostSpec, PciFunction
from simulator.host.tree import fresh
from simulator.manager.releases import is_since, resolve
from simulator.manager.steps import MODULES
from simulator.manager.v0_10_0 import DRIVER_CONFIG_DIGEST, DRIVER_CONFIG_STATE_FILE
from simulator.predicting.driver_pod import driver_pods, without_processes_of
from simulator.predicting.modes import WORKLOADS, Mode, mode_of, relabelled
from simulator.world import World, comes_back

_ANOTHER_DIGEST: Final = "another-configuration"
_KEPT: Final = ("NODE_NAME", "OPERATOR_NAMESPACE", "KUBECONFIG", "HOME", "PATH")
_KEPT_PREFIX: Final = "KUBERNETES_"
_DRIVER_STOPS: Final = (
    "what the old driver container does when it stops (it too tries to unload its modules) is not modelled, but that its"
    " processes are gone: modules, mounts and files are as the world has them"
)
_NOT_THE_OLD_PODS: Final = (
    "open handles of processes that are not named are not the old driver pod's own; if they are (nvidia-persistenced,"
    " nv-fabricmanager), they are gone before driver-manager runs"
)


class Event(StrEnum):
    """Why the pod that runs driver-manager starts."""

    POD_RESTART = "pod-restart"
    """The same pod again: nothing of the world changes."""
    IMAGE_BUMP = "image-bump"
    """The pod comes back with another driver version: its configuration's digest, where there is one, is another."""
    REBOOT = "reboot"
    """The node was rebooted: /run is empty, modules are those that the host itself loads."""
    CONFIG_CHANGE = "config-change"
    """The pod comes back with the same driver version, configured otherwise: the digest is another."""
    MODE_SWITCH = "mode-switch"
    """The node's GPUs are for something else from now on: another DaemonSet's pod runs driver-manager."""


@dataclass(frozen=True, slots=True)
class Happened:
    """The world after an event; what the event changed in it, and what is assumed where that cannot be known."""

    world: World
    changed: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


def happen(world: World, release: str, event: Event, to: Mode | None = None) -> Happened:
    """Let an event happen. `to` is the mode of a mode switch, and needed for it. Raises KeyError for an unknown release."""
    match event:
        case Event.POD_RESTART:
            return _after_the_old_pod(Happened(world, (), (_DRIVER_STOPS,)))
        case Event.IMAGE_BUMP:
            return _after_the_old_pod(_configured_otherwise(world, release, "the driver's version"))
        case Event.CONFIG_CHANGE:
            return _after_the_old_pod(_configured_otherwise(world, release, "the driver's configuration"))
        case Event.REBOOT:
            return _rebooted(world)
        case Event.MODE_SWITCH:
            assert to is not None
            return _switched(world, release, to)


def knows_digest(release: str) -> bool:
    """Does a release compare the driver's configuration with that of the loaded driver? Raises KeyError for an unknown one."""
    resolved = resolve(release)
    return any(change.name == "desired-driver-kept" for change in resolved.changes)


def policy_owns_eviction(world: World) -> bool:
    """Does the operator's upgrade controller own eviction and drain, by the node's annotation?"""
    node = world.cluster.node
    return node is not None and node.annotations.get(labels.UPGRADE_ANNOTATION) == "true"


def cluster_policy(world: World) -> Mapping[str, Any] | None:
    """The GPU Operator's ClusterPolicy, if the world has it."""
    return next((document for document in world.cluster.objects if document.get("kind") == "ClusterPolicy"), None)


# --- the old pod ------------------------------------------------------------------------------------------------------


def _after_the_old_pod(happened: Happened) -> Happened:
    """The pod that runs driver-manager starts when the one before it is dead, and holds no module any more."""
    world = happened.world
    node = world.cluster.node
    pods = [pod.full_name for pod in driver_pods(world, WORKLOADS[mode_of(node.labels if node else {})])]
    host, held = without_processes_of(world.host, pods)
    if held:
        changed = f"the processes of the old pod {', '.join(pods)} are gone with it; they held {', '.join(held)}"
        return replace(happened, world=replace(world, host=host), changed=(*happened.changed, changed))
    if pods and has_nameless_holders(host):
        return replace(happened, assumed=(*happened.assumed, _NOT_THE_OLD_PODS))
    return happened


# --- another driver ---------------------------------------------------------------------------------------------------


def _configured_otherwise(world: World, release: str, what: str) -> Happened:
    """Another digest, where one is compared. The state file is that of the driver that was here."""
    assumed = [_DRIVER_STOPS]
    if policy_owns_eviction(world):
        assumed.append(
            "the upgrade controller, which acts before the pod is restarted (cordon, eviction, drain), is not modelled: the pods"
            " are as the world has them"
        )
    if not knows_digest(release):
        changed = f"{what} (in the image, which {release} does not look at: it compares nothing)"
        return Happened(world, (changed,), tuple(assumed))
    if not world.env.get(DRIVER_CONFIG_DIGEST):
        assumed.append(f"{DRIVER_CONFIG_DIGEST} is not set in this pod, so the release takes any driver for another one")
        return Happened(world, (what,), tuple(assumed))
    stored = next((file.text.strip() for file in world.host.files if file.path == DRIVER_CONFIG_STATE_FILE), "")
    digest = _ANOTHER_DIGEST + ("-still" if stored == _ANOTHER_DIGEST else "")
    changed = f"{what}, and with it {DRIVER_CONFIG_DIGEST}: {world.env[DRIVER_CONFIG_DIGEST]} -> {digest}"
    return Happened(replace(world, env={**world.env, DRIVER_CONFIG_DIGEST: digest}), (changed,), tuple(assumed))


# --- a reboot ---------------------------------------------------------------------------------------------------------


def has_nameless_holders(host: HostSpec) -> bool:
    """Is a module of the driver held by processes that nobody named?"""
    return any(module.users and not module.pods and not module.processes and is_of_driver(module.name) for module in host.modules)


def is_of_driver(module: str) -> bool:
    """Is it a module of NVIDIA's driver, or one of those that driver-manager unloads with it?"""
    return module in MODULES or module.split("_", 1)[0] == "nvidia"


def _rebooted(world: World) -> Happened:
    host = world.host
    back = tuple(module for module in host.modules if _is_loaded_at_boot(host, module.name))
    names = {module.name for module in back}
    gone = [module.name for module in host.modules if module.name not in names]
    modules = tuple(
        replace(
            module,
            used_by=tuple(user for user in module.used_by if user in names),
            users=0 if is_of_driver(module.name) else module.users,
            pods=(),
        )
        for module in back
    )
    idle = [name for name in host.installable if is_of_driver(name) and name not in names]
    rebooted = replace(
        host,
        modules=modules,
        pci=tuple(_at_boot(function, names) for function in host.pci),
        mounts=tuple(path for path in host.mounts if not _is_below(path, "/run")),
        files=tuple(file for file in host.files if not _is_below(file.path, "/run") and not _is_of_module(file, names)),
        directories=tuple(path for path in host.directories if not _is_below(path, "/run")),
        links={path: target for path, target in host.links.items() if not _is_below(path, "/run")},
        programs=tuple(program for program in host.programs if not _is_below(program.path, "/run")),
        delete_module={name: answer for name, answer in host.delete_module.items() if name in names},
        module_uses={name: used for name, used in host.module_uses.items() if name in names},
        held_by_pods={},
        proc_modules=host.proc_modules and "".join(_without_driver(host.proc_modules)),
    )
    changed = ["/run is empty, and nothing is mounted there", *(f"module {name} is gone" for name in gone)]
    assumed = [
        (
            "a module comes back at boot if it is loaded now and on the host's disk; which modules the host is told not to load,"
            " by a blacklist in its initramfs or otherwise, is only known as far as its modprobe.d says so"
        ),
        *(f"{name} is on disk but not loaded now, and so is assumed not to be loaded at boot" for name in idle),
        "pods, labels and cordon are as before; no pod of before the reboot holds a module",
    ]
    if any(function.is_gpu and "vfio" in function.driver for function in host.pci):
        assumed.append("driver_override does not survive a reboot: a GPU on vfio-pci is free again, or with a driver that takes it")
    return Happened(replace(world, host=rebooted), tuple(changed), tuple(assumed))


def _is_loaded_at_boot(host: HostSpec, name: str) -> bool:
    """Loaded now; if it is the driver's, also on disk and not blacklisted."""
    if not is_of_driver(name):
        return True
    return name in host.installable and not modprobe.is_blacklisted(fresh(host), name)


def _at_boot(function: PciFunction, modules: set[str]) -> PciFunction:
    """A GPU goes to nvidia if that is loaded, else to nouveau if that is; other functions to whom they had."""
    if not function.is_gpu and not function.is_switch:
        return function
    drivers = {"nvidia": "nvidia" if function.is_gpu else "nvidia-nvswitch", "nouveau": "nouveau"}
    return replace(function, driver=next((driver for module, driver in drivers.items() if module in modules), ""))


def _without_driver(proc_modules: str) -> Iterator[str]:
    """The lines of /proc/modules of other modules than the driver's."""
    return (line for line in proc_modules.splitlines(keepends=True) if not is_of_driver(line.split(" ", 1)[0]))


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _is_of_module(file: File, loaded: set[str]) -> bool:
    """Is it a file that a module has in sysfs, and is the module gone?"""
    parts = file.path.split("/")
    return parts[:3] == ["", "sys", "module"] and len(parts) > 3 and is_of_driver(parts[3]) and parts[3] not in loaded


# --- another mode -----------------------------------------------------------------------------------------------------


def is_set_up(world: World, mode: Mode) -> bool:
    """Is the node in this mode already, by the operator's own label? Then a switch to it changes nothing, and no pod starts."""
    labelled = world.cluster.node.labels if world.cluster.node else {}
    return mode_of(labelled) is mode and WORKLOADS[mode].selector in labelled


def _switched(world: World, release: str, mode: Mode) -> Happened:
    if is_set_up(world, mode):
        return Happened(world, (f"nothing: it is a {mode} node already, and no pod is started",))
    workload = WORKLOADS[mode]
    kept = {key: value for key, value in world.env.items() if key in _KEPT or key.startswith(_KEPT_PREFIX)}
    env = {**kept, **workload.env}
    assumed = [
        (
            f"the init container has the settings that the GPU Operator's chart gives it in the {workload.daemonset} DaemonSet, and"
            " none of one's own"
        ),
        "the old mode's pods are gone before the new pod starts, and the new mode's operands are not there yet",
        _DRIVER_STOPS,
    ]
    if mode is Mode.CONTAINER and knows_digest(release):
        env[DRIVER_CONFIG_DIGEST] = _ANOTHER_DIGEST
        assumed.append("the driver that is to come has another digest than any that was here")
    changed = [f"the {workload.daemonset} DaemonSet's pod runs driver-manager, with that pod's settings"]
    cluster = world.cluster
    node = cluster.node
    if node is not None:
        fills_blanks = is_since(release, "v0.12.0")  # it comes with the operator v26.7.0
        now = relabelled(node.labels, mode, fills_blanks=fills_blanks)
        changed += [
            f"label {key}: {_shown(node.labels.get(key))} -> {_shown(now.get(key))}"
            for key in sorted({*node.labels, *now})
            if node.labels.get(key) != now.get(key)
        ]
        annotations = dict(node.annotations)
        if mode is not Mode.CONTAINER and annotations.pop(labels.UPGRADE_ANNOTATION, None) is not None:
            changed.append(f"annotation {labels.UPGRADE_ANNOTATION} is removed, as with every sandbox workload")
        gone = [pod for pod in cluster.pods if pod.owner and pod.owner.kind == "DaemonSet" and not comes_back(pod, now)]
        changed += [f"pod {pod.full_name} is gone" for pod in gone]
        cluster = replace(
            cluster,
            node=replace(node, labels=now, annotations=annotations),
            pods=tuple(pod for pod in cluster.pods if pod not in gone),
        )
    return Happened(replace(world, cluster=cluster, env=env, args=(UNINSTALL_DRIVER,)), tuple(changed), tuple(assumed))


def _shown(value: str | None) -> str:
    return "absent" if value is None else f'"{value}"'
