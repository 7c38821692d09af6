"""Then: what can be observed. Each step accounts for the differences it speaks of; the last one allows no others."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Mapping
from typing import Any, Final

from pytest_bdd import then

from simulator.bdd.sentences import Sentence
from simulator.bdd.stage import Stage, rows
from simulator.bdd.unmet import Unmet, alike, among, equal, listed, nearest_line
from simulator.gocompat import SECOND
from simulator.host.tree import container_path
from simulator.manager.program import PANIC
from simulator.report.changes import Difference
from simulator.report.events import event_text
from simulator.report.text import ending
from simulator.trace import ApiRequest, NodeState, Outcome, State

_BOTH: Final = 2

# --- how it ended -------------------------------------------------------------------------------------------------


@then(Sentence("the exit code is {code:number}"))
def exit_code(stage: Stage, code: float) -> None:
    """The process ended by itself, with no panic."""
    if stage.outcome.exit_code != code or stage.outcome.panic:
        raise Unmet(f"exit code {code:g}", f"it is: {ending(stage.outcome)}", *listed("the log ends with", stage.log_lines()[-3:]))


@then("it panics")
def panics(stage: Stage) -> None:
    """A Go panic: exit code 2, and nothing is cleaned up."""
    if not stage.outcome.panic or stage.outcome.exit_code != PANIC:
        raise Unmet("a panic", f"it is: {ending(stage.outcome)}")


@then("it is still running")
def still_running(stage: Stage) -> None:
    """When we stopped watching."""
    if stage.outcome.exit_code is not None or stage.outcome.stopped_after is None:
        raise Unmet("a run that goes on", f"it is: {ending(stage.outcome)}")


@then(Sentence("it takes (between {low:number} and {high:number}|{seconds:number}) seconds"))
def takes(stage: Stage, low: float | None, high: float | None, seconds: float | None) -> None:
    """Virtual time, to a tenth of a second."""
    elapsed = stage.outcome.elapsed / SECOND
    shortest, longest = (seconds, seconds) if seconds is not None else (low or 0.0, high or 0.0)
    if not shortest - stage.runner.slack(shortest) <= elapsed <= longest + stage.runner.slack(longest):
        span = f"{shortest:g}" if seconds is not None else f"between {shortest:g} and {longest:g}"
        raise Unmet(f"{span} seconds", f"it took: {round(elapsed, 1):g} seconds")


# --- what it said -------------------------------------------------------------------------------------------------


def _wanted(docstring: str) -> list[str]:
    return [line.strip() for line in docstring.splitlines() if line.strip()]


@then("the log is:")
def log_is(stage: Stage, docstring: str) -> None:
    """Every line, as `level: message`."""
    alike("this log", stage.log_lines(), _wanted(docstring))


@then("the log has, in this order:")
def log_has(stage: Stage, docstring: str) -> None:
    """These lines, others may stand between them."""
    lines = stage.log_lines()
    at = 0
    for wanted in _wanted(docstring):
        among("in the log", wanted, lines[at:], "from there on it says" if at else "it says")
        at = lines.index(wanted, at) + 1


@then(Sentence('the log says (nothing of "{absent}"|"{text:rest}" {times:number} times)'))
def log_says(stage: Stage, absent: str | None, text: str | None, times: float | None) -> None:
    """A part of a line."""
    found = [line for line in stage.log_lines() if (absent or text or "") in line]
    if len(found) != (times or 0):
        often = f"nothing of “{absent}”" if absent else f"“{text}” {times or 0:g} times"
        near = nearest_line(text, stage.log_lines()) if text and not found else []
        raise Unmet(f"{often} in the log", *near, *listed(f"it is there {len(found)} times", found))


@then(Sentence('standard {stream=output|error} has "{text:rest}"'))
def stream_has(stage: Stage, stream: str, text: str) -> None:
    """Beside the log, which is on standard error too."""
    printed = stage.outcome.stdout if stream == "output" else stage.outcome.stderr
    if text not in printed:
        raise Unmet(f"“{text}” on standard {stream}", *listed("there is", printed.splitlines()))


# --- what it did --------------------------------------------------------------------------------------------------


@then("the acts are:")
def acts_are(stage: Stage, docstring: str) -> None:
    """Every change it made or tried on node, cluster and host, and every program it ran, in order.

    `cordon`, `uncordon`, `patch labels`, `evict POD`, `delete POD`, `unload MODULE`, `unmount PATH`, `remove PATH`, `run PROGRAM`;
    what was refused ends in `: ` and the HTTP status, `drop` or the errno. Evictions that follow one another have no order.
    """
    unseen = tuple(verb for part, verbs in _VERBS.items() if not stage.sees(part) for verb in verbs)
    acts, wanted = ([act for act in acts if not act.startswith(unseen)] for acts in (stage.acts(), _wanted(docstring)))
    alike("these acts", _without_order(acts), _without_order(wanted))


_VERBS: Final = {"kernel": ("unload ", "unmount ", "remove "), "exec": ("run ",)}
"""Part of an outcome -> how acts begin that only it shows."""


def _without_order(acts: list[str]) -> list[str]:
    """Pods are evicted at the same time: which request comes first is a matter of chance."""
    groups = itertools.groupby(acts, lambda act: act.startswith("evict "))
    return [act for evicting, group in groups for act in (sorted(group) if evicting else group)]


@then("no pod is evicted or deleted")
def none_evicted(stage: Stage) -> None:
    """Not even tried."""
    found = [request for request in stage.outcome.requests if request.method in {"POST", "DELETE"}]
    if found:
        raise Unmet("no eviction and no deletion", *listed("asked for were", [_request(request) for request in found]))


@then(Sentence('{count:number} {method} requests go to "{path}"'))
def requests(stage: Stage, count: float, method: str, path: str) -> None:
    """Requests that reached the API server, by a regular expression for their paths."""
    found = [request for request in stage.outcome.requests if request.method == method and re.search(path, request.path)]
    if len(found) != count:
        raise Unmet(
            f"{count:g} {method} requests for “{path}”", *listed(f"there are {len(found)}", [_request(one) for one in found])
        )


@then("the API server is never asked")
def no_requests(stage: Stage) -> None:
    """No request at all."""
    if stage.outcome.requests:
        raise Unmet("no request at all", *listed("there are", [_request(request) for request in stage.outcome.requests]))


@then("only the host check is run as a child process")
def only_host_check(stage: Stage) -> None:
    """nvidia-smi in the host's root, asked for the driver's version; no vfio-manage."""
    asked = "chroot /host nvidia-smi --query-gpu=driver_version --format=csv,noheader"
    if stage.sees("exec"):
        alike("these child processes", [" ".join(child.argv) for child in stage.outcome.children], [asked])


@then("both runs leave the same trace")
def same_trace(stage: Stage) -> None:
    """Events, times, exit code and every file of the host."""
    if len(stage.runs) < _BOTH:
        raise Unmet("two runs", f"there are: {len(stage.runs)}")
    one, other = stage.runs[-2:]
    if not stage.runner.same(one, other):
        raise Unmet(
            "the same trace of both runs",
            *(row for row in difflib.ndiff(_told(one), _told(other)) if row.startswith(("-", "+"))),
            f"the first ends with {ending(one)}, the second with {ending(other)}; their times or files may differ too",
        )


# --- how the node was left ----------------------------------------------------------------------------------------


@then(Sentence('the node has the {kind=label|annotation} "{key}" with the value "{value}"'))
def node_has(stage: Stage, kind: str, key: str, value: str) -> None:
    """After the run."""
    node = _node(stage.outcome.after)
    there = node.labels if kind == "label" else node.annotations
    if there.get(key) != value:
        here = [f"it is: {there[key] or 'empty'}"] if key in there else ["it is not there", *_nearest_key(key, there)]
        raise Unmet(f"the {kind} {key} to be {value or 'empty'}", *here)
    stage.account(kind, f"{key}: ")


@then("only these labels change:")
def labels_change(stage: Stage, datatable: list[list[str]]) -> None:
    """Columns `label`, `before`, `after`; `absent` where there is none."""
    wanted = {f"{row['label']}: {_value(row['before'])} -> {_value(row['after'])}" for row in rows(datatable)}
    found = {difference.what for difference in stage.differences() if difference.subject == "label"}
    alike("these changes of labels", sorted(found), sorted(wanted))
    stage.account("label")


def _value(text: str) -> str:
    return text if text == "absent" else f'"{text}"'


@then(Sentence("no label changes[ but those that are {created=created empty}]"))
def no_label_changes(stage: Stage, created: str | None) -> None:
    """Every operand's label has its old value; one that was absent may now be empty."""
    changed = [difference.what for difference in stage.differences() if difference.subject == "label"]
    wrong = [what for what in changed if not (created and what.endswith('absent -> ""'))]
    if wrong:
        raise Unmet("no change of a label", *listed("these change", wrong))
    stage.account("label")


