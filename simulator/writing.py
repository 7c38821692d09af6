"""Worlds as the files that people write: what `scenario`, `host.spec` and `cluster.objects` read, the other way round.

Only what differs from a default is written. Reading what was written gives a world that runs the same: the same host,
cluster and settings, but for what no run can reach (a directory where a file is, the fixed answer of NVIDIA's own program).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from simulator.cluster.objects import (
    ClusterSpec,
    Container,
    Owner,
    Pod,
    ResourceClaim,
    default_api_version,
    derived_daemonsets,
)
from simulator.host.spec import File, HostSpec, Package, PciFunction, Program, usual_interpreter
from simulator.host.tree import HOST, container_path
from simulator.reading import FORMAT, InputError, printable
from simulator.scenario import IN_POD_ENV, IN_POD_FILES, in_pod
from simulator.world import PlannedChange, World

_WIDTH: Final = 120


class _Dumper(yaml.SafeDumper):
    """Safe YAML; a number that knows how it was written is a number, and lines of text stand as lines."""


_Dumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)
)
_Dumper.add_multi_representer(int, lambda dumper, value: dumper.represent_int(int(value)))
_Dumper.add_multi_representer(float, lambda dumper, value: dumper.represent_float(float(value)))


def write_file(path: str, text: str) -> None:
    """Write a text to a file; what UTF-8 has no form for is written escaped. Raises InputError."""
    try:
        Path(path).write_text(text, encoding="utf-8", errors="backslashreplace")
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise InputError(path, "", f"cannot be written: {problem}", "name another file") from None


def yaml_text(document: Mapping[str, Any], comments: Iterable[str] = ()) -> str:
    """A document as YAML, below comments: one line each, whatever is in them."""
    head = "".join(f"# {printable(line)}".rstrip() + "\n" for line in comments)
    return head + yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, width=_WIDTH)


def world_document(world: World, *, release: str = "", what_if: str = "", description: str = "") -> dict[str, Any]:
    """A world file's document. Raises ValueError as `host_document`, and for a planned change of a container's own file."""
    host, env = world.host, dict(world.env)
    inside = in_pod(world) == world
    if inside:
        host = dataclasses.replace(host, container_files=tuple(file for file in host.container_files if file not in IN_POD_FILES))
        env = {key: value for key, value in env.items() if IN_POD_ENV.get(key) != value}
    out: dict[str, Any] = {"format": FORMAT, **_not_empty(description=description, release=release, what_if=what_if)}
    out |= _differing(world, "version", "pid_1", "seed", stop_after="stop_after_s")
    if not inside:
        out["in_pod"] = False
    if world.args != _default(World, "args"):
        out["args"] = [*world.args]
    if world.path is not None:
        out["path"] = [*world.path]
    out |= _not_empty(env=env, changes=[_change(change) for change in world.changes])
    if world.faults:
        fields = ("nth", "error", "exit_code", "late", "signal")
        out["faults"] = [{"call": one.call, "argument": one.argument, **_differing(one, *fields)} for one in world.faults]
    if world.signal is not None:
        out["signal"] = {"name": world.signal[0], "after_s": world.signal[1]}
    return out | {"host": _without_format(host_document(host)), "cluster": _without_format(cluster_document(world.cluster))}


def host_document(host: HostSpec) -> dict[str, Any]:
    """A host file's document. The host's name is the file's.

    Raises ValueError for a recording's host whose kernel counts handles that a host file cannot describe.
    """
    for name in ("module_uses", "held_by_pods"):
        if getattr(host, name):
            raise ValueError(f"{host.name}: a host file cannot say what a recording says by {name}; describe it by modules")
    taken = {*host.links, *(program.path for program in host.programs), *(file.path for file in host.files)}
    functions = [(_function(function), _stands_under_gpus(function)) for function in host.pci]
    kernel = {
        key: {argument: _answer(answer) for argument, answer in answers.items()}
        for key in ("delete_module", "umount", "unlink", "init_module")
        if (answers := getattr(host, key))
    }
    container = _not_empty(
        files=_files(host.container_files),
        programs={
            name: None if program is None else {**_differing(program, "exit_code", "stderr"), **_mode(program)}
            for name, program in host.container_programs.items()
        },
    )
    out: dict[str, Any] = {"format": FORMAT, **_differing(host, "description", "source", "kind")}
    if host.verdict is not None:
        out["verdict"] = dataclasses.asdict(host.verdict)
    out |= _differing(host, "os", "root")
    out |= _not_empty(
        packages={name: _package(package) for name, package in host.packages.items()},
        gpus=[function for function, is_gpu in functions if is_gpu],
        pci=[function for function, is_gpu in functions if not is_gpu],
        modules=[
            {"name": module.name, **_differing(module, "size", "used_by", "users", "pods", "processes", "taint", "version")}
            for module in host.modules
        ],
        installable_modules=[*host.installable],
        programs={program.path: _program(program, host.architecture) for program in host.programs},
        links=dict(host.links),
        files=_files(host.files),
        directories=[path for path in host.directories if not _is_hidden(path, taken)],
        mounts=[*host.mounts],
    )
    return out | _differing(host, "proc_modules") | _not_empty(container=container, kernel=kernel)


def cluster_document(cluster: ClusterSpec) -> dict[str, Any]:
    """A cluster file's document."""
    out: dict[str, Any] = {"format": FORMAT, **_not_empty(description=cluster.description)}
    node = cluster.node
    out["node"] = (
        None if node is None else _not_empty(name=node.name) | _differing(node, "labels", "annotations", "unschedulable", "status")
    )
    if cluster.pods:
        out["pods"] = [_pod(pod) for pod in cluster.pods]
    if cluster.daemonsets != derived_daemonsets(cluster.pods):
        out["daemonsets"] = [{"namespace": namespace, "name": name} for namespace, name in sorted(cluster.daemonsets)]
    if cluster.resource_claims:
        out["resource_claims"] = [_claim(claim) for claim in cluster.resource_claims]
    if cluster.faults:
        fields = ("method", "path", "query", "body", "skip", "times", "retry_after", "causes")
        out["faults"] = [{"status": fault.status, **_differing(fault, *fields)} for fault in cluster.faults]
    out |= _differing(cluster, "objects", "api_down", "eviction", "page_size", "validates")
    return out | _not_empty(addresses=sorted(cluster.addresses))


