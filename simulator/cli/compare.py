"""What changes between two releases: for one node, or for every recorded case and named host.

Each difference is traced to the named change that is responsible. Exits 1 if a difference has no named change.

With --exhaustive in worlds made so that their runs go through every stretch of either release.

Example:
  dmsim compare v0.10.0 v0.12.0
  dmsim compare v0.9.0 v0.9.1 --exhaustive
  dmsim compare v0.10.0 v0.12.0 --host runfile-580 --env ENABLE_GPU_POD_EVICTION=false
  dmsim compare --chart v26.3.1 v26.7.0 -o markdown
  git diff main | dmsim compare --diff - -o markdown
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final

from simulator.cli import colour
from simulator.cli.arguments import add_output, read_env, remark_on_settings
from simulator.explore.covering import covering
from simulator.explore.made_up import Bounds
from simulator.manager.charts import CHARTS
from simulator.manager.releases import GO_RELEASES, RELEASES, flow, modelled
from simulator.naming import check_release
from simulator.progress import progress
from simulator.reading import InputError, nearest
from simulator.report.attribution import Attribution
from simulator.report.bumps import Bump, find_bumps
from simulator.report.comparison import (
    FORMAT,
    NODE_NAME,
    Compared,
    Subject,
    Survey,
    Title,
    compare,
    compared_document,
    named_hosts,
    recorded_cases,
    survey,
    survey_document,
)
from simulator.report.comparison_markdown import compared_markdown, survey_markdown
from simulator.report.comparison_text import compared_lines, survey_lines
from simulator.report.trials import DriverManagerTrial
from simulator.scenario import load_cluster, load_host, load_scenario, make_world
from simulator.world import World
from simulator.writing import world_document, write_file, yaml_text

NO_BUMP: Final = "no bump of k8s-driver-manager or of the gpu-operator chart in this diff"
_LARGEST_DIFF: Final = 64 * 2**20
_BOUNDS: Final = (
    ("faults", 1, "so many requests or system calls fail"),
    ("pods", 1, "so many pods that are no operand's"),
    ("polls", 1, "so many polls until what is waited for is there"),
    ("labels", 0, "so many operand labels are not as the others are"),
    ("odd_pods", 0, "so many pods are not plain GPU pods"),
    ("modules", 1, "so many modules are loaded beside nvidia"),
)
"""What bounds the paths, with small defaults: each witness costs runs of both releases and of what lies between."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("versions", metavar="R1 R2", nargs="*", help=f"two upstream tags, in either order: {', '.join(RELEASES)}")
    parser.add_argument("--chart", action="store_true", help="R1 and R2 are versions of the GPU Operator chart")
    parser.add_argument(
        "--diff", metavar="FILE", help="read the two from a unified diff that bumps image or chart (- for standard input)"
    )
    world = parser.add_mutually_exclusive_group()
    world.add_argument("--host", metavar="NAME|FILE", help="one named host, or a host file (default: all cases and named hosts)")
    world.add_argument("--world", metavar="FILE", help="a world file: host, cluster and settings in one")
    parser.add_argument("--cluster", metavar="NAME|FILE", help="with --host: a named cluster, or a cluster file")
    parser.add_argument(
        "--env", metavar="K=V", action="append", default=[], help="with --host: a variable of the program; may be repeated"
    )
    parser.add_argument("--exhaustive", action="store_true", help="in witnesses of every stretch of both, which are Go releases")
    for name, usual, meaning in _BOUNDS:
        parser.add_argument(
            f"--{name.replace('_', '-')}", metavar="N", type=int, help=f"with --exhaustive: {meaning} (default {usual})"
        )
    parser.add_argument("--out", metavar="DIR", help="with --exhaustive: write the smallest world of each change there")
    add_output(parser, "json", "markdown")


def run(options: argparse.Namespace) -> int:
    """Compare. Exits 1 if any difference has no named change."""
    subject = _subject(options)
    bounds = _bounds(options)
    if options.diff is not None:
        return _run_diff(options, subject)
    if len(options.versions) != 2:
        problem = f"two versions are needed, not {len(options.versions)}"
        raise InputError("", "", problem, "write dmsim compare v0.10.0 v0.12.0, or dmsim compare --chart v26.3.1 v26.7.0")
    title = chart_title(*options.versions) if options.chart else Title(*map(check_release, options.versions))
    found = _exhaustive(title, bounds, options.out) if bounds is not None else _found(title, subject)
    if options.output == "json":
        sys.stdout.write(json.dumps(_document(found), indent=2) + "\n")
    else:
        _write(found, options)
    return 1 if _is_unnamed(found) else 0


