"""What other Python programs may use: a world in, a typed result out, one exception for bad input.

The names here are re-exported by `simulator`, and only from there are they public. Each function reads its world, asks the
layer below, and adds nothing of its own: what the command line answers, this answers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from simulator.cluster.objects import ClusterSpec
from simulator.host.spec import KEYS as HOST_KEYS
from simulator.host.spec import HostSpec, read_host
from simulator.manager.releases import DEFAULT
from simulator.naming import check_release, check_what_if
from simulator.predicting.events import Event, is_set_up
from simulator.predicting.modes import Mode
from simulator.predicting.prediction import Prediction
from simulator.predicting.prediction import predict as predict_world
from simulator.reading import InputError, nearest, read_document
from simulator.report.attribution import Attribution
from simulator.report.comparison import Compared, Subject, Title, compared_document
from simulator.report.comparison import compare as compare_world
from simulator.report.trials import DriverManagerTrial
from simulator.runners.simulated import simulate as simulate_world
from simulator.scenario import KEYS as WORLD_KEYS
from simulator.scenario import Scenario, load_cluster, load_host, make_world, read_scenario
from simulator.snapshot.bundle import Bundle, read_world_or_bundle
from simulator.trace import Outcome
from simulator.world import World

WorldLike: TypeAlias = "World | HostSpec | str | os.PathLike[str]"
"""A world: as such, by the path of its file (or of a host file, or of what was saved of a node), or by a host, whose name or
description stands for the host on a container node."""
ClusterLike: TypeAlias = "ClusterSpec | str | os.PathLike[str]"
"""A cluster: as such, by name, or by the path of its file."""
_DOCUMENTS = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Cause:
    """A named change of a release that makes two releases differ."""

    name: str
    release: str
    """The release that brought it."""
    program: str
    """"driver-manager" or "vfio-manage"."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two releases in one world, left and right as they were asked for."""

    left: str
    right: str
    differs: bool
    """Is any event, or the end, another? From a shell release to a Go release: any effect."""
    rows: tuple[tuple[str, str, str], ...]
    """What of the end differs: the thing, how it is on the left, how on the right."""
    causes: tuple[Cause, ...]
    """The named changes that are responsible, in the order in which they were made."""
    is_explained: bool
    """Do the causes account for every difference?"""
    left_outcome: Outcome
    right_outcome: Outcome
    _compared: Compared

    def document(self) -> dict[str, Any]:
        """As `dmsim compare -o json` prints it."""
        return compared_document(Title(self.left, self.right), self._compared)


def load_world(world: WorldLike, *, cluster: ClusterLike | None = None, env: Mapping[str, str] | None = None) -> World:
    """The world that is meant, with another cluster and variables of the program on top. Raises InputError.

    A host alone, named, described or in a file, becomes a container node of that host; NODE_NAME is set, as every chart does.
    """
    return _read(world, cluster, env).scenario.world


def simulate(
    world: WorldLike,
    *,
    release: str | None = None,
    what_if: str | None = None,
    cluster: ClusterLike | None = None,
    env: Mapping[str, str] | None = None,
) -> Outcome:
    """Run driver-manager in a world, in memory: its log, requests, child processes, exit code, and the state it leaves.

    `release` and `what_if` default to what the world's file says, else to the default release and none. Raises InputError.
    """
    scenario = _read(world, cluster, env).scenario
    tag = check_release(release if release is not None else scenario.release or DEFAULT)
    return simulate_world(scenario.world, tag, what_if=check_what_if(scenario.what_if if what_if is None else what_if, tag))


def compare(
    world: WorldLike,
    left: str,
    right: str,
    *,
    cluster: ClusterLike | None = None,
    env: Mapping[str, str] | None = None,
) -> Comparison:
    """Run two releases in a world, and say what differs and which named changes are responsible. Raises InputError."""
    title = Title(check_release(left), check_release(right))
    name = str(os.fspath(world)) if isinstance(world, str | os.PathLike) else "world"
    subject = Subject(name, DriverManagerTrial(_read(world, cluster, env).scenario.world), 0)
    compared = compare_world(subject, Attribution(title.left, title.right), title.left)
    one, other = compared.left.outcome, compared.right.outcome
    assert isinstance(one, Outcome)
    assert isinstance(other, Outcome)
    return Comparison(
        left=title.left,
        right=title.right,
        differs=compared.first is not None,
        rows=tuple((row.what, row.left, row.right) for row in compared.rows),
        causes=tuple(Cause(named.change.name, named.release, named.program) for named, _ in compared.blames),
        is_explained=compared.unnamed is None,
        left_outcome=one,
        right_outcome=other,
        _compared=compared,
    )


