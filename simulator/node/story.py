"""A story: a host, a chart of the GPU Operator, and what people do to the node, each at its time.

Files are checked when they are read; what can only be seen while a story runs (a package that is not installed) is an
error of the same form, with the step's place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from simulator.cluster.kinds import EVENT
from simulator.cluster.objects import ClusterSpec, object_name, read_cluster
from simulator.cluster.objects import Node as NodeSpec
from simulator.gocompat import SECOND, Duration, GoError, parse_duration
from simulator.host.spec import HostSpec, read_host
from simulator.manager.charts import CHARTS
from simulator.node.apt import Transaction
from simulator.node.kubelet import Pace
from simulator.node.node import REBOOT, Node
from simulator.node.operator import NEW_SINCE, VARIANTS, Values
from simulator.node.timeline import ACTS, Entry, Timeline
from simulator.node.validator.program import WORKLOADS
from simulator.reading import InputError, Place, nearest, read_document, read_format
from simulator.scenario import find, load_cluster, load_host, read_reference, with_node_name
from simulator.selectors import label_key_errors, label_value_errors

DEFAULT_CHART: Final = "v26.3.1"
NODE: Final = "gpu-1"
_WATCHED_ON: Final = 600 * SECOND
"""How long a story goes on after its last step, where it does not say."""
_LONGEST: Final = 30 * 86_400 * SECOND
_OPERATORS: Final = ("old", "new")

Act = Callable[[Node], str]
"""Does something, and says what."""


@dataclass(frozen=True, slots=True)
class Step:
    """One act, and when; `place` is where it stands in the file."""

    at: Duration
    act: Act
    place: Place


@dataclass(frozen=True, slots=True)
class Story:
    """A whole story. Times are nanoseconds since its start."""

    name: str
    host: HostSpec
    cluster: ClusterSpec
    until: Duration
    chart: str = DEFAULT_CHART
    values: Values = VARIANTS["passthrough"]
    new_operator: bool = False
    namespace: str = "gpu-operator"
    pace: Pace = field(default_factory=Pace)
    steps: tuple[Step, ...] = ()
    description: str = ""
    place: Place = field(default_factory=lambda: Place(None, "", ""))
    """Where its file is, for errors."""


@dataclass(frozen=True, slots=True)
class Played:
    """A story that has been played: what was seen, and how the node was left."""

    story: Story
    timeline: Timeline
    pods: tuple[Mapping[str, str], ...]
    """The rows of `kubectl get pods`."""
    labels: Mapping[str, str]
    allocatable: Mapping[str, str]
    gpu_drivers: Mapping[str, str]
    events: tuple[Mapping[str, Any], ...] = ()
    """As the API has them."""


def play(story: Story) -> Played:
    """Play it to its end. Raises InputError for a step that cannot be done."""
    with Node(
        story.host,
        story.cluster,
        story.chart,
        story.values,
        namespace=story.namespace,
        new_operator=story.new_operator,
        pace=story.pace,
    ) as node:
        place = story.place
        for step in story.steps:
            with _named(place):
                node.run_until(step.at)
            first, place = len(node.timeline.entries), step.place
            with _named(place):
                done = step.act(node)
            node.timeline.entries.insert(first, Entry(step.at, ACTS, "", done))
            node.look()
        with _named(place):
            node.run_until(story.until)
        return Played(
            story,
            node.timeline,
            tuple(node.get_pods()),
            dict(node.labels),
            node.allocatable,
            node.gpu_drivers,
            tuple(node.store.objects(EVENT).values()),
        )


@contextlib.contextmanager
def _named(place: Place) -> Iterator[None]:
    """An error on the way is of this place: the step that came last, or the story."""
    try:
        yield
    except InputError as error:
        raise InputError(place.file, place.path, error.problem, error.mend) from None


# --- files ---------------------------------------------------------------------------------------------------------

KEYS: Final = (
    "format",
    "description",
    "host",
    "cluster",
    "chart",
    "variant",
    "values",
    "operator",
    "namespace",
    "kubelet",
    "until",
    "steps",
)


def load_story(reference: str) -> Story:
    """A story by name or by the path of its file. Raises InputError."""
    path = find(reference, "stories", "story")
    return read_story(read_document(path), path.parent, path.stem)


def read_story(place: Place, folder: Path, name: str = "story") -> Story:
    """A story from its document; paths in it are relative to `folder`. Raises InputError."""
    place.mapping(KEYS)
    read_format(place)
    host = read_reference(place.need("host", "name a host, or write it here"), folder, load_host, read_host)
    chart = _choice(place.get("chart"), DEFAULT_CHART, CHARTS)
    operator = _choice(place.get("operator"), _OPERATORS[CHARTS[chart].number >= NEW_SINCE], _OPERATORS)
    steps = _steps(place)
    last = steps[-1].at if steps else 0
    until = place.get("until")
    ends = _time(until) if until else last + _WATCHED_ON
    if until is not None and ends < last:
        until.fail("comes before the last step", "name a later time")
    namespace, description = place.get("namespace"), place.get("description")
    return Story(
        name=name,
        host=host,
        cluster=_cluster(place.get("cluster"), folder),
        until=ends,
        chart=chart,
        values=_values(place.get("values"), VARIANTS[_choice(place.get("variant"), "passthrough", VARIANTS)]),
        new_operator=operator == "new",
        namespace=object_name(namespace) if namespace else "gpu-operator",
        pace=_pace(place.get("kubelet")),
        steps=steps,
        description=description.text() if description else "",
        place=place,
    )


def _choice(place: Place | None, default: str, known: Any) -> str:
    if place is None:
        return default
    value = place.text()
    if value not in known:
        place.fail(f'"{value}" is not known', nearest(value, known))
    return value


def _pace(place: Place | None) -> Pace:
    if place is None:
        return Pace()
    place.mapping(("relist", "looks_on_time", "seed"))
    relist, on_time, seed = (place.get(key) for key in ("relist", "looks_on_time", "seed"))
    return Pace(_time(relist) if relist else 0, on_time.boolean() if on_time else True, seed.integer(0) if seed else 0)


def _cluster(place: Place | None, folder: Path) -> ClusterSpec:
    """The node and what else is on it. DaemonSets' pods are left out: the operator brings its own."""
    if place is None:
        return ClusterSpec("bare", NodeSpec(NODE))
    cluster: ClusterSpec = with_node_name(read_reference(place, folder, load_cluster, read_cluster), NODE)
    if cluster.node is None:
        place.fail("has no node", "a story is about one")
    pods = tuple(pod for pod in cluster.pods if pod.owner is None or pod.owner.kind != "DaemonSet")
    return replace(cluster, pods=pods, daemonsets=frozenset())