def _bounds(options: argparse.Namespace) -> Bounds | None:
    """What bounds the paths; None where they are not asked for. Raises InputError."""
    given = {name: value for name, _, _ in _BOUNDS if (value := getattr(options, name)) is not None}
    if not options.exhaustive:
        if given or options.out is not None:
            flag = f"--{next(iter(given), 'out').replace('_', '-')}"
            raise InputError("", "", f"{flag} belongs to --exhaustive", "add --exhaustive, or leave it out")
        return None
    if options.host is not None or options.world is not None or options.diff is not None:
        raise InputError("", "", "--exhaustive makes its worlds itself", "leave --host, --world and --diff out")
    for name, value in given.items():
        if value < 0:
            raise InputError("", "", f"--{name.replace('_', '-')} is {value}", "give 0 or more")
    return Bounds(**{name: given.get(name, usual) for name, usual, _ in _BOUNDS})


def _exhaustive(title: Title, bounds: Bounds, folder: str | None) -> Survey:
    """Both releases in worlds whose runs go through every stretch of either. Raises InputError."""
    for release in (title.left, title.right):
        if release not in GO_RELEASES:
            raise InputError(
                "", "", f"{release} is a shell release, whose paths are not walked", f"name {' or '.join(GO_RELEASES)}"
            )
    worlds: dict[str, tuple[str, World]] = {}
    for release in dict.fromkeys((title.left, title.right)):
        with progress(f"{release}: runs", None) as bar:
            covered = covering(flow(release), bounds, bar.advance)
        worlds |= {repr(world): (f"path {number} of {release}", world) for number, world in enumerate(covered.worlds, 1)}
    subjects = []
    for name, world in worlds.values():
        subjects.append(Subject(name, DriverManagerTrial(world), len(repr(world)), is_path=True))
    with progress(f"{title.left} -> {title.right}", len(subjects)) as bar:
        found = survey(title, bar.over(subjects))
    if folder is not None:
        _write_worlds(found, Path(folder))
    return found


