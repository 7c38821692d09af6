"""The stage: the world a scenario builds up, the runs it made, and what its Then steps have accounted for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest

from simulator.bdd.finding import find_cluster, find_host
from simulator.bdd.plugin import OPTIONS, RESULTS, option_name
from simulator.bdd.runners import Container, Runner, Simulated
from simulator.bdd.tags import release_for
from simulator.bdd.unmet import Unmet, listed, nearest_line
from simulator.cluster.objects import ClusterSpec, Node
from simulator.diagnosing.findings import diagnose
from simulator.explaining.explanation import explain
from simulator.host.spec import HostSpec
from simulator.node.timeline import Entry
from simulator.predicting.events import Event as NodeEvent
from simulator.predicting.prediction import predict
from simulator.report.changes import Difference, differences
from simulator.report.diagnosis import Diagnosis, diagnosis_document
from simulator.report.document import FORMAT
from simulator.report.explanation import explanation_document
from simulator.report.text import log_text
from simulator.runners.simulated import START
from simulator.scenario import DEFAULT_CLUSTER, Scenario, make_world
from simulator.snapshot.bundle import Bundle
from simulator.trace import ApiRequest, ChildProcess, Event, KernelCall, Outcome
from simulator.world import PlannedChange, World, followed_by

NODE: Final = "gpu-1"
LONGEST: Final = 6 * 3600.0
"""Seconds after which a run that nobody means to watch counts as one that never ends."""
ASKED_ABOUT: Final = 600.0
"""Seconds for which a run is watched whose end is asked for."""
NOTES_TREE: Final = pytest.StashKey[bool]()
"""Does a scenario look at every file of the host? Set on its item before it begins: noting them takes time."""
FOLDERS: Final = pytest.StashKey[tuple[Path, ...]]()
"""Where a scenario's own hosts and clusters may lie, the nearest first. Set likewise."""
STAGE: Final = pytest.StashKey["Stage"]()
"""A scenario's stage, once it has one."""


def rows(datatable: list[list[str]]) -> list[dict[str, str]]:
    """A table with a heading line."""
    head, *body = datatable
    return [dict(zip(head, row, strict=True)) for row in body]


