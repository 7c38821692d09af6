"""A recorded case's input as a world.

The recorder's world does less than a cluster: no validation of labels, and a kernel that unloads any module unless told
otherwise. Its format is described beside the recordings.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from simulator.cluster.objects import (
    DROP,
    Budget,
    ClusterSpec,
    Container,
    Fault,
    Node,
    Owner,
    Pod,
    ResourceClaim,
    default_api_version,
)
from simulator.host.spec import File, HeldByPods, HostSpec, Program
from simulator.reading import InputError
from simulator.recordings.form import INPUT, check
from simulator.recordings.layout import Recording
from simulator.world import PlannedChange, World

_PATH: Final = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_KUBECONFIG: Final = "/etc/kubeconfig"
_KUBECONFIG_TEXT: Final = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "recording",
        "contexts": [{"name": "recording", "context": {"cluster": "recording", "user": "recording"}}],
        "clusters": [{"name": "recording", "cluster": {"server": "http://127.0.0.1:6443"}}],
        "users": [{"name": "recording", "user": {}}],
    }
)
_ADDRESSES: Final = frozenset(f"{name}:6443" for name in ("127.0.0.1", "localhost", "0.0.0.0"))  # noqa: S104  # not listened on
_LONGEST_RUN: Final = 420
_VFIO_MANAGE: Final = Program("/usr/bin/vfio-manage")
"""The recorder's stand-in, where a case says nothing else: it does nothing."""


def world_of(recording: Recording) -> World:
    """The world a recording was made in. Raises InputError for an input of another form."""
    check(recording.input, INPUT, recording.file, "input")
    world = _world(recording.input, recording.case)
    for name, times in Counter(pod.full_name for pod in world.cluster.pods).items():
        if times > 1:
            raise InputError(recording.file, "input.cluster.pods", f'has the pod "{name}" twice', "see the format of recordings")
    return world


def environment(given: Mapping[str, Any], **defaults: str) -> dict[str, str]:
    """The recorder's environment with a case's own on top; null takes a variable away."""
    env = {**defaults, **(given.get("env") or {})}
    return {key: value for key, value in env.items() if value is not None}


def _world(given: Mapping[str, Any], case: str) -> World:
    env = environment(given, HOME="/", KUBECONFIG=_KUBECONFIG, PATH=":".join(_PATH))
    signal = given.get("signal")
    return World(
        host=_host(given.get("host") or {}, case),
        cluster=_cluster(given.get("cluster") or {}, case),
        args=tuple(given.get("args") or ()),
        env=env,
        path=tuple(env.get("PATH", "").split(":")),
        changes=tuple(
            PlannedChange(
                float(change["after_s"]),
                change.get("write") or {},
                tuple(change.get("remove") or ()),
                tuple(change.get("delete_pods") or ()),
            )
            for change in (given.get("host") or {}).get("timed_changes") or ()
        ),
        signal=(signal["name"], float(signal["after_s"])) if signal else None,
        stop_after=float(given.get("max_s") or _LONGEST_RUN),
        pid_1=False,
    )


def _host(given: Mapping[str, Any], case: str) -> HostSpec:
    programs = []
    for commands in (given.get("chroot_commands") or {}).values():
        programs += [
            Program(
                command["path"],
                command.get("stdout") or "",
                command.get("stderr") or "",
                command.get("exit_code") or 0,
                _mode(command),
            )
            for command in (commands if isinstance(commands, list) else [commands])
        ]
    files = {_KUBECONFIG: _KUBECONFIG_TEXT, **(given.get("files") or {})}
    return HostSpec(
        name=case,
        root=given.get("host_root") or "normal",
        programs=tuple(programs),
        directories=tuple(given.get("dirs") or ()),
        mounts=tuple(given.get("mounts") or ()),
        container_files=tuple(File(path, text) for path, text in files.items()),
        container_programs={"vfio-manage": _VFIO_MANAGE}
        | {
            name: None
            if program is None
            else Program(
                f"/usr/bin/{name}",
                stderr=program.get("stderr") or "",
                exit_code=program.get("exit_code") or 0,
                mode=_mode(program),
            )
            for name, program in (given.get("container_commands") or {}).items()
        },
        links={path.removeprefix("/host"): target for path, target in (given.get("symlinks") or {}).items()},
        proc_modules=given.get("proc_modules", ""),
        module_uses={name: tuple(used) for name, used in (given.get("module_uses") or {}).items()},
        held_by_pods={
            name: HeldByPods(tuple(held["pods"]), held["more"]) for name, held in (given.get("refcnt_while_pods") or {}).items()
        },
        delete_module=_answers(given.get("delete_module")),
        umount=_answers(given.get("umount")),
        unlink=_answers(given.get("unlink")),
    )


