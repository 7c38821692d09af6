"""`docs/findings/` and its worlds in `fixtures/findings/`: what can go wrong in each Go release, with a witness of each kind.

`python -m simulator.report.findings_page` walks the graphs of all Go releases within `findings.BOUNDS` and writes pages and
worlds (four minutes). A world is written only where an ordinary run has shown the property.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from simulator.explore.findings import BOUNDS, PROPERTIES, Finding, Found, Kind, Property, findings
from simulator.explore.label_values import CLASSES, results
from simulator.explore.stretches import End
from simulator.explore.walking import walk
from simulator.manager.kubernetes import KubeClient
from simulator.manager.releases import GO_RELEASES, flow
from simulator.report.comparison_markdown import table
from simulator.report.text import summary
from simulator.trace import Outcome
from simulator.world import World
from simulator.writing import world_document, yaml_text

_BY_HAND: Final = {
    "uncordon": "uninstallDriver",
    "uncordon_in_cleanup": "cleanupOnFailure",
    "uninstall_driver": "uninstallDriver",
}
"""Steps of the model that are a part of one of upstream's functions."""
TO_DO: Final = {
    "node-left-cordoned": "Look who cordoned the node (`dmsim diagnose` does), then `kubectl uncordon NODE`.",
    "foreign-cordon-lifted": "Where a node has to stay cordoned, set `ENABLE_GPU_POD_EVICTION` and `ENABLE_AUTO_DRAIN` to false, or"
    " let the operator's upgrade policy own eviction: then driver-manager does not uncordon.",
    "operands-left-paused": "The next run restores the labels, if it gets that far. By hand: set each `nvidia.com/gpu.deploy.*` label"
    " whose value holds `paused-for-driver-upgrade` to `true` again.",
    "success-with-a-failure": "Do not take exit code 0 for a clean run: look for `level=warning` and `level=error` in the log.",
    "modules-half-unloaded": "Find out who holds the module (`lsof /dev/nvidia*`), end it, and let the init container run again.",
    "panics": "The panic leaves labels and cordon as they were at that moment. Mend what the last lines name, then let the init"
    " container run again; uncordon by hand.",
    "never-ends": "Set `DRAIN_TIMEOUT_SECONDS`; watch init containers that have been running for long.",
}
"""Property -> what to do about it."""
_UNPROVEN: Final = (
    "In the graph a path leads there, and none of the ordinary runs that were tried did: the made-up world allows more than a"
    " world file can say, or the path is one of the rarer cases that are told apart by time.\n"
)
NAMES: Final = {one.name: one for one in PROPERTIES}


class Way(NamedTuple):
    """A kind of way, its witness's name, and in which releases it is."""

    kind: Kind
    world: World
    by_release: Mapping[str, Outcome]


def surveyed(releases: Iterable[str] = GO_RELEASES, say: Callable[[str], object] = lambda _line: None) -> dict[str, Found]:
    """Release -> what is found in it. A later release's witness is an earlier one's where that does."""
    known: dict[tuple[str, Kind], World] = {}
    out = {}
    for release in releases:
        out[release] = findings(walk(flow(release), BOUNDS), known)
        known = {key: one.world for key, one in out[release].proven.items()} | known
        say(f"{release}: {len(out[release].proven)} kinds proven, {len(out[release].unproven)} not")
    return out


def ways(found: Mapping[str, Found]) -> dict[str, dict[str, Way]]:
    """Property -> name of the world -> the way."""
    out: dict[str, dict[str, Way]] = {name: {} for name in NAMES}
    for release, one in found.items():
        for (name, kind), finding in one.proven.items():
            _add(out[name], f"{name}-{_slug(kind)}", release, finding)
    return out


def _add(there: dict[str, Way], file: str, release: str, finding: Finding) -> None:
    if file in there and there[file].world != finding.world:
        file = f"{file}-{release}"
    before = there[file].by_release if file in there else {}
    there[file] = Way(finding.kind, finding.world, {**before, release: finding.outcome})


def _slug(kind: Kind) -> str:
    manner = "fails" if kind.failed else "acts"
    return f"{kind.function.replace('_', '-')}-{manner}-{_ending(kind.end).replace(' ', '-')}"


def _ending(end: End) -> str:
    if end.exit_code is None:
        return "endless"
    return "panic" if end.panics else f"exit {end.exit_code}"


def upstream_of(function: str, release: str) -> str:
    """A function of upstream's with its file, for a step or client method of the model."""
    if function in _BY_HAND:
        return f"`{_BY_HAND[function]}` (cmd/driver-manager/main.go)"
    resolved = flow(release)
    if hasattr(KubeClient, function):
        name = "".join(part.capitalize() for part in function.split("_"))
        return f"`{name}` (internal/kubernetes/client.go)"
    classes = [vars(cls)[function] for cls in resolved.steps.__mro__ if function in vars(cls)]
    texts = (re.match(r"`(\w+)`", inspect.getdoc(method) or "") for method in classes)
    named = next((text[1] for text in texts if text), "uninstallDriver")
    return f"`{named}` (cmd/driver-manager/main.go)"