@then("the operands stay paused")
def operands_paused(stage: Stage) -> None:
    """Every operand label with a value, but for `false`, holds `paused-for-driver-upgrade`; absent ones may be empty now."""
    after = _node(stage.outcome.after)
    operands = {key: value for key, value in after.labels.items() if key.endswith(_PAUSED) and value not in {"", "false"}}
    going_on = [f"{key}: {value}" for key, value in operands.items() if "paused-for-driver-upgrade" not in value]
    if not operands or going_on:
        raise Unmet("every operand's label to be paused", *listed("these are not" if operands else "labels of operands", going_on))
    for key in operands:
        stage.account("label", f"{key}: ")
    stage.account("label", 'absent -> ""')


@then(Sentence("the node is {state=cordoned|schedulable}"))
def cordon(stage: Stage, state: str) -> None:
    """At the end."""
    equal("the node to be", "cordoned" if _node(stage.outcome.after).unschedulable else "schedulable", state)
    stage.account("node")


@then("the paused operands' pods are gone")
def operands_gone(stage: Stage) -> None:
    """Every DaemonSet pod whose selector the pausing patch broke, and no other pod; those named above do not count."""
    gone = set(stage.outcome.before.pods) - set(stage.outcome.after.pods)
    paused = {
        pod.full_name
        for pod in stage.worlds[-1].cluster.pods
        if pod.owner and pod.owner.kind == "DaemonSet" and any(key.endswith(_PAUSED) for key in pod.node_selector)
    }
    alike("these pods to go", sorted(gone - stage.named_pods), sorted(paused - stage.named_pods))
    stage.account("pod")


