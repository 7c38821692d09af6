"""Given: a known world, and what is different about it here."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from pytest_bdd import given

from simulator.bdd.sentences import Sentence
from simulator.bdd.stage import Stage, rows
from simulator.bdd.unmet import Unmet
from simulator.cluster.objects import DROP, Budget, Container, Fault, Owner, Pod, ResourceClaim, default_api_version
from simulator.gocompat import errno_number
from simulator.host.spec import File, Module, PciFunction, Program
from simulator.host.tree import container_path
from simulator.naming import check_setting
from simulator.world import PlannedChange

# --- the host -----------------------------------------------------------------------------------------------------


@given(Sentence('the host "{name}"'))
def the_host(stage: Stage, name: str) -> None:
    """A named host: `dmsim hosts` lists them; or one of your own, `hosts/NAME.yaml` beside the feature or above it."""
    stage.host = stage.named_host(name)


@given(Sentence('the host has become "{name}"'))
def host_has_become(stage: Stage, name: str) -> None:
    """The administrator worked on the host; the cluster is as the last run left it."""
    stage.go_on()
    stage.host = replace(stage.named_host(name), container_files=stage.host.container_files)


@given(Sentence('the program "{path}" on the host prints "{text}" and exits {code:number}'))
def host_program(stage: Stage, path: str, text: str, code: float) -> None:
    r"""A program of the host's own; `\n` is a new line."""
    kept = tuple(program for program in stage.host.programs if program.path != path)
    stage.change_host(programs=(*kept, Program(path, stdout=_lines(text), exit_code=int(code))))


@given(Sentence('the container\'s own "{name}" (exits {code:number}|is missing)'))
def container_program(stage: Stage, name: str, code: float | None) -> None:
    """What the image's `chroot` or `vfio-manage` does instead of its work."""
    program = None if code is None else Program(f"/usr/bin/{name}", exit_code=int(code))
    stage.change_host(container_programs={**stage.host.container_programs, name: program})


@given(Sentence('the file "{path}" (holds "{text}"|{state=is missing|is a directory})'))
def the_file(stage: Stage, path: str, text: str | None, state: str | None) -> None:
    r"""A file of the host's, by the host's own path; `\n` is a new line."""
    if path == "/proc/modules":
        stage.change_host(modules=(), proc_modules=_lines(text) if text is not None else None, files=_with_modules(stage))
        return
    kept = tuple(file for file in stage.host.files if file.path != path)
    stage.change_host(files=kept if text is None else (*kept, File(path, _lines(text))))
    if state == "is a directory":
        stage.change_host(directories=(*stage.host.directories, path))


def _with_modules(stage: Stage) -> tuple[File, ...]:
    """The host's files and what /sys/module holds for its modules, for a /proc/modules that says otherwise."""
    return (*stage.host.files, *(File(f"/sys/module/{module.name}/refcnt", "0\n") for module in stage.host.modules))