def predict(
    world: WorldLike,
    *,
    release: str | None = None,
    what_if: str | None = None,
    event: str = Event.POD_RESTART.value,
    to: str = "",
    cluster: ClusterLike | None = None,
    env: Mapping[str, str] | None = None,
) -> Prediction:
    """What a release will do to a node after an event: the verdict, and the answers it rests on.

    `event` and `to` are those of `dmsim predict --event` and `--to`. Raises InputError.
    """
    bundle = _read(world, cluster, env)
    tag = check_release(release if release is not None else bundle.scenario.release or DEFAULT)
    events, modes = [each.value for each in Event], [each.value for each in Mode]
    if event not in events:
        raise InputError("", "event", f'"{event}" is not known', nearest(event, events))
    if event == Event.MODE_SWITCH.value and to not in modes:
        raise InputError("", "to", f'"{to}" is no mode to switch to', nearest(to, modes))
    if event != Event.MODE_SWITCH.value and to:
        raise InputError("", "to", f'is of the event "mode-switch", not of "{event}"', "leave one out")
    if to and is_set_up(bundle.scenario.world, Mode(to)):
        raise InputError("", "to", f"{to}: it is a {to} node already, so nothing happens", "give another mode")
    return predict_world(
        bundle.scenario.world,
        tag,
        event=Event(event),
        to=to,
        what_if=check_what_if(bundle.scenario.what_if if what_if is None else what_if, tag),
        unseen=bundle.unseen,
        assumed=bundle.assumed,
        is_host_seen=bundle.is_host_seen,
        unsaved_gpus=bundle.unsaved_gpus,
    )


# --- reading ----------------------------------------------------------------------------------------------------------


def _read(world: WorldLike, cluster: ClusterLike | None, env: Mapping[str, str] | None) -> Bundle:
    variables = _variables(env)
    node_name = variables.get("NODE_NAME", "")
    placed = None if cluster is None else _cluster(cluster, node_name)
    if isinstance(world, World):
        bundle = Bundle(Scenario(world))
    elif isinstance(world, HostSpec):
        return Bundle(Scenario(_container_node(world, placed, variables)))
    elif isinstance(world, str | os.PathLike):
        found = _found(os.fspath(world))
        if isinstance(found, HostSpec):
            return Bundle(Scenario(_container_node(found, placed, variables)))
        bundle = found
    else:
        raise InputError(
            "", "world", f"is of the type {type(world).__name__}", "give a path, the name of a host, a World or a HostSpec"
        )
    before = bundle.scenario.world
    if placed is None:
        placed = before.cluster
    changed = replace(before, cluster=placed, env={**before.env, **variables})
    return replace(bundle, scenario=replace(bundle.scenario, world=changed))


def _found(reference: str) -> HostSpec | Bundle:
    """A named host; else what the file or folder of that path holds."""
    path = Path(reference)
    if "/" not in reference and path.suffix not in _DOCUMENTS:
        return load_host(reference)
    if path.is_dir() or path.suffix not in _DOCUMENTS:
        return read_world_or_bundle(path)
    place = read_document(path)
    keys = set(place.value)
    if "host" in keys or keys & {*WORLD_KEYS} - {*HOST_KEYS}:
        return Bundle(read_scenario(place, path.parent))
    if "kind" in keys and "apiVersion" in keys:
        return read_world_or_bundle(path)
    return read_host(place, path.stem)


def _cluster(given: ClusterLike, node_name: str) -> ClusterSpec:
    if isinstance(given, ClusterSpec):
        return given
    if isinstance(given, str | os.PathLike):
        return load_cluster(os.fspath(given), node_name)
    raise InputError("", "cluster", f"is of the type {type(given).__name__}", "give a path, the name of a cluster or a ClusterSpec")


def _container_node(host: HostSpec, cluster: ClusterSpec | None, env: Mapping[str, str]) -> World:
    made = make_world(host, cluster, env=env)
    named = {"NODE_NAME": made.cluster.node.name} if made.cluster.node else {}
    return replace(made, env={**named, **made.env})


def _variables(env: Mapping[Any, Any] | None) -> dict[str, str]:
    out = dict(env or {})
    for key, value in out.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InputError("", f"env[{key!r}]", f"is of the type {type(value).__name__}, not text", f'write "{value}"')
        if not key or "=" in key or "\0" in key + value:
            raise InputError("", f"env[{key!r}]", "is no variable", "a name has no equals sign, and nothing a NUL character")
    return out


__all__ = [
    "Cause",
    "ClusterSpec",
    "Comparison",
    "HostSpec",
    "InputError",
    "Outcome",
    "Prediction",
    "World",
    "compare",
    "load_world",
    "predict",
    "simulate",
]