_PAUSED: Final = tuple(
    f"gpu.deploy.{operand}"
    for operand in (
        "operator-validator",
        "container-toolkit",
        "device-plugin",
        "gpu-feature-discovery",
        "dcgm-exporter",
        "dcgm",
        "mig-manager",
        "nvsm",
        "sandbox-validator",
        "sandbox-device-plugin",
        "vgpu-device-manager",
        "dra-driver",
        "dra-validator",
        "dcgm-dra",
        "dcgm-exporter-dra",
    )
)


@then(Sentence('the pod "{pod}" is {state=gone|still there}'))
def pod_is(stage: Stage, pod: str, state: str) -> None:
    """namespace/name, or the name of one of the cluster's."""
    pod = next((full for full in stage.outcome.before.pods if full.endswith(f"/{pod}")), pod)
    if pod not in stage.outcome.before.pods:
        raise Unmet(f"a pod {pod} before the run", *listed("there were", sorted(stage.outcome.before.pods)))
    equal(f"the pod {pod} to be", "still there" if pod in stage.outcome.after.pods else "gone", state)
    stage.named_pods.add(pod)
    stage.account("pod", f"{pod} is gone")


# --- how the host was left ----------------------------------------------------------------------------------------


@then(Sentence('all GPUs are on ("{driver}"|no driver)'))
def gpus_on(stage: Stage, driver: str | None) -> None:
    """The driver that each NVIDIA display function is bound to."""
    drivers = stage.outcome.after.gpu_drivers
    if stage.sees("gpu_drivers") and set(drivers.values()) != {driver or ""}:
        there = [f"{address}: {name or 'no driver'}" for address, name in drivers.items()]
        raise Unmet(f"all GPUs on {driver or 'no driver'}", *listed("they are on", there))
    stage.account("gpu")


