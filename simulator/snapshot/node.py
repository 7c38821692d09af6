"""A scenario from what a bundle holds: the node and what is on it, driver-manager's settings, the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from simulator.cluster.objects import ClusterSpec, read_cluster
from simulator.config import UNINSTALL_DRIVER
from simulator.host.spec import HostSpec, Module, bound_without_module
from simulator.importing.roots import Root
from simulator.manager.releases import DEFAULT
from simulator.predicting.modes import Mode
from simulator.reading import Place
from simulator.scenario import DEFAULT_CLUSTER, Scenario, load_cluster, make_world, read_scenario
from simulator.selectors import subdomain_errors
from simulator.snapshot.contents import Contents
from simulator.snapshot.findings import Findings
from simulator.snapshot.host import SeenHost, read_host_root
from simulator.snapshot.inference import infer_host, uses_gpu
from simulator.snapshot.kubernetes import Scene, cluster_document, find_scene, full_name
from simulator.snapshot.logs import HostDriver, node_logs
from simulator.snapshot.program import Program, find_program, usual_variables
from simulator.snapshot.text_root import Holder, TextRoot
from simulator.snapshot.values import text
from simulator.writing import world_document

HOST_UNSEEN: Final = "the host itself: nobody looked at it (dmsim snapshot host-script)"
"""Where this was not seen the whole host is made up of what the cluster says."""
_HELD: Final = ("nvidia", "nvidia_uvm")
"""The modules that whoever uses a GPU holds."""
_MOST_PROCESSES: Final = 5


@dataclass(frozen=True, slots=True)
class Made:
    """A scenario, and what it rests on."""

    scenario: Scenario
    findings: Findings
    logs: Mapping[str, str]
    unsaved_gpus: int = 0


def make_scenario(found: Contents, node: str = "", root: Root | None = None) -> Made:
    """The scenario of one node. Its host is as a root shows it, if one is given, or as the script's output does. Raises InputError."""
    findings = Findings()
    root = root or _said(found, findings)
    if root is not None and not found.has("Node"):
        return _host_alone(found, node, root, findings)
    scene = find_scene(found, node, findings)
    program = find_program(scene, findings)
    cluster = read_cluster(Place(cluster_document(found, scene, findings), found.name), scene.name)
    seen = read_host_root(root, scene.name, program.release, findings) if root is not None else None
    if seen is None:
        findings.unseen(HOST_UNSEEN)
    logs = node_logs(found, scene, findings)
    host = _host(seen, scene, program, logs.host_driver(), findings)
    if not program.has_host:
        host = replace(host, root="absent")
    if bound_without_module(host):
        findings.assumed("the nvidia module is loaded, since a GPU is on it, and nothing holds it")
        host = replace(host, modules=(*host.modules, Module("nvidia")))
    scenario = _scenario(found, host, cluster, program, scene.name)
    for sentence in found.skipped:
        findings.unseen(sentence)
    return Made(scenario, findings, logs.texts, scene.unsaved_gpus)


def _said(found: Contents, findings: Findings) -> Root | None:
    """The root that the host script's output shows. Raises InputError."""
    if not found.hosts:
        return None
    (file, output), *others = found.hosts.items()
    if others:
        findings.unseen(f"what {', '.join(other for other, _ in others)} says: one host's output is read, {file}")
    return TextRoot(output, file)


def _host_alone(found: Contents, node: str, root: Root, findings: Findings) -> Made:
    """A host of which no cluster is known."""
    name = node if node and not subdomain_errors(node) else "gpu-1"
    findings.unseen("the cluster: nothing of it was saved")
    findings.assumed(f"the node is like the named cluster {DEFAULT_CLUSTER}: a container node with the usual operands")
    program = Program(DEFAULT, Mode.CONTAINER, (UNINSTALL_DRIVER,), {"NODE_NAME": name, **usual_variables(Mode.CONTAINER)})
    findings.assumed(f"driver-manager is {DEFAULT}, started as the GPU Operator starts it")
    seen = read_host_root(root, name, program.release, findings)
    return Made(_scenario(found, seen.host, load_cluster(DEFAULT_CLUSTER, name), program, name), findings, dict(found.logs))


def _scenario(found: Contents, host: HostSpec, cluster: ClusterSpec, program: Program, name: str) -> Scenario:
    """The scenario, read back from what is written of it, so that whatever is in it can be read."""
    world = make_world(host, cluster, args=program.args, env=program.env)
    document = world_document(world, release=program.release, description=f"Snapshot of node {name}.")
    return read_scenario(Place(document, found.name), Path())


def _host(seen: SeenHost | None, scene: Scene, program: Program, found: HostDriver | None, findings: Findings) -> HostSpec:
    """What was seen of the host, completed by what the cluster tells of it."""
    if seen is not None and seen.modules is not None and seen.pci is not None:
        return replace(seen.host, modules=_held(seen.modules, seen.holders, scene, findings))
    if seen is None:
        made_up = infer_host(scene, program, findings, found=found)
    else:
        made_up = infer_host(scene, program, findings, seen.pci)
    users = tuple(full_name(pod) for pod in scene.pods if uses_gpu(pod))
    modules = tuple(replace(module, users=len(users), pods=users) if module.name in _HELD else module for module in made_up.modules)
    if seen is None:
        return replace(
            made_up.host,
            modules=modules,
            pci=made_up.pci,
            mounts=made_up.mounts,
            files=(*made_up.host.files, *made_up.files),
        )
    if seen.modules is not None:
        modules = _held(seen.modules, seen.holders, scene, findings)
    return replace(seen.host, modules=modules, pci=made_up.pci if seen.pci is None else seen.pci)


def _held(modules: tuple[Module, ...], holders: tuple[Holder, ...] | None, scene: Scene, findings: Findings) -> tuple[Module, ...]:
    """The modules, with the pods that hold them, as far as that can be told."""
    if not any(module.users for module in modules if module.name in _HELD):
        return modules
    if holders is None:
        pods = tuple(full_name(pod) for pod in scene.pods if uses_gpu(pod))
        if pods:
            findings.assumed(f"what holds the modules are the pods that use a GPU: {', '.join(pods)}")
        else:
            findings.unseen("who holds the modules")
    else:
        here = {text(pod, "metadata", "uid"): full_name(pod) for pod in scene.pods}
        others = [holder for holder in holders if holder.pod not in here]
        if others:
            named = tuple(dict.fromkeys(f"{holder.command} ({holder.pid})" for holder in others))[:_MOST_PROCESSES]
            findings.assumed(f"processes that belong to no pod of the node hold the modules for ever: {', '.join(named)}")
            return tuple(
                replace(module, processes=named) if module.users and module.name in _HELD else module for module in modules
            )
        pods = tuple(dict.fromkeys(here[holder.pod] for holder in holders))
        if pods:
            findings.assumed(f"what holds the modules are processes of {', '.join(pods)}, and nothing else")
    return tuple(replace(module, pods=pods) if module.users and module.name in _HELD else module for module in modules)
