"""Arguments that several subcommands share, and how their values are checked."""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from simulator.host.spec import HostSpec
from simulator.importing.sources import import_image
from simulator.manager.charts import CHARTS
from simulator.manager.releases import DEFAULT, RELEASES
from simulator.naming import check_release, check_what_if, unread_settings
from simulator.reading import InputError, nearest, printable
from simulator.recordings.layout import Recording, read_cases
from simulator.scenario import fixtures, load_cluster, load_host, load_scenario, make_world
from simulator.verifying.images import Image, look_up
from simulator.world import World

JOBS: Final = 8
"""Runs at once, where nothing else is said. They mostly sleep."""


def add_release(parser: argparse.ArgumentParser, default: str | None = DEFAULT, otherwise: str = "") -> None:
    """`--release R`. `otherwise` says what holds without it, where that is not `default`."""
    text = f" (default {otherwise or default})" if otherwise or default else ""
    parser.add_argument("--release", metavar="R", default=default, help=f"upstream tag{text}: {', '.join(RELEASES)}")


def add_output(parser: argparse.ArgumentParser, *forms: str) -> None:
    """`-o FORM`."""
    parser.add_argument("-o", "--output", choices=("text", *forms), default="text", help="form of the output (default text)")


def add_chart(parser: argparse.ArgumentParser) -> None:
    """`--chart C`, in place of `--release`."""
    parser.add_argument("--chart", metavar="C", help="the release that this version of the GPU Operator chart brings")


def release_of(options: argparse.Namespace, said: str, daemonset: str) -> str:
    """The release that `--release` or `--chart` names, the one of a DaemonSet; else the one that was said. Raises InputError."""
    if options.chart is None:
        return check_release(options.release if options.release is not None else said)
    if options.release is not None:
        raise InputError("", "", "--chart names the release, and so does --release", "leave one out")
    chart = CHARTS.get(options.chart)
    if chart is None:
        raise InputError("", "", f'there is no chart "{options.chart}"', nearest(options.chart, CHARTS))
    return check_release(chart.releases[daemonset])


def add_env(parser: argparse.ArgumentParser, *, sets_node_name: bool) -> None:
    """`--env K=V`. The program needs NODE_NAME: it is set where a command asks about a node, not where it runs what is given."""
    name = "NODE_NAME is set" if sets_node_name else "the program needs NODE_NAME=gpu-1"
    parser.add_argument(
        "--env", metavar="K=V", action="append", default=[], help=f"a variable of the program; may be repeated; {name}"
    )


def add_world(parser: argparse.ArgumentParser, *, sets_node_name: bool = False) -> None:
    """What a run is made of: a host with a cluster, or a world file; the release, settings, and the program's arguments."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--host", metavar="NAME|FILE", help="a named host, or a host file")
    source.add_argument(
        "--host-image", metavar="REF", help="a container image as the host's root; what was assumed is told on stderr"
    )
    source.add_argument("--world", metavar="FILE", help="a world file: host, cluster and settings in one")
    parser.add_argument(
        "--cluster",
        metavar="NAME|FILE",
        help="a named cluster, or a cluster file (default: a container node that has the name NODE_NAME)",
    )
    add_release(parser, default=None, otherwise=f"the world file's, else {DEFAULT}")
    add_env(parser, sets_node_name=sets_node_name)
    parser.add_argument("--what-if", metavar="NAME", default=None, help="put a proposed upstream change on top")
    parser.add_argument("args", metavar="ARGS", nargs="*", help="after --: the program's own arguments (default: uninstall_driver)")


class ChosenWorld(NamedTuple):
    """What the command line asks to be run."""

    world: World
    release: str
    what_if: str


def choose_world(options: argparse.Namespace, *, sets_node_name: bool = False) -> ChosenWorld:
    """The world, the release and the what-if of `add_world`'s arguments. Raises InputError.

    `sets_node_name`: a host's world has NODE_NAME if nothing else is said, as every chart sets it. What is amiss with the
    variables and yet no error, since the real program takes it too, is told on standard error.
    """
    env = read_env(options.env)
    args = tuple(options.args)
    if options.world is not None:
        scenario = load_scenario(Path(options.world))
        world = _changed(scenario.world, options, env, args)
        release, what_if = scenario.release or DEFAULT, scenario.what_if
    else:
        cluster = load_cluster(options.cluster, env.get("NODE_NAME", "")) if options.cluster is not None else None
        world = make_world(_host(options), cluster, args=args, env=env)
        if sets_node_name:
            world = with_node_name_set(world)
        release, what_if = DEFAULT, ""
    release = check_release(options.release if options.release is not None else release)
    what_if = check_what_if(options.what_if if options.what_if is not None else what_if, release)
    remark_on_settings(world.env)
    if _lacks_node_name(world):
        remark("NODE_NAME is not set, and driver-manager stops without it; add --env NODE_NAME=gpu-1")
    return ChosenWorld(world, release, what_if)


def remark(text: str) -> None:
    """Say something beside the answer, on standard error."""
    sys.stderr.write(f"remark: {printable(text)}\n")


def with_node_name_set(world: World) -> World:
    """The world with NODE_NAME as every chart sets it: the node's own name. One that is set already stays."""
    name = world.cluster.node.name if world.cluster.node else ""
    return replace(world, env={"NODE_NAME": name, **world.env})