@then(Sentence('(no module is|the modules "{names}" are) {change=unloaded|loaded}'))
def modules_are(stage: Stage, names: str | None, change: str) -> None:
    """These and no others."""
    before, after = set(stage.outcome.before.modules), set(stage.outcome.after.modules)
    changed = before - after if change == "unloaded" else after - before
    if stage.sees("modules_after"):
        equal(f"to be {change}:", changed, set(re.split(r",\s*", names)) if names else set())
    stage.account("module", f" is {change}")


@then(Sentence('"{path}" is {state=unmounted|still mounted}'))
def mount_is(stage: Stage, path: str, state: str) -> None:
    """Of two mounts on one path the upper one counts."""
    before, after = stage.outcome.before.mounts.count(path), stage.outcome.after.mounts.count(path)
    if not before:
        raise Unmet(f"{path} to be mounted before the run", *listed("mounted were", list(stage.outcome.before.mounts)))
    equal(f"{path} to be", "unmounted" if (before > after if state == "unmounted" else not after) else "still mounted", state)
    if state == "unmounted":
        stage.account("mount", f"{path} ")


@then(Sentence('the file "{path}" is {state=removed|still there|created}'))
def file_is(stage: Stage, path: str, state: str) -> None:
    """A file of the host's, by the host's own path."""
    if state == "created":
        if container_path(path) in _tree(stage.outcome.before):
            raise Unmet(f"{path} to be created", "it was there before the run")
        if container_path(path) not in _tree(stage.outcome.after):
            raise Unmet(f"{path} to be created", "it is not there")
        stage.accounted.add(Difference("file", f"{container_path(path)} is created"))
        return
    if not stage.outcome.before.files.get(path):
        raise Unmet(f"a file {path} before the run", "it was not there")
    equal(f"the file {path} to be", "still there" if stage.outcome.after.files[path] else "removed", state)
    stage.account("file", f"{path} ")


def _node(state: State) -> NodeState:
    if state.node is None:
        raise Unmet("a node", "the cluster has none")
    return state.node


def _nearest_key(key: str, there: Mapping[str, str]) -> list[str]:
    return nearest_line(key, list(there)) or listed("there are", sorted(there))


def _request(request: ApiRequest) -> str:
    return f"{request.method} {request.path}"


def _told(outcome: Outcome) -> list[str]:
    return [event_text(event) for event in outcome.events]


def _tree(state: State) -> Mapping[str, str]:
    assert state.tree is not None
    return state.tree


@then("nothing else on the node or host changed")
def nothing_else(stage: Stage) -> None:
    """No difference that no step above has spoken of: labels, cordon, pods, modules, GPUs, mounts, and every file of the tree."""
    left = [difference for difference in stage.differences() if difference not in stage.accounted]
    if left:
        raise Unmet("nothing else to change", *listed("these do too", [f"{one.subject}: {one.what}" for one in left]))
    planned = {path for change in stage.worlds[-1].changes for path in (*change.write, *change.remove)}
    hidden = tuple(place for part, places in _PLACES.items() if not stage.sees(part) for place in places)
    changed = [path for path in _changed_paths(stage) if not path.startswith(hidden)]
    unexplained = [path for path in changed if not _planned(path, planned) and not _explained(path, stage.accounted)]
    if unexplained:
        raise Unmet("no other file to change", *listed("these do too", sorted(unexplained)))


_PLACES: Final = {
    "modules_after": ("/proc/modules", "/sys/module/", "/sys/bus/pci/drivers/"),
    "gpu_drivers": ("/sys/bus/pci/",),
}
"""Part of an outcome -> where files show it."""


