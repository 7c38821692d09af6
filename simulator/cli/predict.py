"""What driver-manager will do to a node: a verdict, then the answers in the order in which people ask.

Exits 0 if it will succeed, also where that is said "as far as was seen"; 1 if it will not, and where it cannot be told.
These words are defined on the page "What will it do to this node" of the documentation.

Example:
  dmsim predict my-node.yaml --release v0.10.0
  dmsim predict must-gather/ --chart v26.3.1 --event image-bump
  dmsim predict my-node.yaml --event mode-switch --to vm-passthrough -o markdown
  dmsim predict --host container-driver-loaded --event reboot --compare v0.12.0
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from simulator.cli import colour
from simulator.cli.arguments import (
    add_chart,
    add_env,
    add_output,
    add_release,
    read_env,
    release_of,
    remark_on_settings,
    with_node_name_set,
)
from simulator.manager.releases import DEFAULT
from simulator.naming import check_release, check_what_if
from simulator.predicting.events import Event, is_set_up
from simulator.predicting.modes import WORKLOADS, Mode, mode_of
from simulator.predicting.prediction import Prediction, predict
from simulator.reading import InputError
from simulator.report.prediction import prediction_lines, prediction_markdown
from simulator.report.prediction_comparison import (
    compare_predictions,
    comparison_document,
    comparison_lines,
    comparison_markdown,
)
from simulator.scenario import Scenario, load_cluster, load_host, make_world
from simulator.snapshot.bundle import Bundle, read_world_or_bundle
from simulator.world import World


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("world", metavar="WORLD|BUNDLE", nargs="?", help="a world file, or a bundle: what was saved of a node")
    parser.add_argument("--host", metavar="NAME|FILE", help="in place of WORLD: a named host, or a host file")
    parser.add_argument("--cluster", metavar="NAME|FILE", help="a named cluster, or a cluster file (with --host: a container node)")
    parser.add_argument("--node", metavar="NAME", default="", help="the node, where a bundle has several")
    add_env(parser, sets_node_name=True)
    add_release(parser, default=None, otherwise=f"the world's, else {DEFAULT}")
    add_chart(parser)
    parser.add_argument("--what-if", metavar="NAME", default=None, help="put a proposed upstream change on top")
    parser.add_argument(
        "--event",
        choices=[event.value for event in Event],
        default=Event.POD_RESTART.value,
        help="what happens (default pod-restart)",
    )
    parser.add_argument("--to", choices=[mode.value for mode in Mode], help="with --event mode-switch: the new mode")
    parser.add_argument("--compare", metavar="R2", help="only the answers that are others in this release, and why")
    add_output(parser, "json", "markdown")


def run(options: argparse.Namespace) -> int:
    """Predict. Exits 1 if it will not succeed, or that cannot be told (with --compare: the first of the two releases)."""
    event = _event(options)
    bundle = _read(options)
    world = bundle.scenario.world
    if event is Event.MODE_SWITCH and is_set_up(world, Mode(options.to)):
        raise InputError(
            "",
            "",
            f"--to {options.to}: it is a {options.to} node already, so nothing happens",
            "give another mode, or leave --event out",
        )
    release = _release(options, bundle, world)
    what_if = check_what_if(options.what_if if options.what_if is not None else bundle.scenario.what_if, release)

    remark_on_settings(world.env)

    def ask(tag: str) -> Prediction:
        return predict(
            world,
            tag,
            event=event,
            to=options.to or "",
            what_if=what_if,
            unseen=bundle.unseen,
            assumed=bundle.assumed,
            is_host_seen=bundle.is_host_seen,
            unsaved_gpus=bundle.unsaved_gpus,
        )

    prediction = ask(release)
    if options.compare is not None:
        if what_if:
            raise InputError(
                "", "", f'--compare holds two releases as they are, and the what-if "{what_if}" is in none', "leave one out"
            )
        compared = compare_predictions(prediction, ask(check_release(options.compare)))
        match options.output:
            case "json":
                sys.stdout.write(json.dumps(comparison_document(compared), indent=2) + "\n")
            case "markdown":
                sys.stdout.write(comparison_markdown(compared))
            case _:
                colour.write(comparison_lines(compared), colour.PREDICTION, options)
        return 0 if prediction.verdict.succeeds else 1
    match options.output:
        case "json":
            sys.stdout.write(json.dumps(prediction.document(), indent=2) + "\n")
        case "markdown":
            sys.stdout.write(prediction_markdown(prediction))
        case _:
            colour.write(prediction_lines(prediction), colour.PREDICTION, options)
    return 0 if prediction.verdict.succeeds else 1


def _event(options: argparse.Namespace) -> Event:
    event = Event(options.event)
    if event is Event.MODE_SWITCH and options.to is None:
        raise InputError("", "", "--event mode-switch needs the new mode", f"write --to {Mode.VM_PASSTHROUGH}")
    if event is not Event.MODE_SWITCH and options.to is not None:
        raise InputError("", "", f"--to is of --event mode-switch, not of {event}", "leave one out")
    return event


def _read(options: argparse.Namespace) -> Bundle:
    """The world that the command line names, with its variables on top. Raises InputError."""
    env = read_env(options.env)
    if (options.world is None) == (options.host is None):
        raise InputError("", "", "either WORLD|BUNDLE or --host is needed", "write dmsim predict my-node.yaml")
    if options.host is not None:
        cluster = load_cluster(options.cluster, env.get("NODE_NAME", "")) if options.cluster is not None else None
        world = make_world(load_host(options.host), cluster, env=env)
        return Bundle(Scenario(with_node_name_set(world)))
    bundle = read_world_or_bundle(Path(options.world), node=options.node)
    world = bundle.scenario.world
    settings = {**world.env, **env}
    if options.cluster is not None:
        world = dataclasses.replace(world, cluster=load_cluster(options.cluster, settings.get("NODE_NAME", "")))
    scenario = dataclasses.replace(bundle.scenario, world=dataclasses.replace(world, env=settings))
    return dataclasses.replace(bundle, scenario=scenario)


def _release(options: argparse.Namespace, bundle: Bundle, world: World) -> str:
    """The release that is asked for, by itself or by a chart. Raises InputError."""
    node = world.cluster.node
    mode = Mode(options.to) if options.to is not None else mode_of(node.labels if node else {})
    return release_of(options, bundle.scenario.release or DEFAULT, WORKLOADS[mode].daemonset)
