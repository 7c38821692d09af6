"""Then: what can be observed. Each step accounts for the differences it speaks of; the last one allows no others."""

from __future__ import annotations

import re

from pytest_bdd import parsers, then

from features.steps.given import rows
from features.steps.stage import Stage
from simulator.gocompat import SECOND
from simulator.report.changes import Difference


@then(parsers.parse("the exit code is {code:d}"))
def exit_code(stage: Stage, code: int) -> None:
    assert stage.outcome.exit_code == code, stage.log_lines()[-3:]


@then("it panics")
def panics(stage: Stage) -> None:
    assert stage.outcome.panic


@then("it is still running")
def still_running(stage: Stage) -> None:
    assert stage.outcome.exit_code is None
    assert stage.outcome.stopped_after is not None


@then(parsers.parse("it takes {seconds:g} seconds"))
def takes(stage: Stage, seconds: float) -> None:
    assert round(stage.outcome.elapsed / SECOND, 1) == seconds


@then(parsers.parse("it takes between {low:g} and {high:g} seconds"))
def takes_between(stage: Stage, low: float, high: float) -> None:
    assert low <= stage.outcome.elapsed / SECOND <= high


def _wanted(docstring: str) -> list[str]:
    return [line.strip() for line in docstring.splitlines() if line.strip()]


@then("the log is:")
def log_is(stage: Stage, docstring: str) -> None:
    assert stage.log_lines() == _wanted(docstring)


@then("the log has, in this order:")
def log_has(stage: Stage, docstring: str) -> None:
    lines = stage.log_lines()
    at = 0
    for wanted in _wanted(docstring):
        assert wanted in lines[at:], f"{wanted!r} is not in {lines[at:]}"
        at = lines.index(wanted, at) + 1


@then(parsers.parse('the log says nothing of "{text}"'))
def log_lacks(stage: Stage, text: str) -> None:
    assert not [line for line in stage.log_lines() if text in line]


@then(parsers.re(r'the log says "(?P<text>.*)" (?P<times>\d+) times'))
def log_times(stage: Stage, text: str, times: str) -> None:
    assert sum(text in line for line in stage.log_lines()) == int(times)


@then(parsers.re(r'standard output has "(?P<text>.*)"'))
def stdout_has(stage: Stage, text: str) -> None:
    assert text in stage.outcome.stdout


@then(parsers.re(r'standard error has "(?P<text>.*)"'))
def stderr_has(stage: Stage, text: str) -> None:
    assert text in stage.outcome.stderr


@then(parsers.re(r'the node has the label "(?P<label>[^"]+)" with the value "(?P<value>[^"]*)"'))
def has_label(stage: Stage, label: str, value: str) -> None:
    assert stage.outcome.after.node is not None
    assert stage.outcome.after.node.labels.get(label) == value
    stage.account("label", f"{label}: ")


@then("only these labels change:")
def labels_change(stage: Stage, datatable: list[list[str]]) -> None:
    """Columns label, before, after; `absent` where there is none."""
    wanted = {f"{row['label']}: {_value(row['before'])} -> {_value(row['after'])}" for row in rows(datatable)}
    found = {difference.what for difference in stage.differences() if difference.subject == "label"}
    assert found == wanted
    stage.account("label")


def _value(text: str) -> str:
    return text if text == "absent" else f'"{text}"'


@then("no label changes but those that are created empty")
def only_empty_labels(stage: Stage) -> None:
    for difference in stage.differences():
        assert difference.subject != "label" or difference.what.endswith('absent -> ""'), difference
    stage.account("label")


@then("no label changes")
def no_labels(stage: Stage) -> None:
    assert not [difference for difference in stage.differences() if difference.subject == "label"]


@then(parsers.re(r"the node is (?P<state>cordoned|schedulable)"))
def cordon(stage: Stage, state: str) -> None:
    assert stage.outcome.after.node is not None
    assert stage.outcome.after.node.unschedulable == (state == "cordoned")
    stage.account("node")


@then(parsers.parse('all GPUs are on "{driver}"'))
def gpus_on(stage: Stage, driver: str) -> None:
    assert set(stage.outcome.after.gpu_drivers.values()) == {driver}
    stage.account("gpu")


@then("no GPU has a driver")
def gpus_free(stage: Stage) -> None:
    assert set(stage.outcome.after.gpu_drivers.values()) == {""}
    stage.account("gpu")


@then(parsers.parse('the modules "{names}" are unloaded'))
def unloaded(stage: Stage, names: str) -> None:
    gone = set(stage.outcome.before.modules) - set(stage.outcome.after.modules)
    assert gone == set(re.split(r",\s*", names))
    stage.account("module", " is unloaded")