def _lines(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\t", "\t")


@given(Sentence('the module "{name}" is {state=loaded|in use}[ and holds "{held}"]'))
def the_module(stage: Stage, name: str, state: str, held: str | None) -> None:
    """A kernel module; one in use is held by a process. A module that holds another keeps it from being unloaded."""
    modules = {module.name: module for module in stage.host.modules}
    modules.setdefault(name, Module(name))
    if state == "in use":
        modules[name] = replace(modules[name], users=modules[name].users + 1)
    if held:
        modules[held] = replace(modules[held], used_by=(*modules[held].used_by, name))
    stage.change_host(modules=tuple(modules.values()))


@given(Sentence("the mount points are {paths:rest}"))
def the_mount_points(stage: Stage, paths: str) -> None:
    """In the order of mounting, separated by commas; `none` for none."""
    stage.change_host(mounts=() if paths == "none" else tuple(re.split(r",\s*", paths)))


@given(
    Sentence(
        '{act=unmounting|removing|unloading} "{thing}" fails with {errno}[ {once=the first time}][ as long as the pod "{pod}" is there]'
    )
)
def fails_with(stage: Stage, act: str, thing: str, errno: str, once: str | None, pod: str | None) -> None:
    """The kernel refuses to unmount a path, to remove a file or to unload a module."""
    if not errno_number(errno):
        raise Unmet("the name of an errno, as EBUSY", f"it is: {errno}")
    field = {"unmounting": "umount", "removing": "unlink", "unloading": "delete_module"}[act]
    answer: Any = (errno, "real") if once else {"busy_while_pods": (pod,)} if pod else errno
    stage.change_host(**{field: {**getattr(stage.host, field), thing: answer}})


@given(
    Sentence(
        'a {what=network card|sound function} of vendor "{vendor}" at "{address}"[ in the IOMMU group {group:number} on "{driver}"]'
    )
)
def pci_function(stage: Stage, what: str, vendor: str, address: str, group: float | None, driver: str | None) -> None:
    """A PCI function; Mellanox is 0x15b3, NVIDIA 0x10de."""
    device, class_ = {"network card": ("0x1021", "0x020000"), "sound function": ("0x10f8", "0x040300")}[what]
    made = PciFunction(address, vendor, device, class_, driver or "", iommu_group=None if group is None else int(group))
    stage.change_host(pci=(*stage.host.pci, made))


# --- the cluster --------------------------------------------------------------------------------------------------


@given(Sentence('the cluster "{name}"'))
def the_cluster(stage: Stage, name: str) -> None:
    """A named cluster; or one of your own, `clusters/NAME.yaml` beside the feature or above it."""
    stage.cluster = stage.named_cluster(name)


@given(Sentence('the node has the {kind=label|annotation} "{key}" with the value "{value}"'))
def node_has(stage: Stage, kind: str, key: str, value: str) -> None:
    """Before the run."""
    field = f"{kind}s"
    stage.change_node(**{field: {**getattr(stage.node, field), key: value}})


@given("somebody has cordoned the node")
def cordoned(stage: Stage) -> None:
    """An administrator, or the GPU Operator's upgrade controller."""
    stage.change_node(unschedulable=True)


@given("the pods:")
def the_pods(stage: Stage, datatable: list[list[str]]) -> None:
    """Pods beside those of the cluster.

    Columns: `pod` (namespace/name); `owner` (Kind/name, `none`; `(gone)` and `(not controller)` may follow, an apiVersion may
    stand before); `resource` (name, name=quantity, `(init)` may follow); `termination` (seconds, `never`); `phase`; `emptyDir`
    (`yes`); `app`; `selector` (label=value); `annotation`; `budget` (evictions it blocks, `all`); `node`; `claim` (the driver
    of its resource claim, `unallocated`, `missing`; `(template)` or `(unresolved)` may follow).
    """
    for row in rows(datatable):
        _add_pod(stage, row)


_CONTROLLER_GONE: Final = " (gone)"
_NOT_CONTROLLER: Final = " (not controller)"


def _add_pod(stage: Stage, row: dict[str, str]) -> None:
    namespace, _, name = row["pod"].partition("/")
    owner = _owner(row.get("owner") or "ReplicaSet/app")
    containers, init_containers = _containers(row.get("resource", ""))
    key, _, value = row.get("selector", "").partition("=")
    termination = row.get("termination") or "1"
    budget = row.get("budget")
    claims, statuses = _claims(stage, namespace, name, row.get("claim", ""))
    pod = Pod(
        namespace,
        name,
        labels={"app": row["app"]} if row.get("app") else {},
        annotations={row["annotation"]: "yes"} if row.get("annotation") else {},
        node_name=row.get("node") or None,
        node_selector={key: value} if key else {},
        phase=row.get("phase") or "Running",
        owner=owner,
        containers=containers,
        init_containers=init_containers,
        empty_dir=row.get("emptyDir") == "yes",
        termination=None if termination == "never" else float(termination),
        budget=Budget(None if budget == "all" else int(budget)) if budget else None,
        resource_claims=claims,
        resource_claim_statuses=statuses,
    )
    stage.change_cluster(pods=(*stage.cluster.pods, pod))
    if owner and owner.kind == "DaemonSet" and not row.get("owner", "").endswith(_CONTROLLER_GONE):
        stage.change_cluster(daemonsets=stage.cluster.daemonsets | {(namespace, owner.name)})


def _owner(text: str) -> Owner | None:
    if text == "none":
        return None
    reference, controller = text.removesuffix(_NOT_CONTROLLER), not text.endswith(_NOT_CONTROLLER)
    version, _, reference = reference.removesuffix(_CONTROLLER_GONE).rpartition(" ")
    kind, _, name = reference.partition("/")
    return Owner(kind, name, controller, version or default_api_version(kind))


def _containers(resource: str) -> tuple[tuple[Container, ...], tuple[Container, ...]]:
    """The ordinary and the init containers of a pod that asks for a resource."""
    name, _, quantity = resource.removesuffix(" (init)").partition("=")
    amounts = {name: quantity or "1"} if name else {}
    asking = (Container(amounts, amounts),)
    return ((Container(),), asking) if resource.endswith(" (init)") else (asking, ())


def _claims(stage: Stage, namespace: str, pod: str, text: str) -> tuple[tuple[dict[str, Any], ...], tuple[dict[str, Any], ...]]:
    """The references of a pod to its claim, and what its status says of it. The claim itself joins the cluster."""
    if not text:
        return (), ()
    driver, _, origin = text.partition(" ")
    claim = f"{pod}-claim"
    if driver != "missing":
        made = ResourceClaim(namespace, claim, None if driver == "unallocated" else (driver,))
        stage.change_cluster(resource_claims=(*stage.cluster.resource_claims, made))
    if not origin:
        return ({"name": "device", "resourceClaimName": claim},), ()
    status = {"name": "device", "resourceClaimName": claim}
    return ({"name": "device", "resourceClaimTemplateName": "one"},), (status,) if origin == "(template)" else ()


@given(Sentence('the pod "{pod}" (never terminates|takes {seconds:number} seconds to terminate)'))
def pod_termination(stage: Stage, pod: str, seconds: float | None) -> None:
    """How long a pod of the cluster takes to go once it must."""
    stage.change_pod(pod, termination=seconds)


@given(
    Sentence(
        'the API server answers {status} to {method} "{path}"[ with "{body}" in it][ because of {cause}]'
        "[ with Retry-After {retry:number}][, {times:number} times][, after the first {skip:number}]"
    )
)
def api_answers(
    stage: Stage,
    status: str,
    method: str,
    path: str,
    body: str | None,
    cause: str | None,
    retry: float | None,
    times: float | None,
    skip: float | None,
) -> None:
    """Instead of doing what was asked; `nothing` closes the connection. `path` and `in it` are regular expressions."""
    fault = Fault(
        method=method,
        path=path,
        body=body or "",
        status=DROP if status == "nothing" else int(status),
        retry_after=int(retry) if retry else None,
        times=int(times) if times else None,
        skip=int(skip or 0),
        causes=({"reason": cause},) if cause else (),
    )
    stage.change_cluster(faults=(*stage.cluster.faults, fault))


# --- the settings, and what happens meanwhile -----------------------------------------------------------------------


@given("the settings:")
def the_settings(stage: Stage, datatable: list[list[str]]) -> None:
    """Environment variables. Columns: `variable`, `value`."""
    for row in rows(datatable):
        stage.env[check_setting(row["variable"])] = row["value"]


@given(Sentence("the setting {name} is {value:rest}"))
def the_setting(stage: Stage, name: str, value: str) -> None:
    """One environment variable; `not set` for none, quotes around an empty value or one with spaces."""
    check_setting(name)
    if value == "not set":
        stage.env.pop(name, None)
    else:
        stage.env[name] = value.removeprefix('"').removesuffix('"')


@given(Sentence('the what-if "{name}"'))
def the_what_if(stage: Stage, name: str) -> None:
    """A change proposed upstream, on top of the release."""
    stage.what_if = name


@given(
    Sentence(
        'after {seconds:number} seconds (the file "{path}" {how=appears|disappears}|somebody deletes the pod "{pod}"|SIGTERM comes)'
    )
)
def meanwhile(stage: Stage, seconds: float, path: str | None, how: str | None, pod: str | None) -> None:
    """What happens by itself while driver-manager runs."""
    if path:
        place = container_path(path)
        stage.changes.append(PlannedChange(seconds, {place: ""} if how == "appears" else {}, () if how == "appears" else (place,)))
    elif pod:
        stage.changes.append(PlannedChange(seconds, delete_pods=(pod,)))
    else:
        stage.signal = ("TERM", seconds)


@given("driver-manager has run")
def has_run(stage: Stage) -> None:
    """A first run; the world is as it left it."""
    stage.run()
    stage.go_on()