_ASKS_FOR_WORDS: Final = frozenset({"-h", "--help", "help", "-v", "--version"})


def _lacks_node_name(world: World) -> bool:
    """Will the program stop at once because nobody named its node? Not where it is only asked for its help."""
    is_flag = any(arg.lstrip("-").partition("=")[0] == "node-name" for arg in world.args)
    return "NODE_NAME" not in world.env and not is_flag and not _ASKS_FOR_WORDS & set(world.args)


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
        world = replace(world, cluster=load_cluster(options.cluster, settings.get("NODE_NAME", "")))
    return replace(world, env=settings, args=args or world.args)


def read_env(pairs: Iterable[str]) -> dict[str, str]:
    """`K=V` arguments. Raises InputError."""
    out = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InputError("", "", f'--env "{pair}" is no variable', "write --env NAME=VALUE")
        if "\0" in pair:
            raise InputError("", "", "--env holds a NUL character", "write --env NAME=VALUE")
        out[key] = value
    return out


def remark_on_settings(env: Iterable[str]) -> None:
    """Remark on each variable that no release reads. Once all is read: an error stands alone."""
    for text in unread_settings(env):
        remark(text)


def read_start(text: str) -> datetime.datetime:
    """`--start`: a date with time, in UTC if it says nothing else. Raises InputError."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise InputError("", "", f'--start "{text}" is no date', "write 2026-01-31T12:00:00Z") from None
    if not 1970 <= moment.year <= 9000:
        raise InputError("", "", f'--start "{text}" is out of range', "write a year from 1970 to 9000")
    return moment.replace(tzinfo=datetime.UTC) if moment.tzinfo is None else moment.astimezone(datetime.UTC)


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """A type of argument: whole numbers within bounds."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f'"{text:.40}" is no number from {low} to {high}')
        return value

    return read


def add_image(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """`--image REF`, its release, and how it is run."""
    parser.add_argument("--image", metavar="REF", required=required, help="a local image of driver-manager")
    parser.add_argument("--release", metavar="R", help="the image's release (default: what its label or tag says)")
    parser.add_argument("--no-tracer", action="store_true", help="observe from outside only, also where the tracer could be used")
    parser.add_argument("--jobs", metavar="N", type=whole_number(1, 256), default=JOBS, help=f"runs at once (default {JOBS})")


def find_image(options: argparse.Namespace) -> Image:
    """The image that is named, its release as the user says it if they do. Raises InputError."""
    image = look_up(options.image)
    if options.release is not None:
        image = replace(image, release=options.release)
    if options.no_tracer:
        image = replace(image, tracer=False)
    if not image.release:
        raise InputError("", "", f'neither a label nor the tag of "{options.image}" names a release', "write --release v0.13.0")
    return image


def read_cases_argument(folder: str | None, text: str) -> list[Recording]:
    """The driver-manager cases of a folder, else those that the package brings along, whose id holds a text. Raises InputError."""
    path = Path(folder) if folder is not None else fixtures() / "recordings"
    cases = [case for case in read_cases(path) if text in case.case]
    if not cases:
        raise InputError(
            str(path), "", f'holds no case of driver-manager whose id holds "{text}"', "name another folder, or another -k"
        )
    return cases