@then("no module is unloaded")
def none_unloaded(stage: Stage) -> None:
    assert not [call for call in stage.outcome.kernel_calls if call.call == "delete_module" and call.result == "ok"]


@then(parsers.parse('the module "{name}" is loaded now'))
def loaded(stage: Stage, name: str) -> None:
    assert name in stage.outcome.after.modules
    assert name not in stage.outcome.before.modules
    stage.account("module", f"{name} is loaded")


@then(parsers.parse('"{path}" is unmounted'))
def unmounted(stage: Stage, path: str) -> None:
    assert stage.outcome.before.mounts.count(path) > stage.outcome.after.mounts.count(path)
    stage.account("mount", path)


@then(parsers.parse('"{path}" is still mounted'))
def still_mounted(stage: Stage, path: str) -> None:
    assert path in stage.outcome.after.mounts


@then(parsers.parse('the file "{path}" is removed'))
def removed(stage: Stage, path: str) -> None:
    assert stage.outcome.before.files[path]
    assert not stage.outcome.after.files[path]
    stage.account("file", path)


@then("the paused operands' pods are gone")
def operands_gone(stage: Stage) -> None:
    """Every DaemonSet pod whose selector the pausing patch broke, and no other pod."""
    gone = set(stage.outcome.before.pods) - set(stage.outcome.after.pods)
    paused = {
        pod.full_name
        for pod in stage.worlds[-1].cluster.pods
        if pod.owner and pod.owner.kind == "DaemonSet" and any(key.endswith(_PAUSED) for key in pod.node_selector)
    }
    assert gone == paused
    stage.account("pod")


_PAUSED = (
    "operator-validator",
    "container-toolkit",
    "device-plugin",
    "gpu-feature-discovery",
    "dcgm-exporter",
    "dcgm",
    "mig-manager",
    "nvsm",
    "sandbox-validator",
    "vgpu-device-manager",
)


@then(parsers.parse('the pod "{pod}" is gone'))
def pod_gone(stage: Stage, pod: str) -> None:
    assert pod in stage.outcome.before.pods
    assert pod not in stage.outcome.after.pods
    stage.account("pod", f"{pod} is gone")


@then(parsers.parse('the pod "{pod}" is still there'))
def pod_there(stage: Stage, pod: str) -> None:
    assert pod in stage.outcome.after.pods


@then("no pod is evicted or deleted")
def none_evicted(stage: Stage) -> None:
    assert not [request for request in stage.outcome.requests if request.method in {"POST", "DELETE"}]


@then(parsers.parse('{count:d} {method} requests go to "{path}"'))
def requests(stage: Stage, count: int, method: str, path: str) -> None:
    found = [request for request in stage.outcome.requests if request.method == method and re.search(path, request.path)]
    assert len(found) == count, found


@then("the API server is never asked")
def no_requests(stage: Stage) -> None:
    assert not stage.outcome.requests


@then("only the host check is run as a child process")
def only_host_check(stage: Stage) -> None:
    assert [child.argv[0] for child in stage.outcome.children] == ["chroot"]


@then("both runs leave the same trace")
def same_trace(stage: Stage) -> None:
    one, other = stage.runs[-2:]
    assert list(one.events) == list(other.events)
    assert (one.exit_code, one.elapsed, one.after) == (other.exit_code, other.elapsed, other.after)


@then("nothing else on the node or host changed")
def nothing_else(stage: Stage) -> None:
    """No difference that no step above has spoken of: labels, cordon, pods, modules, GPUs, mounts, and every file of the tree."""
    left = [difference for difference in stage.differences() if difference not in stage.accounted]
    assert not left, left
    planned = {path for change in stage.worlds[-1].changes for path in (*change.write, *change.remove)}
    unexplained = [
        path for path in _changed_paths(stage) if path.rstrip("/") not in planned and not _explained(path, stage.accounted)
    ]
    assert not unexplained, sorted(unexplained)


def _changed_paths(stage: Stage) -> set[str]:
    before, after = stage.outcome.before.tree or {}, stage.outcome.after.tree or {}
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def _explained(path: str, accounted: set[Difference]) -> bool:
    """Does a difference that was spoken of change this path by itself?"""
    for subject, what in accounted:
        thing = what.split(" ")[0]
        if subject == "module" and (path == "/proc/modules" or path.startswith("/sys/module/")):
            return True
        if subject == "gpu" and thing.rstrip(":") in path and path.startswith("/sys/bus/pci/"):
            return True
        if subject in {"mount", "file"} and (path == thing or path.startswith(thing + "/")):
            return True
    return False