def _changed_paths(stage: Stage) -> set[str]:
    before, after = _tree(stage.outcome.before), _tree(stage.outcome.after)
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def _planned(path: str, planned: set[str]) -> bool:
    return any(path.rstrip("/") == place or place.startswith(path) or path.startswith(f"{place}/") for place in planned)


def _explained(path: str, accounted: set[Difference]) -> bool:
    """Does a difference that was spoken of change this path by itself?"""
    for subject, what in accounted:
        thing = what.split(" ")[0]
        if subject == "module" and path.startswith(("/proc/modules", "/sys/module/", "/sys/bus/pci/drivers/")):
            return True
        if subject == "gpu" and thing.rstrip(":") in path and path.startswith("/sys/bus/pci/"):
            return True
        if subject in {"mount", "file"} and (path == thing or path.startswith(thing + "/")):
            return True
        if subject == "file" and what.endswith(" is created") and thing.startswith(path):
            return True
    return False


# --- what was answered --------------------------------------------------------------------------------------------


@then("the answer says:")
def answer_says(stage: Stage, datatable: list[list[str]]) -> None:
    """Fields of the answer's JSON document. Columns: `field`, `value`.

    `verdict.cause` is a field of a field; `gpus.gpus.final` is that field of each item of the list, each value once, sorted;
    `pods.pods[ml/wl].fate` is of the items with that name, or key. `none` stands for null and for nothing in a list; `about 1800` allows one in a hundred.
    """
    if stage.answer is None:
        raise Unmet("an answer", "nothing was asked: a When step asks")
    wanted = {row["field"]: row["value"] for row in rows(datatable)}
    found = {path: _rounded(_field(stage.answer, path), value) for path, value in wanted.items()}
    alike(
        "this answer",
        [f"{path}: {value}" for path, value in found.items()],
        [f"{path}: {value}" for path, value in wanted.items()],
    )


_NAMES: Final = ("name", "kind", "key", "address", "step")
"""What an item of a list is called by."""


def _field(value: Any, path: str) -> Any:
    """What a path leads to."""
    for name, item in re.findall(r"(\w+)(?:\[([^\]]*)\])?", path):
        ones = value if isinstance(value, list) else [value]
        if lacking := [one for one in ones if not isinstance(one, Mapping) or name not in one]:
            there = list(lacking[0]) if isinstance(lacking[0], Mapping) else []
            raise Unmet(f"a field “{name}” of “{path}”", *listed("there are", there))
        value = [one[name] for one in ones] if isinstance(value, list) else ones[0][name]
        if isinstance(value, list) and any(isinstance(one, list) for one in value):
            value = [one for part in value for one in part]
        if item:
            called = _called(value, item)
            if not called:
                raise Unmet(f"something called “{item}” in “{path}”", *listed("there are", _names(value)))
            value = called
    return value


def _called(value: Any, item: str) -> list[Any]:
    """The items of a list, or of mappings, that are called so."""
    ones = value if isinstance(value, list) else [value]
    return [one for one in ones if item in (one.get(key) for key in _NAMES)] or [one[item] for one in ones if item in one]


def _names(value: Any) -> list[str]:
    """What the items of a list, or of mappings, are called."""
    ones = value if isinstance(value, list) else [value]
    called = [str(one[key]) for one in ones for key in _NAMES if key in one]
    return called or [str(key) for one in ones for key in one]


def _rounded(value: Any, wanted: str) -> str:
    """A value as a table has it; the wanted one, if that is near enough to a number that need not be exact."""
    _, about, number = wanted.partition("about ")
    return wanted if about and abs(value - float(number)) <= float(number) / 100 else _shown(value)


def _shown(value: Any) -> str:
    """A value as a table has it."""
    match value:
        case list():
            return ", ".join(sorted({_shown(one) for one in value})) or "none"
        case None | "":
            return "none"
        case bool():
            return str(value).lower()
        case _:
            return str(value)