SWITCHES: Final = tuple(each.name for each in fields(Values) if each.name not in {"default_workload", "driver_manager_env"})


def _values(place: Place | None, base: Values) -> Values:
    if place is None:
        return base
    place.mapping((*SWITCHES, "default_workload", "driver_manager_env"))
    changes: dict[str, Any] = {name: item.boolean() for name in SWITCHES if (item := place.get(name))}
    if (workload := place.get("default_workload")) is not None:
        changes["default_workload"] = workload.choice(*WORKLOADS)
    if place.has("driver_manager_env"):
        changes["driver_manager_env"] = {key: item.text() for key, item in place.entries("driver_manager_env")}
    return replace(base, **changes)


def _time(place: Place) -> Duration:
    """Seconds as a number, or a duration as Go writes it."""
    if isinstance(place.value, str):
        try:
            span = parse_duration(place.value)
        except GoError:
            place.fail(f'"{place.value}" is no time', 'write seconds, or "20m", "1h30m"')
    else:
        span = round(place.seconds() * SECOND)
    if not 0 <= span <= _LONGEST:
        place.fail("is out of range", 'write a time from 0 to "720h"')
    return span


# --- steps -----------------------------------------------------------------------------------------------------------


def _steps(place: Place) -> tuple[Step, ...]:
    steps: list[Step] = []
    for item in place.elements("steps"):
        item.mapping(("at", *ACT_READERS))
        when = item.need("at", 'write when: at: "20m"')
        at = _time(when)
        if steps and at < steps[-1].at:
            when.fail("comes before the step above", "steps stand in the order of their times")
        acts = [name for name in ACT_READERS if item.has(name)]
        if len(acts) != 1:
            item.fail(f"has {len(acts)} acts", f"write one of {', '.join(ACT_READERS)}")
        act = ACT_READERS[acts[0]](item)
        steps.append(Step(at, act if acts[0] in _OF_THE_API else _on_the_host(act), item))
    return tuple(steps)


def _on_the_host(act: Act) -> Act:
    """An act of somebody who is logged in there."""

    def where_it_is_up(node: Node) -> str:
        if not node.kubelet.is_up:
            raise InputError("", "", "the machine is down", "let it come up first")
        return act(node)

    return where_it_is_up


def _label(step: Place) -> Act:
    changes: dict[str, str | None] = {}
    for key, item in step.entries("label"):
        for problem in label_key_errors(key):
            item.fail(f'has an impossible label key "{key}": {problem}')
        changes[key] = None if item.value is None else item.text()
        for problem in label_value_errors(changes[key] or ""):
            item.fail(f'"{item.value}" is an impossible label value: {problem}')
    words = " ".join(f"{key}-" if value is None else f"{key}={value}" for key, value in changes.items())

    def act(node: Node) -> str:
        node.label(changes)
        return f"kubectl label node {node.store.node_name} {words}"

    return act


def _cordon(step: Place) -> Act:
    unschedulable = step.need("cordon", "write true or false").boolean()

    def act(node: Node) -> str:
        node.cordon(unschedulable=unschedulable)
        return f"kubectl {'cordon' if unschedulable else 'uncordon'} {node.store.node_name}"

    return act


def _texts(step: Place, name: str) -> tuple[str, ...]:
    found = step.need(name, "write a list")
    values = found.texts()
    if not values:
        found.fail("is empty", "name at least one")
    return values


