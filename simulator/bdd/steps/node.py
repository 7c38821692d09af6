"""A node over time: a chart of the GPU Operator on it, what people do, and what is seen as time passes.

After it the steps about labels, cordons, GPUs, pods' absence, the log and the exit code speak of the node at its end, and of
the last run of driver-manager.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import pytest
from pytest_bdd import given, then, when

from simulator.bdd.sentences import Sentence
from simulator.bdd.stage import Stage, rows
from simulator.bdd.unmet import Unmet, alike, among, equal
from simulator.gocompat import SECOND
from simulator.manager.charts import CHARTS
from simulator.manager.releases import modelled
from simulator.node.apt import is_there
from simulator.node.node import Node
from simulator.node.operator import VARIANTS
from simulator.node.plan import CONFIGURATION
from simulator.node.plan import plan as plan_of
from simulator.node.story import Played, Story
from simulator.node.timeline import DRIVER_MANAGER
from simulator.report.node_story import clock, spans
from simulator.runners.simulated import state_of
from simulator.trace import Outcome

_MINUTE: Final = 60 * SECOND
_MODULES: Final = ("nouveau", "nvidia", "nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia_peermem")
_FILE: Final = "/etc/modprobe.d/blacklist-nvidia.conf"


@dataclass
class Watched:
    """A node in the making: its chart's variant, and what people will do. Then what was seen."""

    variant: str = "passthrough"
    has_driver: bool = False
    new_operator: bool | None = None
    acts: list[tuple[float, Callable[[Node], object]]] = field(default_factory=list)
    played: Played | None = None
    packages: set[str] = field(default_factory=set)

    @property
    def seen(self) -> Played:
        """What was seen, once it has run."""
        if self.played is None:
            raise Unmet("a node that runs", "it has not run yet: a When step lets it")
        return self.played


@pytest.fixture
def watched() -> Watched:
    """The scenario's node in the making."""
    return Watched()


def chart_of(release: str) -> str:
    """The newest chart whose vfio-manager runs this release."""
    return [chart.version for chart in CHARTS.values() if modelled(chart.releases["vfio-manager"]) == release][-1]


# --- given ----------------------------------------------------------------------------------------------------------


@given(
    Sentence(
        "the chart's {variant=passthrough|container|stock} variant[ {driver=with a driver}][ and the {operator=old|new} operator]"
    )
)
def the_variant(watched: Watched, variant: str, driver: str | None, operator: str | None) -> None:
    """On the newest chart that brings the release; stock is the chart as it is, passthrough and container are Cozystack's.

    The old operator labels the node every five seconds until all is ready, the new one when the node's use changes.
    """
    watched.variant, watched.has_driver = variant, bool(driver)
    watched.new_operator = None if operator is None else operator == "new"


@given(
    Sentence(
        'after {minutes:number} minutes an administrator (purges "{packages}"|runs {uninstall=nvidia-uninstall}'
        '|runs {autoremove=autoremove}|marks "{marked}" as asked for|carries out the {plan=plan} of dmsim'
        '|writes "{line}" into {path}|renews {initramfs=every|the newest} initramfs'
        "|{blacklist=blacklists|forbids} the driver[ {stale=but not in the initramfs}]|{reboot=reboots the machine}[ into kernel {kernel}]"
        '|deletes the pods of "{pods}"|labels the node {label}|{cordon=cordons the node}|{restart=restarts the operator})'
    )
)
def administrator(
    watched: Watched,
    minutes: float,
    packages: str | None,
    uninstall: str | None,
    autoremove: str | None,
    marked: str | None,
    plan: str | None,
    line: str | None,
    path: str | None,
    initramfs: str | None,
    blacklist: str | None,
    stale: str | None,
    reboot: str | None,
    kernel: str | None,
    pods: str | None,
    label: str | None,
    cordon: str | None,
    restart: str | None,
) -> None:
    """What the guide's commands do; to forbid is modprobe's `install NAME /bin/false`. A reboot takes two minutes.

    Both renew every initramfs, unless it is said otherwise. The plan is that of `dmsim host plan`, with a reboot at its end.

    Labels as kubectl takes them: `key=value`, `key-`.
    """
    act: Callable[[Node], object]
    if packages:
        act = lambda node: node.machine.purge(packages.split())  # noqa: E731  # an act for each sentence, in a line
    elif uninstall:
        act = lambda node: node.machine.nvidia_uninstall()  # noqa: E731  # an act for each sentence, in a line
    elif autoremove:
        act = lambda node: node.machine.autoremove()  # noqa: E731  # an act for each sentence, in a line
    elif marked:
        act = lambda node: node.machine.mark_manual(marked.split())  # noqa: E731  # an act for each sentence, in a line
    elif plan:
        act = _carry_out_plan
    elif path:
        act = lambda node: node.machine.write(path, f"{line}\n")  # noqa: E731  # an act for each sentence, in a line
    elif initramfs:
        act = lambda node: node.machine.update_initramfs(every=initramfs == "every")  # noqa: E731  # an act for each sentence, in a line
    elif blacklist:
        line = "blacklist {}\n" if blacklist == "blacklists" else "install {} /bin/false\n"
        text = "".join(line.format(module) for module in _MODULES)
        act = lambda node: _configure(node, text, stale=stale is not None)  # noqa: E731  # an act for each sentence, in a line
    elif reboot:
        act = lambda node: node.reboot(kernel=kernel or "")  # noqa: E731  # an act for each sentence, in a line
    elif pods:
        act = lambda node: [node.delete_pods(f"{name}-") for name in re.split(r",\s*", pods)]  # noqa: E731  # an act for each sentence, in a line
    elif label:
        key, equals, value = label.partition("=")
        act = lambda node: node.label({key if equals else key.removesuffix("-"): value if equals else None})  # noqa: E731  # an act for each sentence, in a line
    elif cordon:
        act = lambda node: node.cordon(unschedulable=True)  # noqa: E731  # an act for each sentence, in a line
    else:
        assert restart
        act = lambda node: node.operator.start()  # noqa: E731  # an act for each sentence, in a line
    watched.acts.append((minutes, act))