@dataclass
class Stage:
    """A scenario's world in the making. Given steps change it, When steps run it, Then steps look at the last run."""

    release: str
    notes_tree: bool = True
    runner: Runner = field(default_factory=Simulated)
    folders: tuple[Path, ...] = ()
    """Where hosts and clusters of the project's own may lie, the nearest first."""
    host: HostSpec = field(default_factory=lambda: find_host("clean", ()))
    cluster: ClusterSpec = field(default_factory=lambda: find_cluster(DEFAULT_CLUSTER, (), NODE))
    env: dict[str, str] = field(default_factory=lambda: {"NODE_NAME": NODE})
    args: tuple[str, ...] = ()
    what_if: str = ""
    changes: list[PlannedChange] = field(default_factory=list)
    signal: tuple[str, float] | None = None
    stop_after: float | None = None
    seed: int = 0
    runs: list[Outcome] = field(default_factory=list)
    worlds: list[World] = field(default_factory=list)
    accounted: set[Difference] = field(default_factory=set)
    named_pods: set[str] = field(default_factory=set)
    """Pods that a Then step has spoken of by name."""
    timelines: list[Sequence[Entry]] = field(default_factory=list)
    """What was seen on a node over time."""
    answer: Mapping[str, Any] | None = None
    """What was answered to the last question, as its JSON document has it."""
    unobserved: dict[str, int] = field(default_factory=dict)
    """Comparisons that were not made, by the field that the runner could not observe."""

    # --- building ---------------------------------------------------------------------------------------------

    def named_host(self, name: str) -> HostSpec:
        """A host of the project's or of dmsim's, by name or path. Raises InputError."""
        return find_host(name, self.folders)

    def named_cluster(self, name: str) -> ClusterSpec:
        """A cluster likewise. Raises InputError."""
        return find_cluster(name, self.folders, self.env.get("NODE_NAME", ""))

    def change_host(self, **fields: Any) -> None:
        """Fields of the host (`HostSpec`) with other values."""
        self.host = replace(self.host, **fields)

    def change_cluster(self, **fields: Any) -> None:
        """Fields of the cluster (`ClusterSpec`)."""
        self.cluster = replace(self.cluster, **fields)

    @property
    def node(self) -> Node:
        """The cluster's node, which it must have."""
        if self.cluster.node is None:
            raise Unmet("a node", "this cluster has none")
        return self.cluster.node

    def change_node(self, **fields: Any) -> None:
        """Fields of the node."""
        self.change_cluster(node=replace(self.node, **fields))

    def change_pod(self, name: str, **fields: Any) -> None:
        """Fields of a pod, by its full name or its name alone."""
        full = self.pod(name)
        self.change_cluster(pods=tuple(replace(pod, **fields) if pod.full_name == full else pod for pod in self.cluster.pods))

    def pod(self, name: str) -> str:
        """A pod's full name, from that or from its name alone."""
        full = name if "/" in name else next((pod.full_name for pod in self.cluster.pods if pod.name == name), name)
        there = [pod.full_name for pod in self.cluster.pods]
        if full not in there:
            raise Unmet(f"a pod {name}", *nearest_line(full, there), *listed("there are", there))
        return full

    def world(self, *, bare: bool = False) -> World:
        """The world as it stands; `bare` is without a command."""
        world = make_world(self.host, self.cluster, args=self.args, env=self.env)
        if bare:
            world = replace(world, args=())
        return replace(
            world, changes=tuple(self.changes), signal=self.signal, stop_after=self.stop_after or LONGEST, seed=self.seed
        )

    # --- running ----------------------------------------------------------------------------------------------

    def run(self, *, what_if: str | None = None, bare: bool = False) -> None:
        """Run driver-manager in the world as it stands; `what_if` in place of the stage's own."""
        world = self.world(bare=bare)
        self.worlds.append(world)
        chosen = self.what_if if what_if is None else what_if
        self.runs.append(self.runner.run(world, self.release, what_if=chosen, note_tree=self.notes_tree))
        self.accounted.clear()
        self.named_pods.clear()

    def go_on(self) -> None:
        """Make the world what the last run left."""
        world = followed_by(self.worlds[-1], self.outcome)
        given = {file.path for file in self.host.container_files}
        files = tuple(file for file in world.host.container_files if file.path in given)
        self.host, self.cluster = replace(world.host, container_files=files), world.cluster
        self.changes, self.signal, self.stop_after = [], None, None

    # --- asking -----------------------------------------------------------------------------------------------

    def ask(self, event: str = "pod-restart", to: str = "") -> None:
        """What will the release do to this node after an event?"""
        self.only_the_model_answers()
        world = replace(self.world(), stop_after=ASKED_ABOUT)
        self.answer = predict(world, self.release, event=NodeEvent(event), to=to, what_if=self.what_if).document()

    def ask_what_is_left(self) -> None:
        """What is left over on this node, and what mends it?"""
        self.only_the_model_answers()
        bundle = Bundle(Scenario(self.world()))
        self.answer = diagnosis_document(Diagnosis(bundle, self.release, diagnose(bundle, self.release)))

    def ask_what_the_log_means(self, text: str = "") -> None:
        """What was decided in the last run, or in the run that printed a text?"""
        self.only_the_model_answers()
        self.answer = explanation_document(explain(text or log_text(self.outcome, START)), FORMAT)

    def only_the_model_answers(self) -> None:
        """Leave the scenario out where a real program is run."""
        if not isinstance(self.runner, Simulated):
            pytest.skip("excluded: a question to the model, for which no program is run")

    # --- looking ----------------------------------------------------------------------------------------------

    @property
    def outcome(self) -> Outcome:
        """The last run's."""
        if not self.runs:
            raise Unmet("a run of driver-manager", "it has not run yet: a When step runs it")
        return self.runs[-1]

    def sees(self, part: str) -> bool:
        """Could the runner observe this part of the outcome? Counts what is not compared because it could not."""
        if part in self.outcome.unobserved:
            self.unobserved[part] = self.unobserved.get(part, 0) + 1
            return False
        return True

    def differences(self) -> list[Difference]:
        """What the last run changed, as far as the runner could see it."""
        hidden = {subject for part, subject in _SUBJECTS.items() if part in self.outcome.unobserved}
        return [
            difference for difference in differences(self.outcome.before, self.outcome.after) if difference.subject not in hidden
        ]

    def account(self, subject: str, part: str = "") -> None:
        """A Then step has said something about these differences."""
        self.accounted |= {
            difference for difference in self.differences() if difference.subject == subject and part in difference.what
        }

    def log_lines(self) -> list[str]:
        """The log, `level: message`; further lines of a message stand for themselves, empty ones are left out."""
        text = "\n".join(f"{line.level}: {line.message}" for line in self.outcome.log)
        return [line.strip() for line in text.split("\n") if line.strip()]

    def acts(self) -> list[str]:
        """What the run did to the node, the cluster and the host, and the programs it ran: a line each, in order."""
        return [text for event in self.outcome.events if (text := _act(event))]


