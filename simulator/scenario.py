"""The file format of worlds: host, cluster, settings and what happens meanwhile, as people write them.

Hosts and clusters are named (a file in `fixtures/`), given by path, or written in place. Everything is checked when it is
read; an error names the file, the place and the mend.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from simulator.cluster.objects import ClusterSpec, read_cluster
from simulator.config import UNINSTALL_DRIVER
from simulator.gocompat import errno_number
from simulator.host.spec import File, HostSpec, read_host
from simulator.host.tree import container_path
from simulator.reading import InputError, Place, nearest, read_document, read_format
from simulator.selectors import subdomain_errors
from simulator.world import CALLS, LONGEST, CallFault, PlannedChange, World

DEFAULT_CLUSTER: Final = "container-node"
_NODE_NAME: Final = "gpu-1"
_SERVICE_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
IN_POD_ENV: Final = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443", "HOME": "/"}
"""What Kubernetes gives every pod, and the image sets."""
IN_POD_FILES: Final = (
    File(f"{_SERVICE_ACCOUNT}/token", "simulated"),
    File(f"{_SERVICE_ACCOUNT}/ca.crt", "-----BEGIN CERTIFICATE-----\nsimulated\n-----END CERTIFICATE-----\n"),
)
KEYS: Final = (
    "format",
    "description",
    "host",
    "cluster",
    "release",
    "what_if",
    "args",
    "env",
    "changes",
    "faults",
    "signal",
    "stop_after_s",
    "seed",
    "path",
    "in_pod",
    "pid_1",
    "version",
)


def fixtures() -> Path:
    """The folder of named hosts, clusters and recordings: beside the package in a checkout, inside it when installed.

    Raises InputError where it is in neither place, as after an installation that was broken off.
    """
    inside = Path(str(resources.files("simulator"))) / "fixtures"
    if inside.is_dir():
        return inside
    beside = Path(__file__).resolve().parent.parent / "fixtures"
    if not beside.is_dir():
        raise InputError(str(inside), "", "is missing: the data that dmsim brings along", "install dmsim again")
    return beside


def names(kind: str) -> list[str]:
    """The named hosts ("hosts") or clusters ("clusters"), sorted. Raises InputError where none came along."""
    found = sorted(path.stem for path in (fixtures() / kind).glob("*.yaml"))
    if not found:
        raise InputError(str(fixtures() / kind), "", f"is missing: the {kind} that dmsim brings along", "install dmsim again")
    return found


def load_host(reference: str) -> HostSpec:
    """A host by name or by the path of its file. Raises InputError."""
    path = find(reference, "hosts", "host")
    return _named_host(path) if path.parent == fixtures() / "hosts" else read_host(read_document(path), path.stem)


@lru_cache(maxsize=256)
def _named_host(path: Path) -> HostSpec:
    return read_host(read_document(path, f"hosts/{path.name}"), path.stem)


def load_cluster(reference: str, node_name: str = "") -> ClusterSpec:
    """A cluster by name or by the path of its file; `node_name` names a node that has no name there. Raises InputError."""
    path = find(reference, "clusters", "cluster")
    if path.parent != fixtures() / "clusters":
        return with_node_name(read_cluster(read_document(path), path.stem), node_name)
    return with_node_name(_named_cluster(path), node_name)


@lru_cache(maxsize=256)
def _named_cluster(path: Path) -> ClusterSpec:
    return read_cluster(read_document(path, f"clusters/{path.name}"), path.stem)


def with_node_name(cluster: ClusterSpec, name: str) -> ClusterSpec:
    """The cluster, its node named if it had no name. A name that no node can have gives way to a plain one."""
    if cluster.node is None or cluster.node.name:
        return cluster
    fitting = name if name and not subdomain_errors(name) else _NODE_NAME
    return dataclasses.replace(cluster, node=dataclasses.replace(cluster.node, name=fitting))


def find(reference: str, kind: str, word: str) -> Path:
    """A name of that kind of fixture, or a path -> the file. Raises InputError with the nearest names."""
    if "/" in reference or reference.endswith((".yaml", ".yml", ".json")):
        return Path(reference)
    path = fixtures() / kind / f"{reference}.yaml"
    if reference and "\0" not in reference and reference in names(kind):
        return path
    mend = nearest(reference, names(kind))
    raise InputError("", "", f'there is no {word} named "{reference}"', _own_file(mend, reference, kind))


def _own_file(mend: str, reference: str, kind: str) -> str:
    """The mend of an unknown name, and how a file of one's own is given: by its path, if it is where one would look."""
    path = Path(kind, f"{reference}.yaml")
    if reference and "\0" not in reference and path.is_file():
        return f"write {path} for the file that is there"
    return f"{mend}{'' if mend.endswith('?') else '.'} For a file of your own give its path."