# --- parts of a host ------------------------------------------------------------------------------------------------


def _program(program: Program, host_architecture: str) -> dict[str, Any]:
    is_nvidias, hands_over = bool(program.driver_version), bool(program.hands_over_to)
    out = _differing(program, "driver_version", *(("state",) if is_nvidias else ("stdout", "stderr")))
    if not is_nvidias and not hands_over:
        out |= _differing(program, "exit_code")
    if not is_nvidias:
        out |= _differing(program, hands_over_to="exec")
    out |= _differing(program, "needs", "architecture") | _mode(program)
    is_binary = bool(program.driver_version or program.architecture or program.needs)
    if program.interpreter != usual_interpreter(program.architecture or host_architecture, is_binary=is_binary):
        out["interpreter"] = program.interpreter
    return out


def _mode(item: Program | File) -> dict[str, str]:
    return {} if item.mode == _default(type(item), "mode") else {"mode": f"{item.mode:04o}"}


def _files(files: Iterable[File]) -> dict[str, Any]:
    return {file.path: {"text": file.text, **mode} if (mode := _mode(file)) else file.text for file in files}


def _package(package: Package) -> str | dict[str, Any]:
    document = {"version": package.version, **_differing(package, "status", "auto", "depends")}
    return package.version if len(document) == 1 else document


def _stands_under_gpus(function: PciFunction) -> bool:
    return function.is_display or function.state != "ok"


def _function(function: PciFunction) -> dict[str, Any]:
    ids = {"vendor": function.vendor, "device": function.device, "class": function.class_}
    return {
        "address": function.address,
        **({"device": function.device} if function.is_gpu and function.class_ == _default(PciFunction, "class_") else ids),
        **_differing(function, "driver", "attributes", "iommu_group", "state"),
    }


def _answer(answer: Any) -> Any:
    if isinstance(answer, Mapping):
        return {key: [*pods] for key, pods in answer.items()}
    return [*answer] if isinstance(answer, tuple) else answer


def _is_hidden(path: str, taken: set[str]) -> bool:
    """Does something else stand there, or above it, so that the directory goes?"""
    return any(path == other or path.startswith(f"{other}/") for other in taken)


# --- parts of a cluster ---------------------------------------------------------------------------------------------


def _pod(pod: Pod) -> dict[str, Any]:
    out: dict[str, Any] = {"namespace": pod.namespace, "name": pod.name}
    out |= _differing(pod, "labels", "annotations", "node_name", "node_selector", "phase")
    if pod.owner is not None:
        out["owner"] = _owner(pod.owner)
    for key in ("containers", "init_containers"):
        if containers := getattr(pod, key):
            out[key] = [_container(container) for container in containers]
    out |= _differing(
        pod,
        "empty_dir",
        "terminating",
        "finalizers",
        "resource_claims",
        "resource_claim_statuses",
        "status",
        termination="termination_s",
    )
    if pod.budget is not None:
        out["budget"] = _differing(pod.budget, "blocked_attempts", "retry_after")
    return out


def _owner(owner: Owner) -> dict[str, Any]:
    out: dict[str, Any] = {"kind": owner.kind, "name": owner.name, **_differing(owner, "controller")}
    return out if owner.api_version == default_api_version(owner.kind) else {**out, "api_version": owner.api_version}


def _container(container: Container) -> dict[str, Any]:
    return _differing(container, "limits", "requests")


def _claim(claim: ResourceClaim) -> dict[str, Any]:
    drivers = {} if claim.drivers is None else {"drivers": [*claim.drivers]}
    return {"namespace": claim.namespace, "name": claim.name, **drivers}


# --- other parts of a world -----------------------------------------------------------------------------------------


def _change(change: PlannedChange) -> dict[str, Any]:
    return {
        "after_s": change.after,
        **_not_empty(
            write={_node_path(path): text for path, text in change.write.items()},
            remove=[_node_path(path) for path in change.remove],
            delete_pods=[*change.delete_pods],
        ),
    }


def _node_path(path: str) -> str:
    """Where a path of the container's lies on the node."""
    on_node = path.removeprefix(HOST)
    if container_path(on_node) != path:
        raise ValueError(f"{path} is the container's alone; a world file names the node's paths")
    return on_node


# --- plain data -----------------------------------------------------------------------------------------------------


def _default(kind: Any, name: str) -> Any:
    """What a dataclass's field has where nothing is said; None also where something must be."""
    (field,) = (field for field in dataclasses.fields(kind) if field.name == name)
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default


def _differing(value: Any, *names: str, **renamed: str) -> dict[str, Any]:
    """Those of a dataclass's fields that differ from their default, as plain data; `renamed` are field and key."""
    keys = {**{name: name for name in names}, **renamed}
    return {key: _plain(given) for name, key in keys.items() if (given := getattr(value, name)) != _default(type(value), name)}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def _not_empty(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value}


def _without_format(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != "format"}