_SUBJECTS: Final = {"modules_after": "module", "gpu_drivers": "gpu", "mounts_after": "mount", "files_after": "file"}
"""Part of an outcome -> the subject of differences in it."""


def _act(event: Event) -> str:
    match event:
        case ApiRequest(method="GET"):
            return ""
        case ApiRequest(method="PATCH", body=body) if body and "unschedulable" in body.get("spec", {}):
            return ("cordon" if body["spec"]["unschedulable"] else "uncordon") + _status(event)
        case ApiRequest(method="PATCH"):
            return "patch labels" + _status(event)
        case ApiRequest(method="POST", path=path):
            return f"evict {_pod(path)}" + _status(event)
        case ApiRequest(method="DELETE", path=path):
            grace = (event.body or {}).get("gracePeriodSeconds")
            return f"delete {_pod(path)}" + ("" if grace is None else f" with grace {grace}") + _status(event)
        case KernelCall(call=call, argument=argument, result=result):
            verb = {"delete_module": "unload", "umount": "unmount", "unlink": "remove"}[call]
            return f"{verb} {argument}" + ("" if result == "ok" else f": {result}")
        case ChildProcess(argv=argv):
            return "run " + " ".join(argv[:3])
        case _:
            return ""


def _status(request: ApiRequest) -> str:
    """Nothing for a success."""
    return "" if isinstance(request.status, int) and request.status < 300 else f": {request.status}"


def _pod(path: str) -> str:
    parts = path.split("/")
    return f"{parts[4]}/{parts[6]}"


@pytest.fixture
def dmsim_release(request: pytest.FixtureRequest) -> str:
    """The release a scenario runs on: the one asked for, else the default, else the nearest one it holds for."""
    return release_for({mark.name for mark in request.node.iter_markers()}, request.config.getoption(option_name("release")))


@pytest.fixture(scope="session")
def dmsim_runner(request: pytest.FixtureRequest) -> Runner:
    """Who runs the scenarios' worlds: the one asked for."""
    option = {name: request.config.getoption(option_name(name)) for name in (*OPTIONS, RESULTS)}
    if option["runner"] == "simulated":
        return Simulated(is_stepping=option[RESULTS] is not None)
    return Container(option["image"], option["longest"], False if option["no-tracer"] else None)


@pytest.fixture
def stage(request: pytest.FixtureRequest, dmsim_release: str, dmsim_runner: Runner) -> Stage:
    """The world that the scenario builds up; steps of a project's own ask for it too."""
    stash = request.node.stash
    made = stash[STAGE] = Stage(dmsim_release, stash.get(NOTES_TREE, True), dmsim_runner, stash.get(FOLDERS, ()))
    if not isinstance(dmsim_runner, Simulated):
        request.node.user_properties.append(("unobserved", made.unobserved))
    return made