def _write_worlds(found: Survey, folder: Path) -> None:
    """The smallest world of each change, and each that no change explains. Raises InputError."""
    named = {group.named.change.name: group.smallest for group in found.groups}
    named |= {f"unnamed-{number}": compared for number, compared in enumerate(found.unnamed, 1)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(str(folder), "", f"cannot be made: {error.strerror}", "name another folder") from None
    for name, compared in named.items():
        trial = compared.subject.trial
        assert isinstance(trial, DriverManagerTrial)
        write_file(str(folder / f"{name}.yaml"), yaml_text(world_document(trial.world, release=found.title.right)))


@dataclasses.dataclass(frozen=True, slots=True)
class _One:
    """Two releases in the one world that was asked for."""

    title: Title
    compared: Compared


def _run_diff(options: argparse.Namespace, subject: Subject | None) -> int:
    if options.versions or options.chart:
        raise InputError("", "", "--diff finds the two versions itself", "leave R1, R2 and --chart out")
    bumps = find_bumps(_read_diff(options.diff))
    problems: list[str] = []
    founds = [_found(title, subject) for title in _titles(bumps, problems)]
    if options.output == "json":
        document = {
            "format": FORMAT,
            "bumps": [bump._asdict() for bump in bumps],
            "problems": problems,
            "comparisons": [_document(found) for found in founds],
        }
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    elif founds or problems:
        mark = "**Not compared:** " if options.output == "markdown" else "not compared: "
        parts: list[Callable[[], object]] = [partial(_write, found, options) for found in founds]
        parts += [partial(sys.stdout.write, f"{mark}{problem}\n") for problem in problems]
        for number, part in enumerate(parts):
            sys.stdout.write("\n" if number else "")
            part()
    elif options.output == "text":
        sys.stdout.write(f"{NO_BUMP}\n")
    return 1 if any(map(_is_unnamed, founds)) else 0


def _read_diff(path: str) -> str:
    """A diff's text, whatever the encodings of the files in it. Raises InputError."""
    try:
        with open(0 if path == "-" else path, "rb", closefd=path != "-") as file:
            raw = file.read(_LARGEST_DIFF + 1)
    except (OSError, ValueError) as error:
        problem = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InputError(path, "", problem, "name a file, or - for standard input") from None
    if len(raw) > _LARGEST_DIFF:
        raise InputError(path, "", f"is larger than {_LARGEST_DIFF // 2**20} MiB", "give the diff of the files that name a version")
    return raw.decode("utf-8", "replace")


def _titles(bumps: Iterable[Bump], problems: list[str]) -> list[Title]:
    """Each comparison that the bumps ask for, once. What cannot be compared is a problem, not an error."""
    titles: dict[Title, None] = {}
    for bump in bumps:
        if bump.is_digest:
            problems.append(f"{bump}: a digest says nothing about the release; write the tag before it, image:tag@digest")
            continue
        try:
            title = chart_title(bump.old, bump.new) if bump.is_chart else Title(check_release(bump.old), check_release(bump.new))
        except InputError as error:
            problem = f"{bump}: {error}"
            if problem not in problems:
                problems.append(problem)
        else:
            titles.setdefault(title)
    return list(titles)


def chart_title(left: str, right: str) -> Title:
    """Two charts and the releases they bring. Raises InputError."""
    one, other = _chart(left), _chart(right)
    return Title(check_release(CHARTS[one].driver), check_release(CHARTS[other].driver), one, other)


def _chart(version: str) -> str:
    name = version if version.startswith("v") else f"v{version}"
    if name not in CHARTS:
        raise InputError("", "", f'there is no GPU Operator chart "{version}"', nearest(name, CHARTS))
    unknown = sorted({release for release in CHARTS[name].releases.values() if modelled(release) is None})
    if unknown:
        known = [chart.version for chart in CHARTS.values() if all(map(modelled, chart.releases.values()))]
        raise InputError(
            "",
            "",
            f"chart {name} brings k8s-driver-manager {' and '.join(unknown)}, a release that is not modelled",
            f"name one of {', '.join(known)}",
        )
    return name


def _subject(options: argparse.Namespace) -> Subject | None:
    """The one world that was asked for, or None for all there are. Raises InputError."""
    env = read_env(options.env)
    if options.world is not None:
        if options.cluster is not None or env:
            raise InputError("", "", "--world holds cluster and variables itself", "leave --cluster and --env out, or use --host")
        return Subject(f"world {options.world}", DriverManagerTrial(load_scenario(Path(options.world)).world), 0)
    if options.host is None:
        if options.cluster is not None or env:
            raise InputError("", "", "--cluster and --env belong to one host", "name it with --host")
        return None
    env = {"NODE_NAME": NODE_NAME, **env}
    cluster = load_cluster(options.cluster, env["NODE_NAME"]) if options.cluster is not None else None
    name = f"host {options.host}" + (f", cluster {options.cluster}" if options.cluster is not None else "")
    world = make_world(load_host(options.host), cluster, env=env)
    remark_on_settings(env)
    return Subject(name, DriverManagerTrial(world), 0)


def _found(title: Title, subject: Subject | None) -> _One | Survey:
    if subject is None:
        subjects = [*recorded_cases(), *named_hosts()]
        with progress(f"{title.left} -> {title.right}", len(subjects)) as bar:
            return survey(title, bar.over(subjects))
    attribution = Attribution(title.left, title.right)
    return _One(title, compare(subject, attribution, title.left))


def _is_unnamed(found: _One | Survey) -> bool:
    return found.compared.unnamed is not None if isinstance(found, _One) else bool(found.unnamed)


def _document(found: _One | Survey) -> dict[str, Any]:
    if isinstance(found, _One):
        return compared_document(found.title, found.compared)
    return survey_document(found)


def _write(found: _One | Survey, options: argparse.Namespace) -> None:
    if options.output == "markdown":
        sys.stdout.write(compared_markdown(found.title, found.compared) if isinstance(found, _One) else survey_markdown(found))
        return
    lines = compared_lines(found.title, found.compared) if isinstance(found, _One) else survey_lines(found)
    colour.write(lines, colour.COMPARISON, options)