def in_pod(world: World) -> World:
    """The world with what Kubernetes gives every pod: its service account, and where the API server is."""
    host = world.host
    given = {file.path for file in host.container_files}
    files = (*host.container_files, *(file for file in IN_POD_FILES if file.path not in given))
    return dataclasses.replace(world, env={**IN_POD_ENV, **world.env}, host=dataclasses.replace(host, container_files=files))


def make_world(
    host: HostSpec,
    cluster: ClusterSpec | None = None,
    *,
    args: tuple[str, ...] = (UNINSTALL_DRIVER,),
    env: Mapping[str, str] | None = None,
) -> World:
    """An ordinary world: the program in a pod of this host and cluster."""
    settings = dict(env or {})
    node_name = settings.get("NODE_NAME", "")
    placed = with_node_name(cluster, node_name) if cluster else load_cluster(DEFAULT_CLUSTER, node_name)
    return in_pod(World(host, placed, args=args or (UNINSTALL_DRIVER,), env=settings))


@dataclasses.dataclass(frozen=True, slots=True)
class Scenario:
    """A world file: the world, and what it says about the release ("" if nothing)."""

    world: World
    release: str = ""
    what_if: str = ""
    description: str = ""


def load_scenario(path: Path) -> Scenario:
    """A world from its file. Raises InputError."""
    place = read_document(path)
    return read_scenario(place, path.parent)


_MARKS: Final = {
    "host": (frozenset({"gpus", "pci", "modules", "installable_modules", "programs", "packages"}), "--host"),
    "cluster": (frozenset({"node", "pods", "daemonsets"}), "--cluster"),
}
"""Kind of file -> keys that no world has, and the option that takes such a file."""


def refuse_another_kind(place: Place) -> None:
    """A host or cluster file where a world file is expected says so. Raises InputError."""
    for kind, (marks, option) in _MARKS.items():
        if isinstance(place.value, dict) and "host" not in place.value and marks & place.value.keys():
            raise InputError(place.file, "", f"is a {kind} file, not a world file", f"use {option} {place.file}")


def read_scenario(place: Place, folder: Path) -> Scenario:
    """A world from its document; paths in it are relative to `folder`. Raises InputError."""
    refuse_another_kind(place)
    place.mapping(KEYS)
    read_format(place)
    env = {key: item.text() for key, item in place.entries("env")}
    args = found.texts() if (found := place.get("args")) else (UNINSTALL_DRIVER,)
    host = read_reference(place.need("host", "name a host, or write it here"), folder, load_host, read_host)
    cluster = None
    if (given := place.get("cluster")) is not None:
        cluster = read_reference(given, folder, load_cluster, read_cluster)
    world = make_world(host, cluster, env=env)
    inside, pid_1, path, version = (place.get(key) for key in ("in_pod", "pid_1", "path", "version"))
    if inside is not None and not inside.boolean():
        world = dataclasses.replace(world, host=host, env=env)
    signal, stop, seed = (place.get(key) for key in ("signal", "stop_after_s", "seed"))
    world = dataclasses.replace(
        world,
        args=args,
        path=path.texts() if path else world.path,
        pid_1=pid_1.boolean() if pid_1 else world.pid_1,
        version=version.text() if version else world.version,
        changes=tuple(read_change(item) for item in place.elements("changes")),
        faults=_read_call_faults(place),
        signal=_signal(signal) if signal else None,
        stop_after=stop.seconds(_LONGEST_STOP) if stop else LONGEST,
        seed=seed.integer(0) if seed else 0,
    )
    return Scenario(
        world,
        release.text() if (release := place.get("release")) else "",
        what_if.text() if (what_if := place.get("what_if")) else "",
        description.text() if (description := place.get("description")) else "",
    )


