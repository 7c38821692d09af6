"""The stage: the world a scenario builds up, the runs it made, and what its Then steps have accounted for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

import pytest

from features.steps.runners import Runner, Simulated
from simulator.cluster.objects import ClusterSpec, Node
from simulator.diagnosing.findings import diagnose
from simulator.explaining.explanation import explain
from simulator.host.spec import HostSpec
from simulator.predicting.events import Event as NodeEvent
from simulator.predicting.prediction import predict
from simulator.report.changes import Difference, differences
from simulator.report.diagnosis import Diagnosis, diagnosis_document
from simulator.report.document import FORMAT
from simulator.report.explanation import explanation_document
from simulator.report.text import log_text
from simulator.runners.simulated import START
from simulator.scenario import DEFAULT_CLUSTER, Scenario, load_cluster, load_host, make_world
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


def rows(datatable: list[list[str]]) -> list[dict[str, str]]:
    """A table with a heading line."""
    head, *body = datatable
    return [dict(zip(head, row, strict=True)) for row in body]


named_host = lru_cache(load_host)
"""A host by name. Its description cannot change while the suite runs."""
named_cluster = lru_cache(load_cluster)
"""A cluster by name, and by the name of its node."""


@dataclass
class Stage:
    """A scenario's world in the making. Given steps change it, When steps run it, Then steps look at the last run."""

    release: str
    notes_tree: bool = True
    runner: Runner = field(default_factory=Simulated)
    host: HostSpec = field(default_factory=lambda: named_host("clean"))
    cluster: ClusterSpec = field(default_factory=lambda: named_cluster(DEFAULT_CLUSTER, NODE))
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
    answer: Mapping[str, Any] | None = None
    """What was answered to the last question, as its JSON document has it."""
    unobserved: dict[str, int] = field(default_factory=dict)
    """Comparisons that were not made, by the field that the runner could not observe."""

    # --- building ---------------------------------------------------------------------------------------------

    def change_host(self, **fields: Any) -> None:
        self.host = replace(self.host, **fields)

    def change_cluster(self, **fields: Any) -> None:
        self.cluster = replace(self.cluster, **fields)

    @property
    def node(self) -> Node:
        assert self.cluster.node is not None, "this cluster has no node"
        return self.cluster.node

    def change_node(self, **fields: Any) -> None:
        self.change_cluster(node=replace(self.node, **fields))

    def change_pod(self, name: str, **fields: Any) -> None:
        full = self.pod(name)
        self.change_cluster(pods=tuple(replace(pod, **fields) if pod.full_name == full else pod for pod in self.cluster.pods))

    def pod(self, name: str) -> str:
        """A pod's full name, from that or from its name alone."""
        full = name if "/" in name else next((pod.full_name for pod in self.cluster.pods if pod.name == name), name)
        there = [pod.full_name for pod in self.cluster.pods]
        assert full in there, f"there is no pod {name}; there are {there}"
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
        assert self.runs, "driver-manager has not run yet"
        return self.runs[-1]

    def sees(self, part: str) -> bool:
        """Could the runner observe this part of the outcome? Counts what is not compared because it could not."""
        if part in self.outcome.unobserved:
            self.unobserved[part] = self.unobserved.get(part, 0) + 1
            return False
        return True

    def differences(self) -> list[Difference]:
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
def stage(request: pytest.FixtureRequest, release: str, runner: Runner) -> Stage:
    made = Stage(release, request.node.stash.get(NOTES_TREE, True), runner)
    if not isinstance(runner, Simulated):
        request.node.user_properties.append(("unobserved", made.unobserved))
    return made
