"""Hold a real driver-manager image against the model of its release, and name the first difference of each world.

Without --random the recorded cases are run (CASES: a folder with cases/ID.json, or a packed one; default: those that
dmsim brings along). With --random N worlds are drawn, N of them, the same for the same seed; each kind of difference is
made as small as it can be and written to OUT/difference-1.yaml and so on, for `dmsim run --world`.

Example:
  dmsim verify --image nvcr.io/nvidia/cloud-native/k8s-driver-manager:v0.10.0
  dmsim verify --image localhost/driver-manager:v0.10.0 --random 500 --seed 1
  dmsim verify --image localhost/driver-manager:v0.10.0 --world difference-1.yaml
  dmsim verify --recorded recorded/v0.13.0 --release v0.12.0
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from simulator.cli import colour
from simulator.cli.arguments import add_image, add_output, find_image, read_cases_argument, whole_number
from simulator.manager.releases import GO_RELEASES, flow
from simulator.naming import check_release
from simulator.progress import progress
from simulator.reading import InputError, nearest
from simulator.recordings.layout import write_whole
from simulator.report.verification import Written, said, verification_document, verification_lines
from simulator.scenario import load_scenario
from simulator.verifying.case_runs import judge_case, recorded_in, run_now
from simulator.verifying.judging import Model, Tally, Verdict, judge, judge_all, plain
from simulator.verifying.random_runs import Difference, different, judge_world, smallest
from simulator.writing import world_document, yaml_text

_SHRINK_RUNS: Final = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_image(parser, required=False)
    parser.add_argument("--recorded", metavar="DIR", help="instead of --image: a folder of ID.json that `dmsim record` wrote")
    parser.add_argument("cases", metavar="CASES", nargs="?", help="a folder of cases (default: those that dmsim brings along)")
    parser.add_argument(
        "--without",
        metavar="NAME",
        action="append",
        default=[],
        help="leave a named change out of the model, to see that it is missed",
    )
    parser.add_argument("-k", metavar="TEXT", dest="text", default="", help="only cases whose id holds TEXT")
    parser.add_argument(
        "--world", metavar="FILE", action="append", default=[], help="a world file instead, as --random writes; may be repeated"
    )
    parser.add_argument("--random", metavar="N", type=whole_number(1, 100_000), help="draw N worlds instead")
    parser.add_argument(
        "--seed", metavar="S", type=whole_number(0, 2**63), default=0, help="with --random: which worlds (default 0)"
    )
    parser.add_argument(
        "--shrink-runs",
        metavar="N",
        type=whole_number(0, 10_000),
        default=_SHRINK_RUNS,
        help=f"with --random: how many smaller worlds are tried for each kind of difference (default {_SHRINK_RUNS})",
    )
    parser.add_argument("--out", metavar="DIR", default=".", help="with --random: where the smallest worlds go (default: here)")
    add_output(parser, "json")


def run(options: argparse.Namespace) -> int:
    """Verify. Exits 1 if anything differs, or if nothing was compared."""
    if (options.image is None) == (options.recorded is None):
        raise InputError("", "", "one of --image and --recorded is needed", "name the image to verify")
    cases_are_meant = options.recorded is not None or options.cases is not None or bool(options.text)
    if [cases_are_meant, options.random is not None, bool(options.world)].count(True) > 1:
        raise InputError("", "", "--random, --world and cases are three things to run on an image", "name one of them")
    if options.random is not None:
        return _run_random(options)
    return _run_files(options) if options.world else _run_cases(options)


def _run_cases(options: argparse.Namespace) -> int:
    cases = read_cases_argument(options.cases, options.text)
    if options.image is not None:
        image = find_image(options)
        model, observe = _model(image.release, options), run_now(image)
        settings = {"jobs": options.jobs, "cancel": image.cancel}
    else:
        folder = Path(options.recorded)
        if not folder.is_dir():
            raise InputError(str(folder), "", "is no folder", "name the folder of a release that `dmsim record` wrote")
        model, observe = _model(options.release or folder.name, options), recorded_in(folder)
        settings = {"jobs": 1, "attempts": 1}
    found = judge_all(cases, lambda case: judge_case(case, observe, model), **settings)
    return _report(options, model, sorted(_shown(found, len(cases)), key=lambda verdict: verdict.name))


def _run_files(options: argparse.Namespace) -> int:
    image = find_image(options)
    model = _model(image.release, options)
    worlds = [(file, load_scenario(Path(file)).world) for file in options.world]
    found = judge_all(
        worlds,
        lambda item: judge(item[0], item[1], lambda: plain(image(item[1])), model),
        jobs=options.jobs,
        cancel=image.cancel,
    )
    return _report(options, model, sorted(_shown(found, len(worlds)), key=lambda verdict: options.world.index(verdict.name)))


def _run_random(options: argparse.Namespace) -> int:
    try:
        from simulator.verifying.random_worlds import draw, short, worlds  # noqa: PLC0415  # needs an extra
    except ImportError:
        raise InputError("", "", "drawing worlds needs Hypothesis", 'pip install "driver-manager-simulator[container]"') from None
    image = find_image(options)
    model = _model(image.release, options)
    drawn = draw(options.random, options.seed, short(worlds))
    found = judge_all(
        enumerate(drawn, 1),
        lambda item: judge_world(f"world {item[0]}", item[1], image, model),
        jobs=options.jobs,
        cancel=image.cancel,
    )
    verdicts = sorted(_shown(found, len(drawn)), key=lambda verdict: int(verdict.name.rpartition(" ")[2]))
    written = []
    for number, difference in enumerate(different(verdicts), 1):
        path = Path(options.out) / f"difference-{number}.yaml"
        write_whole(path, _scenario(difference, options, model))  # should the next step be interrupted
        sys.stderr.write(f"making {path} small\n")
        small = smallest(difference, image, model, runs=options.shrink_runs, jobs=options.jobs)
        write_whole(path, _scenario(small, options, model))
        written.append((small, str(path)))
    return _report(options, model, verdicts, written)


def _scenario(difference: Difference, options: argparse.Namespace, model: Model) -> str:
    comments = [
        f"Image {options.image} and the model of {model.release} differ in this world"
        + (f", without {', '.join(sorted(model.without))}:" if model.without else ":"),
        *(f"  {said(mismatch)}" for mismatch in difference.verdict.found),
        f"From {difference.verdict.name} of --seed {options.seed}, after {difference.tried} smaller worlds were tried.",
    ]
    assert difference.verdict.world is not None
    return yaml_text(world_document(difference.verdict.world, release=model.release), comments)


def _model(release: str, options: argparse.Namespace) -> Model:
    if check_release(release) not in GO_RELEASES:
        first = next(iter(GO_RELEASES))
        raise InputError("", "", f"{release} is a script, which is not verified against an image", f"verify {first} or newer")
    known = {change.name for change in flow(release).changes}
    for name in options.without:
        if name not in known:
            raise InputError("", "", f'{release} has no named change "{name}"', nearest(name, known))
    return Model(release, frozenset(options.without))


def _shown(verdicts: Iterable[Verdict], number: int) -> Iterator[Verdict]:
    """The verdicts as they come: a line each in a log; at a terminal a bar, and a line for what is not equal."""
    with progress("verify", number) as bar:
        for index, verdict in enumerate(bar.over(verdicts), 1):
            if not bar.is_at_terminal or verdict.found or verdict.broken:
                bar.clear()
                first = f": {said(verdict.found[0])}" if verdict.found else ""
                sys.stderr.write(f"{index}/{number} {verdict.name} {verdict.word}{first}\n")
            yield verdict


def _report(options: argparse.Namespace, model: Model, verdicts: Sequence[Verdict], written: Sequence[Written] = ()) -> int:
    tally = Tally()
    for verdict in verdicts:
        tally.count(verdict)
    if options.output == "json":
        sys.stdout.write(json.dumps(verification_document(model, tally, verdicts, written), indent=2) + "\n")
    else:
        colour.write(verification_lines(tally, verdicts, written), colour.RECORDED, options)
    return 0 if tally.passed else 1