def _configure(node: Node, text: str, *, stale: bool) -> None:
    node.machine.write(_FILE, text)
    if not stale:
        node.machine.update_initramfs()


def _carry_out_plan(node: Node) -> None:
    made = plan_of(node.machine.spec)
    node.machine.mark_manual(item.name for item in made.keep)
    if made.names:
        node.machine.purge(made.names)
    _configure(node, CONFIGURATION, stale=False)
    node.reboot()


# --- when -----------------------------------------------------------------------------------------------------------


@when(Sentence("the node runs for {minutes:number} minutes"))
def node_runs(stage: Stage, watched: Watched, minutes: float) -> None:
    """From the moment in which the chart is installed."""
    values = VARIANTS[watched.variant]
    if watched.has_driver:
        values = replace(values, driver=True, device_plugin=True)
    chart, until = chart_of(stage.release), round(minutes * _MINUTE)
    pods = tuple(pod for pod in stage.cluster.pods if pod.owner is None or pod.owner.kind != "DaemonSet")
    cluster = replace(stage.cluster, pods=pods, daemonsets=frozenset())
    with Node(stage.host, cluster, chart, values, new_operator=watched.new_operator) as node:
        before = state_of(node.machine.live, node.cluster, note_tree=False)
        for at, act in sorted(watched.acts, key=lambda pair: pair[0]):
            node.run_until(round(at * _MINUTE))
            act(node)
            node.look()
        node.run_until(until)
        after = state_of(node.machine.live, node.cluster, note_tree=False)
        story = Story("scenario", stage.host, cluster, until, chart, values, new_operator=node.operator.is_new)
        watched.packages = {name for name, package in node.machine.spec.packages.items() if is_there(package)}
        watched.played = Played(story, node.timeline, tuple(node.get_pods()), dict(node.labels), node.allocatable, node.gpu_drivers)
    runs = node.timeline.runs
    last = runs[-1].outcome if runs else Outcome(stage.release, 0, [], until, before, after)
    stage.worlds.append(stage.world())
    stage.timelines.append(node.timeline.entries)
    stage.runs.append(replace(last, before=before, after=after))


# --- then -----------------------------------------------------------------------------------------------------------


@then(Sentence("driver-manager (never starts|starts at {times:rest} seconds)"))
def starts(watched: Watched, times: str | None) -> None:
    """Every start, in whole seconds, separated by commas."""
    found = [run.began // SECOND for run in watched.seen.timeline.runs]
    equal("driver-manager to start at", found, [int(text) for text in times.split(",")] if times else [])


@then(Sentence('over time "{subject}" is:'))
def over_time(watched: Watched, subject: str, datatable: list[list[str]]) -> None:
    """A pod (by its DaemonSet), a label, a GPU or a resource. Columns `from`, `to`, `is`; the table is complete up to its last time.

    Times as in `dmsim node run`. A pod is what kubectl's STATUS says, with its restarts if there are any.
    """
    wanted = [(row["from"], row["to"], row["is"]) for row in rows(datatable)]
    found = [
        (clock(span.begins), clock(span.ends), span.text)
        for span in sorted(spans(watched.seen), key=lambda span: span.begins)
        if span.lane != DRIVER_MANAGER
        and (span.subject == subject or re.fullmatch(re.escape(subject) + "-[a-z0-9]{5}", span.subject))
    ]
    if wanted[-1][1] in {end for _, end, _ in found}:
        last = max(index for index, (_, end, _) in enumerate(found) if end == wanted[-1][1])
        found = found[: last + 1]
    alike(f"“{subject}” over time", [" ".join(row) for row in found], [" ".join(row) for row in wanted])


@then("kubectl shows these pods:")
def kubectl_shows(watched: Watched, datatable: list[list[str]]) -> None:
    """All pods of the operator's namespace. Columns `pod` (its DaemonSet), `status`, `restarts`."""
    found = [(row["Name"].rpartition("-")[0], row["Status"], row["Restarts"].split(" ")[0]) for row in watched.seen.pods]
    wanted = [(row["pod"], row["status"], row["restarts"]) for row in rows(datatable)]
    alike("these pods", [" ".join(row) for row in sorted(found)], [" ".join(row) for row in sorted(wanted)])


@then(Sentence('(no GPU|{count:number} of "{resource}") can be allocated'))
def can_be_allocated(watched: Watched, count: float | None, resource: str | None) -> None:
    """`status.allocatable` of the node: no other resource of nvidia.com, but for amounts of 0."""
    found = {name: amount for name, amount in watched.seen.allocatable.items() if amount != "0"}
    equal("to be allocatable:", found, {} if resource is None else {resource: f"{count:g}"})


@then(Sentence('the container "{name}" says {text:rest}'))
def says(watched: Watched, name: str, text: str) -> None:
    """In one of its runs: a whole line, without its time."""
    lines = {line.message for log in watched.seen.timeline.logs if log.container == name for line in log.lines}
    among(f"the container {name} to say", text, sorted(lines), "it says")


@then(Sentence('the packages "{names}" {are=are|are not} installed'))
def installed(watched: Watched, names: str, are: str) -> None:
    """On the host at the end, if only half: all of these, or none."""
    wanted = set(names.split())
    equal(f"of {names} to be installed:", wanted & watched.packages, wanted if are == "are" else set())