def _mode(given: Mapping[str, Any]) -> int:
    mode = given.get("mode")
    return 0o755 if mode is None else int(mode)


def _answers(given: Mapping[str, Any] | None) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, answer in (given or {}).items():
        if isinstance(answer, list):
            out[key] = tuple(answer)
        elif isinstance(answer, dict):
            out[key] = {"busy_while_pods": tuple(answer["busy_while_pods"])}
        else:
            out[key] = answer
    return out


def _cluster(given: Mapping[str, Any], case: str) -> ClusterSpec:
    node = given.get("node")
    discovery = given.get("discovery") or {}
    return ClusterSpec(
        name=case,
        node=Node(node["name"], node.get("labels") or {}, node.get("annotations") or {}, bool(node.get("unschedulable")))
        if node
        else None,
        pods=tuple(_pod(pod) for pod in given.get("pods") or ()),
        daemonsets=frozenset((item["namespace"], item["name"]) for item in given.get("daemonsets") or ()),
        resource_claims=tuple(
            ResourceClaim(claim["namespace"], claim["name"], None if claim.get("drivers") is None else tuple(claim["drivers"]))
            for claim in given.get("resource_claims") or ()
        ),
        faults=tuple(_fault(fault) for fault in given.get("faults") or ()),
        api_down=bool(given.get("api_down")),
        eviction=discovery.get("eviction", "policy/v1"),
        page_size=given.get("list_page_size"),
        addresses=_ADDRESSES,
        validates=False,
    )


def _pod(given: Mapping[str, Any]) -> Pod:
    owner, budget = given.get("owner"), given.get("pdb")
    return Pod(
        namespace=given["namespace"],
        name=given["name"],
        labels=given.get("labels") or {},
        annotations=given.get("annotations") or {},
        node_name=given.get("nodeName"),
        node_selector=given.get("nodeSelector") or {},
        phase=given.get("phase") or "Running",
        owner=Owner(
            owner["kind"],
            owner["name"],
            owner.get("controller") is not False,
            owner.get("apiVersion") or default_api_version(owner["kind"]),
        )
        if owner
        else None,
        containers=tuple(_containers(given.get("containers"))),
        init_containers=tuple(_containers(given.get("initContainers"))),
        empty_dir=bool(given.get("emptyDir")),
        termination=given.get("termination_s"),
        terminating=bool(given.get("terminating")),
        budget=Budget(budget.get("blocked_attempts"), budget.get("retry_after")) if budget else None,
        resource_claims=tuple(given.get("resourceClaims") or ()),
        resource_claim_statuses=tuple(given.get("resourceClaimStatuses") or ()),
    )


def _containers(given: Any) -> Iterator[Container]:
    for container in given or ():
        yield Container(container.get("limits") or {}, container.get("requests") or {})


def _fault(given: Mapping[str, Any]) -> Fault:
    match = given.get("match") or {}
    return Fault(
        method=match.get("method") or "",
        path=match.get("path_regex") or "",
        query=match.get("query_regex") or "",
        body=match.get("body_regex") or "",
        skip=given.get("skip") or 0,
        times=given.get("times"),
        status=DROP if given["status"] == DROP else int(given["status"]),
        retry_after=given.get("retry_after"),
        causes=tuple(given.get("causes") or ()),
    )