def _head(one: Property) -> str:
    return f"""\
# {one.title}

Within the bounds of this page, which paths of a release lead there: every path was walked, the kinds below are all there are.
Bounds: {BOUNDS.faults} fault, {BOUNDS.pods} pod beside the operands', what is waited for comes at once or never,\
 {BOUNDS.modules} module beside nvidia, all operand labels
alike (`true`, or absent), no signal. A kind is named after upstream's function in which the last failure lies or, where nothing
failed, in which the run takes the step. Each witness is the path of its kind with the fewest unusual answers, and an ordinary
run shows it. Generated by `make pages`; do not edit.
"""


def page(one: Property, found: Mapping[str, Found], all_ways: Mapping[str, Way]) -> str:
    """The page of a property."""
    out = [_head(one)]
    rows = []
    for release in found:
        count = sum(release in way.by_release for way in all_ways.values())
        unproven = sum(name == one.name for name, _ in found[release].unproven)
        rows.append((release, "yes" if count else "no", str(count), str(unproven)))
    out += [table(("release", "can it happen?", "kinds", "paths' kinds without a witness"), rows) + "\n"]
    out += [f"**What to do.** {TO_DO[one.name]}\n"]
    for file, way in sorted(all_ways.items(), key=lambda item: (_is_odd(item[1]), item[0])):
        out += _one(file, way)
    missing = sorted({_named(kind, release) for release in found for name, kind in found[release].unproven if name == one.name})
    if missing:
        out += [
            "## Without a witness\n",
            _UNPROVEN,
            "\n".join(f"* {text}" for text in missing) + "\n",
        ]
    return "\n".join(out)


def _is_odd(way: Way) -> bool:
    return way.kind.failed


def _named(kind: Kind, release: str) -> str:
    how = "fails" if kind.failed else "without a failure of its own"
    return f"{upstream_of(kind.function, release)}, {how}; {_ending(kind.end)}"


def _one(file: str, way: Way) -> Iterator[str]:
    newest = list(way.by_release)[-1]
    outcome = way.by_release[newest]
    yield f"## {file}\n"
    yield f"{_named(way.kind, newest)}. In {', '.join(way.by_release)}.\n"
    lines = [line for line in outcome.log if line.level in {"warning", "error", "fatal"}] or outcome.log[-1:]
    yield "One sees:\n"
    yield "".join(f"    {line.level}: {part}\n" for line in lines[-4:] for part in line.message[:300].splitlines()[:3])
    yield "```console"
    yield f"$ .venv/bin/dmsim run --world fixtures/findings/{file}.yaml --release {newest}"
    yield "..."
    yield "\n".join(summary(outcome))
    yield "```\n"


def index(found: Mapping[str, Found]) -> str:
    """The pages, and by release which of them it can have."""
    rows = []
    for one in PROPERTIES:
        counts = (sum(name == one.name for name, _ in found[release].proven) for release in found)
        rows.append((f"[{one.title}]({one.name}.md)", *(str(count) if count else "no" for count in counts)))
    return f"""\
# What can go wrong

Every path of each Go release, asked for what an operator of a cluster does not want. The figures are the kinds of ways that lead
there, each with a world file in `fixtures/findings/` in which one run shows it. "no": no path within the bounds does.

{table(("what", *found), rows)}

For three of them there is a report that can be filed upstream:
[the full drain panics](reports/full-drain-panics.md), [the kubelet plugin stays paused](reports/kubelet-plugin-left-paused.md),
[a foreign cordon is lifted](reports/foreign-cordon-lifted.md).

Which values a label can take is on [a page of its own](label-values.md). Generated by `make pages`; do not edit.
"""


def label_page() -> str:
    """What pausing and restoring make of a label's value, by class of value."""
    rows = [
        (name, f"`{value}`" if value else "(absent)", *(f"`{text}`" if text else "(empty)" for text in results(value)))
        for name, value in CLASSES.items()
    ]
    return f"""\
# Which values a label can take

A run patches the operands' labels at most three times: it pauses them, pauses the kubelet plugin's (v0.12.0), restores them. A
patch happens as a whole or not at all, so a label ends as it was, paused, or restored. No branch depends on more of a value than
whether it is empty: paths are the same for all values of a class. The last column is what the next run makes of a value that was left
paused. Upstream: `maybeSetPaused`, `maybeSetTrue` (cmd/driver-manager/main.go), alike in all Go releases.

{table(("class", "value", "paused", "restored", "restored by the next run"), rows)}

What stands out: a value is restored to something else where its underscores are at an end, and a label whose value held the
suffix twice loses both. An absent label that is always patched comes back as an empty one. Generated by `make pages`; do not edit.
"""


def texts(found: Mapping[str, Found]) -> dict[str, str]:
    """File below the project's root -> its text."""
    out = {"docs/findings/README.md": index(found), "docs/findings/label-values.md": label_page()}
    for name, there in ways(found).items():
        out[f"docs/findings/{name}.md"] = page(NAMES[name], found, there)
        for file, way in there.items():
            comment = f"{NAMES[name].title}: docs/findings/{name}.md. Generated by make pages."
            out[f"fixtures/findings/{file}.yaml"] = yaml_text(
                world_document(way.world, release=next(iter(way.by_release))), [comment]
            )
    return out


def main() -> None:
    """Write pages and worlds."""
    root = Path(__file__).parents[2]
    for name, text in texts(surveyed(say=lambda line: sys.stderr.write(f"{line}\n"))).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
