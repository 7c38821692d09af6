"""Given: a known world, and what is different about it here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pytest_bdd import given, parsers

from features.steps.stage import Stage
from simulator.cluster.objects import DROP, Budget, Container, Fault, Owner, Pod, default_api_version
from simulator.gocompat import errno_number
from simulator.host.spec import File, Program
from simulator.host.tree import container_path
from simulator.scenario import load_cluster, load_host
from simulator.world import PlannedChange


def rows(datatable: list[list[str]]) -> list[dict[str, str]]:
    """A table with a heading line."""
    head, *body = datatable
    return [dict(zip(head, row, strict=True)) for row in body]


@given(parsers.parse('the host "{name}"'))
def the_host(stage: Stage, name: str) -> None:
    stage.host = load_host(name)


@given(parsers.parse('the cluster "{name}"'))
def the_cluster(stage: Stage, name: str) -> None:
    stage.cluster = load_cluster(name, stage.env.get("NODE_NAME", ""))


@given(parsers.parse('the what-if "{name}"'))
def the_what_if(stage: Stage, name: str) -> None:
    stage.what_if = name


@given("the settings:")
def the_settings(stage: Stage, datatable: list[list[str]]) -> None:
    for row in rows(datatable):
        stage.env[row["variable"]] = row["value"]


@given(parsers.re(r"the setting (?P<name>[A-Z_]+) is (?P<value>.*)"))
def the_setting(stage: Stage, name: str, value: str) -> None:
    if value == "not set":
        stage.env.pop(name, None)
    else:
        stage.env[name] = value.removeprefix('"').removesuffix('"')


@given("the node has the labels:")
def node_labels(stage: Stage, datatable: list[list[str]]) -> None:
    stage.change_node(labels={**stage.node.labels, **{row["label"]: row["value"] for row in rows(datatable)}})


@given(parsers.re(r'the node has the label "(?P<label>[^"]+)" with the value "(?P<value>[^"]*)"'))
def node_label(stage: Stage, label: str, value: str) -> None:
    stage.change_node(labels={**stage.node.labels, label: value})


@given(parsers.parse('the node has the annotation "{key}" with the value "{value}"'))
def node_annotation(stage: Stage, key: str, value: str) -> None:
    stage.change_node(annotations={**stage.node.annotations, key: value})


@given("somebody has cordoned the node")
def cordoned(stage: Stage) -> None:
    stage.change_node(unschedulable=True)


@given("there are no pods on the node")
def no_pods(stage: Stage) -> None:
    stage.change_cluster(pods=())


@given("the pods:")
def the_pods(stage: Stage, datatable: list[list[str]]) -> None:
    for row in rows(datatable):
        stage.add_pod(_pod(row))


def _pod(row: dict[str, str]) -> Pod:
    """Columns: pod (namespace/name), owner (Kind/name, `none`), resource, termination (seconds, `never`), and rarer ones."""
    namespace, _, name = row["pod"].partition("/")
    kind, _, owner = row.get("owner", "ReplicaSet/app").partition("/")
    resource = row.get("resource", "")
    extra: dict[str, Any] = {}
    if row.get("phase"):
        extra["phase"] = row["phase"]
    if row.get("emptyDir") == "yes":
        extra["empty_dir"] = True
    if row.get("app"):
        extra["labels"] = {"app": row["app"]}
    if row.get("selector"):
        key, _, value = row["selector"].partition("=")
        extra["node_selector"] = {key: value}
    return Pod(
        namespace,
        name,
        owner=None if kind == "none" else Owner(kind, owner, api_version=default_api_version(kind)),
        containers=(Container({resource: "1"}, {resource: "1"}),) if resource else (Container(),),
        termination=None if row.get("termination") == "never" else float(row.get("termination") or 1),
        **extra,
    )


@given(parsers.parse('the pod "{pod}" takes {seconds:g} seconds to terminate'))
def pod_takes(stage: Stage, pod: str, seconds: float) -> None:
    stage.change_pod(pod, termination=seconds)


@given(parsers.parse('the pod "{pod}" never terminates'))
def pod_never(stage: Stage, pod: str) -> None:
    stage.change_pod(pod, termination=None)


@given(parsers.parse('the pod "{pod}" has the annotation "{key}"'))
def pod_annotation(stage: Stage, pod: str, key: str) -> None:
    stage.change_pod(pod, annotations={key: "yes"})


@given(parsers.re(r'a disruption budget blocks the first (?P<times>\d+) evictions of the pod "(?P<pod>[^"]+)"'))
def budget(stage: Stage, pod: str, times: str) -> None:
    stage.change_pod(pod, budget=Budget(int(times)))


@given(parsers.parse('a disruption budget blocks every eviction of the pod "{pod}"'))
def budget_for_ever(stage: Stage, pod: str) -> None:
    stage.change_pod(pod, budget=Budget(None))


@given("the API server has no eviction subresource")
def no_eviction(stage: Stage) -> None:
    stage.change_cluster(eviction=None)


@given("the API server does not answer")
def api_down(stage: Stage) -> None:
    stage.change_cluster(api_down=True)


@given("the API server knows no such node")
def no_node(stage: Stage) -> None:
    stage.change_cluster(node=None, pods=())


@given(
    parsers.re(
        r'the API server answers (?P<status>\d+|nothing) to (?P<method>[A-Z]+) "(?P<path>[^"]+)"'
        r"(?: with Retry-After (?P<retry>\d+))?(?: (?P<times>\d+) times)?(?: after (?P<skip>\d+) of them)?"
    )
)
def api_fault(stage: Stage, status: str, method: str, path: str, retry: str | None, times: str | None, skip: str | None) -> None:
    fault = Fault(
        method=method,
        path=path,
        status=DROP if status == "nothing" else int(status),
        retry_after=int(retry) if retry else None,
        times=int(times) if times else None,
        skip=int(skip or 0),
    )
    stage.change_cluster(faults=(*stage.cluster.faults, fault))


@given(parsers.parse('the API server refuses to change "{word}" with {status:d}'))
def api_refuses(stage: Stage, word: str, status: int) -> None:
    stage.change_cluster(faults=(*stage.cluster.faults, Fault(method="PATCH", body=word, status=status)))


@given(parsers.parse('the file "{path}" holds "{text}"'))
def file_holds(stage: Stage, path: str, text: str) -> None:
    kept = tuple(file for file in stage.host.files if file.path != path)
    stage.change_host(files=(*kept, File(path, text.replace("\\n", "\n"))))


@given(parsers.parse('there is no file "{path}"'))
def no_file(stage: Stage, path: str) -> None:
    stage.change_host(files=tuple(file for file in stage.host.files if file.path != path))


@given(parsers.parse('the directory "{path}"'))
def directory(stage: Stage, path: str) -> None:
    stage.change_host(directories=(*stage.host.directories, path))


@given(parsers.re(r'the program "(?P<path>[^"]+)" on the host prints "(?P<text>[^"]*)" and exits (?P<code>\d+)'))
def host_program(stage: Stage, path: str, text: str, code: str) -> None:
    kept = tuple(program for program in stage.host.programs if program.path != path)
    stage.change_host(programs=(*kept, Program(path, stdout=text.replace("\\n", "\n"), exit_code=int(code))))


@given("nothing is mounted")
def no_mounts(stage: Stage) -> None:
    stage.change_host(mounts=())


@given("the mounts:")
def the_mounts(stage: Stage, datatable: list[list[str]]) -> None:
    stage.change_host(mounts=(*stage.host.mounts, *(row["path"] for row in rows(datatable))))


@given(parsers.parse('unmounting "{path}" fails with {name}'))
def umount_fails(stage: Stage, path: str, name: str) -> None:
    assert errno_number(name), name
    stage.change_host(umount={**stage.host.umount, path: name})


@given(parsers.parse('removing "{path}" fails with {name}'))
def unlink_fails(stage: Stage, path: str, name: str) -> None:
    assert errno_number(name), name
    stage.change_host(unlink={**stage.host.unlink, path: name})


@given(parsers.parse('unloading the module "{module}" fails with {name}'))
def unload_fails(stage: Stage, module: str, name: str) -> None:
    assert errno_number(name), name
    stage.change_host(delete_module={**stage.host.delete_module, module: name})


@given(parsers.parse('unloading the module "{module}" fails with {name} the first time'))
def unload_fails_once(stage: Stage, module: str, name: str) -> None:
    assert errno_number(name), name
    stage.change_host(delete_module={**stage.host.delete_module, module: (name, "real")})


@given(parsers.parse('the module "{module}" is loaded'))
def module_loaded(stage: Stage, module: str) -> None:
    stage.change_host(files=(*stage.host.files, File(f"/sys/module/{module}/refcnt", "0\n")))


@given(parsers.parse('the container\'s own "{name}" exits {code:d}'))
def container_program(stage: Stage, name: str, code: int) -> None:
    programs = {**stage.host.container_programs, name: Program(f"/usr/bin/{name}", exit_code=code)}
    stage.change_host(container_programs=programs)


@given(parsers.parse('the container has no "{name}"'))
def no_container_program(stage: Stage, name: str) -> None:
    stage.change_host(container_programs={**stage.host.container_programs, name: None})


@given("there is no /host in the container")
def no_host_root(stage: Stage) -> None:
    stage.change_host(root="absent", programs=(), links={})


@given(parsers.parse('a Mellanox card at "{address}"'))
def mellanox(stage: Stage, address: str) -> None:
    stage.change_host(files=(*stage.host.files, File(f"/sys/bus/pci/devices/{address}/vendor", "0x15b3\n")))


@given(parsers.parse('after {seconds:g} seconds the file "{path}" appears'))
def file_appears(stage: Stage, seconds: float, path: str) -> None:
    stage.changes.append(PlannedChange(seconds, {container_path(path): ""}))


@given(parsers.parse('after {seconds:g} seconds somebody deletes the pod "{pod}"'))
def pod_deleted(stage: Stage, seconds: float, pod: str) -> None:
    stage.changes.append(PlannedChange(seconds, delete_pods=(pod,)))


@given(parsers.parse("SIGTERM comes after {seconds:g} seconds"))
def sigterm(stage: Stage, seconds: float) -> None:
    stage.signal = ("TERM", seconds)


@given(parsers.parse('the host has become "{name}"'))
def host_has_become(stage: Stage, name: str) -> None:
    """The administrator worked on the host; the cluster is as the last run left it."""
    stage.go_on()
    stage.host = replace(load_host(name), container_files=stage.host.container_files)


@given("driver-manager has run")
def has_run(stage: Stage) -> None:
    stage.run()
    stage.go_on()
