"""One run of a release against a host and a cluster: upstream's log as `kubectl logs` shows it, then what changed.

Example:
  dmsim run --host ubuntu-24.04-driver-580-open --release v0.10.0 --env NODE_NAME=gpu-1 --env FORCE_REINSTALL=true
  dmsim run --world stuck-node.yaml -o json
  dmsim run --host-image my-node-image:latest
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from simulator.cli import colour
from simulator.cli.arguments import add_output, add_release, read_env, read_start
from simulator.host.spec import HostSpec
from simulator.importing.sources import import_image
from simulator.manager.releases import DEFAULT
from simulator.naming import check_release, check_what_if
from simulator.reading import printable
from simulator.report.document import outcome_document
from simulator.report.text import log_text, summary
from simulator.runners.simulated import START, simulate
from simulator.scenario import load_cluster, load_host, load_scenario, make_world
from simulator.world import World


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--host", metavar="NAME|FILE", help="a named host, or a host file")
    source.add_argument(
        "--host-image", metavar="REF", help="a container image as the host's root; what was assumed is told on stderr"
    )
    source.add_argument("--world", metavar="FILE", help="a world file: host, cluster and settings in one")
    parser.add_argument(
        "--cluster", metavar="NAME|FILE", help="a named cluster, or a cluster file (default: a container node named by NODE_NAME)"
    )
    add_release(parser, default=None, otherwise=f"the world file's, else {DEFAULT}")
    parser.add_argument("--env", metavar="K=V", action="append", default=[], help="a variable of the program; may be repeated")
    parser.add_argument("--what-if", metavar="NAME", default=None, help="put a proposed upstream change on top")
    parser.add_argument(
        "--start", metavar="DATE", default=None, help=f"when the program starts (default {START:%Y-%m-%dT%H:%M:%SZ})"
    )
    parser.add_argument("--exit-code", action="store_true", help="exit with the program's exit code")
    add_output(parser, "json")
    parser.add_argument("args", metavar="ARGS", nargs="*", help="after --: the program's own arguments (default: uninstall_driver)")


def run(options: argparse.Namespace) -> int:
    """Run it. Exits 0 if the simulation worked, whatever the program did."""
    start = read_start(options.start) if options.start is not None else START
    env = read_env(options.env)
    args = tuple(options.args)
    if options.world is not None:
        scenario = load_scenario(Path(options.world))
        world = _changed(scenario.world, options, env, args)
        release, what_if = scenario.release or DEFAULT, scenario.what_if
    else:
        cluster = load_cluster(options.cluster, env.get("NODE_NAME", "")) if options.cluster is not None else None
        world = make_world(_host(options), cluster, args=args, env=env)
        release, what_if = DEFAULT, ""
    release = check_release(options.release if options.release is not None else release)
    what_if = check_what_if(options.what_if if options.what_if is not None else what_if, release)
    outcome = simulate(world, release, what_if=what_if, start=start)
    if options.output == "json":
        sys.stdout.write(json.dumps(outcome_document(outcome), indent=2) + "\n")
    else:
        sys.stdout.write(log_text(outcome, start))
        colour.write(summary(outcome), colour.CHANGES, options)
    if not options.exit_code:
        return 0
    code = outcome.exit_code
    return 1 if code is None else code if code >= 0 else 128 - code


def _host(options: argparse.Namespace) -> HostSpec:
    """The host that the command line names. Raises InputError."""
    if options.host_image is None:
        return load_host(options.host)
    imported = import_image(options.host_image)
    sys.stderr.write("".join(f"{printable(line)}\n" for line in imported.comments))
    return imported.host


def _changed(world: World, options: argparse.Namespace, env: dict[str, str], args: tuple[str, ...]) -> World:
    """A world file's world with what the command line says on top."""
    settings = {**world.env, **env}
    if options.cluster is not None:
        world = dataclasses.replace(world, cluster=load_cluster(options.cluster, settings.get("NODE_NAME", "")))
    return dataclasses.replace(world, env=settings, args=args or world.args)