_LONGEST_STOP: Final = 86_400
"""Seconds. A run that waits for ever logs until it is stopped; a day of it is a megabyte."""


def read_reference(place: Place, folder: Path, load: Any, read: Any) -> Any:
    """A host or a cluster by name, by path (from the file's folder), or written in place. Raises InputError."""
    if not isinstance(place.value, str):
        return read(place, place.path)
    reference = place.text()
    try:
        is_path = "/" in reference or reference.endswith((".yaml", ".yml", ".json"))
        return load(str(folder / reference) if is_path else reference)
    except InputError as error:
        if error.file:
            raise
        place.fail(f"names nothing: {error.problem}", error.mend)


def read_change(place: Place) -> PlannedChange:
    """Something that happens meanwhile; paths are the node's. Raises InputError."""
    place.mapping(("after_s", "write", "remove", "delete_pods"))
    pods = place.get("delete_pods")
    return PlannedChange(
        place.need("after_s", "write the second at which it happens").seconds(),
        {container_path(Place(path, place.file, item.path).path_text()): item.text() for path, item in place.entries("write")},
        tuple(container_path(item.path_text()) for item in place.elements("remove")),
        pods.texts() if pods else (),
    )


def _read_call_faults(place: Place) -> tuple[CallFault, ...]:
    """What goes wrong at one call each. Raises InputError."""
    found: dict[tuple[str, str, int], CallFault] = {}
    for item in place.elements("faults"):
        fault = _read_call_fault(item)
        moment = (fault.call, fault.argument, fault.nth)
        if moment in found:
            item.fail("is the second fault of one call", "leave one of the two out")
        found[moment] = fault
    return tuple(found.values())


def _read_call_fault(place: Place) -> CallFault:
    place.mapping(("call", "argument", "nth", "error", "exit_code", "late", "signal"))
    call = place.need("call", f"write one of {', '.join(CALLS)}").choice(*CALLS)
    error, exit_code, signal, nth, late = (place.get(key) for key in ("error", "exit_code", "signal", "nth", "late"))
    if sum(item is not None for item in (error, exit_code, signal)) != 1:
        place.fail("says not in one way what happens", "write one of error, exit_code and signal")
    if call == "request" and signal is None:
        place.fail("is of a request, which fails otherwise", "write it among the faults of the cluster")
    if call != "execve" and exit_code is not None:
        exit_code.fail("is of a program", "write error in its place, or call: execve")
    if late is not None and exit_code is None:
        late.fail("is of a program's exit code", "leave it out")
    if error is not None and errno_number(error.text()) is None:
        error.fail(f'is "{error.text()}"', "write the name of an errno such as EACCES")
    return CallFault(
        call=call,
        argument=place.need("argument", "write a path, a module, a command line, or a request's method and path").text(),
        nth=nth.integer(1, 10**6) if nth else 1,
        error=error.text() if error else "",
        exit_code=exit_code.integer(-64, 255) if exit_code else None,
        late=late.boolean() if late else False,
        signal=signal.choice("TERM", "INT", "KILL") if signal else "",
    )


def _signal(place: Place) -> tuple[str, float]:
    place.mapping(("name", "after_s"))
    return (
        place.need("name", "write name: TERM").choice("TERM", "INT", "KILL"),
        place.need("after_s", "write the second at which it comes").seconds(),
    )


__all__ = ["DEFAULT_CLUSTER", "Scenario", "fixtures", "in_pod", "load_cluster", "load_host", "load_scenario", "make_world", "names"]