def _purge(step: Place) -> Act:
    patterns = _texts(step, "purge")

    def act(node: Node) -> str:
        return f"apt purge {' '.join(patterns)}: {_done(node.machine.purge(patterns))}"

    return act


def _done(transaction: Transaction) -> str:
    count = len(transaction.remove)
    removed = f"{count} package{'' if count == 1 else 's'}"
    return f"{removed}, and installs {', '.join(transaction.install)}" if transaction.install else removed


def _autoremove(step: Place) -> Act:
    _must_be_true(step, "autoremove")

    def act(node: Node) -> str:
        return f"apt autoremove: {_done(node.machine.autoremove())}"

    return act


def _mark_manual(step: Place) -> Act:
    names = _texts(step, "mark_manual")

    def act(node: Node) -> str:
        node.machine.mark_manual(names)
        return f"apt-mark manual {' '.join(names)}"

    return act


def _update_initramfs(step: Place) -> Act:
    every = step.need("update_initramfs", "write all or newest").choice("all", "newest") == "all"

    def act(node: Node) -> str:
        renewed = node.machine.update_initramfs(every=every)
        return f"update-initramfs -u{' -k all' if every else ''}: {', '.join(renewed)}"

    return act


def _uninstall(step: Place) -> Act:
    _must_be_true(step, "nvidia_uninstall")

    def act(node: Node) -> str:
        unloaded = node.machine.nvidia_uninstall()
        return "nvidia-uninstall" + (f", which unloads {', '.join(unloaded)}" if unloaded else "")

    return act


def _must_be_true(step: Place, name: str) -> None:
    found = step.need(name, "write true")
    if not found.boolean():
        found.fail("is false", "write true, or leave the step out")


def _write(step: Place) -> Act:
    files = [(Place(path, item.file, item.path).path_text(), item.text()) for path, item in step.entries("write")]
    if not files:
        step.fail("writes no file", "write the file's path and its text")

    def act(node: Node) -> str:
        for path, text in files:
            node.machine.write(path, text)
        return f"writes {', '.join(path for path, _ in files)}"

    return act


def _remove(step: Place) -> Act:
    paths = tuple(item.path_text() for item in step.elements("remove"))
    if not paths:
        step.fail("removes nothing", "name a path")

    def act(node: Node) -> str:
        node.machine.remove(paths)
        return f"rm -r {' '.join(paths)}"

    return act


def _reboot(step: Place) -> Act:
    given = step.get("reboot")
    takes, kernel = REBOOT, ""
    if given is not None:
        given.mapping(("takes", "kernel"))
        if (item := given.get("takes")) is not None:
            takes = _time(item) / SECOND
        if (item := given.get("kernel")) is not None:
            kernel = item.text()

    def act(node: Node) -> str:
        node.reboot(takes=takes, kernel=kernel)
        return f"reboot{f' into {kernel}' if kernel else ''}"

    return act


def _delete_pods(step: Place) -> Act:
    prefixes = _texts(step, "delete_pods")

    def act(node: Node) -> str:
        names = [name for prefix in prefixes for name in node.delete_pods(prefix)]
        if not names:
            there = ", ".join(row["Name"] for row in node.get_pods()) or "none"
            raise InputError("", "", f"no pod's name begins with {' or '.join(prefixes)}", f"there are: {there}")
        return f"kubectl delete pod {' '.join(names)}"

    return act


def _settings(place: Place) -> Iterator[tuple[str, str]]:
    """Values as Helm's `--set` takes them."""
    for key, item in place.items():
        if isinstance(item.value, Mapping):
            yield from ((f"{key}.{name}", text) for name, text in _settings(item))
        else:
            yield key, str(item.value).lower() if isinstance(item.value, bool) else str(item.value)


def _change_values(step: Place) -> Act:
    place = step.need("values", "write a mapping")
    _values(place, Values())

    def act(node: Node) -> str:
        node.operator.set_values(_values(place, node.operator.values))
        return f"helm upgrade --set {','.join(f'{key}={text}' for key, text in _settings(place))}"

    return act


def _restart_operator(step: Place) -> Act:
    _must_be_true(step, "restart_operator")

    def act(node: Node) -> str:
        node.operator.start()
        return "kubectl rollout restart deployment gpu-operator"

    return act


ACT_READERS: Final[Mapping[str, Callable[[Place], Act]]] = {
    "label": _label,
    "cordon": _cordon,
    "purge": _purge,
    "autoremove": _autoremove,
    "mark_manual": _mark_manual,
    "update_initramfs": _update_initramfs,
    "nvidia_uninstall": _uninstall,
    "write": _write,
    "remove": _remove,
    "reboot": _reboot,
    "delete_pods": _delete_pods,
    "values": _change_values,
    "restart_operator": _restart_operator,
}
"""Key of a step -> what reads it."""
_OF_THE_API: Final = frozenset({"label", "cordon", "delete_pods", "values", "restart_operator"})
"""Acts that need no host that is up."""
